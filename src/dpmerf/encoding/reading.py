"""Reading: columns of a table as numbers and codes, as the schema declares them. Any cell is legal; none raises."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dpmerf.encoding import cells, listed, notations
from dpmerf.schema import Category, Flag, Numeric, Schema
from dpmerf.schema.notation import Notation


def read(table: pa.Table | pa.RecordBatch, schema: Schema, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Learned columns (or some) as numbers (NaN is null) in their own units, out of bounds or not, and codes."""
    return {
        name: numbers_of(table.column(name), column, schema.notation(name))
        if isinstance(column, Numeric)
        else code_of(table.column(name), column, schema.notation(name))
        for name, column in schema.learned.items()
        if isinstance(column, Numeric | Category | Flag) and (names is None or name in names)
    }


def numbers_of(array: pa.Array | pa.ChunkedArray, column: Numeric, notation: Notation) -> np.ndarray:
    """(n,) numbers in the column's own unit; NaN where there is none."""
    return column.read(cells, notations.as_declared(array, column, notation))


def code_of(array: pa.Array | pa.ChunkedArray, column: Category | Flag, notation: Notation) -> np.ndarray:
    """(n,) codes; null, or what is not listed, has the place that the column declares for it."""
    levels = column.levels
    array = array if not notation.missing else notations.without_missing(cells.read(array), notation)
    code = listed_codes(array, column)
    if isinstance(column, Category) and column.other is not None:
        known_null = cells.absent(array) & column.nullable
        code = np.where((code < 0) & ~known_null, levels.index(column.other), code)
    return np.where(code < 0, len(levels) if column.nullable else 0, code)


def listed_codes(array: pa.Array | pa.ChunkedArray, column: Category | Flag) -> np.ndarray:
    """(n,) codes of the values and their synonyms; -1 for every other cell."""
    levels = column.levels
    if isinstance(column, Flag):
        values = cells.flags(array)
        code = np.where(np.isnan(values), -1, values).astype(np.int64)
    else:
        code = listed.codes(array, column.levels)
    if not column.synonyms:
        return code
    place = np.array([levels.index(value) for value in column.synonyms.values()], np.int64)
    other = listed.codes(array, tuple(column.synonyms))
    return np.where((code < 0) & (other >= 0), place[np.maximum(other, 0)], code)
