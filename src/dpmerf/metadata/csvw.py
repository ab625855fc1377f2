"""CSV on the Web (W3C): the columns of one table of a metadata file."""

from __future__ import annotations

from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.pick import pick_table
from dpmerf.metadata.written import dates, from_unicode, truths
from dpmerf.schema.facts import Facts, TableFacts, column

NAME = "csvw"
_INTEGERS = [
    "integer",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedLong",
    "unsignedInt",
    "unsignedShort",
    "unsignedByte",
    "gYear",
]
_KINDS = {
    **dict.fromkeys(("string", "normalizedString", "token", "any", "anyAtomicType", "language", "Name"), "category"),
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(("number", "decimal", "double", "float"), "number"),
    "boolean": "flag",
    "date": "date",
    **dict.fromkeys(("datetime", "dateTime", "dateTimeStamp"), "timestamp"),
    "time": "time",
}
_LOWEST = {"nonNegativeInteger": 0, "unsignedLong": 0, "unsignedInt": 0, "unsignedShort": 0, "positiveInteger": 1}
_WHOLE_RANGE = {"byte": (-128, 127), "unsignedByte": (0, 255)}


def fits(document: Any) -> bool:
    """Does a document look like this format?"""
    return isinstance(document, dict) and "ns/csvw" in str(document.get("@context", ""))


def read(document: Any, table: str | None = None) -> TableFacts:
    """One table's columns; virtual ones are not in the file and are left out."""
    tables = document.get("tables", document.get("resources"))  # as earlier drafts called them
    if isinstance(tables, list):
        document = pick_table({str(t.get("url", i)): t for i, t in enumerate(tables) if isinstance(t, dict)}, table)
    schema = document.get("tableSchema")
    if isinstance(schema, str):
        raise SchemaError(f"its columns are described in another file: import {schema} instead")
    columns = schema.get("columns") if isinstance(schema, dict) else None
    if not isinstance(columns, list) or not columns:
        raise SchemaError("this CSVW metadata has no `tableSchema` with `columns`")
    assert isinstance(schema, dict)
    key = schema.get("primaryKey") or []
    keys = {key} if isinstance(key, str) else set(map(str, key))
    found = {}
    for number, said in enumerate(columns, 1):
        if not isinstance(said, dict):
            raise SchemaError(f"column {number} of this CSVW metadata is not an object")
        if said.get("virtual"):
            continue
        title = _title(said.get("titles", said.get("title")))
        found[title or str(said.get("name") or f"column {number}")] = _column(said, said.get("name") in keys)
    return TableFacts(found)


def _column(said: dict[str, Any], is_key: bool) -> Facts:
    if is_key:
        return Facts("id")
    written = said.get("datatype", "string")
    typed: dict[str, Any] = written if isinstance(written, dict) else {"base": written}
    base, form = str(typed.get("base", "string")), typed.get("format")
    kind = _KINDS.get(base)
    if kind is None or said.get("separator"):
        why = f"a list in one cell, separated by '{said['separator']}'" if said.get("separator") else f"type '{base}'"
        return Facts("id", notes=(f"{why} cannot be learned: made up on output",))
    low, high = _WHOLE_RANGE.get(base, (_LOWEST.get(base), None))
    pattern = form.get("pattern") if isinstance(form, dict) else form
    facts, notes = _written(kind, pattern)
    return column(
        kind,
        low=typed.get("minimum", typed.get("minInclusive", low if "minExclusive" not in typed else None)),
        high=typed.get("maximum", typed.get("maxInclusive", high if "maxExclusive" not in typed else None)),
        above=typed.get("minExclusive"),
        below=typed.get("maxExclusive"),
        nullable=said.get("required") is not True,
        notes=notes,
        **facts,
    )


def _written(kind: str, pattern: Any) -> tuple[dict[str, Any], list[str]]:
    """`YES|NO` of a flag, `M/d/yyyy` of a moment; a pattern of numbers is told to the reader."""
    if not isinstance(pattern, str) or kind == "category":
        return {}, []
    if kind == "flag" and pattern.count("|") == 1:
        return truths(*pattern.split("|")), []
    return dates(from_unicode(pattern)) if kind in ("date", "timestamp") else ({}, [f"written as {pattern}"])


def _title(said: Any) -> str:
    """The header in the file: the first of the titles, in whatever language comes first."""
    if isinstance(said, dict):
        said = next(iter(said.values()), "")
    if isinstance(said, list):
        said = said[0] if said else ""
    return said if isinstance(said, str) else ""
