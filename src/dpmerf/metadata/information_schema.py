"""information_schema.columns of a database, saved as CSV or JSON: names, types and nulls of tables."""

from __future__ import annotations

import csv
import io
from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.pick import pick_table
from dpmerf.metadata.type_words import kind_of
from dpmerf.schema.facts import Facts, TableFacts, column
from dpmerf.schema.names import kind_by_name

NAME = "information-schema"


def fits(text: str) -> bool:
    """Does a document look like this format?"""
    header = text.lstrip("\ufeff").split("\n", 1)[0].lower()
    return "column_name" in header and "data_type" in header


def read(text: str, table: str | None = None) -> TableFacts:
    """The columns of one table, by their ordinal position."""
    lines = csv.DictReader(io.StringIO(text.lstrip("\ufeff")))
    return from_rows([{str(k).strip().lower(): v for k, v in line.items()} for line in lines], table)


def from_rows(rows: list[dict[str, Any]], table: str | None = None) -> TableFacts:
    """The same from rows that are already read, as a database's driver or a JSON file gives them."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        tables.setdefault(str(row.get("table_name") or "table"), []).append(row)
    chosen = pick_table(tables, table)
    found = {}
    for row in sorted(chosen, key=_position):
        if not row.get("column_name"):
            raise SchemaError("a line of this information_schema has no column_name")
        found[str(row["column_name"])] = _column(row)
    return TableFacts(found)


def _column(row: dict[str, Any]) -> Facts:
    written = str(row.get("data_type") or "")
    name = str(row["column_name"])
    kind = kind_of(written)
    if kind in ("category", "integer") and kind_by_name(name) == "id":
        return Facts("id", notes=("suggested by its name: check",))
    if kind == "id":
        return Facts("id", notes=(f"type {written} cannot be learned: made up on output",))
    if kind is None:
        return Facts(None, notes=(f"type {written}",))
    scale = row.get("numeric_scale") if kind == "number" else None
    if kind == "number" and str(scale) == "0":
        kind, scale = "integer", None
    return column(kind, decimals=scale or None, nullable=str(row.get("is_nullable", "YES")).upper() != "NO")


def _position(row: dict[str, Any]) -> int:
    text = str(row.get("ordinal_position") or "")
    return int(text) if text.isdecimal() else 0
