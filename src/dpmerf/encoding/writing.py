"""Writing: numbers and codes as Arrow columns with the declared types."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.errors import SchemaError
from dpmerf.schema import AnyColumn, Id, Numeric
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


def number_array(column: Numeric, values: np.ndarray) -> pa.Array:
    """Numbers in the column's own unit; NaN is null where the column has one."""
    absent = np.isnan(values) if column.nullable else None
    if absent is not None:
        values = np.where(absent, 0.0, values)
    return column.array(values, absent)
