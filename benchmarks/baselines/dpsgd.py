"""DP-SGD by Opacus: per-row gradients, clipped and noised, and the noise that a budget buys.

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

# Opacus' hooks ask for no gradient of inputs; its search for the noise starts far outside the range it is good for.
warnings.filterwarnings("ignore", "Full backward hook is firing|Optimal order is the largest alpha")


@cache
def noise_for(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """A noise multiplier for (ε, δ) after `steps` steps with sampling rate `rate`: the least, to a thousandth of ε."""
    from opacus.accountants.utils import get_noise_multiplier

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
    """(Σ clipped per-row gradients of `loss(model(row))` + noise) ÷ the expected number of rows, for each parameter."""

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Tensor], Tensor],
        clip: float,
        noise: float,
        expected: float,
        rng: torch.Generator,
    ) -> None:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        self._model, self._loss = GradSampleModule(model, loss_reduction="sum"), loss
        self._model.disable_hooks()
        self._optimiser = DPOptimizer(  # it clips and adds noise; its own step is never taken
            torch.optim.SGD(model.parameters(), lr=1.0),
            noise_multiplier=noise,
            max_grad_norm=clip,
            expected_batch_size=expected,
            generator=rng,
        )

    def __call__(self, rows: Tensor) -> list[Tensor]:
        """An empty batch gives noise alone."""
        self._optimiser.zero_grad()
        self._model.enable_hooks()
        self._loss(self._model(rows)).sum().backward()
        self._model.disable_hooks()
        self._optimiser.pre_step()
        found = [p.grad.clone() for p in self._optimiser.params]
        self._optimiser.zero_grad()
        return found
