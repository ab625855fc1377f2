"""Smooth: interactions of neighbouring numbers are alike. The prior of a pair's log-interactions along its axes.

A table's interactions J are normal with the covariance τ² · ((1 − a) I + a K ⊗ K′): a part by cell, a part that changes
slowly along numbers. K is a Gaussian kernel of the ranks of a column's bins; categories and null are alike to nothing.
In the eigenvectors of K and K′ the covariance is diagonal, so the ridge of a table is one product on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.maxent_settings import Settings


@final
@dataclass(frozen=True)
class Smooth:
    """Axes of every column, and the precision along each pair of them, in units of a cell's own."""

    axes: Tensor  # (P, P) orthonormal, one block a column
    precision: Tensor  # (P, P)
    alone: Tensor  # (P, P) the precision of a cell that moves alone
    rounds: int  # of conjugate gradients

    @staticmethod
    def of(t: Targets, numbers: dict[int, int], s: Settings) -> Smooth:
        """`numbers` says how many bins of a column hold numbers in order: they come first."""
        layout, totals = t.layout, t.singles.sum(0).double()
        axes, values = torch.eye(layout.positions, dtype=torch.float64), torch.ones(layout.positions).double()
        for j, k in numbers.items():
            first = layout.offsets[j]
            span = slice(first, first + k)
            mass = totals[span].clamp_min(1e-9)
            rank = (mass.cumsum(0) - mass / 2) / mass.sum()
            kernel = torch.exp(-((rank[:, None] - rank) / s.alike_within).square() / 2)
            values[span], axes[span, span] = torch.linalg.eigh(kernel)
        part = s.smooth * values.clamp_min(0)[:, None] * values.clamp_min(0)
        precision = 1 / (1 - s.smooth + part)
        squares = axes.square()
        alone = squares @ precision @ squares.T
        return Smooth(axes.float(), precision.float(), alone.float(), s.smooth_rounds)

    def roughness(self, J: Tensor, of: slice = slice(None), to: slice = slice(None)) -> Tensor:
        """(…, P, P) interactions times their relative precision; of all pairs, or of one pair of columns."""
        left, right = self.axes[of, of], self.axes[to, to]
        return left @ (self.precision[of, to] * (left.T @ J @ right)) @ right.T

    def solved(self, gap: Tensor, diagonal: Tensor) -> Tensor:
        """(P, P) x with diagonal · x + roughness(x) = gap, nearly: by conjugate gradients, all pairs at once."""
        x, rest = torch.zeros_like(gap), gap
        scale = diagonal + self.alone
        way = rest / scale
        size = (rest * way).sum()
        for _ in range(self.rounds):
            image = diagonal * way + self.roughness(way)
            length = size / (way * image).sum().clamp_min(1e-30)
            x, rest = x + length * way, rest - length * image
            step = rest / scale
            size, before = (rest * step).sum(), size
            way = step + size / before.clamp_min(1e-30) * way
        return x
