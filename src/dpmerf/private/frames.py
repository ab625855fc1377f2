"""Frames: columns of a frame library as Arrow. What a cell means does not depend on the other cells of its column."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa


def to_arrow(frame: Any, names: dict[str, Any]) -> pa.Table:
    """A frame as an Arrow table; columns of Python objects are taken cell by cell.

    A frame library chooses the type of a whole column by its cells, so one odd cell can turn numbers into objects.
    The other cells must mean the same in either form: `_as_text` writes what the typed column would have said.
    """
    arrays = {}
    for name, own in names.items():
        series = frame[own]
        if series.dtype == nw.Object or str(getattr(series.to_native(), "dtype", "")) == "object":
            arrays[name] = _objects(series.to_list())
            continue
        try:
            arrays[name] = series.to_arrow()
        except (pa.ArrowException, UnicodeError, TypeError, ValueError):  # may quote a cell
            arrays[name] = _objects(series.to_list())
    return pa.table(arrays)


def _objects(cells: list[Any]) -> pa.Array:
    return pa.array([_as_text(cell) for cell in cells], pa.large_string())


def _as_text(cell: Any) -> str | None:
    """What a Python object means as a cell; what means nothing is null. A function of this cell alone."""
    if isinstance(cell, np.generic) and not isinstance(cell, np.datetime64 | np.timedelta64):
        cell = cell.item()
    if isinstance(cell, str):
        return cell.encode("utf-8", "replace").decode()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int):
        return str(cell) if abs(cell) < 10**300 else None
    if isinstance(cell, float):
        return None if cell != cell else str(int(cell)) if cell == cell // 1 and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.date | dt.datetime):
        if cell != cell:
            return None
        zoned = isinstance(cell, dt.datetime) and cell.tzinfo is not None
        return (cell.astimezone(dt.UTC).replace(tzinfo=None) if zoned else cell).isoformat()  # type: ignore[attr-defined]
    if isinstance(cell, decimal.Decimal):
        return str(cell)
    return None
