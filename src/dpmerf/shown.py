"""Shown: how a thing looks in a prompt and in a notebook. What is shown is public."""

from __future__ import annotations

import html
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any


class Shown:
    """Gives `repr` and a notebook's table to a class that says its facts, each with a word for it."""

    __slots__ = ()

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """What there is to know at a glance, in order. Only public things."""

    def details(self) -> Mapping[str, Any]:
        """What a notebook shows; the facts, if there is no more to say."""
        return self.facts()

    def __repr__(self) -> str:
        told = ", ".join(f"{word}={_short(value)}" for word, value in self.facts().items())
        return f"{type(self).__name__}({told})"

    def _repr_html_(self) -> str:
        """For notebooks: a small table, everything escaped."""
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(word)}</th>'
            f'<td style="text-align:left">{html.escape(_short(value, 400))}</td></tr>'
            for word, value in self.details().items()
        )
        return f"<table><caption><b>{html.escape(type(self).__name__)}</b></caption><tbody>{rows}</tbody></table>"


def _short(value: Any, most: int = 100) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = " ".join(str(value).split())
        return text if len(text) <= most else f"{text[: most - 1]}…"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
