"""Tree: the model that training starts from. The strongest pairs that form a tree, met exactly; chains drawn from it.

A tree of pairs has a closed form, so that training begins where the strongest interactions already hold, and chains
begin where they belong, also in columns that can hardly be moved one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.ridges import Ridges
from dpmerf.generators.maxent.zeros import Zeros
from dpmerf.plan.noisy_tables import Layout


@final
@dataclass(frozen=True)
class Start:
    """Parameters, and chains that are drawn from them."""

    h: Tensor  # (C, P)
    shared: Tensor  # (P, P)
    chains: Chains
    common: Tensor  # (q, q) the share of the smaller entropy that two columns have in common

    @property
    def alike(self) -> Tensor:
        """(P,) how many columns say the same as that of a position: their steps add up."""
        return alike(self.chains.layout, self.common)


def alike(layout: Layout, common: Tensor) -> Tensor:
    """(P,) the number of columns that say the same as each column, itself among them."""
    return common.square().fill_diagonal_(1.0).sum(1)[layout.column_of]


def from_tree(t: Targets, zeros: Zeros, ridge: Ridges, chains: int, s: Settings, rng: torch.Generator) -> Start:
    """Independent columns within a class, and a maximum spanning tree of pairs by what they have in common."""
    layout, C = t.layout, len(t.classes)
    q = len(layout.sizes)
    information, common = _information(t, zeros, ridge)
    shares = (t.singles / t.classes[:, None]).clamp_min(s.least_frequency)  # (C, P)
    h, shared = shares.log(), torch.zeros_like(t.pairs)
    shares = shares if zeros.singles is None else shares * (zeros.singles == 0) + 1e-12
    barred = zeros.pairs
    bins = torch.zeros(C, chains, q, dtype=torch.int64)
    for i, j in _spanning(information):
        to = layout.span(j)
        if i is None:
            bins[:, :, j] = torch.multinomial(shares[:, to], chains, replacement=True, generator=rng)
            continue
        of = layout.span(i)
        J = _pair(t, zeros, ridge, of, to, s)
        shared[of, to], shared[to, of] = J, J.T
        ratio = (J if barred is None else J + barred[:, of, to]).exp().expand(C, -1, -1)
        left, right, table = _raked(ratio, shares[:, of], shares[:, to], s.margin_rounds)
        h[:, of] += left.log()
        h[:, to] += right.log()
        ladder = table.cumsum(2).gather(1, bins[:, :, i, None].expand(-1, -1, layout.sizes[j]))  # (C, N, k)
        point = torch.rand(C, chains, 1, generator=rng) * ladder[:, :, -1:]
        bins[:, :, j] = (ladder <= point).sum(2).clamp_max_(layout.sizes[j] - 1)
    return Start(h, shared, Chains(layout, bins), common)


def _information(t: Targets, zeros: Zeros, ridge: Ridges) -> tuple[Tensor, Tensor]:
    """(q, q) mutual information of the tables, shrunk as their ridge says, and as share of the smaller entropy."""
    S, seg = t.layout.members, t.layout.column_of
    margins = t.singles.sum(0)
    rows = t.classes.sum()
    expected = margins[:, None] * margins / rows
    table = expected + (t.pairs - expected) * (ridge.scale / (ridge.scale + ridge.shared))
    table = table.clamp_min(0) * t.measured
    if zeros.barred is not None:
        table = table * ~zeros.barred
    for _ in range(3):
        table = table * (margins[:, None] / (table @ S).clamp_min(1e-9))[:, seg]
        table = table * (margins / (S.T @ table).clamp_min(1e-9))[seg]
    gain = table / rows * (table.clamp_min(1e-9) / expected.clamp_min(1e-9)).log()
    found = (S.T @ gain @ S).clamp_min(0)
    p = (margins / rows).clamp_min(1e-12)
    entropy = -(p * p.log()) @ S
    return (found + found.T) / 2, found / torch.minimum(entropy[:, None], entropy).clamp_min(1e-3)


def _spanning(weight: Tensor) -> list[tuple[int | None, int]]:
    """Edges (parent, child) of a maximum spanning tree (Prim), parents first; None starts a part of its own."""
    q = len(weight)
    found: list[tuple[int | None, int]] = []
    best, parent = torch.full((q,), -1.0), torch.full((q,), -1)
    left = torch.ones(q, dtype=torch.bool)
    for _ in range(q):
        j = int(torch.where(left, best, -2.0).argmax())
        found.append((int(parent[j]) if best[j] > 0 else None, j))
        left[j] = False
        nearer = left & (weight[j] > best)
        best, parent = torch.where(nearer, weight[j], best), torch.where(nearer, j, parent)
    return found


def _pair(t: Targets, zeros: Zeros, ridge: Ridges, of: slice, to: slice, s: Settings) -> Tensor:
    """(a, b) the log-interaction that meets the table of one pair as its ridge allows, if there were no others."""
    target, hold = t.pairs[of, to], ridge.shared[of, to] * (1.0 if ridge.smooth is None else ridge.smooth.alone[of, to])
    p, r = (t.singles[:, at].sum(0).clamp_min(1e-3) for at in (of, to))
    open_cells = 1.0 if zeros.barred is None else (~zeros.barred[of, to]).float()
    J, left, right = torch.zeros_like(target), p / p.sum(), r / r.sum()
    for _ in range(s.pair_rounds):
        ratio = J.exp() * open_cells
        left = p / (ratio @ right).clamp_min(1e-12)
        right = r / (left @ ratio).clamp_min(1e-12)
        table = left[:, None] * ratio * right
        scale = torch.maximum(table, target).clamp_min(s.pair_count)
        J = J + s.damped * (target - table - ridge.pull(J, of, to)) / (scale + hold) * open_cells
    return J


def _raked(ratio: Tensor, p: Tensor, r: Tensor, rounds: int) -> tuple[Tensor, Tensor, Tensor]:
    """A table (C, a, b) in these ratios with margins p and r, and what each margin's factor is beside the margin."""
    p, r = p / p.sum(1, keepdim=True), r / r.sum(1, keepdim=True)
    left, right = torch.ones_like(p), torch.ones_like(r)
    for _ in range(rounds):
        left = 1 / torch.bmm(ratio, (right * r)[:, :, None])[:, :, 0].clamp_min(1e-12)
        right = 1 / torch.bmm((left * p)[:, None], ratio)[:, 0].clamp_min(1e-12)
    return left, right, (left * p)[:, :, None] * ratio * (right * r)[:, None]
