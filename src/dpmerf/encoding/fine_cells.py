"""Fine cells: a column of numbers in a few hundred cells. Public: they follow from the schema alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np

from dpmerf.encoding.codec import Axis
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

CONTINUOUS = 2**24  # levels of a column that has no step of its own
ValueDraw = Callable[[np.ndarray, "torch.Generator"], np.ndarray]  # (n,) cells -> (n,) values in them, at random


@final
class Fine:
    """The fine cells of one numeric column: cell i holds the levels edges[i] … edges[i + 1] − 1.

    Every level has its own cell if there are at most `most`. Otherwise half of the cells have equal widths, half are
    geometric around zero (or the lower bound), and the bounds and zero stand alone, so that skewed columns and heavy
    single values keep their shape whatever the scale.

    >>> Fine(Axis(0.0, 3.0, 1.0), most=8).size
    4
    """

    def __init__(
        self,
        axis: Axis,
        most: int,
        splits: Callable[[float], tuple[int, ...]] = lambda step: (),
        spans: tuple[int, ...] = (),
    ) -> None:
        """`splits`: levels at which a cell must end. `spans`: widths of equal cells; the first that fits is taken."""
        self.axis = axis
        self.spans = spans
        self.step = axis.step if axis.step is not None else (axis.high - axis.low) / CONTINUOUS
        top = round((axis.high - axis.low) / self.step)
        if top + 1 <= most:
            self.edges = np.arange(top + 2)
        elif spans:
            self.edges = _equal_spans(axis, self.step, top, most, spans)
        else:
            self.edges = _edges(axis, self.step, top, most).copy()
        if cuts := [k for k in splits(self.step) if 0 < k <= top]:  # where rules of the schema cut the column
            self.edges = np.unique(np.concatenate([self.edges, cuts]))

    @property
    def size(self) -> int:
        return len(self.edges) - 1

    @property
    def marks(self) -> frozenset[int]:
        """Cells that begin a bin, whatever their mass: a column with spans is cut at multiples of its longest."""
        at = self.axis.low + self.edges[:-1] * self.step
        return frozenset(np.flatnonzero(at % self.spans[-1] == 0).tolist()) if self.spans else frozenset()

    @property
    def widths(self) -> np.ndarray:
        """How many levels each cell holds."""
        return np.diff(self.edges)

    def parts(self, most: int) -> np.ndarray:
        """Into how many parts each cell is divided: at most so many, and no more than it has levels."""
        return np.minimum(self.widths, most)

    def levels(self, units: Tensor) -> np.ndarray:
        """(n,) numbers in [0, 1] -> (n,) levels, int64."""
        return np.rint((self.axis.value(units.numpy()) - self.axis.low) / self.step).astype(np.int64)

    def index(self, units: Tensor, most: int = 1) -> Tensor:
        """(n,) numbers in [0, 1] -> (n,) cells; with `most`, which of the parts of all cells."""
        level = np.rint((self.axis.value(units.numpy()) - self.axis.low) / self.step)
        cell = np.clip(np.searchsorted(self.edges, level, side="right") - 1, 0, self.size - 1)
        if most == 1:
            return torch.from_numpy(cell)
        parts = self.parts(most)
        part = (level.astype(np.int64) - self.edges[cell]) * parts[cell] // self.widths[cell]
        return torch.from_numpy((parts.cumsum() - parts)[cell] + np.clip(part, 0, parts[cell] - 1))

    def place(self, cells: Tensor, within: Tensor) -> Tensor:
        """(n,) cells, and how far into them from 0 to 1 -> (n,) numbers in [0, 1]."""
        edges = torch.from_numpy(self.edges)
        low, high = edges[cells], edges[cells + 1]
        level = low + torch.minimum(((high - low) * within.double()).floor().long(), high - low - 1)
        return torch.from_numpy(self.axis.unit(self.axis.low + level.numpy() * self.step))


def _equal_spans(axis: Axis, step: float, top: int, most: int, spans: tuple[int, ...]) -> np.ndarray:
    """Cells that begin at multiples of a span, in the column's unit."""
    span = next((s for s in spans if (axis.high - axis.low) / s < most - 1), spans[-1])
    starts = np.arange(math.ceil(axis.low / span), math.floor(axis.high / span) + 1) * span
    inner = np.ceil((starts - axis.low) / step).astype(np.int64)
    return np.unique(np.concatenate([[0, top + 1], inner]))


@lru_cache(2**12)  # a plan asks for the same cells several times, and many columns are alike
def _edges(axis: Axis, step: float, top: int, most: int) -> np.ndarray:
    anchor = round((min(max(0.0, axis.low), axis.high) - axis.low) / step)
    sides = (anchor > 0) + (anchor < top)
    per_side = max(2, most // (2 * sides))
    octaves = max(10.0, min(math.log2(top), per_side / 2))  # at least three decades; all of them if they are no finer
    ratio = 2.0 ** (-octaves / per_side)
    reach = np.rint(top * ratio ** np.arange(per_side)).astype(np.int64)
    equal = np.rint(np.linspace(0, top + 1, most // 2 + 1)).astype(np.int64)
    alone = [0, 1, top, top + 1, anchor, anchor + 1]
    edges = np.concatenate([equal, anchor + reach, anchor + 1 - reach, alone])
    return np.unique(edges[(edges >= 0) & (edges <= top + 1)])
