"""Readable: could a cell be read as the schema declares it? A function of that cell alone, with four answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.encoding import cells, notations
from dpmerf.encoding.cells import Column
from dpmerf.encoding.reading import listed_codes, numbers_of
from dpmerf.schema import Category, Flag, Numeric, Schema

READ, OUTSIDE, NULL, UNREAD = range(4)  # as declared; a number or moment out of bounds; no value; anything else
ANSWERS = 4


def answers(column: Column, schema: Schema, name: str, bounds: tuple[float, float] | None) -> np.ndarray:
    """(n,) one of four answers for each cell. `bounds` of a numeric column, in its own unit.

    >>> schema = Schema.parse('[columns.n]\\nkind = "integer"\\nmin = 0\\nmax = 9')
    >>> answers(pa.array(["3", "12", "", "x"]), schema, "n", (0.0, 9.0)).tolist()
    [0, 1, 2, 3]
    """
    declared, notation = schema.columns[name], schema.notation(name)
    array = notations.without_missing(cells.read(column), notation)
    null = cells.absent(array)
    if array.type == pa.large_string():
        null |= cells.mask_of(pc.equal(pc.utf8_trim_whitespace(array), ""))
    if isinstance(declared, Numeric):
        values = numbers_of(column, declared, notation)
        found = np.full(len(values), UNREAD)
        if bounds is not None:
            inside = (values >= bounds[0]) & (values <= bounds[1])
            found[~np.isnan(values)] = OUTSIDE
            found[inside] = READ
    elif isinstance(declared, Category | Flag):
        found = np.where(listed_codes(array, declared) < 0, UNREAD, READ)
    else:
        found = np.full(len(array), READ)
    return np.where(null & (found == UNREAD), NULL, found).astype(np.int64)


_MARK = "#read "  # no column is called that, and no table of a column takes it for one of its own


def variable_name(column: str) -> str:
    """The variable that says how a cell of the column was read."""
    return _MARK + column


def column_of(variable: str) -> str | None:
    """The way back; None for any other variable."""
    return variable.removeprefix(_MARK) if variable.startswith(_MARK) else None
