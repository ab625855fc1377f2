"""Random Fourier features: a Gaussian kernel on the numeric columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

from dpmerf.features.circle import cos_sin
from dpmerf.features.dense import Dense
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

INPUT_BITS = 20  # numbers are read on a grid of 2⁻²⁰
EXACT_BITS = 53  # integers up to 2⁵³ are exact in float64


@final
@dataclass(frozen=True, eq=False)
class Fourier(Dense):
    """cos and sin of ωᵀx for m frequencies, divided by √m. ‖φ(x)‖ = 1, since cos² + sin² = 1 pair by pair.

    Why a row's features do not depend on the rows around it: inputs and frequencies lie on binary grids so coarse that
    every product and every partial sum of ωᵀx is exact in float64. The order in which a matrix product adds, which
    changes with the shape of the batch, then cannot change the result; and `cos_sin` treats every angle alone.

    >>> Fourier.draw(columns=3, dim=64, scales=(1.0,), seed=0).dim
    64
    """

    columns: int
    pairs: int  # of cos and sin
    scales: tuple[float, ...]
    seed: int
    label: str = "fourier"

    @staticmethod
    def draw(columns: int, dim: int, scales: tuple[float, ...], seed: int, label: str = "fourier") -> Fourier:
        """For Gaussian kernels of the given length-scales, side by side; `dim` is cut to whole pairs."""
        return Fourier(columns, dim // 2, scales, seed, label)

    @cached_property
    def frequencies(self) -> Tensor:
        """(columns, pairs) float64, on a binary grid; orthogonal within each scale. Drawn when first needed: what a
        plan costs, and whether a file can hold a release of it, is known without."""
        rng = torch.Generator().manual_seed(self.seed)
        share = self.pairs // len(self.scales)
        counts = [share] * (len(self.scales) - 1) + [self.pairs - share * (len(self.scales) - 1)]
        parts = [_orthogonal(self.columns, m, rng) / s for m, s in zip(counts, self.scales, strict=True)]
        return on_grid(torch.cat(parts, dim=1))

    @property
    def name(self) -> str:
        return self.label

    @property
    def dim(self) -> int:
        return 2 * self.pairs

    def __call__(self, numbers: Tensor) -> Tensor:
        if numbers.dtype == torch.float64:
            numbers = torch.round(numbers * 2**INPUT_BITS) / 2**INPUT_BITS
        return cos_sin(numbers @ self.frequencies.to(numbers.dtype))


def on_grid(weights: Tensor, input_bound: float = 1.0) -> Tensor:
    """Round weights (p, m) so that x @ weights is exact in float64 for every x with |xᵢ| ≤ bound on the input grid."""
    reach = max(1.0, float(weights.abs().sum(dim=0).max()) * input_bound * 1.01)
    bits = EXACT_BITS - INPUT_BITS - math.ceil(math.log2(reach)) - 1
    return torch.round(weights * 2.0**bits) / 2.0**bits


def _orthogonal(columns: int, m: int, rng: torch.Generator) -> Tensor:
    """(columns, m): directions orthogonal in groups of `columns`, lengths as of Gaussian vectors."""
    groups = [torch.empty(columns, 0, dtype=torch.float64)]
    for _ in range(-(-m // columns)):
        q, _ = torch.linalg.qr(torch.randn(columns, columns, generator=rng, dtype=torch.float64))
        lengths = torch.randn(columns, columns, generator=rng, dtype=torch.float64).norm(dim=0)
        groups.append(q * lengths)
    return torch.cat(groups, dim=1)[:, :m]
