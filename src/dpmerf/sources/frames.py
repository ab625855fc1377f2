"""Frames: columns of a frame library as Arrow. What a cell means does not depend on the other cells of its column."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import numpy as np
import pyarrow as pa

from dpmerf.encoding import cells, instants
from dpmerf.schema.columns import forms
from dpmerf.schema.headers import is_typed


def to_arrow(frame: Any, names: dict[str, Any]) -> pa.Table:
    """A frame as an Arrow table.

    A frame library chooses the type of a whole column by its cells: one odd cell turns numbers into objects, one null
    whole numbers into floats. So columns of the common types go over as they are, all others cell by cell as the one
    text that such a cell has, and `cells` gives both the same place. Whole numbers of pandas and Polars, which become
    floats beside a null or a fraction, are floats from the start.
    """
    return pa.table({name: _column(frame[own]) for name, own in names.items()})


def _column(series: Any) -> pa.Array:
    native, made_by = series.to_native(), series.implementation
    if isinstance(getattr(getattr(native, "dtype", None), "pyarrow_dtype", None), pa.BaseExtensionType):
        return _one_array(series.to_arrow()).storage  # what pandas turns it into beside an odd cell
    if not is_typed(series):
        return objects(series.to_list())
    if made_by.is_pandas_like() and hasattr(native, "cat"):
        return _categories(native)
    try:
        array = _one_array(series.to_arrow())
    except (pa.ArrowException, UnicodeError, TypeError, ValueError):  # may quote a cell
        return objects(series.to_list())
    return _with_floats(array) if made_by.is_pandas_like() or made_by.is_polars() else array


def _one_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _with_floats(array: pa.Array) -> pa.Array:
    """Whole numbers as the floats that a null beside them would make of them."""
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, _with_floats(array.dictionary))
    return array.cast(pa.float64(), safe=False) if pa.types.is_integer(array.type) else array


def _categories(series: Any) -> pa.Array:
    """A pandas categorical: the categories that these rows use are objects like any others."""
    codes = np.asarray(series.cat.codes)
    used, index = np.unique(codes[codes >= 0], return_inverse=True)
    place = np.zeros(len(codes), np.int64)
    place[codes >= 0] = index
    return objects(list(series.cat.categories[used])).take(pa.array(place, mask=codes < 0))


def objects(found: list[Any]) -> pa.Array:
    """Python objects as Arrow, each by itself."""
    texts = [as_cell(cell) for cell in found]
    if any(isinstance(cell, bytes) for cell in texts):  # bytes are the same cell as the text that they spell
        return pa.array([c.encode() if isinstance(c, str) else c for c in texts], pa.large_binary())
    return pa.array(texts, pa.large_string())


def as_cell(cell: Any) -> str | bytes | None:
    """The one text of a Python object; what means nothing is null. A function of this cell alone, and never raises.

    >>> as_cell(3.0), as_cell(True), as_cell(np.datetime64("2020-01-01T06", "h")), as_cell([1])
    ('3', 'true', '2020-01-01T06:00:00', None)
    >>> as_cell(dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))))
    '2020-01-01T00:00:00Z'
    """
    try:
        return _as_cell(cell)
    except Exception:  # an object's own methods are somebody else's code
        return None


def _as_cell(cell: Any) -> str | bytes | None:
    if isinstance(cell, np.longdouble):
        cell = float(cell)
    elif isinstance(cell, np.generic) and not isinstance(cell, np.datetime64 | np.timedelta64):
        cell = cell.item()
    match cell:
        case str():
            return cell.encode("utf-8", "backslashreplace").decode()
        case bool():
            return "true" if cell else "false"
        case int() | float() | decimal.Decimal():
            return cells.as_number(_as_float(cell))
        case np.datetime64():
            moment = instants.of_numpy(cell)
        case dt.datetime() if cell != cell:
            return None
        case dt.datetime():  # pandas has nanoseconds
            moment = instants.of_numpy(cell.asm8) if hasattr(cell, "asm8") else instants.of_datetime(cell)
            if cell.tzinfo is not None and moment is not None:
                return instants.text(moment, "Z")
        case dt.date():
            moment = instants.of_datetime(dt.datetime(cell.year, cell.month, cell.day))
        case bytes() | bytearray() | memoryview():
            return bytes(cell)
        case uuid.UUID():
            return str(cell)
        case _:
            return next((text for form in forms() if (text := form.of_object(cell)) is not None), _of_pandas(cell))
    return None if moment is None else instants.text(moment)


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")


def _of_pandas(cell: Any) -> str | None:
    """A period is the number that Arrow keeps it as, an interval its text, as pandas.cut names its bins."""
    if not type(cell).__module__.startswith("pandas"):
        return None
    match type(cell).__name__:
        case "Period":
            return cells.as_number(float(cell.ordinal))
        case "Interval":
            return str(cell)
    return None
