"""Plain text: names come from other people's files, and a terminal obeys what it is sent."""

from __future__ import annotations

import re
from typing import Any, final

from rich.console import Console
from rich.text import Text

# Control characters but for tab and line feed, marks that turn the direction of writing, lone surrogates.
_ACTIVE = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def plain(text: object) -> str:
    """The same words, with whatever a terminal would obey written out.

    >>> plain("a" + chr(27) + "[31mb") == "a" + chr(92) + "x1b[31mb"
    True
    """
    return _ACTIVE.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


@final
class PlainConsole(Console):
    """Tables in which no name is markup or a command to the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:  # type: ignore[override]
        return super().render_str(plain(text), **{**options, "markup": False, "emoji": False})
