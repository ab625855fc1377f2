"""Consistent targets: positive, adding up, and nearer to the truth than the noisy tables that they are made from."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpmerf.generators.consistent import Layout, Noisy, consistent, positive, positive_parts

SIGMA = 30.0


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e12))
def test_the_mean_of_a_positive_normal_is_positive_and_never_below_the_normal_one(mean: float, variance: float) -> None:
    found = float(positive(torch.tensor(mean, dtype=torch.float64), torch.tensor(variance)))
    assert found >= max(0.0, mean) - 1e-6 * (abs(mean) + math.sqrt(variance))
    assert math.isfinite(found)


def test_the_mean_of_a_positive_normal_against_draws() -> None:
    draws = -10 + 20 * torch.randn(2_000_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = float(draws[draws > 0].mean())
    assert float(positive(torch.tensor(-10.0), torch.tensor(400.0))) == pytest.approx(expected, rel=0.01)


def test_parts_add_up_to_their_total_and_none_is_zero() -> None:
    found = positive_parts(torch.tensor([900.0, 40.0, -80.0, 100.0]), torch.full((4,), SIGMA**2), 1_000.0)
    assert float(found.sum()) == pytest.approx(1_000, rel=1e-5)
    assert bool((found > 0).all())
    assert found.argsort().tolist() == [2, 1, 3, 0]


def _noisy(seed: int) -> tuple[Noisy, torch.Tensor]:
    """Two columns by three classes, with rare bins, measured with noise; and the true counts (3, 12)."""
    rng = torch.Generator().manual_seed(seed)
    layout = Layout(("a", "b"), (8, 4))
    classes = torch.tensor([6_000.0, 3_000.0, 1_000.0])
    shares = torch.softmax(2 * torch.randn(3, 12, generator=rng), dim=1)
    for j in range(2):
        shares[:, layout.span(j)] /= shares[:, layout.span(j)].sum(1, keepdim=True)
    true = classes[:, None] * shares
    infinite = torch.full((12,), math.inf)
    noisy = Noisy(
        layout=layout,
        rows=10_000.0,
        by_label=True,
        balanced=False,
        class_counts=classes + SIGMA * torch.randn(3, generator=rng),
        class_sigma=SIGMA,
        histogram=torch.zeros(12),
        histogram_variance=infinite,
        parts={},
        part_sigma=SIGMA,
        singles=true + SIGMA * torch.randn(3, 12, generator=rng),
        single_variance=torch.full((12,), SIGMA**2),
        pairs=torch.zeros(12, 12),
        pair_sigma=math.inf,
        label_pairs=None,
        label_pair_sigma=math.inf,
        measured=torch.zeros(2, 2),
    )
    return noisy, true


def test_targets_are_positive_and_add_up() -> None:
    noisy, _ = _noisy(1)
    found = consistent(noisy)
    assert bool((found.singles > 0).all())
    sums = found.singles @ noisy.layout.members  # (3, 2): every column holds every class
    assert torch.allclose(sums, found.classes[:, None].expand(3, 2), rtol=0.02)
    assert float(found.classes.sum()) == pytest.approx(10_000, rel=1e-4)


def test_targets_are_nearer_to_the_truth_than_what_was_measured() -> None:
    before = after = divergence = clipped = 0.0
    for seed in range(20):
        noisy, true = _noisy(seed)
        found = consistent(noisy).singles
        before += float((noisy.singles - true).square().sum())
        after += float((found - true).square().sum())
        divergence += float((true * (true.log() - found.log())).sum())
        clipped += float((true * (true.log() - noisy.singles.clamp_min(0.5).log())).sum())
    assert after < 0.9 * before
    assert divergence < 0.8 * clipped
