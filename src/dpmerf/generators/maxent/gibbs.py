"""Gibbs: chains of rows that walk through a pairwise model."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.blocks import Move
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.plan.noisy_tables import Layout

Bar = Callable[[int, Tensor, int, Tensor], None]
BELOW_ONE = 1 - 2**-23  # float32
LEAST = -80.0  # of a logit beside the largest: where float32 ends, exponentials take forty times as long


@final
class Chains:
    """Rows of bins as one-hots, moved by Gibbs sweeps. One group of chains per class.

    Chains lie along the last axis: what is done to a position is done to all of them at once.
    """

    def __init__(self, layout: Layout, bins: Tensor) -> None:
        """From bins (C, N, q)."""
        self.layout = layout
        C, N, _ = bins.shape
        self.onehot = torch.zeros(C, layout.positions, N)
        self.onehot.scatter_(1, (bins + torch.tensor(layout.offsets[:-1])).transpose(1, 2), 1.0)

    @property
    def bins(self) -> Tensor:
        """(C, N, q)"""
        number = torch.cat([torch.arange(size) for size in self.layout.sizes]).float()  # (P,) of a bin in its column
        return torch.stack([(hot.T @ (self.layout.members * number[:, None])).long() for hot in self.onehot])

    @property
    def count(self) -> int:
        """Chains of a class."""
        return self.onehot.shape[2]

    def sweep(self, moves: list[list[Move]], rng: torch.Generator, bar: Bar | None = None, even: bool = True) -> None:
        """Redraw every block of every class given the others, in random order.

        If `even`, chance is shared out: of N chains, one has each N-th of the interval, so that counts vary less.
        `bar` lowers logits (k, N) of the bins of a column that the chains' other columns forbid.
        """
        for c, of_class in enumerate(moves):
            hot = self.onehot[c]
            chance = torch.rand(len(of_class), self.count, generator=rng)
            for at in torch.randperm(len(of_class), generator=rng).tolist():
                move = of_class[at]
                point = chance[at]
                if even:
                    point = torch.randperm(self.count, generator=rng).add(point).mul_(1 / self.count)
                ladder = torch.addmm(move.own, move.pull, hot)  # (K, N) logits
                block = move.block
                if bar is not None and len(block.columns) == 1:
                    bar(c, ladder, block.columns[0], hot)
                if block.states is None:
                    _pick(ladder, point, hot[self.layout.span(block.columns[0])])
                else:
                    picked = torch.empty_like(ladder)
                    _pick(ladder, point, picked)
                    hot[block.rows] = block.states.T @ picked

    def raked(self, singles: Tensor, s: Settings, rng: torch.Generator) -> Chains:
        """As many chains drawn from these by weight, so that each column's frequencies come near to singles (C, P).

        Sweeps do the same for what they can change. Columns that hold each other still, as when one implies all
        others, keep the shares that chance gave them.
        """
        bins = self.bins
        C, N, q = bins.shape
        weights = torch.full((C, N), 1 / N)
        for _ in range(s.rakes):
            for j in torch.randperm(q, generator=rng).tolist():
                span = self.layout.span(j)
                have = torch.bmm(self.onehot[:, span], weights[:, :, None])[:, :, 0]
                lack = (singles[:, span] * N + 1) / (have * N + 1)
                weights = weights * lack.clamp(1 / s.most_lack, s.most_lack).gather(1, bins[:, :, j])
                weights = weights / weights.sum(dim=1, keepdim=True)
        points = (torch.arange(N) + torch.rand(C, 1, generator=rng)) / N
        picked = torch.searchsorted(weights.cumsum(dim=1), points).clamp_max(N - 1)
        return Chains(self.layout, bins.gather(1, picked[:, :, None].expand(-1, -1, q)))

    def counts(self) -> Tensor:
        """(C, P, P) in how many chains two positions occur together."""
        return torch.stack([_together(hot) for hot in self.onehot])


def _pick(logits: Tensor, point: Tensor, out: Tensor) -> None:
    """One value a chain, as a one-hot (K, N), by `point` (N,) in [0, 1). Uses the logits up."""
    ladder = logits.sub_(logits.amax(dim=0)).clamp_min_(LEAST).exp_()
    for i in range(1, len(ladder)):  # far faster than cumsum along this axis
        ladder[i] += ladder[i - 1]
    torch.gt(ladder, point * BELOW_ONE * ladder[-1], out=out)
    out[1:] -= out[:-1].clone()


def _together(hot: Tensor) -> Tensor:
    """hot @ hot.T (P, P), strip by strip: what lies below the diagonal is copied, not computed."""
    P = len(hot)
    found, strip = torch.empty(P, P), max(64, -(-P // 5))
    for a in range(0, P, strip):
        b = min(a + strip, P)
        found[a:b, a:] = hot[a:b] @ hot[a:].T
        found[b:, a:b] = found[a:b, b:].T
    return found
