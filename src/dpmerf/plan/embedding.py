"""Embedding: what a stage measures, as one callable from rows to a vector. It serves on both sides of the noise.

The locked room sums it over rows; after the noise, rows that a generator drew are compared with what was released by
the same callable. Norm and diameter are those of its map, whatever the view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpmerf.encoding import broken, readable
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.features.algebra import FeatureMap
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    from dpmerf.plan.plan import Plan

View = Callable[[Batch], Batch]  # adds the codes that a map's cells need: row by row, by public or released facts alone
AT_ONCE = 2**24  # numbers in memory while a mean is taken


@final
@dataclass(frozen=True)
class Embedding:
    """A feature map, and the view of a row that it needs."""

    phi: FeatureMap
    view: View

    @property
    def dim(self) -> int:
        """Coordinates."""
        return self.phi.dim

    @property
    def norm_bound(self) -> float:
        """sup ‖φ(r)‖."""
        return self.phi.norm_bound

    @property
    def diameter(self) -> float:
        """sup ‖φ(r) − φ(r′)‖."""
        return self.phi.diameter

    def __call__(self, batch: Batch) -> Tensor:
        """(n, dim): φ of every row."""
        return self.phi(self.view(batch))

    def mean(self, batch: Batch) -> Tensor:
        """(dim,): the mean embedding. Cell by cell where φ is a table, so that large tables fit in memory."""
        seen, sums = self.view(batch), []
        for block in self.phi.blocks:
            total = torch.zeros(block.size, block.width, dtype=torch.float64)
            step = max(1, AT_ONCE // block.width)
            for start in range(0, len(seen), step):
                rows = seen.rows(slice(start, start + step))
                values = block.dense(rows.values) if block.dense else torch.ones(len(rows), 1, dtype=torch.float64)
                cell = block.cell(rows.codes)
                where = torch.zeros(len(rows), dtype=torch.int64) if cell is None else cell
                total.index_add_(0, where, values.double())
            sums.append(block.weight * total.flatten())
        return torch.cat(sums) / len(seen)


def codec_of(plan: Plan, phi: FeatureMap) -> Codec:
    """The plan's codec; where the map counts what could be read, or what breaks a relation, one that says so."""
    names = [v.name for block in phi.blocks for v in block.cells]
    looked = tuple(column for name in names if (column := readable.column_of(name)) is not None)
    counted = tuple(i for name in names if (i := broken.relation_of(name)) is not None)
    return Codec(plan.schema, looked, counted) if looked or counted else plan.codec


def as_it_is(batch: Batch) -> Batch:
    """The view of maps that need no codes beyond a row's own."""
    return batch
