"""Atoms: where rules cut the columns they speak of. Bins never reach across such a cut, so whole cells are forbidden.

Public: the cuts follow from the schema's relations alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmerf.encoding.codec import Axis, Codec
from dpmerf.schema.boxes import Subset


def subsets(codec: Codec, name: str) -> tuple[Subset, ...]:
    """What the schema's rules say of a measured column."""
    boxes = codec.declared.program.boxes
    return tuple(dict.fromkeys(s for box in boxes for n, s in box.sets if n == name))


def split_levels(codec: Codec, name: str, step: float) -> tuple[int, ...]:
    """The levels of a numeric column before which a cell must end."""
    axis = codec.axes[name]
    cuts = {cut for s in subsets(codec, name) for span in s.spans for cut in span}
    return tuple(sorted({_level(axis, step, *cut) for cut in cuts}))


def _level(axis: Axis, step: float, value: float, after: int) -> int:
    if axis.step is not None:
        return int(value)  # rules count the steps of such a column
    return math.ceil((value - axis.low) / step) + after


def inside(subset: Subset, starts: np.ndarray, size: int, axis: Axis | None = None, step: float = 1.0) -> np.ndarray:
    """(cells,) which fine cells lie in a subset. `starts` are first levels of the cells that hold values, then null."""
    found = np.zeros(size, dtype=bool)
    for low, high in subset.spans:
        first, last = (_level(axis, step, *c) if axis is not None else int(c[0]) for c in (low, high))
        found[: len(starts)] |= (starts >= first) & (starts < last)
    found[len(starts) :] = subset.null
    return found


def refined(groups: np.ndarray, marks: Sequence[np.ndarray]) -> np.ndarray:
    """(cells,) groups of cells, divided where any of the marks (cells,) changes; groups keep their order.

    >>> refined(np.array([0, 0, 0, 1]), [np.array([True, False, False, False])]).tolist()
    [0, 1, 1, 2]
    """
    if not marks:
        return groups
    table = np.stack([groups, *(m.astype(np.int64) for m in marks)], axis=1)
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.lexsort((first, table[first, 0]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[which.reshape(-1)]
