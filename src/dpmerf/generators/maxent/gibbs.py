"""Gibbs: chains of rows that walk through a pairwise model, and rows evened out together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.plan.noisy_tables import Layout

RAKES, MOST_LACK = 2, 2.0  # rounds over the columns, and by how much each may change a chain's weight
PARTS = 64  # parts of the rows that `even_out` moves at a time
GAIN, PAIR_GAIN = 0.5, 0.3  # how strongly a gap tilts the model; larger pair gains diverge
Bar = Callable[[Tensor, int, Tensor], None]
SOFT = 50.0  # counts below which a gap hardly tilts


@final
class Chains:
    """Rows of bins, as indices and as one-hots, moved by Gibbs sweeps. One group of chains per class.

    Chains lie along the last axis: what is done to a position is done to all of them at once.
    """

    def __init__(self, layout: Layout, bins: Tensor) -> None:
        self.layout = layout
        self.bins = bins.clone()  # (C, N, q)
        C, N, _ = bins.shape
        self.onehot = torch.zeros(C, layout.positions, N)
        self.onehot.scatter_(1, (bins + torch.tensor(layout.offsets[:-1])).transpose(1, 2), 1.0)

    @staticmethod
    def independent(layout: Layout, h: Tensor, n: int, rng: torch.Generator) -> Chains:
        """Columns drawn independently within each class."""
        parts = [
            torch.multinomial(h[:, layout.span(j)].exp(), n, replacement=True, generator=rng)
            for j in range(len(layout.sizes))
        ]
        return Chains(layout, torch.stack(parts, dim=2))

    def put(self, j: int, bins: Tensor) -> None:
        """Set column j of every chain."""
        self.bins[:, :, j] = bins
        hot = self.onehot[:, self.layout.span(j)]
        hot.zero_()
        hot.scatter_(1, bins[:, None], 1.0)

    def sweep(
        self, h: Tensor, J: Tensor, rng: torch.Generator, held: frozenset[int] = frozenset(), bar: Bar | None = None
    ) -> None:
        """Redraw every column given the others, in random order, except those held. J (C, P, P) is symmetric.

        `bar` lowers logits (C, k, N) of a column's bins that the chains' other columns forbid.
        """
        for j in torch.randperm(len(self.layout.sizes), generator=rng).tolist():
            if j in held:
                continue
            span = self.layout.span(j)
            ladder = torch.baddbmm(h[:, span, None], J[:, span], self.onehot)  # (C, k, N) logits
            if bar is not None:
                bar(ladder, j, self.onehot)
            ladder.sub_(ladder.amax(dim=1, keepdim=True)).exp_()
            for i in range(1, ladder.shape[1]):  # far faster than cumsum along this axis
                ladder[:, i] += ladder[:, i - 1]
            point = torch.rand(ladder.shape[0], 1, ladder.shape[2], generator=rng) * ladder[:, -1:]
            self.put(j, (ladder <= point).sum(dim=1).clamp_max_(ladder.shape[1] - 1))

    def raked(self, singles: Tensor, rng: torch.Generator) -> Chains:
        """As many chains drawn from these by weight, so that each column's frequencies come near to singles (C, P).

        Sweeps do the same for what they can change. Columns that hold each other still, as when one implies all
        others, keep the shares that chance gave them.
        """
        C, N, q = self.bins.shape
        weights = torch.full((C, N), 1 / N)
        for _ in range(RAKES):
            for j in torch.randperm(q, generator=rng).tolist():
                span = self.layout.span(j)
                have = torch.bmm(self.onehot[:, span], weights[:, :, None])[:, :, 0]
                lack = (singles[:, span] * N + 1) / (have * N + 1)
                weights = weights * lack.clamp(1 / MOST_LACK, MOST_LACK).gather(1, self.bins[:, :, j])
                weights = weights / weights.sum(dim=1, keepdim=True)
        points = (torch.arange(N) + torch.rand(C, 1, generator=rng)) / N
        picked = torch.searchsorted(weights.cumsum(dim=1), points).clamp_max(N - 1)
        return Chains(self.layout, self.bins.gather(1, picked[:, :, None].expand(-1, -1, q)))

    def counts(self) -> Tensor:
        """(C, P, P) in how many chains two positions occur together."""
        return torch.bmm(self.onehot, self.onehot.transpose(1, 2))


@final
@dataclass(frozen=True)
class Goal:
    """What the rows of one class should amount to, per row: the model's own moments."""

    singles: Tensor  # (P,)
    pairs: Tensor  # (P, P)
    measured: Tensor  # (P, P)


def even_out(
    layout: Layout,
    bins: Tensor,
    h: Tensor,
    J: Tensor,
    goal: Goal,
    passes: int,
    rng: torch.Generator,
    bar: Bar | None = None,
) -> Tensor:
    """(n, q) rows of one class, moved in small parts by Gibbs steps whose model is tilted by what the whole set lacks.

    The sampling noise of one- and two-way counts shrinks; each row stays a draw from (nearly) the model.
    """
    n, q = bins.shape
    if n < 4 * PARTS:
        return bins
    bins = bins.clone()
    part_size = -(-n // PARTS)
    counts = torch.zeros(layout.positions, layout.positions)
    for part in bins.split(8192):
        counts += Chains(layout, part[None]).counts()[0]
    wanted, singles = goal.pairs * n, goal.singles * n
    for _ in range(passes):
        for rows in torch.randperm(n, generator=rng).split(part_size):
            lack = (singles - counts.diagonal()) / (singles + SOFT)
            pair_lack = ((wanted - counts) / (wanted + SOFT) - lack[:, None] - lack[None]) * goal.measured
            chains = Chains(layout, bins[rows][None])
            counts -= chains.counts()[0]
            tilted = (h + PARTS * GAIN * lack)[None], (J + PARTS * PAIR_GAIN / q * pair_lack)[None]
            chains.sweep(*tilted, rng, bar=bar)
            counts += chains.counts()[0]
            bins[rows] = chains.bins[0]
    return bins
