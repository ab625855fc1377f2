"""DP-SGD: per-row gradients, clipped and noised, and the noise that a budget buys.

Accounting: every step draws each row with probability q on its own (Poisson), adds the clipped gradients of those
rows and Gaussian noise of scale `noise · clip`. Opacus' Rényi accountant composes the steps. Neighbours: one row
added or removed, as usual for DP-SGD (dpmerf itself protects against replacement, which is more).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import final

import torch
from torch import Tensor, nn

# Opacus' search for the noise starts far outside the range it is good for.
warnings.filterwarnings("ignore", "Optimal order is the")


@cache
def noise_for(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """A noise multiplier for (ε, δ) after `steps` steps with sampling rate `rate`: the least, to a thousandth of ε."""
    from opacus.accountants.utils import get_noise_multiplier

    if epsilon == float("inf"):
        return 0.0  # NOT PRIVATE
    return float(
        get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=rate,
            steps=steps,
            accountant="rdp",
            epsilon_tolerance=epsilon / 1000,
        )
    )


def poisson(rows: int, rate: float, rng: torch.Generator) -> Tensor:
    """Each row with probability `rate`, on its own."""
    return torch.nonzero(torch.rand(rows, generator=rng) < rate).flatten()


@final
class NoisyGradient:
    """(Σ clipped per-row gradients of `loss(model(row))` + noise) ÷ the expected number of rows, for each parameter.

    For fully connected networks. A row's gradient of a layer is the outer product of the layer's input a (with a one
    for the bias) and the loss's gradient g at its output, so its norm is ‖a‖·‖g‖ and it never has to be written out.
    """

    def __init__(
        self,
        model: nn.Sequential,
        loss: Callable[[Tensor], Tensor],
        clip: float,
        noise: float,
        expected: float,
        rng: torch.Generator,
    ) -> None:
        self._model, self._loss, self._clip = model, loss, clip
        self._noise, self._expected, self._rng = noise, expected, rng

    def __call__(self, rows: Tensor) -> list[Tensor]:
        """An empty batch gives noise alone."""
        inputs: list[Tensor] = []
        outputs: list[Tensor] = []
        x = rows
        for layer in self._model:
            if isinstance(layer, nn.Linear):
                inputs.append(x.detach())
                x = layer(x)
                outputs.append(x)
            else:
                x = layer(x)
        slopes = torch.autograd.grad(self._loss(x).sum(), outputs)
        squared = sum(
            (a.square().sum(1) + 1) * g.square().sum(1) for a, g in zip(inputs, slopes, strict=True)
        )  # (rows,)
        assert isinstance(squared, Tensor)
        kept = (self._clip / squared.sqrt().clamp_min(1e-12)).clamp_max(1.0)[:, None]
        found = []
        for a, g in zip(inputs, slopes, strict=True):
            found += [self._noised((g * kept).T @ a), self._noised((g * kept).sum(0))]
        return found

    def _noised(self, total: Tensor) -> Tensor:
        if self._noise:
            total = total + self._noise * self._clip * torch.randn(total.shape, generator=self._rng)
        return total / self._expected
