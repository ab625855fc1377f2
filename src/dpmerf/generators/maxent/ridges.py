"""Ridges: how strongly each cell's interaction is held near independence, by empirical Bayes from the known noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.smooth import Smooth
from dpmerf.generators.maxent.zeros import Zeros
from dpmerf.generators.shrinkage import mixed


@final
@dataclass(frozen=True)
class Ridges:
    """Penalty per cell, and the count that sets each cell's step."""

    shared: Tensor  # (P, P)
    scale: Tensor
    own: Tensor | None  # (C, P, P)
    own_scale: Tensor | None
    smooth: Smooth | None = None  # interactions of neighbouring numbers are alike; None: each cell by itself

    def pull(self, J: Tensor, of: slice = slice(None), to: slice = slice(None)) -> Tensor:
        """The counts by which interactions J (P, P), or those of one pair of columns, are drawn to independence."""
        return self.shared[of, to] * (J if self.smooth is None else self.smooth.roughness(J, of, to))

    def step(self, gap: Tensor, counts: Tensor) -> Tensor:
        """(P, P) the change x of J that closes a gap in counts: (counts + pull) x = gap, cell by cell or smoothly."""
        if self.smooth is None:
            return gap / (counts + self.shared)
        return self.smooth.solved(gap / self.shared, counts / self.shared)


def ridges(t: Targets, zeros: Zeros, weight: float, s: Settings, numbers: dict[int, int] | None = None) -> Ridges:
    """Empirical Bayes: a table whose departure from independence is no larger than its noise is held near it.

    `numbers` says how many bins of a column hold numbers in order; interactions along these are expected to be smooth.
    """
    expected = t.singles[:, :, None] * t.singles[:, None, :] / t.classes[:, None, None]  # independent within a class
    if zeros.pairs is not None:
        expected = expected * (zeros.pairs == 0)  # where nothing can be, nothing departs
    total = expected.sum(0)
    departure = t.pairs - total
    prior = prior_variance(t, departure, total, t.pair_variance, s)
    scale = torch.maximum(total, t.pairs - t.pair_variance.sqrt()).clamp_min(1.0)
    shared = weight * t.pair_variance / (prior * scale)
    smooth = Smooth.of(t, numbers, s) if numbers else None
    if t.label_pairs is None or t.label_pair_variance is None:
        return Ridges(shared, scale, None, None, smooth)
    explained = (1 + departure / total.clamp_min(1.0) * (scale / (scale + shared))).clamp(0, 50)
    rest = t.label_pairs - expected * explained
    own_prior = torch.stack(
        [prior_variance(t, rest[c], expected[c], t.label_pair_variance, s) for c in range(len(t.classes))]
    )
    own_scale = torch.maximum(expected, t.label_pairs - t.label_pair_variance.sqrt()).clamp_min(1.0)
    return Ridges(shared, scale, weight * t.label_pair_variance / (own_prior * own_scale), own_scale, smooth)


def prior_variance(t: Targets, departure: Tensor, expected: Tensor, variance: Tensor, s: Settings) -> Tensor:
    """(P, P) prior variance of the log-interactions, one value per table: its expectation, given how far it departs.

    A table has one of the priors, and all tables together say how common each of these is: one table alone would show
    little but its noise. That noise has (a − 1)(b − 1) free cells, since tables were moved onto their margins. Where it
    drowns all tables, as those of a rare class, they are taken for independent.
    """
    S, seg = t.layout.members, t.layout.column_of
    sizes = torch.tensor(t.layout.sizes, dtype=torch.float64)
    row, column = torch.nonzero(torch.triu(S.T @ t.measured @ S, 1), as_tuple=True)

    def summed(cells: Tensor) -> Tensor:
        return (S.T @ (cells * t.measured) @ S)[row, column].double()

    priors, noise = torch.tensor(s.priors, dtype=torch.float64), summed(variance)
    ratio = (summed(expected.square()) / noise)[:, None] * priors
    length = summed(departure.square()) / noise * sizes[row] * sizes[column]  # squared, in units of the noise
    free = ((sizes[row] - 1) * (sizes[column] - 1)).clamp_min(1)
    found = torch.full((len(sizes), len(sizes)), min(s.priors))
    weight = mixed(length, free, ratio, (priors == priors.min()) + s.doubt / len(priors))
    found[row, column] = found[column, row] = (weight @ priors).float()
    return found[seg][:, seg]
