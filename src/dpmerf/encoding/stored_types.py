"""Stored types: does a declared dtype hold every value that its column may have? Known before any row is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dpmerf.encoding.writing import id_array, number_array, restored
from dpmerf.errors import SchemaError
from dpmerf.schema import AnyColumn, Category, Id, Image, Integer, Numeric

MANY = 2**31 - 1  # rows that ids are counted for
PLACES = np.array([0.0, 1 / 3, 0.5, 0.7071, 1.0])  # of a range: both ends, and places between them


def check_fits(
    name: str, column: AnyColumn, kind: pa.DataType, value: Callable[[np.ndarray], np.ndarray] | None
) -> None:
    """Write made-up values at every bound in the declared type and read them back; refuse what comes back changed.

    `value` gives a numeric column's values at places of its range.
    """
    if column.dtype and not isinstance(column, Image) and not holds(column, kind, value):
        raise SchemaError(
            f"column '{name}': `dtype` is '{column.dtype}', which does not hold all that the column may be. Write a "
            "wider type, or leave it out"
        )


def holds(column: AnyColumn, kind: pa.DataType, value: Callable[[np.ndarray], np.ndarray] | None) -> bool:
    """Do values at every bound of a column survive this type?"""
    try:
        there = _made_up(column, value)
        return _alike(there, _back(column, restored(there, kind), there.type), column)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return False


def _made_up(column: AnyColumn, value: Callable[[np.ndarray], np.ndarray] | None) -> pa.Array:
    if isinstance(column, Numeric) and value is not None:
        return number_array(column, value(PLACES))
    if isinstance(column, Category):
        return pa.array(column.levels, from_pandas=False)
    if isinstance(column, Id):
        return pa.concat_arrays([id_array(column, 1, 1), id_array(column, MANY, 1)])
    return pa.array([False, True])


def _back(column: AnyColumn, written: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(written.type):
        written = written.dictionary_decode()
    return column.back(written, kind)


def _alike(there: pa.Array, back: pa.Array, column: AnyColumn) -> bool:
    """Equal; a number may lose digits that no bound or grid of its column has."""
    if not pa.types.is_floating(there.type) or isinstance(column, Integer):
        return bool(there.equals(back))
    before, after = there.to_numpy(zero_copy_only=False), back.to_numpy(zero_copy_only=False)
    if not isinstance(column, Numeric):
        return bool(np.array_equal(before, after.astype(before.dtype)))
    spread = float(np.ptp(before))
    return bool(np.isfinite(after).all() and np.abs(before - after).max() <= 1e-3 * spread)
