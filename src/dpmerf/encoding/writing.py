"""Writing: numbers and codes as Arrow columns with the declared types."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.errors import SchemaError
from dpmerf.schema import AnyColumn, Category, Id, Numeric
from dpmerf.schema.kinds.listed_kinds import PATTERN
from dpmerf.schema.patterns import Pattern


def arrow_type(name: str, column: AnyColumn) -> pa.DataType:
    """The output type of a column: the declared dtype, or the natural one of its kind."""
    if not column.dtype:
        return column.natural
    try:
        if zoned := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", column.dtype):
            return pa.timestamp(zoned[1], tz=zoned[2])
        if column.dtype.startswith("dictionary"):
            return pa.dictionary(pa.int32(), column.natural)
        if decimal := re.fullmatch(r"decimal128\((\d+), (\d+)\)", column.dtype):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        return pa.type_for_alias(column.dtype.replace("date32[day]", "date32").replace("date64[ms]", "date64"))
    except (ValueError, pa.ArrowException):
        raise SchemaError(
            f"column '{name}': `dtype` is '{column.dtype}', which is no Arrow type. Write for example int32, "
            "or leave it out"
        ) from None


def restored(array: pa.Array, kind: pa.DataType, zone: str = "") -> pa.Array:
    """The same values in the declared type. Moments of a `zone` are its local time, others UTC.

    >>> midnight = pa.array(["2020-07-01"]).cast(pa.timestamp("s"))
    >>> str(restored(midnight, pa.timestamp("s", "Europe/Berlin"), "Europe/Berlin")[0])
    '2020-07-01 00:00:00+02:00'
    """
    if zone and pa.types.is_timestamp(kind) and kind.tz is not None:  # a time that a clock skips is the next there is
        return pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="latest").cast(kind)
    if pa.types.is_dictionary(kind):
        return array.cast(kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_decimal(kind):
        return array.cast(pa.string()).cast(kind)
    return array.cast(kind, safe=False)


def id_array(column: Id, first: int, n: int) -> pa.Array:
    """Ids number `first` and following; a pattern's count from 0 only once all others are used."""
    if not column.pattern:
        return pa.array(np.arange(first, first + n), pa.int64())
    return pa.array(Pattern.parse(column.pattern).ids(first, n), pa.string())


def category_array(column: Category, codes: np.ndarray, first: int) -> pa.Array:
    """Values by their codes, the last of a nullable column for null; `other` as `other_from` says.

    Which value a row gets follows from its number alone: the same rows are written the same.
    """
    levels: tuple[object, ...] = column.levels + ((None,) if column.nullable else ())
    array = pa.array(levels, from_pandas=False).take(pa.array(codes))
    other = codes == len(column.levels) - 1
    if not column.other_from or not other.any():
        return array
    taken = {*column.levels, *column.synonyms}
    if isinstance(column.other_from, str):
        pattern = Pattern.parse(column.other_from.removeprefix(PATTERN))
        drawn = pattern.ids_at(_scattered(first, len(codes)) % np.uint64(min(pattern.capacity, 2**62)))
        drawn = np.where(np.isin(drawn, list(taken)), str(column.other), drawn)
        return pc.if_else(pa.array(other), pa.array(drawn, array.type), array)
    free = pa.array([v for v in column.other_from if v not in taken], array.type)
    return pc.if_else(pa.array(other), free.take(pa.array(_scattered(first, len(codes)) % np.uint64(len(free)))), array)


def _scattered(first: int, n: int) -> np.ndarray:
    """(n,) 64 even bits for each of the numbers from `first` on (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = np.arange(first, first + n).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def number_array(column: Numeric, values: np.ndarray) -> pa.Array:
    """Numbers in the column's own unit; NaN is null where the column has one."""
    absent = np.isnan(values) if column.nullable else None
    if absent is not None:
        values = np.where(absent, 0.0, values)
    return column.array(values, absent)
