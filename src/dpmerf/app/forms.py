"""Forms: what was typed into the page as facts of a schema, and back. Nothing here has seen a row."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from dpmerf.schema import GAP, KINDS
from dpmerf.schema.facts import Facts, TableFacts, needs

WORDS = {name: kind.title for name, kind in KINDS.items() if kind.title}
INPUTS = {name: KINDS[name].asks for name in WORDS}  # what the page asks for, by kind
BOXES = {  # a key's words, what stands in an empty box, and the keyboard that a phone shows
    "values": ("Values, one a line (or a list: codes.csv)", "", ""),
    "other": ("Anything else becomes", "other", ""),
    "min": ("Smallest", "0", "decimal"),
    "max": ("Largest", "120", "decimal"),
    "decimals": ("Decimals", "any", "numeric"),
    "first": ("Earliest", "", ""),
    "last": ("Latest", "", ""),
    "step": ("Step", "1", "numeric"),
    "pattern": ("Looks like", "P[0-9]{7}", ""),
    "log": ("many small, few large", "", ""),
    "nullable": ("may be missing", "", ""),
}
ASKING = {key: " ".join(kind for kind, keys in INPUTS.items() if key in keys) for key in BOXES}  # kinds, by key
ASKING["nullable"] = " ".join(kind for kind in WORDS if kind != "id")
EXAMPLES = {kind: KINDS[kind].example for kind in WORDS}  # of a first and a last, by kind
READING: dict[str, tuple[str, str]] = {  # how a file is written: the page's words, and what stands in an empty box
    "delimiter": ("Between columns", "guessed: , ; or tab"),
    "encoding": ("Encoding", "guessed: utf-8, cp1252, …"),
    "decimal": ("Decimal mark", "."),
    "thousands": ("Between thousands", "none"),
    "unit": ("Units beside numbers", "€ | EUR"),
    "date": ("Dates look like", "2024-12-31, else %d.%m.%Y"),
    "zone": ("Time zone", "UTC, else Europe/Berlin"),
    "missing": ("Words for a missing cell", "NA | unknown"),
    "sheet": ("Sheet of an Excel file", "the only one"),
    "table": ("Table of a database", "the only one"),
}
_LIST = re.compile(r".+\.(csv|txt)(#.+)?|list:.+", re.IGNORECASE)  # not a value, but where values stand
_SEVERAL = ("unit", "date", "missing")  # separated by |
Typed = dict[str, str]  # the boxes of one column, as typed


def facts(typed: Typed, stored: pa.DataType | None = None, more: dict[str, Any] | None = None) -> Facts:
    """The boxes of one column as facts, and `more` that has no box; an empty box that is needed is a gap.

    >>> facts({"kind": "integer", "min": "0", "max": "", "nullable": "on"}).written()
    {'kind': 'integer', 'min': 0, 'max': '?', 'nullable': True}
    """
    kind = typed.get("kind", "")
    if kind not in WORDS:
        return Facts(None)
    known: dict[str, Any] = {}
    for key in INPUTS[kind]:
        text = typed.get(key, "").strip()
        if text and key == "log":
            known[key] = True
        elif text:
            known[key] = _value(kind, key, text, stored)
    if typed.get("nullable") and kind != "id":
        known["nullable"] = True
    if typed.get("dtype"):
        known["dtype"] = typed["dtype"]
    rest = {} if more is None or more.get("kind") != kind else {k: v for k, v in more.items() if k != "kind"}
    return Facts(kind, {**rest, **known})


def unasked(found: Facts) -> dict[str, Any]:
    """Facts that the page has no box for, with the kind that they belong to.

    >>> unasked(Facts("flag", {"synonyms": {"ja": True}, "nullable": True}))
    {'kind': 'flag', 'synonyms': {'ja': True}}
    """
    rest = {key: value for key, value in found.known.items() if key not in BOXES and key != "dtype"}
    return {"kind": found.kind, **rest} if rest else {}


def rules_of(relations: Iterable[dict[str, Any]]) -> str:
    """Relations that somebody else declared, one a line, as the page has them typed: rules alone."""
    return "\n".join(str(relation["rule"]) for relation in relations if "rule" in relation)


def typed(found: Facts) -> Typed:
    """Facts as the boxes show them."""
    boxes: Typed = {"kind": found.kind or ""}
    for key, value in found.written().items():
        if key == "kind" or value in (GAP, [GAP]):
            continue
        if isinstance(value, bool):
            boxes[key] = "on" if value else ""
        elif isinstance(value, list | tuple):
            boxes[key] = "\n".join(map(str, value))
        elif isinstance(value, dt.datetime):
            boxes[key] = value.isoformat(timespec="seconds")
        else:
            boxes[key] = str(value)
    return boxes


def reading(typed: Typed) -> dict[str, Any]:
    """The boxes on how the file is written; an empty one says nothing.

    >>> reading({"decimal": ",", "missing": "NA | -", "thousands": ""})
    {'decimal': ',', 'missing': ['NA', '-']}
    """
    told = {key: typed.get(key, "").strip() for key in READING}
    return {
        key: [part.strip() for part in text.split("|") if part.strip()] if key in _SEVERAL else text
        for key, text in told.items()
        if text
    }


def table(
    boxes: dict[str, Typed],
    stored: dict[str, pa.DataType | None],
    label: str,
    rules: str = "",
    written: dict[str, Any] | None = None,
    more: dict[str, dict[str, Any]] | None = None,
) -> TableFacts:
    """All columns that are kept, in the order of the table, and the relations between them."""
    extra = more or {}
    kept = {
        name: facts(one, stored.get(name), extra.get(name))
        for name, one in boxes.items()
        if one.get("kind") != "leave out"
    }
    return TableFacts(kept, label or None, relations=relations(rules), reading=written or {})


def relations(text: str) -> tuple[dict[str, Any], ...]:
    """One relation a line: a rule as it is, `learn QUANTITY from LOW to HIGH`, or `lookup COLUMN by KEY from FILE`.

    >>> relations("a <= b\\nlearn left - came from 2h to 91d")
    ({'rule': 'a <= b'}, {'learn': 'left - came', 'min': '2h', 'max': '91d'})
    >>> relations("lookup region by postcode from codes.csv")
    ({'lookup': 'region', 'by': ['postcode'], 'file': 'codes.csv'},)
    """
    found: list[dict[str, Any]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        looked = re.fullmatch(r"lookup\s+(.+?)\s+by\s+(.+?)\s+from\s+(.+)", line)
        learned = re.fullmatch(r"learn\s+(.+?)\s+from\s+(\S+)\s+to\s+(\S+)", line)
        if learned:
            quantity, low, high = learned.groups()
            found.append({"learn": quantity, "min": _bound(low), "max": _bound(high)})
        elif looked:
            column, keys, file = looked.groups()
            found.append({"lookup": column, "by": [key.strip() for key in keys.split(",")], "file": file})
        else:
            found.append({"rule": line})
    return tuple(found)


def _bound(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def missing(boxes: Typed) -> tuple[str, ...]:
    """The needed boxes that are empty."""
    return tuple(key for key in needs(boxes.get("kind", "")) if not boxes.get(key, "").strip())


def _value(kind: str, key: str, text: str, stored: pa.DataType | None) -> Any:
    """A box as a value of the schema; what cannot be read stays text, and the check says what is wrong with it."""
    if key in ("values", "other"):
        listed = [line.strip() for line in text.splitlines() if line.strip()]
        whole = stored is not None and pa.types.is_integer(stored)
        if whole and all(re.fullmatch(r"-?\d{1,18}", v) for v in listed):
            numbers = [int(v) for v in listed]
            return numbers if key == "values" else numbers[0]
        if key == "values" and len(listed) == 1 and _LIST.fullmatch(listed[0]):
            return listed[0]  # they stand in a file, or are a public list
        return listed if key == "values" else listed[0]
    return KINDS[kind].typed(key, text)
