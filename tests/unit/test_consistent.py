"""Consistent targets: positive, adding up, and nearer to the truth than the noisy tables that they are made from."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpmerf.generators.maxent.consistent import class_shrinkage, consistent, positive, positive_parts
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.plan.noisy_tables import Layout, Noisy

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
    found = positive_parts(torch.tensor([900.0, 40.0, -80.0, 100.0]), torch.full((4,), SIGMA**2), 1_000.0, 10)
    assert float(found.sum()) == pytest.approx(1_000, rel=1e-5)
    assert bool((found > 0).all())
    assert found.argsort().tolist() == [2, 1, 3, 0]


def test_a_column_that_differs_is_told_from_many_that_show_only_noise() -> None:
    rng = torch.Generator().manual_seed(0)
    sizes = (2, 3, 8) * 12
    layout = Layout(tuple(f"c{j}" for j in range(36)), sizes)
    apart = SIGMA * torch.randn(1, layout.positions, generator=rng)
    apart[0, layout.span(7)] += torch.tensor([8.0, -4.0, -4.0]) * SIGMA
    S, free = layout.members, torch.tensor(sizes) - 1
    apart -= (apart @ S / torch.tensor(sizes))[:, layout.column_of]  # a class has as many rows in every column
    found = class_shrinkage(apart, torch.full((layout.positions,), SIGMA**2), layout, Settings())[0]
    alone = (1 - free * SIGMA**2 / (apart.square() @ S)[0]).clamp_min(0)  # James and Stein, each column by itself
    others = torch.arange(36) != 7
    assert found[7] > 0.9
    assert found[others].mean() < min(0.08, 0.5 * float(alone[others].mean()))


def test_columns_that_all_differ_are_kept_as_far_as_noise_allows() -> None:
    rng = torch.Generator().manual_seed(0)
    layout = Layout(tuple(f"c{j}" for j in range(200)), (5,) * 200)
    true = 2 * SIGMA * torch.randn(1, 1_000, generator=rng)
    apart = true + SIGMA * torch.randn(1, 1_000, generator=rng)
    found = class_shrinkage(apart, torch.full((1_000,), SIGMA**2), layout, Settings())[0]
    assert float(found.mean()) == pytest.approx(4 / 5, abs=0.03)  # signal to signal and noise
    error = lambda share: float((share.repeat_interleave(5) * apart[0] - true[0]).square().mean())  # noqa: E731
    assert error(found) < 0.85 * error(torch.ones(200))


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
        selected=None,
        single_variance=torch.full((12,), SIGMA**2),
        pairs=None,
        pair_variance=torch.ones(2, 2),
        label_pairs=None,
        label_pair_variance=torch.ones(2, 2),
        measured=torch.zeros(2, 2),
    )
    return noisy, true


def test_targets_are_positive_and_add_up() -> None:
    noisy, _ = _noisy(1)
    found = consistent(noisy, Settings())
    assert bool((found.singles > 0).all())
    sums = found.singles @ noisy.layout.members  # (3, 2): every column holds every class
    assert torch.allclose(sums, found.classes[:, None].expand(3, 2), rtol=0.02)
    assert float(found.classes.sum()) == pytest.approx(10_000, rel=1e-4)


def test_targets_are_nearer_to_the_truth_than_what_was_measured() -> None:
    before = after = divergence = clipped = 0.0
    for seed in range(20):
        noisy, true = _noisy(seed)
        found = consistent(noisy, Settings()).singles
        before += float((noisy.singles - true).square().sum())
        after += float((found - true).square().sum())
        divergence += float((true * (true.log() - found.log())).sum())
        clipped += float((true * (true.log() - noisy.singles.clamp_min(0.5).log())).sum())
    assert after < 0.9 * before
    assert divergence < 0.8 * clipped
