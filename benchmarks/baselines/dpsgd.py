"""DP-SGD: per-row gradients, clipped and noised, and the noise that a budget buys.

Accounting: every step draws each row with probability q on its own (Poisson), adds the clipped gradients of those
rows and Gaussian noise of scale `noise · clip`. Rényi accounting of dp-accounting composes the steps. Neighbours: one
row added or removed, as usual for DP-SGD (dpmerf itself protects against replacement, which is more).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap


@cache
def noise_for(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The least noise multiplier for (ε, δ) after `steps` steps with sampling rate `rate`."""
    import dp_accounting

    def event(noise: float) -> dp_accounting.DpEvent:
        step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
        return dp_accounting.SelfComposedDpEvent(step, steps)

    return float(
        dp_accounting.calibrate_dp_mechanism(
            dp_accounting.rdp.RdpAccountant,
            event,
            epsilon,
            delta,
            dp_accounting.LowerEndpointAndGuess(0.1, 2.0),
        )
    )


def poisson(rows: int, rate: float, rng: torch.Generator) -> Tensor:
    """Each row with probability `rate`, on its own."""
    return torch.nonzero(torch.rand(rows, generator=rng) < rate).flatten()


def noisy_gradient(
    model: nn.Module,
    loss: object,
    rows: tuple[Tensor, ...],
    clip: float,
    noise: float,
    expected: float,
    rng: torch.Generator,
) -> dict[str, Tensor]:
    """Σ clipped per-row gradients + noise, divided by the expected number of rows.

    `loss(parameters, *row)` is the loss of one row. An empty batch gives noise alone.
    """
    weights = {name: p.detach() for name, p in model.named_parameters()}
    total = {name: torch.zeros_like(p) for name, p in weights.items()}
    if len(rows[0]):
        each = vmap(grad(loss), in_dims=(None, *(0 for _ in rows)))(weights, *rows)  # type: ignore[arg-type]
        norm = torch.sqrt(sum(g.flatten(1).square().sum(1) for g in each.values()))  # (n,)
        factor = (clip / norm.clamp_min(1e-12)).clamp(max=1.0)
        total = {name: torch.einsum("n,n...->...", factor, g) for name, g in each.items()}
    return {name: (g + clip * noise * torch.randn(g.shape, generator=rng)) / expected for name, g in total.items()}


def call(model: nn.Module, weights: dict[str, Tensor], *inputs: Tensor) -> Tensor:
    """The model with other weights, for one row."""
    return functional_call(model, weights, tuple(i[None] for i in inputs)).squeeze()
