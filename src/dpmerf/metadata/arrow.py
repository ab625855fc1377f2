"""Arrow: the schema stored in a Parquet or Arrow file, or of a frame. Types only: no value is read.

A dictionary type says that a column is a category. Its values are stored with the rows, so they are rows to us. An
Enum of Polars is part of the type, declared by whoever wrote the file; its values are taken, and that is said.
"""

from __future__ import annotations

import pyarrow as pa

from dpmerf.schema.facts import Facts, TableFacts, column
from dpmerf.schema.names import suggest

NAME = "arrow"
_ENUM = (b"_PL_ENUM_VALUES2", b"_PL_ENUM_VALUES")


def read(schema: pa.Schema) -> TableFacts:
    """The fields in order."""
    return TableFacts({field.name: _column(field) for field in schema})


def _column(field: pa.Field) -> Facts:
    values = next((_enum(field.metadata[key], key) for key in _ENUM if key in (field.metadata or {})), None)
    if values:
        note = "the values of its Enum type: keep them only if they are public"
        return column("category", values=values, nullable=field.nullable, dtype="dictionary", notes=[note])
    found = suggest(field.name, field.type)
    if field.nullable and found.kind not in (None, "id"):
        return Facts(found.kind, {**found.known, "nullable": True}, found.notes)
    return found


def _enum(stored: bytes, how: bytes) -> list[str]:
    """Polars writes each value as its length in bytes, a semicolon and the value."""
    values, rest = [], stored
    while rest:
        size, semicolon, tail = rest.partition(b";")
        if not semicolon or not size.isdigit() or int(size) > len(tail):
            return []
        values.append(tail[: int(size)].decode("utf-8", "replace"))
        rest = tail[int(size) :]
    return values
