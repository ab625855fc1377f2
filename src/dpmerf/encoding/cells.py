"""Cells: one Arrow column -> one number or one code per cell. Any cell is legal; none raises, none is quoted.

What a cell becomes depends on that cell and on what is declared, never on its neighbours nor on the type that the rest
of the column forced on it. A cell is a number (float64), a moment (whole nanoseconds), a text, true or
false, null, or what a kind of column adds (`Form`); NaN and types without a reading (lists) are null. Each of these has
one text, the one that a column of objects is handed over in (`sources`), and both ways give one place:

- a number is its float64, whatever type holds it: frames turn whole numbers into floats when one of them is missing;
- a listed text is found by its very text or else by what it reads as, so that 1234 is "01234" and midnight is its day;
- a moment is cut to whole seconds or days, never rounded.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.encoding import instants
from dpmerf.schema.columns import Form, forms

Floats = np.ndarray  # (n,) float64
Column: TypeAlias = pa.Array | pa.ChunkedArray

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_TRUE, _FALSE = ("true", "t", "yes", "y"), ("false", "f", "no", "n")
_WORDS = (
    ("inf", math.inf),
    ("+inf", math.inf),
    ("infinity", math.inf),
    ("-inf", -math.inf),
    ("true", 1.0),  # as in a column of type boolean
    ("false", 0.0),
)
_LONGEST = 64  # characters of a cell that can still be a number, a date or a flag
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def plain(column: Column) -> pa.Array:
    """One contiguous array without dictionary, run-end or view encodings."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # a column too long for one array of its type
        array = pa.concat_arrays(array.chunks)
    if isinstance(array, pa.ExtensionArray):
        array = _stored(array)
    if pa.types.is_run_end_encoded(array.type):
        return plain(pc.run_end_decode(array))
    if pa.types.is_dictionary(array.type):
        return plain(array.dictionary).take(array.indices)
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    if _is_text(array.type) and array.type != pa.large_string():
        array = array.cast(pa.large_string())
    return _valid(array) if array.type == pa.large_string() else array


def numbers(column: Column) -> Floats:
    """Cells as float64; text is parsed; ±inf stays; anything else is NaN."""
    return floats_of(read(column))


def days(column: Column) -> Floats:
    """Cells as days since 1970-01-01."""
    return _instants(read(column), instants.DAY)


def seconds(column: Column) -> Floats:
    """Cells as whole seconds since 1970-01-01 UTC."""
    return _instants(read(column), instants.SECOND)


def each(column: Column, place: Callable[[str], float | None]) -> Floats:
    """Cells as numbers by a function of the cell's one text; NaN where that gives none."""
    encoded = _short(text_of(read(column))).dictionary_encode()
    found = [None if cell is None else place(cell) for cell in encoded.dictionary.to_pylist()]
    values = np.array([*(math.nan if at is None else float(at) for at in found), math.nan], np.float64)
    return values[np.asarray(encoded.indices.fill_null(len(found)))]


def flags(column: Column) -> Floats:
    """Cells as 1, 0 or NaN."""
    array = read(column)
    values = floats_of(array)
    values[(values != 0) & (values != 1)] = np.nan
    if array.type == pa.large_string():
        text = pc.utf8_lower(_short(array))
        values[mask_of(pc.is_in(text, pa.array(_TRUE, text.type)))] = 1.0
        values[mask_of(pc.is_in(text, pa.array(_FALSE, text.type)))] = 0.0
    return values


def absent(column: Column) -> np.ndarray:
    """(n,) bool: cells that are null, or mean nothing."""
    array = read(column)
    if pa.types.is_floating(array.type):
        return np.isnan(floats_of(array))
    if (form := _form(array.type)) is not None:
        return np.array([text is None for text in form.texts(array)], bool)
    return mask_of(array.is_null()) if _is_readable(array.type) else np.ones(len(array), bool)


def as_names(column: Column) -> list[str]:
    """Cells as names of persons; all cells without a name are one person, the empty name.

    Whole numbers are taken with all their digits: they name persons, and no neighbour of theirs may share the name.
    """
    array = read(column)
    exact = array.cast(pa.large_string()) if pa.types.is_integer(array.type) else text_of(array)
    return [cell or "" for cell in exact.to_pylist()]


def as_number(value: float) -> str | None:
    """The one text of a number, whichever type held it; None for NaN.

    >>> as_number(3.0), as_number(-0.0), as_number(0.1), as_number(float("nan"))
    ('3', '0', '0.1', None)
    """
    if value != value:
        return None
    return str(int(value)) if abs(value) < 1e21 and value == int(value) else repr(value)


def read(column: Column) -> pa.Array:
    """A plain array of numbers, moments, booleans or text; bytes are text."""
    array = plain(column)
    if _is_bytes(array.type):
        array = _valid(array.cast(pa.large_binary()).view(pa.large_string()))
    return array


