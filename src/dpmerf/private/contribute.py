"""Contribute: what one row adds to the sums, as integers with an enforced norm.

Float64 holds the integers: every value, square and partial sum below stays under 2⁵³, so sums of them are exact
whatever their order. A row's integers are a function of that row alone, and the sums of the multiset of rows.
"""

from __future__ import annotations

import itertools
import math
from typing import final

import numpy as np
import torch
from torch import Tensor

from dpmerf.encoding.codec import Batch, Variable
from dpmerf.errors import DataError
from dpmerf.features.algebra import BITS, Block, FeatureMap

MOST_ROWS = 2**36  # times the largest weight 2²⁶ stays below 2⁶³: a public limit, some 10¹⁰·⁸ rows
CACHED = 2**18  # features of a chunk of rows that is embedded at a time
LEAST_RUN = 4  # rows of a cell in a chunk, on average, from which sums of runs beat scattered adds


@final
class Sums:
    """Σφ over rows, in integers of the grid 2⁻²⁴."""

    def __init__(self, phi: FeatureMap) -> None:
        if any(b.integer_norm > 2**26 for b in phi.blocks):  # keeps squares below 2⁵³
            raise ValueError("a block's weight is above 4: scale the map down")
        self._phi = phi
        self._rows = 0
        self._sources = _sources(phi)
        self._counts = {c: torch.zeros(_size(c), dtype=torch.int64) for c in dict.fromkeys(self._sources.values())}
        self._dense = {i: torch.zeros(b.size, b.width, dtype=torch.int64) for i, b in enumerate(phi.blocks) if b.dense}
        self._merged: Tensor | None = None  # partial sums made elsewhere, if there are any: they can be large

    @property
    def rows(self) -> int:
        """How many rows were added."""
        return self._rows

    def add(self, batch: Batch) -> None:
        """Add rows; the order and the size of batches do not change the result."""
        self._count(len(batch))
        ones = torch.ones(len(batch), dtype=torch.int64)
        shared: dict[tuple[Variable, ...], Tensor] = {}
        for cells, counts in self._counts.items():
            if cells:
                counts.scatter_add_(0, _joint(cells, batch.codes, shared), ones)
            else:
                counts += len(batch)
        for i, sums in self._dense.items():
            _add_dense(self._phi.blocks[i], batch, sums)

    def merge(self, other: Tensor, rows: int) -> None:
        """Add partial sums (dim,) over so many rows of the same map, made elsewhere."""
        self._count(rows)
        self._merged = other.clone() if self._merged is None else self._merged.add_(other)

    def total(self) -> Tensor:
        """(dim,) int64."""
        parts = []
        for i, block in enumerate(self._phi.blocks):
            parts.append(self._dense[i].flatten() if block.dense else self._table(block.cells) * _whole_weight(block))
        whole = torch.cat([torch.zeros(0, dtype=torch.int64), *parts])
        return whole if self._merged is None else whole.add_(self._merged)

    def _table(self, cells: tuple[Variable, ...]) -> Tensor:
        source = self._sources[frozenset(cells)]
        return _margin(self._counts[source], source, cells)

    def _count(self, rows: int) -> None:
        self._rows += rows
        if self._rows > MOST_ROWS:
            raise DataError(f"a release holds at most {MOST_ROWS:,} rows: split the table and release the parts")


def _joint(cells: tuple[Variable, ...], codes: dict[str, Tensor], shared: dict[tuple[Variable, ...], Tensor]) -> Tensor:
    """(n,) joint code in row-major order. Codes of leading variables are kept in `shared` for the next table."""
    *leading, last = cells
    if not leading:
        return codes[last.name]
    start = tuple(leading)
    if start not in shared:
        shared[start] = _joint(start, codes, shared)
    return torch.add(codes[last.name], shared[start], alpha=last.size)


def bounded(values: Tensor, block: Block) -> Tensor:
    """(n, width) features -> whole numbers (in float64), truncated toward zero, each row within the block's norm.

    The bound does not rest on the map: a row that is too long is shrunk, one that is not finite counts as zero.
    """
    return _bound(values.clone(), block)


def _bound(values: Tensor, block: Block) -> Tensor:
    """`bounded`, in place."""
    flat = values.numpy()
    with np.errstate(over="ignore", invalid="ignore"):  # not finite: seen to below
        flat *= block.weight * 2**BITS
        np.trunc(flat, out=flat)
        square = np.einsum("ij,ij->i", flat, flat)
    limit = block.integer_norm**2
    if not (square <= limit).all():  # rounding in a map, or not finite: rare
        flat[~np.isfinite(flat).all(axis=1)] = 0.0
        square = np.einsum("ij,ij->i", flat, flat)
        over = square > limit
        flat[over] = np.trunc(flat[over] * (block.integer_norm / (np.ceil(np.sqrt(square[over])) + 1))[:, None])
        flat[np.einsum("ij,ij->i", flat, flat) > limit] = 0.0  # beyond what floats can shrink
    return values


def _add_dense(block: Block, batch: Batch, sums: Tensor) -> None:
    """Rows are sorted by cell first: the rows of a cell are then summed where they lie."""
    dense = block.dense
    assert dense is not None
    cell, numbers = block.cell(batch.codes), batch.values
    sorted_cell: np.ndarray | None = None
    if cell is not None:
        cell, order = torch.sort(cell)
        sorted_cell, numbers = cell.numpy(), numbers[order]
    step = max(1, CACHED // dense.dim)
    for start in range(0, len(batch), step):
        whole = _bound(dense(numbers[start : start + step]), block)
        if sorted_cell is None:
            sums += whole.sum(dim=0).long()
        else:
            _add_runs(whole, sorted_cell[start : start + step], sums)


def _add_runs(whole: Tensor, cell: np.ndarray, sums: Tensor) -> None:
    """Add rows (n, width) to the cells that they are sorted by."""
    cuts = [0, *(np.flatnonzero(cell[1:] != cell[:-1]) + 1).tolist(), len(cell)]
    if len(cuts) * LEAST_RUN > len(cell):
        sums.index_add_(0, torch.from_numpy(cell), whole.long())
        return
    for start, stop in itertools.pairwise(cuts):
        sums[int(cell[start])] += whole[start:stop].sum(dim=0).long()


def _whole_weight(block: Block) -> int:
    return math.floor(block.weight * 2**BITS)


def _sources(phi: FeatureMap) -> dict[frozenset[Variable], tuple[Variable, ...]]:
    """Each table of the map -> the table that is counted row by row and has it as a margin, to the last integer."""
    found: dict[frozenset[Variable], tuple[Variable, ...]] = {}
    for cells in sorted({b.cells for b in phi.blocks if b.dense is None}, key=lambda c: (-len(c), _size(c))):
        if frozenset(cells) not in found:
            for k in range(len(cells) + 1):
                for part in itertools.combinations(cells, k):
                    found.setdefault(frozenset(part), cells)
    return found


def _size(cells: tuple[Variable, ...]) -> int:
    return math.prod(v.size for v in cells)


def _margin(counts: Tensor, source: tuple[Variable, ...], cells: tuple[Variable, ...]) -> Tensor:
    """The counts (size,) of one table from those of a larger one."""
    if source == cells:
        return counts
    away = [i for i, v in enumerate(source) if v not in cells]
    full = counts.view([v.size for v in source] or [1])
    margin = full.sum(dim=away) if away else full
    kept = [v for v in source if v in cells]
    return margin.permute([kept.index(v) for v in cells]).flatten() if cells else margin.flatten()
