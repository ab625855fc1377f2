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
    frame = nw.from_native(with_index(table), eager_only=True)
    found = stored_types(frame, {str(name): name for name in frame.columns})
    return {name: kind if _is_told(frame[name]) else None for name, kind in found.items()}


def index_names(table: Any) -> dict[str, Any]:
    """Named levels of a pandas index that no column is called like, with their types; none for other frames."""
    if type(table).__module__.split(".")[0] != "pandas" or not hasattr(table, "reset_index"):
        return {}
    levels = {name: table.index.get_level_values(i).dtype for i, name in enumerate(table.index.names)}
    return {str(name): kind for name, kind in levels.items() if name is not None and name not in table.columns}


def with_index(table: Any) -> Any:
    """A pandas frame with the named levels of its index as columns; any other table as it is."""
    names = list(index_names(table))
    if not names:
        return table
    unnamed = [i for i, name in enumerate(table.index.names) if name is None or str(name) not in names]
    return (table.droplevel(unnamed) if unnamed else table).reset_index()


def _is_told(series: Any) -> bool:
    """Does the type of a column say anything? That of any object does not."""
    return is_typed(series) or series.dtype == nw.Categorical


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
