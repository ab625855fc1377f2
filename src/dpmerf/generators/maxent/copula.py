"""Copula: where in their bins the numbers of a row lie together. Post-processing: it follows from the fitted model.

Bins are the model's; within them numbers would be independent, and a correlation that lives in the tails, inside the
last bins, would be lost. So each class has the normal copula with the correlations of its bins, and a row's numbers are
drawn from it given its bins.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.following import correlation_of
from dpmerf.generators.maxent.maxent_settings import Settings

EDGE = 1e-9  # of a share: normal scores end there
NOTHING_KNOWN: Mapping[int, Tensor] = {}


@final
@dataclass(frozen=True)
class Copula:
    """One class: the ends of every column's bins on the normal scale, and the precision matrix of the scores."""

    ends: tuple[Tensor, ...]  # per column (bins + 1,) shares
    precision: Tensor  # (m, m)
    settings: Settings

    @staticmethod
    def of(
        singles: Tensor, pairs: Tensor, spans: Sequence[slice], s: Settings, following: Collection[tuple[int, int]] = ()
    ) -> Copula:
        """(P,) and (P, P) frequencies of one class, and where each column's bins of numbers, without null, stand.

        Mean scores of bins understate strong correlations. For pairs that are `following`, the copula is fitted.
        """
        ends, scores = [], []
        for span in spans:
            share = singles[span].double().clamp_min(EDGE)
            found = torch.cat([torch.zeros(1, dtype=torch.float64), (share / share.sum()).cumsum(0)])
            found[-1] = 1.0
            density = (-torch.special.ndtri(found).square() / 2).exp() / math.sqrt(2 * math.pi)
            ends.append(found)
            scores.append((density[:-1] - density[1:]) / (found[1:] - found[:-1]).clamp_min(EDGE))
        m = len(spans)
        matrix = torch.eye(m, dtype=torch.float64)
        for i in range(m):
            for j in range(i):
                table = pairs[spans[i], spans[j]].double()
                if (i, j) in following or (j, i) in following:
                    alike = correlation_of(table, 0.0, s)
                else:
                    alike = _correlation(table, scores[i], scores[j], s.most_correlation)
                matrix[i, j] = matrix[j, i] = alike
        values, vectors = torch.linalg.eigh(matrix)
        near = (vectors * values.clamp_min(s.least_eigenvalue)) @ vectors.T
        size = near.diagonal().sqrt()
        return Copula(tuple(ends), torch.linalg.inv(near / size / size[:, None]), s)

    @cached_property
    def _together(self) -> list[int]:
        """Columns that go together with another at all, given the rest."""
        size = self.precision.diagonal().sqrt()
        given_rest = (self.precision / size / size[:, None]).fill_diagonal_(0.0).abs()
        return torch.nonzero(given_rest.amax(1) >= self.settings.least_together).flatten().tolist()

    def places(self, bins: Tensor, rng: torch.Generator, known: Mapping[int, Tensor] = NOTHING_KNOWN) -> Tensor:
        """(n, m) bins -> (n, m) how far into its bin a number lies, from 0 to 1; a bin past the last is null.

        Columns whose places are `known` (n,) keep them, and the others follow them.
        """
        n, m = bins.shape
        low, high = torch.zeros(n, m, dtype=torch.float64), torch.ones(n, m, dtype=torch.float64)
        for i, ends in enumerate(self.ends):
            present = bins[:, i] < len(ends) - 1
            at = bins[:, i].clamp_max(len(ends) - 2)
            low[:, i], high[:, i] = torch.where(present, ends[at], 0.0), torch.where(present, ends[at + 1], 1.0)
        place = torch.rand(n, m, generator=rng, dtype=torch.float64)
        for i, held in known.items():
            place[:, i] = held
        if not self._together:
            return place
        a, b = _normal(low), _normal(high)
        z = _normal(low + place * (high - low))
        free = [i for i in self._together if i not in known]
        for _ in range(self.settings.inside_sweeps):
            for i in free:
                own = self.precision[i, i]
                mean = z[:, i] - (z @ self.precision[i]) / own
                spread = float(own) ** -0.5
                first, last = (torch.special.ndtr((x[:, i] - mean) / spread) for x in (a, b))
                share = first + torch.rand(n, generator=rng, dtype=torch.float64) * (last - first)
                z[:, i] = (mean + spread * _normal(share)).clamp(a[:, i], b[:, i])
        return ((torch.special.ndtr(z) - low) / (high - low).clamp_min(EDGE)).clamp(0, 1)


def _normal(share: Tensor) -> Tensor:
    return torch.special.ndtri(share.clamp(EDGE, 1 - EDGE))


def _correlation(table: Tensor, a: Tensor, b: Tensor, most: float) -> float:
    """Of the mean scores of two columns' bins, by their joint frequencies."""
    total = float(table.sum())
    if total <= 0:
        return 0.0
    table = table / total
    p, q = table.sum(1), table.sum(0)
    a, b = a - p @ a, b - q @ b
    size = float((p @ a.square()) * (q @ b.square()))
    return max(-most, min(most, float(a @ table @ b) / math.sqrt(size))) if size > 1e-12 else 0.0
