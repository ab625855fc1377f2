"""Scores: every learned column as one number with a standard normal shape, from noisy histograms. No rows are needed.

Wide tables afford few counts per column, but their columns are often alike: those on the same axis borrow strength from
each other before the noise is taken at its word.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

from dpmerf.encoding.binning import FineGrid, to_simplex
from dpmerf.encoding.codec import Batch
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

STEP = 2.0**-10  # scores lie on this grid: sums of their squares are exact in float64, in whatever order
PARTS = 16  # of a cell, at most, each with a score of its own: a single value has one
EMPTY = 2.0  # standard deviations of noise within which the ends of alike columns' mean histogram show no rows
MOST_HIDDEN = 0.02  # of all rows: what may hide in that noise
LEAST = 1e-4  # of all rows: the least mass of a cell
MOST_TILT, HALVINGS = 4.0, 40  # of a histogram whose scores have another mean than they should
LENGTHS = (0.2, 0.28, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7)  # of a row, ÷ √columns: where bins part


@final
class Scores:
    """The mass of each column's fine cells, null the last of them, and the mean normal score of a row in each place.

    A place that holds the shares a … b of all rows has the score (φ(Φ⁻¹(a)) − φ(Φ⁻¹(b))) / (b − a). Cells of numbers
    have up to PARTS places, each with the same share of the cell's mass. Scores are looked up: no library's
    last bit matters.
    """

    def __init__(self, grid: FineGrid, mass: dict[str, Tensor]) -> None:
        self.grid = grid
        self.mass = mass  # column -> (cells,) float64, positive, adding up to 1

    @cached_property
    def of_place(self) -> dict[str, Tensor]:
        """Column -> (places,) scores."""
        return {name: torch.round(_normal_scores(self._places(name)) / STEP) * STEP for name in self.mass}

    def _places(self, name: str) -> Tensor:
        """(places,) their mass."""
        mass, fine = self.mass[name], self.grid.numeric.get(name)
        if fine is None:
            return mass
        parts = torch.from_numpy(fine.parts(PARTS))
        return torch.cat([(mass[: fine.size] / parts).repeat_interleave(parts), mass[fine.size :]])

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.mass)

    def __call__(self, batch: Batch) -> Tensor:
        """(n, columns) float64."""
        places = self.grid.encode(batch, PARTS)
        return torch.stack([self.of_place[name][places[name]] for name in self.mass], dim=1)

    def moved(self, means: Tensor) -> Scores:
        """(q,) the mean scores that rows were found to have -> the masses nearest to these with such means.

        What a noisy histogram has in the wrong place shows in the mean of its scores, which should be 0.
        """
        score = torch.nn.utils.rnn.pad_sequence([self._of_cell(name) for name in self.mass], batch_first=True)
        found = tilted(torch.nn.utils.rnn.pad_sequence(list(self.mass.values()), batch_first=True), score, means)
        return Scores(self.grid, {name: found[j, : len(m)] for j, (name, m) in enumerate(self.mass.items())})

    def _of_cell(self, name: str) -> Tensor:
        """(cells,) mean scores."""
        score, fine = self.of_place[name], self.grid.numeric.get(name)
        if fine is None:
            return score
        parts = torch.from_numpy(fine.parts(PARTS))
        cell = torch.arange(fine.size).repeat_interleave(parts)
        summed = torch.zeros(fine.size, dtype=score.dtype).index_add(0, cell, score[: len(cell)])
        return torch.cat([summed / parts, score[len(cell) :]])

    def to_json(self) -> dict[str, Any]:
        return {"mass": {name: mass.tolist() for name, mass in self.mass.items()}}

    @staticmethod
    def from_json(grid: FineGrid, data: dict[str, Any]) -> Scores:
        return Scores(grid, {name: torch.tensor(mass, dtype=torch.float64) for name, mass in data["mass"].items()})

    @staticmethod
    def estimate(grid: FineGrid, counts: dict[str, Tensor], sigma: float, rows: float) -> Scores:
        """From noisy histograms (noise of standard deviation sigma per cell): post-processing."""
        alike: dict[object, list[str]] = {}
        for name in counts:
            axis = grid.codec.axes.get(name)
            nullable = grid.codec.schema.columns[name].nullable
            alike.setdefault((axis, nullable) if axis else name, []).append(name)
        found = {}
        for names in alike.values():
            fine = grid.numeric.get(names[0])
            less_noisy = pooled(torch.stack([counts[n].double() for n in names]), sigma, fine.size if fine else 0)
            for name, noisy in zip(names, less_noisy, strict=True):
                mass = to_simplex(noisy, rows) / rows + LEAST
                found[name] = mass / mass.sum()
        return Scores(grid, {name: found[name] for name in counts})


def pooled(counts: Tensor, sigma: float, ordered: int) -> Tensor:
    """(m, k) noisy histograms of m columns -> less noisy ones: their mean, and the few shapes in which they differ.

    The first `ordered` cells are a range (then comes null): where its ends show no rows in all columns together, none
    has any.

    The singular values of what differs are shrunk by as much as noise of this size inflates them (Gavish and Donoho,
    Optimal shrinkage of singular values, 2017).

    >>> noisy = 100 + 10 * torch.randn(400, 8, generator=torch.Generator().manual_seed(0))
    >>> bool((pooled(noisy, 10.0, 8) - 100).abs().max() < 3)
    True
    """
    m, k = counts.shape
    if m < 2:
        return counts
    mean = counts.mean(dim=0, keepdim=True)
    left, values, right = torch.linalg.svd(counts - mean, full_matrices=False)
    edge = sigma * (math.sqrt(m) + math.sqrt(k))
    square = (values.square() - sigma**2 * (m + k)).square() - 4 * m * k * sigma**4
    kept = torch.where(values > edge, square.clamp_min(0).sqrt() / values.clamp_min(1e-12), torch.zeros_like(values))
    found = mean + (left * kept) @ right
    found[:, :ordered][:, _empty_ends(mean[0, :ordered], sigma / math.sqrt(m))] = 0.0
    return found


def _empty_ends(mean: Tensor, sigma: float) -> Tensor:
    """(k,) the cells at either end that, taken together from the end on, show no rows beyond noise.

    Only where that noise is small, so that few rows can hide in it.
    """
    limit = EMPTY * sigma * torch.arange(1, len(mean) + 1, dtype=mean.dtype).sqrt()
    small = limit <= MOST_HIDDEN * mean.sum()
    first, last = (((side.cumsum(0) <= limit) & small).cumprod(0).bool() for side in (mean, mean.flip(0)))
    return first | last.flip(0)


def tilted(mass: Tensor, score: Tensor, means: Tensor) -> Tensor:
    """(q, k) distributions -> those nearest to them, mass · e^(θ·score), whose mean scores are `means`.

    θ is found by halving, and kept within ±MOST_TILT where no distribution has such a mean.

    >>> tilted(torch.tensor([[0.5, 0.5]]), torch.tensor([[-1.0, 1.0]]), torch.tensor([0.6])).round(decimals=3).tolist()
    [[0.20000000298023224, 0.800000011920929]]
    """
    low = torch.full((len(mass), 1), -MOST_TILT, dtype=mass.dtype)
    high = -low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = torch.softmax(mass.log() + middle * score, dim=1)
        below = (found * score).sum(1, keepdim=True) < means[:, None]
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return found


def lengths(scores: Tensor) -> Tensor:
    """(n, q) -> (n,) in which bin a row's length lies. Squares and their sums are exact: no order of adding matters."""
    edges = torch.tensor([round(scores.shape[1] * x * x / STEP**2) * STEP**2 for x in LENGTHS], dtype=torch.float64)
    return torch.searchsorted(edges, scores.square().sum(dim=1), right=True)


def _normal_scores(mass: Tensor) -> Tensor:
    ends = torch.cat([torch.zeros(1, dtype=torch.float64), mass.cumsum(0)]).clamp(0, 1)
    ends[-1] = 1.0
    density = (-torch.special.ndtri(ends).square() / 2).exp() / math.sqrt(2 * math.pi)
    return (density[:-1] - density[1:]) / (ends[1:] - ends[:-1]).clamp_min(1e-12)
