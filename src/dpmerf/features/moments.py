"""Moments: a row of scores as a unit vector, and the products of its parts. Hermite features of order one and two.

On normal scores the Hermite polynomials of order one and two are x and xᵢxⱼ (less a constant): their means are the
class means and covariances, which is what a wide table can afford to know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, final

from dpmerf.features.dense import Dense
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


@final
@dataclass(frozen=True)
class Moments(Dense):
    """u = x ÷ ‖x‖ (0 for x = 0), and beside it all products aₖaₗ of the means (× √size) of groups of its columns.

    Products have the share b of the squared norm, u the share 1 − b. How long the row was does not show. a = Au, where
    A has orthonormal rows; with the products of different parts times √2 their norm is ‖a‖² ≤ 1.

    Scores lie on a binary grid so coarse that ‖x‖² is exact in float64; root and quotient are correctly rounded. So a
    row's features do not depend on the rows around it.

    >>> found = Moments(2, 1, 0.5)(torch.tensor([[3.0, -4.0]], dtype=torch.float64)) * 2**0.5
    >>> found[:, :2].round(decimals=6).tolist(), round(float(found[:, 2:].norm()), 6)
    ([[0.6, -0.8]], 1.0)
    """

    columns: int
    group: int
    share: float

    @property
    def apart(self) -> Fraction:
        """Opposite rows have the same products, and rows at a right angle are not opposite: no pair is far in both.

        Rows at an angle of cosine t are 2(1 − t) apart in u, squared, and at most 2(1 − t²) in their products, as A
        widens no distance. (1 − b)·2(1 − t) + b·2(1 − t²) is largest at t = −(1 − b) ÷ 2b, or else at t = −1.

        >>> float(Moments(2, 1, 0.5).apart), float(Moments(2, 1, 0.25).apart)
        (2.25, 3.0)
        """
        a, b = 1 - Fraction(self.share), Fraction(self.share)
        most = 2 + a**2 / (2 * b) if a <= 2 * b else 4 * a
        return Fraction(math.ceil(most * 2**20), 2**20)

    @property
    def name(self) -> str:
        return "moments"

    @property
    def groups(self) -> int:
        return -(-self.columns // self.group)

    @property
    def dim(self) -> int:
        return self.columns + self.groups * (self.groups + 1) // 2

    @cached_property
    def sizes(self) -> Tensor:
        """(groups,) columns of each; the last may have fewer."""
        return torch.tensor([self.group] * (self.groups - 1) + [self.columns - self.group * (self.groups - 1)])

    def parts(self, numbers: Tensor) -> Tensor:
        """(n, columns) -> (n, groups): A x."""
        padded = torch.nn.functional.pad(numbers, (0, self.groups * self.group - self.columns))
        return padded.view(len(numbers), self.groups, self.group).sum(dim=2) / self.sizes.to(numbers.dtype).sqrt()

    def __call__(self, numbers: Tensor) -> Tensor:
        length = numbers.square().sum(dim=1, keepdim=True).sqrt()
        length = torch.where(length > 0, length, torch.ones_like(length))
        a = self.parts(numbers) / length
        row, column = torch.triu_indices(self.groups, self.groups)
        weight = torch.where(row == column, math.sqrt(self.share), math.sqrt(2 * self.share)).to(numbers.dtype)
        return torch.cat([numbers / length * math.sqrt(1 - self.share), a[:, row] * a[:, column] * weight], dim=1)

    def apiece(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """(…, dim) sums of these features -> (…, columns) sums of u and (…, groups, groups) sums of a aᵀ."""
        mean, products = values.split([self.columns, self.dim - self.columns], dim=-1)
        row, column = torch.triu_indices(self.groups, self.groups)
        found = torch.zeros(*values.shape[:-1], self.groups, self.groups, dtype=values.dtype)
        found[..., row, column] = products / torch.where(row == column, 1.0, math.sqrt(2)) / math.sqrt(self.share)
        found[..., column, row] = found[..., row, column]
        return mean / math.sqrt(1 - self.share), found
