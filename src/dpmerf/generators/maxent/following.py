"""Following: how a number goes with the same number in the row before, by one correlation. Post-processing.

A noisy table of few bins hardly tells a weight that stays from one that jumps. A normal copula has a single parameter,
which noise leaves sharp: the table is drawn toward the copula that fits it best, as far as what departs from that looks
like noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.maxent_settings import Settings


def followed(t: Targets, pairs: Sequence[tuple[int, int]], numbers: dict[int, int], s: Settings) -> Targets:
    """The same counts with these pairs of columns nearer to copulas. `numbers`: column -> its bins without null."""
    tables, variance = t.pairs.clone(), t.pair_variance.clone()
    for i, j in pairs:
        rows = slice(t.layout.offsets[i], t.layout.offsets[i] + numbers[i])
        columns = slice(t.layout.offsets[j], t.layout.offsets[j] + numbers[j])
        free = (numbers[i] - 1) * (numbers[j] - 1) - 1
        if free < 1:
            continue
        noisy, noise = t.pairs[rows, columns].double(), float(t.pair_variance[rows, columns].mean())
        near = noisy.sum() * copula_table(noisy, correlation_of(noisy, noise**0.5, s), s)
        apart = noisy - near
        signal = max(float(apart.square().sum()) / free - noise, 0.0)
        kept = signal / (signal + noise)
        found = (near + kept * apart).to(tables.dtype)
        tables[rows, columns], tables[columns, rows] = found, found.T
        variance[rows, columns] = variance[columns, rows] = noise * max(kept, s.least_doubt)
    return replace(t, pairs=tables, pair_variance=variance)


def correlation_of(table: Tensor, noise: float, s: Settings) -> float:
    """Of a normal copula, given a table of counts with a standard deviation of noise: its expectation.

    A table that says nothing about it, since one bin holds nearly everything, leaves it at 0.
    """
    total = float(table.sum().clamp_min(1e-9))
    grid = torch.tanh(torch.linspace(-s.most_odds, s.most_odds, s.correlations).double())
    apart = [float((total * copula_table(table, float(rho), s) - table).square().sum()) for rho in grid]
    misfit = torch.tensor(apart).double() / max(noise, s.least_noise * total) ** 2
    weight = (1 - grid**2) * torch.exp(-(misfit - misfit.min()) / 2)  # every correlation is as likely before
    return float((weight * grid).sum() / weight.sum())


def copula_table(table: Tensor, correlation: float, s: Settings) -> Tensor:
    """(k, m) shares of a normal copula over bins with the margins of a table."""
    rows, columns = (
        margin.clamp_min(1e-9 * float(table.sum().clamp_min(1.0))) for margin in (table.sum(1), table.sum(0))
    )
    rows, columns = rows / rows.sum(), columns / columns.sum()
    at = (torch.arange(s.copula_points).double() + 0.5) / s.copula_points
    spread = max(1 - correlation**2, 1e-9) ** 0.5
    ends = torch.special.ndtri(rows.cumsum(0)[:-1].clamp(1e-12, 1 - 1e-12))
    below = torch.special.ndtr((ends[:, None] - correlation * torch.special.ndtri(at)) / spread)  # (k - 1, points)
    one, none = torch.ones(1, len(at)).double(), torch.zeros(1, len(at)).double()
    inside = torch.cat([below, one]) - torch.cat([none, below])  # (k, points)
    bin_of = torch.searchsorted(columns.cumsum(0), at).clamp_max(len(columns) - 1)
    found = torch.zeros(len(rows), len(columns), dtype=torch.float64).index_add(1, bin_of, inside)
    seen = found.sum(0)
    found = torch.where(seen > 0, found / seen.clamp_min(1e-300), rows[:, None])
    return found * columns
