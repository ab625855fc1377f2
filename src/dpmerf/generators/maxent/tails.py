"""Tails: how the rows of the outermost bin of a column spread over its fine cells, up to a bound that may be generous.

Post-processing of noisy counts. Far out every cell holds less than its noise, and neither an even fill nor a cut is
right: a few rows too many in the last decade outweigh all others in the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np


@final
@dataclass(frozen=True)
class TailSettings:
    """How tails are fitted (ADR 0012)."""

    scales: int = 80  # that are tried, from a fraction of the first cell to the whole bin
    shapes: tuple[float, ...] = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # −1: flat to an end
    usual_shape: float = 0.1  # slightly heavier than an exponential tail: where counts say nothing
    shape_spread: float = 0.2  # how far from it shapes usually are
    short: float = 1.0  # variances of noise that a scale e times as long must fit better: ends of noise alone stay near
    outlier: float = 3.0  # standard deviations of noise beyond which a cell's misfit no longer grows
    clear: float = 5.0  # standard deviations above the fit at which a single cell keeps its own count


@final
@dataclass(frozen=True)
class Runs:
    """Runs of cells whose sums were measured, too."""

    members: np.ndarray  # (runs, k) 1 where a cell belongs to a run
    counts: np.ndarray  # (runs,)
    sigma: float

    def on(self, side: np.ndarray) -> Runs:
        """Those that lie among these cells, in their order."""
        whole = self.members[:, side].sum(1) == self.members.sum(1)
        return Runs(self.members[whole][:, side], self.counts[whole], self.sigma)


def tail_weights(
    counts: np.ndarray, widths: np.ndarray, sigma: float, total: float, s: TailSettings, runs: Runs | None = None
) -> np.ndarray:
    """(k,) shares of cells that go outward from the body of a column, by noisy counts with so much noise.

    What lies beyond a high threshold is nearly a generalised Pareto distribution whatever the column (Pickands, 1975);
    its scale and shape are those that make the counts likeliest. A single cell that stands clear of it, such as a
    bound at which values are cut off, is left to itself.

    >>> counts, widths = np.array([70.0, 20, 10, 3, -4, 5]), np.array([1, 1, 1, 1, 100, 1000])
    >>> far = tail_weights(counts, widths, 3.0, 100.0, TailSettings())
    >>> bool(far[-1] < 1e-3), bool(0.6 < far[0] < 0.8)
    (True, True)
    """
    ends = np.cumsum(widths, dtype=np.float64)
    scale = np.geomspace(min(widths[0] / 4, ends[-1] / 4), 4 * ends[-1], s.scales)
    shape = np.array(s.shapes)
    beyond = _survival(np.concatenate([[0.0], ends]), scale[:, None, None], shape[:, None])  # (scales, shapes, k + 1)
    share = -np.diff(beyond, axis=-1)
    share /= np.maximum(share.sum(-1, keepdims=True), 1e-300)
    misfit = np.minimum(((counts - total * share) / sigma) ** 2, s.outlier**2).sum(-1)
    misfit += ((shape - s.usual_shape) / s.shape_spread) ** 2 + s.short * np.log(scale / scale[0])[:, None]
    if runs is not None:
        apart = np.abs(runs.counts - total * share @ runs.members.T) / runs.sigma
        misfit += np.maximum(apart**2 - s.outlier**2, 0.0).sum(-1)  # single cells decide among fits that miss none
    at = np.unravel_index(np.argmin(misfit), misfit.shape)
    return np.asarray(share[at])


def _survival(x: np.ndarray, scale: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """How much of a generalised Pareto distribution lies beyond x."""
    y = x / scale
    with np.errstate(divide="ignore"):
        bent = np.maximum(1 + shape * y, 0.0) ** (-1 / np.where(shape == 0, 1.0, shape))
    return np.where(shape == 0, np.exp(-y), np.where(1 + shape * y > 0, bent, 0.0))


def toward_tail(noisy: np.ndarray, weights: np.ndarray, sigma: float, total: float, s: TailSettings) -> np.ndarray:
    """(k,) shares of cells: noisy counts shrunk towards so much of the total, relative to what a cell should hold.

    Cells depart from a tail by a common factor of themselves: large ones show theirs, the many small ones far out keep
    what the tail gives them. Counts that are no accident stay.
    """
    prior = total * weights / max(weights.sum(), 1e-12)
    apart = noisy - prior
    excess = (np.minimum(apart**2, (s.clear * sigma) ** 2) - sigma**2).sum() / max((prior**2).sum(), 1e-12)
    signal = max(excess, 0.0) * prior**2
    kept = np.where(apart > s.clear * sigma, 1.0, signal / (signal + sigma**2))
    found = np.maximum(prior + kept * apart, 0.0)
    return np.asarray(found / found.sum()) if found.sum() > 0 else weights / weights.sum()
