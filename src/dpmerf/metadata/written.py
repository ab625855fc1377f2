"""Written: how metadata says that cells are written, as facts: patterns of dates, words for true and false."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from dpmerf.schema.notation import Notation

_ISO = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S%z",
    "%H:%M:%S",
    "%H:%M",
)
_UNICODE = {  # the letters of CSVW (Unicode's) for those of strptime
    "yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H",
    "H": "%H", "hh": "%I", "mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "a": "%p",
}  # fmt: skip


def dates(pattern: Any) -> tuple[dict[str, Any], list[str]]:
    """A pattern of strptime as the fact that says so, or a note where it cannot be read by.

    >>> dates("%d.%m.%Y"), dates("%Y-%m-%d"), dates("%j of %Y")
    (({'reading': {'date': ['%d.%m.%Y']}}, []), ({}, []), ({}, ['written as %j of %Y']))
    """
    if not isinstance(pattern, str) or pattern in _ISO:
        return {}, []
    try:
        Notation(date=(pattern,))
    except ValidationError:
        return {}, [f"written as {pattern}"]
    return {"reading": {"date": [pattern]}}, []


def from_unicode(pattern: str) -> str:
    """A pattern of CSVW in strptime's letters.

    >>> from_unicode("M/d/yyyy HH:mm")
    '%m/%d/%Y %H:%M'
    """
    return re.sub(r"y+|M+|d+|H+|h+|m+|s+|a", lambda part: _UNICODE.get(part[0], part[0]), pattern)


def truths(true: Any, false: Any) -> dict[str, Any]:
    """Words for true and false as synonyms; none where they are understood anyway.

    >>> truths(["YES"], ["NO"]), truths(["true"], ["false"]), truths("x", None)
    ({'synonyms': {'YES': True, 'NO': False}}, {}, {'synonyms': {'x': True}})
    """
    listed = [(word, value) for words, value in ((true, True), (false, False)) for word in _list(words)]
    own = {word: value for word, value in listed if word.strip() and word.lower() not in ("true", "false", "1", "0")}
    return {"synonyms": own} if own else {}


def _list(words: Any) -> list[str]:
    found = words if isinstance(words, list) else [words]
    return [word for word in found if isinstance(word, str)]
