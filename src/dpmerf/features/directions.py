"""Directions: a row of scores as a unit vector, and the products of its parts. Hermite features of order one and two.

On normal scores the Hermite polynomials of order one and two are x and xᵢxⱼ (less a constant): their means are the
class means and covariances, which is what a wide table can afford to know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from dpmerf.features.dense import Dense


@final
@dataclass(frozen=True)
class Direction(Dense):
    """x ÷ ‖x‖, so the norm is 1 (0 for x = 0). How long the row was does not show.

    Scores lie on a binary grid so coarse that ‖x‖² is exact in float64; root and quotient are correctly rounded. So a
    row's features do not depend on the rows around it.

    >>> Direction(2)(torch.tensor([[3.0, -4.0]], dtype=torch.float64)).tolist()
    [[0.6, -0.8]]
    """

    columns: int

    @property
    def name(self) -> str:
        return "direction"

    @property
    def dim(self) -> int:
        return self.columns

    def __call__(self, numbers: Tensor) -> Tensor:
        return numbers / _length(numbers)


@final
@dataclass(frozen=True)
class Products(Dense):
    """All products aₖaₗ of the means (× √size) of groups of `group` neighbouring columns of x ÷ ‖x‖.

    a = Ax ÷ ‖x‖, where A has orthonormal rows, so ‖a‖ ≤ 1. With the products of different parts times √2 the norm is
    ‖a‖² ≤ 1, and two rows have the inner product (a·a′)² ≥ 0: they are at most √2 apart, not 2.

    >>> Products(4, 2).dim, round(float(Products(4, 2)(torch.ones(1, 4, dtype=torch.float64)).norm()), 6)
    (3, 1.0)
    """

    columns: int
    group: int

    acute = True

    @property
    def name(self) -> str:
        return "products"

    @property
    def groups(self) -> int:
        return -(-self.columns // self.group)

    @property
    def dim(self) -> int:
        return self.groups * (self.groups + 1) // 2

    @cached_property
    def sizes(self) -> Tensor:
        """(groups,) columns of each; the last may have fewer."""
        return torch.tensor([self.group] * (self.groups - 1) + [self.columns - self.group * (self.groups - 1)])

    def parts(self, numbers: Tensor) -> Tensor:
        """(n, columns) -> (n, groups): A x."""
        padded = torch.nn.functional.pad(numbers, (0, self.groups * self.group - self.columns))
        return padded.view(len(numbers), self.groups, self.group).sum(dim=2) / self.sizes.to(numbers.dtype).sqrt()

    def __call__(self, numbers: Tensor) -> Tensor:
        a = self.parts(numbers) / _length(numbers)
        row, column = torch.triu_indices(self.groups, self.groups)
        weight = torch.where(row == column, 1.0, math.sqrt(2)).to(numbers.dtype)
        return a[:, row] * a[:, column] * weight

    def matrix(self, values: Tensor) -> Tensor:
        """(…, dim) sums of these features -> (…, groups, groups) sums of a aᵀ."""
        row, column = torch.triu_indices(self.groups, self.groups)
        found = torch.zeros(*values.shape[:-1], self.groups, self.groups, dtype=values.dtype)
        found[..., row, column] = values / torch.where(row == column, 1.0, math.sqrt(2))
        found[..., column, row] = found[..., row, column]
        return found


def _length(numbers: Tensor) -> Tensor:
    length = numbers.square().sum(dim=1, keepdim=True).sqrt()
    return torch.where(length > 0, length, torch.ones_like(length))
