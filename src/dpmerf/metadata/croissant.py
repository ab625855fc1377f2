"""Croissant (MLCommons): the fields of one record set, with enumerations that are written out in the file."""

from __future__ import annotations

from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.pick import pick_table
from dpmerf.schema.facts import Facts, TableFacts, column

NAME = "croissant"
_KINDS = {
    "text": "category",
    "integer": "integer",
    "int8": "integer",
    "int16": "integer",
    "int32": "integer",
    "int64": "integer",
    "uint8": "integer",
    "uint16": "integer",
    "uint32": "integer",
    "uint64": "integer",
    "float": "number",
    "float16": "number",
    "float32": "number",
    "float64": "number",
    "number": "number",
    "boolean": "flag",
    "date": "date",
    "datetime": "timestamp",
    "time": "time",
    "url": "id",
}


def fits(document: Any) -> bool:
    """Does a document look like this format?"""
    if not isinstance(document, dict):
        return False
    told = f"{document.get('conformsTo', '')} {document.get('dct:conformsTo', '')} {document.get('@context', '')}"
    return "croissant" in told


def read(document: Any, table: str | None = None) -> TableFacts:
    """The fields of a record set; those that only list what values mean are not tables to choose from."""
    sets = [s for s in _list(document.get("recordSet") or document.get("cr:recordSet")) if isinstance(s, dict)]
    if not sets:
        raise SchemaError("this Croissant file has no record set: it describes files, not columns")
    named = {str(s.get("name") or s.get("@id") or i): s for i, s in enumerate(sets)}
    tables = {name: s for name, s in named.items() if not any("Enumeration" in t for t in _types(s))} or named
    chosen = pick_table(tables, table)
    fields = [f for f in _list(chosen.get("field")) if isinstance(f, dict)]
    if not fields:
        raise SchemaError("this record set has no fields")
    keys = {_reference(k) for k in _list(chosen.get("key"))}
    lists = _enumerations(named)
    columns = {}
    for field in fields:
        name = str(field.get("name") or field.get("@id") or "")
        identity = str(field.get("@id") or name)
        is_key = bool({identity, name, identity.rpartition("/")[2]} & keys)
        columns[_column_name(field, name)] = _column(field, is_key, lists)
    return TableFacts(columns)


def _column(field: dict[str, Any], is_key: bool, lists: dict[str, list[Any]]) -> Facts:
    if is_key:
        return Facts("id")
    kinds = [_KINDS.get(t.rpartition(":")[2].rpartition("/")[2].lower()) for t in _types(field)]
    kind = next((k for k in kinds if k), None)
    if field.get("repeated") or field.get("subField") or kind == "id":
        return Facts("id", notes=("not a single value that can be learned: made up on output",))
    references = field.get("references")
    target = references.get("field", references) if isinstance(references, dict) else references
    values = lists.get(_reference(target)) if target else None
    if target and values is None:
        return column("category", notes=[f"its values are listed in {_reference(target)}"])
    if kind is None:
        return Facts("id", notes=("a type that cannot be learned: made up on output",))
    return column(kind, values=values)


def _column_name(field: dict[str, Any], name: str) -> str:
    """The column in the file, where the field says that it is called otherwise there."""
    source = field.get("source")
    extract = source.get("extract") if isinstance(source, dict) else None
    there = extract.get("column") if isinstance(extract, dict) else None
    return str(there or name.rpartition("/")[2])


def _enumerations(sets: dict[str, Any]) -> dict[str, list[Any]]:
    """Lists of values whose data stand in the file itself: field id -> values."""
    found: dict[str, list[Any]] = {}
    for record_set in sets.values():
        rows = [row for row in _list(record_set.get("data")) if isinstance(row, dict)]
        for key in rows[0] if rows else ():
            found[str(key)] = [row.get(key) for row in rows]
    return found


def _types(said: dict[str, Any]) -> list[str]:
    return [str(t) for t in _list(said.get("dataType"))]


def _reference(said: Any) -> str:
    return str(said.get("@id") or said.get("field") or "") if isinstance(said, dict) else str(said)


def _list(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [] if said is None else [said]
