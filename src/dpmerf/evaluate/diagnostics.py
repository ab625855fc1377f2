"""Diagnostics from the release alone: no rows are read, nothing is spent, so the guarantee covers all of this."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from dpmerf.evaluate.axis_cells import axis_cells
from dpmerf.plan import Measurement
from dpmerf.plan.queries import Histograms
from dpmerf.release import Release
from dpmerf.schema import Numeric

if TYPE_CHECKING:
    from dpmerf.generators.base import History


@final
@dataclass(frozen=True)
class Fit:
    """How well the generator meets the release. At the floor what is left is noise; far above it, it underfits."""

    steps: tuple[int, ...]
    loss: tuple[float, ...]
    held_out: tuple[float, ...]
    floor: float

    @property
    def ratio(self) -> float | None:
        """Last loss ÷ noise floor."""
        return self.loss[-1] / self.floor if self.loss and self.floor > 0 else None

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        ratio = self.ratio
        if ratio is None:
            return "No training curve was stored with this model."
        if ratio > 3:
            return f"The loss ends at {ratio:.1f} times the noise floor: the generator underfits what was released."
        if ratio > 1.3:
            return f"The loss ends at {ratio:.2f} times the noise floor: close, with some structure not yet learned."
        if ratio < 0.5:
            return f"The loss ends at {ratio:.2f} times the noise floor: the generator follows some of the noise."
        return f"The loss ends at {ratio:.2f} times the noise floor: rows follow what was released, noise included."


@final
@dataclass(frozen=True)
class Signal:
    """One block of the release: how far what was measured stands above its noise."""

    stage: str
    block: str
    coordinates: int
    noise: float  # standard deviation of one coordinate, in rows
    signal_to_noise: float  # √(signal energy ÷ noise energy); below 1 the noise dominates


@final
@dataclass(frozen=True)
class CountError:
    """The predicted error of one column's counts, before and after any data: it follows from the plan."""

    column: str
    cells: int
    noise: float | None  # standard deviation of one count, in rows; None: the column has no counts of its own
    share: float | None  # the same as a share of all rows
    total_variation: float | None  # expected total variation of the noisy one-way table


def fit(history: History) -> Fit:
    """What training noted, judged against the noise that is known to be in the release."""
    return Fit(tuple(history.steps), tuple(history.loss), tuple(history.held_out), history.floor)


def signals(release: Release) -> list[Signal]:
    """Signal to noise of every block. The noise energy is known, so the signal's is what is left."""
    found = []
    for m in release.measurements:
        noise = m.values.numel() * m.sigma**2
        energy = max(0.0, float((m.values**2).sum()) - noise)
        ratio = math.sqrt(energy / noise) if noise > 0 else math.inf
        found.append(Signal(m.stage, m.name, m.values.numel(), m.sigma, ratio))
    return found


def count_errors(release: Release) -> list[CountError]:
    """Each column's one-way counts, from every table that holds the column, weighted by precision."""
    precision = dict.fromkeys(release.codec.schema.learned, 0.0)
    cells = dict.fromkeys(release.codec.schema.learned, 0)
    for m in release.measurements:
        for variable in m.variables if m.dense is None else ():
            name = variable.column
            if name not in precision or variable.cut in ("null", "label"):
                continue
            size = _bins(release, name, variable.size)
            variance = m.sigma**2 * m.cells / variable.size * (variable.size / size)
            precision[name] += 1 / variance
            cells[name] = size
    rows = release.rows_estimate
    found = []
    for name, weight in precision.items():
        if weight == 0:
            found.append(CountError(name, 0, None, None, None))
            continue
        sigma = 1 / math.sqrt(weight)
        tv = cells[name] * sigma * math.sqrt(2 / math.pi) / (2 * rows)
        found.append(CountError(name, cells[name], sigma, sigma / rows, min(1.0, tv)))
    return found


@final
@dataclass(frozen=True)
class NoisyCounts:
    """A column's one-way shares as released, with the standard deviation of each share."""

    shares: np.ndarray  # (cells,), may be negative
    noise: np.ndarray  # (cells,)


def one_way(release: Release, bins: int | None = None) -> dict[str, NoisyCounts]:
    """The released one-way table of each column that has one, in `bins` equal parts of a numeric column's axis, or in
    the cells of its picture.

    Null is the last cell. Taken from the histograms, or summed out of the first table that holds the column.
    """
    found: dict[str, NoisyCounts] = {}
    rows = release.rows_estimate
    schema, measured = release.plan.schema.without_relations(), release.codec.schema
    for m in release.measurements:
        for place, variable in enumerate(m.variables if m.dense is None else ()):
            name = variable.column
            declared = name in measured.learned and schema.learned.get(name) == measured.learned[name]
            if name in found or not declared or variable.cut in ("null", "label"):
                continue
            counts, sigma = _sum_out(m, place)
            if name not in release.codec.axes:
                if _in_full(release, name, variable.cut, variable.size):
                    found[name] = NoisyCounts(counts / rows, np.full(variable.size, sigma / rows))
                continue
            column = measured.columns[name]
            assert isinstance(column, Numeric)
            edges = axis_cells(column).edges if bins is None else np.linspace(0, 1, bins + 1)
            spread = _spread(release, name, variable.cut, variable.size, edges)
            if spread is not None:
                noise = sigma * np.sqrt((spread**2).sum(0))
                found[name] = NoisyCounts(counts @ spread / rows, noise / rows)
    return found


def _bins(release: Release, name: str, size: int) -> int:
    """How many cells the column is reported in: its bins where the release cut some."""
    return release.binning.variables[name].size if release.binning is not None else size


def _sum_out(m: Measurement, keep: int) -> tuple[np.ndarray, float]:
    """Counts of one variable of a table, and their standard deviation."""
    others = tuple(i for i in range(len(m.variables)) if i != keep)
    return m.values.numpy().sum(axis=others), m.sigma * math.sqrt(m.cells / m.variables[keep].size)


def _in_full(release: Release, name: str, suffix: str, size: int) -> bool:
    """Does the table hold every value of a category? Its counts are then the picture's (there may be 50,000)."""
    return not suffix or size == release.plan.query(Histograms).grid(release.codec).variables[name].size


def _spread(release: Release, name: str, suffix: str, size: int, edges: np.ndarray) -> np.ndarray | None:
    """(size, cells): which part of each released cell of a numeric column falls into which cell of the picture."""
    if suffix != "fine":
        return None
    fine = release.plan.query(Histograms).grid(release.codec).numeric[name]
    nullable = release.codec.schema.columns[name].nullable
    low = fine.axis.unit(fine.axis.low + fine.edges[:-1] * fine.step)
    high = fine.axis.unit(fine.axis.low + (fine.edges[1:] - 1) * fine.step)
    spread = np.zeros((size, len(edges) - 1 + nullable))
    for i, (a, b) in enumerate(zip(low, high, strict=True)):
        first, last = np.searchsorted(edges[1:-1], (a, b), side="right")
        if first == last:
            spread[i, first] = 1.0
            continue
        spread[i, first : last + 1] = np.diff(np.clip(edges[first : last + 2], a, b)) / (b - a)
    if nullable:
        spread[-1, -1] = 1.0
    return spread
