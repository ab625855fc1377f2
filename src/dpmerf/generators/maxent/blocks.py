"""Blocks: columns that are redrawn together, because one of them nearly decides the others.

A Gibbs step that moves one column at a time cannot leave `education = Masters` while `education_num = 14` holds it.
Such columns share their possible joint values, which are few, and are drawn as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.plan.noisy_tables import Layout


@final
@dataclass(frozen=True)
class Block:
    """One or more columns with their joint values."""

    columns: tuple[int, ...]
    rows: Tensor  # (R,) positions of these columns, one after the other
    states: Tensor | None  # (K, R) each joint value as one-hots; None: one column, any of its bins

    @staticmethod
    def single(layout: Layout, j: int) -> Block:
        span = layout.span(j)
        return Block((j,), torch.arange(span.start, span.stop), None)

    def on(self, h: Tensor, J: Tensor) -> Move:
        """How this block moves under a model h (P,), J (P, P)."""
        if self.states is None:
            span = slice(int(self.rows[0]), int(self.rows[-1]) + 1)
            return Move(self, h[span, None], J[span])
        pull = J[self.rows]  # (R, P)
        among = pull[:, self.rows]
        outside = pull.index_fill(1, self.rows, 0.0)
        own = self.states @ h[self.rows] + ((self.states @ among) * self.states).sum(1) / 2
        return Move(self, own[:, None], self.states @ outside)


@final
@dataclass(frozen=True)
class Move:
    """Logits of a block's values are own + pull @ one-hots of the other columns."""

    block: Block
    own: Tensor  # (K, 1)
    pull: Tensor  # (K, P)

    def tilted(self, tilt: Tensor) -> Move:
        """The same with h (P,) changed by so much."""
        more = tilt[self.block.rows] if self.block.states is None else self.block.states @ tilt[self.block.rows]
        return Move(self.block, self.own + more[:, None], self.pull)


def moves(blocks: tuple[Block, ...], h: Tensor, J: Tensor) -> list[list[Move]]:
    """Of each class, under h (C, P) and J (C, P, P)."""
    return [[block.on(h[c], J[c]) for block in blocks] for c in range(len(h))]


def blocks_of(
    layout: Layout, common: Tensor, barred: Tensor | None, alone: frozenset[int], least: float, most: int
) -> tuple[Block, ...]:
    """Every column in one block. `common` (q, q): the share of the smaller entropy that two columns have in common.

    Columns are joined from the strongest pair on, as long as their joint values that nothing bars (P, P) are at most
    `most` and at most twice as many as their bins. Those in `alone` are not joined.
    """
    groups: dict[int, tuple[int, ...]] = {j: (j,) for j in range(len(layout.sizes))}
    states = {j: torch.arange(size)[:, None] for j, size in enumerate(layout.sizes)}  # group -> (K, columns) bins
    strong = torch.nonzero(torch.triu(common, 1) >= least)
    for i, j in strong[common[strong[:, 0], strong[:, 1]].argsort(descending=True)].tolist():
        a, b = (next(k for k, members in groups.items() if x in members) for x in (i, j))
        if a == b or {i, j} & alone:
            continue
        columns = groups[a] + groups[b]
        joint = _joined(layout, groups[a], states[a], groups[b], states[b], barred)
        if 0 < len(joint) <= min(most, 2 * sum(layout.sizes[c] for c in columns)):
            groups[a], states[a] = columns, joint
            del groups[b], states[b]
    return tuple(_block(layout, groups[k], states[k]) for k in groups)


def holding(layout: Layout, blocks: tuple[Block, ...], held: dict[int, int]) -> tuple[Block, ...]:
    """The blocks of the columns that are not held, each with the values that the held ones leave it."""
    found = []
    for block in blocks:
        free = [j for j in block.columns if j not in held]
        if len(free) == len(block.columns):
            found.append(block)
            continue
        left = torch.zeros(0, len(free), dtype=torch.int64)
        if block.states is not None and free:
            bins = _bins(layout, block)
            kept = torch.ones(len(bins), dtype=torch.bool)
            for place, j in enumerate(block.columns):
                kept &= (bins[:, place] == held[j]) if j in held else True
            left = bins[kept][:, [block.columns.index(j) for j in free]]
        if len(left):
            found.append(_block(layout, tuple(free), left))
        else:  # nothing possible has the held values: each of the others follows what it can
            found.extend(Block.single(layout, j) for j in free)
    return tuple(found)


def _joined(
    layout: Layout, a: tuple[int, ...], of_a: Tensor, b: tuple[int, ...], of_b: Tensor, barred: Tensor | None
) -> Tensor:
    """(K, columns) values of both groups that nothing bars."""
    first = torch.arange(len(of_a)).repeat_interleave(len(of_b))
    second = torch.arange(len(of_b)).repeat(len(of_a))
    possible = torch.ones(len(first), dtype=torch.bool)
    if barred is not None:
        for i, left in enumerate(a):
            for j, right in enumerate(b):
                at = layout.offsets[left] + of_a[first, i], layout.offsets[right] + of_b[second, j]
                possible &= ~barred[at]
    return torch.cat([of_a[first[possible]], of_b[second[possible]]], dim=1)


def _block(layout: Layout, columns: tuple[int, ...], bins: Tensor) -> Block:
    if len(columns) == 1 and len(bins) == layout.sizes[columns[0]]:
        return Block.single(layout, columns[0])
    rows = torch.cat([torch.arange(layout.span(j).start, layout.span(j).stop) for j in columns])
    starts = torch.tensor([sum(layout.sizes[k] for k in columns[:i]) for i in range(len(columns))])
    states = torch.zeros(len(bins), len(rows)).scatter_(1, bins + starts, 1.0)
    return Block(columns, rows, states)


def _bins(layout: Layout, block: Block) -> Tensor:
    """(K, columns) the way back from one-hots."""
    assert block.states is not None
    return torch.stack([part.argmax(1) for part in block.states.split([layout.sizes[j] for j in block.columns], 1)], 1)
