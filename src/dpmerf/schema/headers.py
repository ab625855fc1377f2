"""Headers: names and stored types of a table's columns. No value is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import pyarrow as pa

from dpmerf.errors import SchemaError

_TYPED = (
    nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float32,
    nw.Float64, nw.Decimal, nw.Date, nw.Datetime, nw.String, nw.Binary, nw.Categorical, nw.Enum,
)  # fmt: skip


def fields_of(table: Any) -> dict[str, pa.DataType | None]:
    """Names and stored types of a table in memory, an Arrow schema, or names with their types."""
    if isinstance(table, str | os.PathLike):
        raise SchemaError(f"for a file, say: dpmerf schema draft {os.fspath(table)} -o schema.toml")
    if isinstance(table, Mapping):
        return dict(table)
    found = getattr(table, "schema", table) if isinstance(table, pa.Table | pa.RecordBatch | pa.Schema) else None
    if found is not None:
        return {field.name: field.type for field in found}
    try:
        frame = nw.from_native(table, eager_only=True)
    except (TypeError, nw.exceptions.DuplicateError):
        raise SchemaError(
            f"a {type(table).__name__} is not a table with names. Pass a pandas, Polars or Arrow table"
        ) from None
    return dict(stored_types(frame, {str(name): name for name in frame.columns}))


def stored_types(frame: Any, names: dict[str, Any]) -> dict[str, pa.DataType]:
    """The type of each column of a frame, from the frame's own types alone."""
    found = {}
    for name, own in names.items():
        try:
            found[name] = frame[own][:0].to_arrow().type if is_typed(frame[own]) else pa.large_string()
        except (pa.ArrowException, TypeError, ValueError):  # categories of several types
            found[name] = pa.large_string()
    return found


def is_typed(series: Any) -> bool:
    """Does the column have a type of its own, other than that of any object?"""
    return isinstance(series.dtype, _TYPED) and str(getattr(series.to_native(), "dtype", "")) != "object"
