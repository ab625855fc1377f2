"""MaxEnt's ridges: how strong pairs of columns go together is read off all noisy tables at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dpmerf.counts import Layout
from dpmerf.generators.consistent import Targets
from dpmerf.generators.maxent import PRIORS, _prior

ROWS = 10_000.0


def _found(size: int, variance_of: Tensor, noise: float) -> Tensor:
    """(q, q) prior variances found where (q, q) are true: q columns of so many equal bins.

    Tables lie on their margins; `noise` is relative to a cell's count.
    """
    rng = torch.Generator().manual_seed(0)
    q = len(variance_of)
    layout = Layout(tuple(f"c{j}" for j in range(q)), (size,) * q)
    P, seg = layout.positions, layout.column_of
    expected, sigma = torch.full((P, P), ROWS / size**2), noise * ROWS / size**2
    true = torch.randn(P, P, generator=rng) * variance_of[seg][:, seg].sqrt() * expected
    noisy = (true + sigma * torch.randn(P, P, generator=rng)).triu(1)
    blocks = (noisy + noisy.T).view(q, size, q, size)
    blocks = blocks - blocks.mean(1, keepdim=True)
    departure = (blocks - blocks.mean(3, keepdim=True)).view(P, P)
    measured = (seg[:, None] != seg).float()
    variance = torch.full((P, P), sigma**2)
    none = torch.zeros(1)
    targets = Targets(layout, none, none, none, None, variance, None, measured)
    found = _prior(targets, departure, expected, variance)
    return found[::size, ::size]


@pytest.mark.parametrize("size", [2, 6])
def test_tables_that_go_together_are_told_from_those_that_show_only_noise(size: int) -> None:
    strong = torch.zeros(12, 12)
    strong[:6, :6] = 0.64
    found = _found(size, strong, 0.15)
    together = torch.triu(torch.ones(12, 12), 1).bool()
    assert float(found[together & (strong > 0)].mean()) > 5 * float(found[together & (strong == 0)].mean())
    assert float(found[together & (strong == 0)].mean()) < 3 * PRIORS[0]
    assert bool((found == found.T).all())


@pytest.mark.parametrize(("size", "true"), [(2, 0.64), (3, 0.32), (6, 0.2)])
def test_what_moving_tables_onto_their_margins_takes_from_noise_is_not_taken_from_the_signal(
    size: int, true: float
) -> None:
    found = _found(size, torch.full((24, 24), true), 0.8)
    mean = float(found[torch.triu(torch.ones(24, 24), 1).bool()].mean())
    assert mean == pytest.approx(true, rel=0.25)
