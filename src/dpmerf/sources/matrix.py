"""Matrix: an array with two dimensions as a table. Its shape may be wrong, its cells not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dpmerf.errors import ArrayError
from dpmerf.sources.frames import objects


def is_sparse(data: Any) -> bool:
    """A sparse array of SciPy, by its own words."""
    return type(data).__module__.startswith("scipy.sparse")


def named(array: Any, names: list[str] | None) -> pa.Table:
    """An array as a table with these names; None: x0, x1, …"""
    if is_sparse(array):
        raise TypeError("sparse arrays are not read: pass array.toarray(), or a table")
    if np.iscomplexobj(array):
        raise ArrayError("Complex data not supported: pass numbers, texts or dates")
    if array.ndim != 2:
        raise ArrayError(
            f"expected a 2D array, got {array.ndim}D. Reshape your data: one row a unit, one column a fact"
        )
    count, width = array.shape
    if count == 0 or width == 0:
        raise ArrayError(f"{width} feature(s) (shape=({count}, {width})) while a minimum of 1 is required.")
    if names is not None and len(names) != width:
        raise ArrayError(f"the array has {width} columns, the schema {len(names)}: they go by their order")
    called = names or [f"x{i}" for i in range(width)]
    whole = array if array.dtype.kind in "OMUSb" else np.asarray(array, dtype=np.float64)
    return pa.table({name: _column(whole[:, i]) for i, name in enumerate(called)})


def _column(cells: np.ndarray) -> pa.Array:
    """Each cell by itself: what a cell means does not depend on the others."""
    return objects(list(cells)) if cells.dtype.kind in "OMUS" else pa.array(cells)
