"""Triples: what label × triple tables show beyond the pairwise model, as weights of rows. Post-processing.

A pairwise model per class knows no interaction of three columns within a class. Where a released triple shows one that
is more than noise, rows are drawn in excess and kept in proportion to how much commoner it makes their triple:
importance resampling. What a triple says of its pairs is left out: the pair tables said it, with less noise.
"""

from __future__ import annotations

import math
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

    clear: float = 5.0  # standard deviations by which a class's departure in a triple must exceed that of noise
    rounds: int = 20  # of iterative proportional fitting over the triples that depart
    margin_rounds: int = 10  # that move the model's triple onto the pairs of the released one
    least: float = 0.02  # to which a triple of values may fall, and
    most: float = 20.0  # to which it may rise, of what the model gives it; also of a weight, relative to the mean
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
            noise = (m.sigma**2 + model * classes / chains).mean((1, 2, 3))  # of the release, and of so many chains
            factor = _interaction(model, m.values, noise)
            if bool((factor != 1).any()):
                found.append(((i, j, k), model * factor))
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


def _interaction(model: Tensor, values: Tensor, noise: Tensor) -> Tensor:
    """(C, a, b, c) how much commoner than in the model the released values are, but for what their pairs explain.

    Pairs may explain a part of the gap that is a sum of functions of two columns, or all that is left once the model is
    moved onto them. If neither is enough, it is an interaction of all three columns, and noise of this variance (C,): a
    class keeps as much of it as stands out.
    """
    moved = model.clamp_min(1e-3)
    for _ in range(TRIPLES.margin_rounds):
        for axis in (1, 2, 3):
            moved = moved * (values.sum(axis, keepdim=True).clamp_min(1e-3) / moved.sum(axis, keepdim=True))
    gap = _pure(values - model)
    free = math.prod(size - 1 for size in model.shape[1:])
    departure = torch.minimum(gap.square().sum((1, 2, 3)), _pure(values - moved).square().sum((1, 2, 3))) / noise
    by_noise = free * (1 - 2 / (9 * free) + TRIPLES.clear * (2 / (9 * free)) ** 0.5) ** 3  # Wilson and Hilferty, 1931
    kept = (1 - by_noise / departure.clamp_min(1e-9)).clamp_min(0)
    return (1 + kept.view(-1, 1, 1, 1) * gap / model.clamp_min(1.0)).clamp(TRIPLES.least, TRIPLES.most)


def _pure(gap: Tensor) -> Tensor:
    """(C, a, b, c) without its sums over any column."""
    for axis in (1, 2, 3):
        gap = gap - gap.mean(axis, keepdim=True)
    return gap


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
