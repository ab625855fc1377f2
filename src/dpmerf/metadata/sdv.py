"""SDV metadata: one table of a JSON file. Versions SINGLE_TABLE_V1, MULTI_TABLE_V1, V1 (written) and those before 1.0.

SDV keeps kinds, keys and date formats, but neither bounds nor categories, which it takes from the rows; those stay
gaps. It does not say whether a column may be null, so every column may.
"""

from __future__ import annotations

from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.pick import pick_table
from dpmerf.metadata.written import dates
from dpmerf.schema import Id, Schema
from dpmerf.schema.facts import Facts, TableFacts, column
from dpmerf.schema.patterns import Pattern

NAME = "sdv"
_KINDS = {"numerical": "number", "categorical": "category", "boolean": "flag", "datetime": "timestamp", "id": "id"}
_WHOLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_DAY_ONLY = ("%H", "%I", "%M", "%S", "%f", "%p", "%X", "%c", "%T", "%z")
_CLOCK_ONLY = ("%d", "%j", "%m", "%b", "%B", "%y", "%Y", "%x", "%c", "%D", "%F", "%s")  # without them, a time of day


def fits(document: Any) -> bool:
    """Does a document look like this format?"""
    if not isinstance(document, dict):
        return False
    return "METADATA_SPEC_VERSION" in document or isinstance(_tables_before_1(document), dict)


def _tables_before_1(document: dict[str, Any]) -> dict[str, Any] | None:
    """The tables of a file of SDV before 1.0, which kept `fields` with a `type`, as the later versions keep them."""
    tables = document.get("tables")
    if not isinstance(tables, dict) or not tables:
        return None
    if not all(isinstance(t, dict) and isinstance(t.get("fields"), dict) for t in tables.values()):
        return None
    return {name: {**table, "columns": _fields(table["fields"])} for name, table in tables.items()}


def _fields(fields: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, said in fields.items():
        told = said if isinstance(said, dict) else {}
        whole = {"computer_representation": "Int64"} if told.get("subtype") == "integer" else {}
        sdtype = "id" if told.get("pii") else told.get("type")
        found[name] = {"sdtype": sdtype, "datetime_format": told.get("format"), **whole}
    return found


def read(document: Any, table: str | None = None) -> TableFacts:
    """One table's columns."""
    tables = _tables_before_1(document) or document.get("tables")
    chosen = pick_table(tables, table) if isinstance(tables, dict) else document
    columns = chosen.get("columns") if isinstance(chosen, dict) else None
    if not isinstance(columns, dict) or not columns:
        raise SchemaError("this SDV metadata has no `columns`: save it again with metadata.save_to_json")
    keys = {chosen.get("primary_key"), chosen.get("sequence_key"), *(chosen.get("alternate_keys") or [])} - {None}
    found = {name: _column(said if isinstance(said, dict) else {}, name in keys) for name, said in columns.items()}
    return TableFacts(found)


def _column(said: dict[str, Any], is_key: bool) -> Facts:
    sdtype = str(said.get("sdtype", "unknown"))
    kind = _KINDS.get(sdtype)
    if is_key or kind == "id":
        return Facts("id", _pattern(said.get("regex_format")))
    if kind is None:
        if sdtype == "unknown":
            return column("category", notes=["SDV does not know this column's type"])
        return Facts("id", notes=(f"SDV type '{sdtype}': never learned, made up on output",))
    if kind == "number":
        whole = said.get("computer_representation") in _WHOLE
        return column("integer" if whole else "number")
    if kind == "timestamp":
        pattern = said.get("datetime_format")
        day = isinstance(pattern, str) and not any(part in pattern for part in _DAY_ONLY)
        clock = isinstance(pattern, str) and not any(part in pattern for part in _CLOCK_ONLY)
        facts, notes = dates(pattern)
        return column("time" if clock else "date" if day else "timestamp", notes=notes, **facts)
    return column(kind)


def _pattern(regex: Any) -> dict[str, Any]:
    """What ids look like, where our patterns can say it."""
    try:
        return {"pattern": regex} if isinstance(regex, str) and Pattern.parse(regex).capacity else {}
    except ValueError:
        return {}


def write(schema: Schema, table: str = "table") -> dict[str, Any]:
    """The schema as SDV metadata (V1). Bounds, categories and nulls have no place there."""
    columns: dict[str, Any] = {}
    for name, declared in schema.columns.items():
        if (known := declared.sdv()) is None:
            raise SchemaError(
                f"SDV has no type for column '{name}' ({declared.kind}): leave it out of the schema first"
            )
        columns[name] = known
    first = next((name for name, declared in schema.columns.items() if isinstance(declared, Id)), None)
    body: dict[str, Any] = {"columns": columns} | ({} if first is None else {"primary_key": first})
    return {"METADATA_SPEC_VERSION": "V1", "tables": {table: body}, "relationships": []}
