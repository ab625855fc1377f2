"""Cells: one Arrow column -> one number or one code per cell. Any cell is legal; none raises, none is quoted.

What a cell becomes depends on that cell and on the declared type alone, never on its neighbours: there is no "try the
whole column, else …". NaN marks "nothing usable here"; the codec then gives it its declared place.
"""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Floats = np.ndarray  # (n,) float64
Codes = np.ndarray  # (n,) int64, -1 where the cell is none of the values

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(\.[0-9]+)?(Z|\+00:00)?)?$"
_TRUE = pa.array(["true", "t", "yes", "y", "1"], pa.large_string())
_FALSE = pa.array(["false", "f", "no", "n", "0"], pa.large_string())
_WORDS = (
    ("inf", math.inf),
    ("+inf", math.inf),
    ("infinity", math.inf),
    ("-inf", -math.inf),
    ("true", 1.0),  # as in a column of type boolean
    ("false", 0.0),
)
_LONGEST = 64  # characters of a cell that can still be a number, a date or a flag


def plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One contiguous array without dictionary or view encodings."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # a column too long for one array of its type
        array = pa.concat_arrays(array.chunks)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if _is_text(array.type) and array.type != pa.large_string():
        array = array.cast(pa.large_string())
    return _valid(array) if array.type == pa.large_string() else array


def numbers(column: pa.Array | pa.ChunkedArray) -> Floats:
    """Cells as float64; text is parsed; ±inf stays; anything else is NaN."""
    array, kind = plain(column), plain(column).type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _floats(array.cast(pa.float64(), safe=False))
    if pa.types.is_boolean(kind):
        return _floats(array.cast(pa.int8()).cast(pa.float64()))
    if _is_text(kind):
        text = pc.utf8_lower(_short(array))
        good = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, pa.scalar(None, text.type))
        values = _floats(_parse_floats(good))
        for word, value in _WORDS:
            values[_mask(pc.equal(text, word))] = value
        return values
    return _nothing(array)


def days(column: pa.Array | pa.ChunkedArray) -> Floats:
    """Cells as days since 1970-01-01."""
    return np.floor(seconds(column) / 86_400)


def seconds(column: pa.Array | pa.ChunkedArray) -> Floats:
    """Cells as seconds since 1970-01-01 UTC."""
    array, kind = plain(column), plain(column).type
    if pa.types.is_date(kind):
        days_or_ms = array.cast(pa.int32()) if pa.types.is_date32(kind) else array.cast(pa.int64())
        per = 86_400.0 if pa.types.is_date32(kind) else 1e-3
        return _floats(days_or_ms.cast(pa.float64(), safe=False)) * per
    if pa.types.is_timestamp(kind):
        per = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[kind.unit]
        return _floats(array.cast(pa.int64()).cast(pa.float64(), safe=False)) * per
    if _is_text(kind):
        text = _short(array)
        good = pc.fill_null(pc.match_substring_regex(text, _MOMENT), False).to_numpy(zero_copy_only=False)
        values = np.full(len(array), np.nan)
        cells = text.to_pylist()
        for i in np.flatnonzero(good):
            values[i] = _moment(cells[i])
        return values
    return _nothing(array)


def flags(column: pa.Array | pa.ChunkedArray) -> Floats:
    """Cells as 1, 0 or NaN."""
    array, kind = plain(column), plain(column).type
    if pa.types.is_boolean(kind):
        return numbers(array)
    if _is_text(kind):
        text = pc.utf8_lower(_short(array))
        values = np.full(len(array), np.nan)
        values[_mask(pc.is_in(text, _TRUE))] = 1.0
        values[_mask(pc.is_in(text, _FALSE))] = 0.0
        return values
    values = numbers(array)
    values[(values != 0) & (values != 1)] = np.nan
    return values


def codes(column: pa.Array | pa.ChunkedArray, values: tuple[str | int | float, ...]) -> Codes:
    """The position of each cell in `values`, or -1."""
    array = plain(column)
    if isinstance(values[0], str):
        text = _text(array)
        found = pc.index_in(text, pa.array(values, pa.large_string()), skip_nulls=True)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    listed = np.asarray(values, dtype=np.float64)
    order = np.argsort(listed)
    cells = numbers(array)
    place = np.clip(np.searchsorted(listed[order], cells), 0, len(listed) - 1)
    return np.where(listed[order][place] == cells, order[place], -1).astype(np.int64)


def as_names(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """Cells as names of persons; all cells without a name are one person, the empty name."""
    return [cell or "" for cell in _text(plain(column)).to_pylist()]


def _text(array: pa.Array) -> pa.Array:
    """Cells as text, for comparing with listed text values; types without an obvious text form are null."""
    kind = array.type
    if _is_text(kind):
        return array
    if any(check(kind) for check in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_decimal)):
        return array.cast(pa.large_string())
    if pa.types.is_floating(kind):  # 3.0 matches the listed "3": integers with nulls arrive as floats
        values = _floats(array.cast(pa.float64()))
        whole = np.isfinite(values) & (values == np.trunc(values)) & (np.abs(values) < 2**53)
        return pa.array(
            [
                str(int(v)) if w else (None if np.isnan(v) else repr(float(v)))
                for v, w in zip(values, whole, strict=True)
            ],
            pa.large_string(),
        )
    return pa.nulls(len(array), pa.large_string())


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _valid(array: pa.Array) -> pa.Array:
    """Text without broken UTF-8, which files can hold and Arrow raises on. Whole cells are left as they are."""
    try:
        array.validate(full=True)
        return array
    except pa.ArrowInvalid:
        bytes_only = array.view(pa.large_binary())
        bytes_only.validate(full=True)  # raises where the array itself is broken
        raw = bytes_only.to_pylist()
        return pa.array([None if cell is None else cell.decode("utf-8", "replace") for cell in raw], pa.large_string())


def _short(array: pa.Array) -> pa.Array:
    """Trimmed text; a cell too long to be a number, a date or a flag becomes null before anything looks at it."""
    small = pc.less_equal(pc.binary_length(array), _LONGEST * 4)
    return pc.ascii_trim_whitespace(pc.if_else(small, array, pa.scalar(None, array.type)))


def _parse_floats(text: pa.Array) -> pa.Array:
    return pc.cast(text, pa.float64())


def _moment(cell: str) -> float:
    try:
        moment = dt.datetime.fromisoformat(cell.replace("Z", "").replace("+00:00", "")[:26])
    except ValueError:  # 2023-02-31
        return math.nan
    return (moment - dt.datetime(1970, 1, 1)).total_seconds()


def _floats(array: pa.Array) -> Floats:
    return np.array(pc.fill_null(array, math.nan).to_numpy(zero_copy_only=False), dtype=np.float64)


def _mask(array: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=bool)


def _nothing(array: pa.Array) -> Floats:
    return np.full(len(array), np.nan)
