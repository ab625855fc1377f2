"""Cells of an axis: a numeric column cut as a person would, into whole levels or even steps, with names and ticks."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from dpmerf.encoding.codec import Axis
from dpmerf.schema import Numeric

MOST = 20
APART = 0.14  # of the axis: ticks of a logarithmic scale stand no closer


@final
@dataclass(frozen=True)
class AxisCells:
    """`edges` on the column's own scale from 0 to 1, ascending; a value at an edge belongs to the cell above it."""

    edges: np.ndarray  # (cells + 1,)
    names: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]  # where on the scale, and what it says

    def codes(self, unit: np.ndarray) -> np.ndarray:
        """The cell of each place on the scale."""
        return np.searchsorted(self.edges[1:-1], unit, side="right").astype(np.int64)


def axis_cells(column: Numeric, most: int = MOST, declared_scale: bool = True) -> AxisCells:
    """At most so many cells. `declared_scale`: even steps of the logarithm where the column declares one.

    >>> from dpmerf.schema import Integer
    >>> axis_cells(Integer(kind="integer", min=0, max=2)).names
    ('0', '1', '2')
    >>> axis_cells(Integer(kind="integer", min=0, max=50)).names[:2]
    ('0 – 2', '3 – 5')
    """
    axis = Axis.of(column)
    if axis.log and declared_scale:
        return _logarithmic(column, axis, most)
    if axis.levels is None:
        at = np.linspace(axis.low, axis.high, most + 1)
        names = [f"{column.shown(a)} – {column.shown(b)}" for a, b in itertools.pairwise(at)]
        edges = axis.unit(at)
    else:
        wide = math.ceil(axis.levels / most)
        first = np.arange(0, axis.levels, wide)
        last = np.minimum(first + wide, axis.levels) - 1
        names = [_name(column, axis.low + a * axis.step, axis.low + b * axis.step)  # type: ignore[operator]
                 for a, b in zip(first, last, strict=True)]  # fmt: skip
        inner = _between(axis, axis.low + first[1:] * axis.step)  # type: ignore[operator]
        edges = np.r_[0.0, inner, 1.0]
    middle = axis.low + (axis.high - axis.low) / 2
    if axis.levels is not None and axis.levels <= 2 * most:
        middle = axis.low + (axis.levels // 2) * (axis.step or 0.0)
    ticks = tuple((float(axis.unit(np.array([v]))[0]), column.shown(v)) for v in (axis.low, middle, axis.high))
    return AxisCells(edges, tuple(names), ticks if ticks[1][1] not in (ticks[0][1], ticks[2][1]) else ticks[::2])


def _logarithmic(column: Numeric, axis: Axis, most: int) -> AxisCells:
    """Even steps of the logarithm, those that hold no level of their own left out; ticks at powers of ten."""
    starts = np.unique(axis.value(np.arange(most + 1) / most))
    if axis.step is None:
        ends = starts[1:]
        edges = axis.unit(starts)
    else:
        if len(starts) > 1 and (starts[-1] - starts[-2]) <= axis.step * 1.5:  # the highest value has a cell of its own
            starts = np.r_[starts, axis.high + axis.step]
        ends = np.r_[starts[1:-1] - axis.step, axis.high]
        edges = np.r_[0.0, _between(axis, starts[1:-1]), 1.0]
    names = tuple(_name(column, a, b) for a, b in zip(starts[:-1], ends, strict=True))
    powers = [10.0**p for p in range(-6, 16)]
    wanted = sorted({axis.low, *(v for v in (*powers, *(-p for p in powers)) if axis.low < v <= axis.high)})
    ticks: list[tuple[float, str]] = []
    for value, at in zip(wanted, axis.unit(np.array(wanted)), strict=True):
        if not ticks or at - ticks[-1][0] >= APART:
            ticks.append((float(at), column.shown(value)))
    return AxisCells(edges, names, tuple(ticks))


def _between(axis: Axis, starts: np.ndarray) -> np.ndarray:
    """The place on the scale halfway below each level."""
    assert axis.step is not None
    return (axis.unit(starts) + axis.unit(starts - axis.step)) / 2


def _name(column: Numeric, first: float, last: float) -> str:
    a, b = column.shown(first), column.shown(last)
    return a if a == b else f"{a} – {b}"
