"""Measurements: a release's noisy answers in natural units, each with its variables and its noise, found by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from dpmerf.encoding.codec import Variable
from dpmerf.errors import TrainError
from dpmerf.features.algebra import BITS, Block, FeatureMap
from dpmerf.features.dense import Dense
from dpmerf.lazy import torch
from dpmerf.plan.sums import Integers

if TYPE_CHECKING:
    from torch import Tensor


@final
@dataclass(frozen=True)
class Measurement:
    """Noisy counts over the cells of some variables, or noisy sums of dense features in each of those cells.

    `numbers` has an axis for each variable and, for dense features, one more. `sigma` is the noise of each number.
    """

    stage: str
    variables: tuple[Variable, ...]
    dense: Dense | None  # None: counts
    numbers: npt.NDArray[np.float64]
    sigma: float

    @cached_property
    def values(self) -> Tensor:
        """`numbers` as a tensor."""
        return torch.from_numpy(self.numbers)

    @property
    def name(self) -> str:
        """For people: what is counted or summed."""
        return Block(1.0, self.dense, self.variables).name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its variables, in the order of the axes."""
        return tuple(v.column for v in self.variables)

    @property
    def cells(self) -> int:
        """How many cells the variables have together."""
        return self.numbers.size // (self.dense.dim if self.dense else 1)

    def along(self, columns: Sequence[str]) -> Measurement:
        """The same with its axes in the order of `columns`."""
        order = [self.columns.index(name) for name in columns]
        if order == list(range(len(order))):
            return self
        rest = range(len(order), self.numbers.ndim)
        turned = self.numbers.transpose([*order, *rest])
        return Measurement(self.stage, tuple(self.variables[i] for i in order), self.dense, turned, self.sigma)


def measured(stage: str, phi: FeatureMap, sums: Integers, sigma: float) -> tuple[Measurement, ...]:
    """A stage's blocks: sums on the integer grid, divided by weight and grid."""
    found = []
    for block, part in parts_of(phi, sums):
        unit = block.weight * 2**BITS
        shape = [v.size for v in block.cells] + ([block.width] if block.dense else [])
        found.append(
            Measurement(stage, block.cells, block.dense, part.astype(np.float64).reshape(shape) / unit, sigma / unit)
        )
    return tuple(found)


def parts_of(phi: FeatureMap, sums: Integers) -> list[tuple[Block, Integers]]:
    """A stage's blocks, each with its sums. ValueError if there are more or fewer than the blocks need."""
    ends = np.cumsum([b.dim for b in phi.blocks])
    if len(sums) != ends[-1]:
        raise ValueError("a stage has one sum for each coordinate of its blocks")
    return list(zip(phi.blocks, np.split(sums, ends[:-1]), strict=True))


def tables_of(measurements: Iterable[Measurement], columns: Sequence[str]) -> list[Measurement]:
    """Every table of counts over exactly these columns, axes in that order."""
    return [m.along(columns) for m in measurements if m.dense is None and sorted(m.columns) == sorted(columns)]


def table_of(measurements: Iterable[Measurement], columns: Sequence[str]) -> Measurement:
    """The finest table over exactly these columns; if it was measured several times, the mean by precision."""
    found = tables_of(measurements, columns)
    if not found:
        raise TrainError(f"the release has no table of {' × '.join(columns)}: `dpmerf plan` says what is measured")
    cells = max(m.cells for m in found)
    finest = next(m for m in found if m.cells == cells)
    alike = [m for m in found if m.variables == finest.variables]
    if len(alike) == 1:
        return finest
    precision = sum(1 / m.sigma**2 for m in alike)
    numbers = sum((m.numbers / m.sigma**2 for m in alike), start=0 * finest.numbers) / precision
    return Measurement(finest.stage, finest.variables, None, numbers, precision**-0.5)
