"""Smooth interactions along numbers, and cells that are taken for empty."""

from __future__ import annotations

import torch

from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.empty import empty_cells
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.ridges import Ridges, ridges
from dpmerf.generators.maxent.smooth import Smooth
from dpmerf.generators.maxent.zeros import Zeros
from dpmerf.plan.noisy_tables import Layout


def _targets(table: torch.Tensor, sigma: float) -> Targets:
    """One class and one pair of columns, whose counts (a, b) are known but for noise."""
    a, b = table.shape
    layout = Layout(("a", "b"), (a, b))
    pairs, measured = torch.zeros(a + b, a + b), torch.zeros(a + b, a + b)
    pairs[:a, a:], pairs[a:, :a] = table, table.T
    measured[:a, a:] = measured[a:, :a] = 1
    singles = torch.cat([table.sum(1), table.sum(0)])[None]
    variance = torch.full((a + b, a + b), sigma**2)
    return Targets(layout, table.sum()[None], singles, pairs, None, variance, None, measured)


def _ridges(t: Targets, smooth: float, numbers: dict[int, int]) -> Ridges:
    return ridges(t, Zeros(t.layout, None, None, ()), 1.0, Settings(smooth=smooth), numbers)


def test_categories_are_alike_to_nothing() -> None:
    t = _targets(torch.rand(4, 5) * 1000, 10.0)
    J = torch.randn(9, 9)
    smooth = Smooth.of(t, {}, Settings())
    assert torch.allclose(smooth.roughness(J), J, atol=1e-5)
    assert torch.allclose(smooth.alone, torch.ones(9, 9), atol=1e-5)
    assert torch.allclose(smooth.solved(J, torch.ones(9, 9)), J / 2, atol=1e-5)


def test_a_step_solves_for_all_cells_of_a_table_at_once() -> None:
    t = _targets(torch.rand(8, 6) * 1000 + 10, 100.0)
    ridge = _ridges(t, 0.5, {0: 8, 1: 6})
    gap, counts = torch.randn(14, 14) * t.measured * 100, torch.rand(14, 14) * 1000 + 10
    found = ridge.step(gap, counts)
    assert float((counts * found + ridge.pull(found) - gap).norm() / gap.norm()) < 0.05


def test_what_changes_slowly_along_numbers_is_drawn_in_less_than_what_jumps() -> None:
    t = _targets(torch.full((8, 8), 500.0), 100.0)
    slope, jumps = torch.linspace(-1, 1, 8), torch.tensor([1.0, -1.0] * 4)

    def drawn(x: torch.Tensor, smooth: float) -> float:
        J = torch.outer(x, x) / x.square().sum()
        ridge = _ridges(t, smooth, {0: 8, 1: 8})
        return float((J * ridge.pull(J, slice(0, 8), slice(8, 16))).sum() / ridge.shared[0, 8])

    assert abs(drawn(slope, 0.0) - 1) < 1e-3 and abs(drawn(jumps, 0.0) - 1) < 1e-3
    assert drawn(slope, 0.8) < 0.4 < 3 < drawn(jumps, 0.8)


def test_one_pair_is_drawn_as_all_are() -> None:
    t = _targets(torch.rand(8, 6) * 1000, 100.0)
    ridge = _ridges(t, 0.8, {0: 7, 1: 6})
    J = torch.zeros(14, 14)
    J[:8, 8:] = torch.randn(8, 6)
    J[8:, :8] = J[:8, 8:].T
    assert torch.allclose(ridge.pull(J)[:8, 8:], ridge.pull(J[:8, 8:], slice(0, 8), slice(8, 14)), atol=1e-3)


def test_where_all_cells_of_a_value_look_empty_the_likeliest_is_kept() -> None:
    """A code of 40 rows, all in one group, and noise of 20: the group is mostly found, though no cell stands out."""
    kept = right = 0
    for seed in range(5):
        rng = torch.Generator().manual_seed(seed)
        codes, groups, sigma = 60, 10, 20.0
        group = torch.arange(codes) % groups
        true = torch.zeros(codes, groups)
        true[torch.arange(codes), group] = 40.0
        noisy = true + sigma * torch.randn(codes, groups, generator=rng)
        noisy += (true.sum(1, keepdim=True) - noisy.sum(1, keepdim=True)) / groups
        noisy += (true.sum(0) - noisy.sum(0)) / codes
        full = ~empty_cells(_targets(noisy, sigma), None, Settings())[:codes, codes:]
        alone = full.sum(1) == 1
        kept, right = kept + int(alone.sum()), right + int(full[torch.arange(codes), group][alone].sum())
    assert kept > 100
    assert right > 0.7 * kept  # by the bins that lack rows alone, no more than by chance
