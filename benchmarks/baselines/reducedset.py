"""The reduced-set method of Balog, Tolstikhin and Schölkopf (2018, Algorithm 2): weighted points that match a noisy
embedding.

Accounting: the embedding is the mean of D random Fourier features of norm 1, so replacing one of n rows moves it by
at most 2/n; Gaussian noise calibrated exactly to (ε, δ). Points and weights are fitted to the noisy vector alone:
post-processing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dpmerf.accounting.gaussian import mu_of
from dpmerf.features.fourier import Fourier


def noisy_embedding(rows: Tensor, phi: Fourier, epsilon: float, delta: float, rng: torch.Generator) -> Tensor:
    """(D,) the mean feature of the rows, (ε, δ)-DP."""
    scale = 2 / (len(rows) * mu_of(epsilon, delta))
    return phi(rows).mean(0) + scale * torch.randn(phi.dim, generator=rng, dtype=rows.dtype)


def reduced_set(
    target: Tensor, phi: Fourier, points: int, columns: int, steps: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(points, columns) in the unit cube and their weights, by gradient descent on the distance to the target."""
    target = target.float()
    z = torch.rand(points, columns, generator=rng).requires_grad_()
    w = torch.full((points,), 1 / points).requires_grad_()
    optimiser = torch.optim.Adam([{"params": [z], "lr": 0.02}, {"params": [w], "lr": 0.1 / points}])
    for _ in range(steps):
        optimiser.zero_grad()
        (w @ phi(z) - target).square().sum().backward()
        optimiser.step()
    return z.detach(), w.detach()
