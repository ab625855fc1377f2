"""Triples: what label × triple tables show beyond the pairwise model, as weights of rows. Post-processing.

A pairwise model per class knows no interaction of three columns within a class. Where a released triple departs from
the model by more than noise, rows are drawn in excess and kept in proportion to how much commoner the release shows
their triple to be: importance resampling, which leaves pairs as they are where the two agree on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.plan.noisy_tables import Layout
from dpmerf.plan.queries.label_triples import noisy_triples
from dpmerf.release import Release


@final
@dataclass(frozen=True)
class TripleSettings:
    """When triples count and how rows are kept (ADR 0012)."""

    clear: float = 6.0  # standard deviations by which a triple's departure must exceed that of noise
    rounds: int = 20  # of iterative proportional fitting over the triples that depart
    most: float = 20.0  # a weight, relative to the mean
    excess: int = 4  # rows drawn for each that is kept


TRIPLES = TripleSettings()


@final
@dataclass(frozen=True)
class TripleWeights:
    """Columns of each triple that departs, and (C, a, b, c) factors of a row's weight."""

    columns: tuple[tuple[int, int, int], ...]
    factors: tuple[Tensor, ...]

    @staticmethod
    def of(release: Release, layout: Layout, states: Tensor, shares: Tensor) -> TripleWeights | None:
        """Compare released triples with (C, chains, q) rows of the model and (C,) class shares; None: they agree."""
        C, chains, _ = states.shape
        found: list[tuple[tuple[int, int, int], Tensor]] = []
        for triple, m in noisy_triples(release):
            i, j, k = (layout.names.index(name) for name in triple)
            size = m.values.shape[1:]
            cell = ((states[:, :, i].long() * size[1]) + states[:, :, j]) * size[2] + states[:, :, k]
            have = torch.stack([torch.bincount(c, minlength=size.numel()) for c in cell]).double().view(C, *size)
            classes = shares.double().view(C, 1, 1, 1) * release.rows_estimate
            model = have / chains * classes
            gap = m.values - model
            noise = m.sigma**2 + model * classes / chains  # of the release, and of so many chains
            departure, free = float((gap.square() / noise).sum()), gap.numel()
            if departure > free + TRIPLES.clear * (2 * free) ** 0.5:
                found.append(((i, j, k), (model + (1 - free / departure) * gap).clamp_min(0.5)))
        return _fitted(found, states) if found else None

    def of_rows(self, c: int, bins: Tensor) -> Tensor:
        """(n, q) bins of a class -> (n,) weights."""
        weight = torch.ones(len(bins), dtype=torch.float64)
        for (i, j, k), factor in zip(self.columns, self.factors, strict=True):
            weight = weight * factor[c][bins[:, i].long(), bins[:, j].long(), bins[:, k].long()]
        return weight

    def kept(self, c: int, bins: Tensor, n: int, rng: torch.Generator) -> Tensor:
        """So many of the rows, in proportion to their weights and as evenly as these allow."""
        weight = self.of_rows(c, bins)
        weight = (weight / weight.mean()).clamp_max(TRIPLES.most)
        points = (torch.arange(n) + torch.rand(1, generator=rng)) / n
        order = torch.randperm(len(bins), generator=rng)
        picked = torch.searchsorted((weight[order] / weight.sum()).cumsum(0), points.double()).clamp_max(len(bins) - 1)
        return bins[order[picked]]


def _fitted(found: list[tuple[tuple[int, int, int], Tensor]], states: Tensor) -> TripleWeights:
    """Iterative proportional fitting of rows' weights to all wanted tables of a class."""
    columns = tuple(c for c, _ in found)
    factors = tuple(torch.ones_like(wanted) for _, wanted in found)
    weights = TripleWeights(columns, factors)
    for c in range(len(states)):
        for _ in range(TRIPLES.rounds):
            for (i, j, k), factor, (_, wanted) in zip(columns, factors, found, strict=True):
                weight, at = weights.of_rows(c, states[c]), tuple(states[c][:, x].long() for x in (i, j, k))
                have = torch.zeros_like(wanted[c]).index_put(at, weight, accumulate=True)
                share = wanted[c] / wanted[c].sum()
                factor[c] *= torch.where(have > 0, share / (have / have.sum()).clamp_min(1e-12), 1.0)
    return weights