def floats_of(array: pa.Array) -> Floats:
    """A plain array as float64; NaN where a cell is no number."""
    kind = array.type
    if pa.types.is_float16(kind):
        values = np.array([math.nan if cell is None else cell for cell in array.to_pylist()], np.float64)
    elif pa.types.is_floating(kind) or pa.types.is_integer(kind):
        values = _filled(array.cast(pa.float64(), safe=False))
    elif pa.types.is_boolean(kind):
        values = _filled(array.cast(pa.int8()).cast(pa.float64()))
    elif pa.types.is_decimal(kind):  # by its digits: only then is it the float that the same text gives
        values = _filled(pc.cast(array.cast(pa.large_string()), pa.float64()))
    elif kind == pa.large_string():
        text = pc.utf8_lower(_short(array))
        good = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, pa.scalar(None, text.type))
        values = _filled(pc.cast(good, pa.float64()))
        for word, value in _WORDS:
            values[mask_of(pc.equal(text, word))] = value
    else:
        return np.full(len(array), np.nan)
    return values + 0.0  # -0.0 is 0.0


def _instants(array: pa.Array, step: int) -> Floats:
    """Cells as whole steps of so many nanoseconds; NaN where there is no moment."""
    if array.type == pa.large_string():
        encoded = array.dictionary_encode()
        found = [math.nan if ns is None else float(ns // step) for ns in moments_of(encoded.dictionary)]
        values = np.array([*found, math.nan], np.float64)
        return values[np.asarray(encoded.indices.fill_null(len(found)))]
    if (moments := _typed_moments(array)) is None:
        return np.full(len(array), np.nan)
    values = instants.floors(*moments, step).astype(np.float64)
    values[mask_of(array.is_null())] = np.nan
    return values


def _typed_moments(array: pa.Array) -> tuple[np.ndarray, int] | None:
    """int64 moments and their unit in nanoseconds; what stands for a null is any number."""
    kind = array.type
    if pa.types.is_date32(kind):
        whole, unit = array.view(pa.int32()), instants.DAY
    elif pa.types.is_date64(kind):
        whole, unit = array.view(pa.int64()), instants.DAY
    elif pa.types.is_timestamp(kind):
        whole, unit = array.view(pa.int64()), _UNITS[kind.unit]
    else:
        return None
    values = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return (values // 86_400_000 if pa.types.is_date64(kind) else values), unit  # a date has no time of day


def moments_of(text: pa.Array) -> list[int | None]:
    """Nanoseconds of each text that is a moment."""
    short = _short(text)
    good = mask_of(pc.match_substring_regex(short, instants.PATTERN))
    return [instants.of_text(c) if g else None for c, g in zip(short.to_pylist(), good, strict=True)]


def text_of(array: pa.Array) -> pa.Array:
    """Cells as their one text; types without a reading are null."""
    kind = array.type
    if kind == pa.large_string():
        return array
    if pa.types.is_boolean(kind):
        return array.cast(pa.large_string())
    if is_number(kind):
        return pa.array([as_number(value) for value in floats_of(array).tolist()], pa.large_string())
    if (moments := _typed_moments(array)) is not None:
        values, unit = moments
        zone = "Z" if getattr(kind, "tz", None) is not None else ""
        different, index = np.unique(values, return_inverse=True)
        texts = pa.array([instants.text(value * unit, zone) for value in different.tolist()], pa.large_string())
        return texts.take(pa.array(index, mask=mask_of(array.is_null())))
    if (form := _form(kind)) is not None:
        return pa.array(form.texts(array), pa.large_string())
    return pa.nulls(len(array), pa.large_string())


def _stored(array: pa.ExtensionArray) -> pa.Array:
    """What an extension type is kept as; a UUID is its text, an 8-bit boolean a boolean."""
    name = array.type.extension_name
    if name == "arrow.uuid":
        raw = array.storage.to_pylist()
        return pa.array([None if cell is None else str(uuid.UUID(bytes=cell)) for cell in raw], pa.large_string())
    return array.storage.cast(pa.bool_()) if name == "arrow.bool8" else array.storage


def _form(kind: pa.DataType) -> Form | None:
    return next((form for form in forms() if form.holds(kind)), None)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def is_number(kind: pa.DataType) -> bool:
    """Does a type hold numbers?"""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_moment(kind: pa.DataType) -> bool:
    """Does a type hold moments or days?"""
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _is_readable(kind: pa.DataType) -> bool:
    return is_number(kind) or _is_text(kind) or is_moment(kind) or pa.types.is_boolean(kind)


def _valid(array: pa.Array) -> pa.Array:
    """Text without broken UTF-8, which files can hold and Arrow raises on. Whole cells are left as they are."""
    try:
        array.validate(full=True)
        return array
    except pa.ArrowInvalid:
        bytes_only = array.view(pa.large_binary())
        bytes_only.validate(full=True)  # raises where the array itself is broken
        whole = (None if c is None else c.decode("utf-8", "backslashreplace") for c in bytes_only.to_pylist())
        return pa.array(whole, pa.large_string())  # with the broken bytes spelt out: they may name a person


def _short(array: pa.Array) -> pa.Array:
    """Trimmed text; a cell too long to be a number, a date or a flag becomes null before anything looks at it."""
    small = pc.less_equal(pc.binary_length(array), _LONGEST * 4)
    return pc.ascii_trim_whitespace(pc.if_else(small, array, pa.scalar(None, array.type)))


def _filled(array: pa.Array) -> Floats:
    return np.array(pc.fill_null(array, math.nan).to_numpy(zero_copy_only=False), dtype=np.float64)


def mask_of(array: pa.Array) -> np.ndarray:
    """An array of booleans as NumPy; null is false."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=bool)
