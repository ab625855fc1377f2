"""Tails: means, spreads and high quantiles survive bounds that are 100 times too generous."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
from benchmarks.suite_simulated import heavy_tails

from dpmerf.generators.maxent.copula import Copula
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.tails import Runs, TailSettings, tail_weights, toward_tail
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

S = TailSettings()
WIDTHS = np.rint(2.0 ** (np.arange(30) / 2)).astype(np.int64)


@pytest.mark.parametrize("shape", [0.0, 0.3, 0.5])
def test_a_tail_is_found_below_its_noise(shape: float) -> None:
    ends = np.concatenate([[0.0], WIDTHS.cumsum()])
    beyond = np.exp(-ends / 40) if shape == 0 else (1 + shape * ends / 40) ** (-1 / shape)
    true = 2_000 * -np.diff(beyond)
    middle = ends[:-1] + WIDTHS / 2
    means = []
    for seed in range(20):
        noisy = true + np.random.default_rng(seed).normal(0, 30, len(true))
        share = toward_tail(noisy, tail_weights(noisy, WIDTHS, 30.0, true.sum(), S), 30.0, true.sum(), S)
        assert share[20:].sum() < 0.05  # almost all of the range is beyond the tail
        means.append((share * middle).sum() / ((true * middle).sum() / true.sum()))
    assert np.median(means) == pytest.approx(1, abs=0.15) and max(means) < 2


def test_a_cell_that_is_no_accident_keeps_its_count() -> None:
    counts = np.array([500.0, 200, 80, 30, 5, -3, 4, 300])
    widths = np.array([1, 1, 1, 1, 10, 100, 1000, 1])
    share = toward_tail(counts, tail_weights(counts, widths, 10.0, counts.sum(), S), 10.0, counts.sum(), S)
    assert share[-1] == pytest.approx(300 / counts.sum(), rel=0.1) and share[-2] < 0.005


def test_heavy_columns_keep_mean_and_quantiles_under_generous_bounds() -> None:
    schema, rows = heavy_tails(30_000, 3)
    release = measure(rows, make_plan(schema, 1.0, 1e-5, rows=rows.num_rows))
    made = train(release, seed=1).sample(rows.num_rows)
    for name in ("lognormal", "pareto", "zeros"):
        real, ours = rows[name].to_numpy(), made[name].to_numpy()
        assert ours.mean() == pytest.approx(real.mean(), rel=0.10), name
        assert np.quantile(ours, 0.99) == pytest.approx(np.quantile(real, 0.99), rel=0.25), name
        assert np.quantile(ours, 0.999) == pytest.approx(np.quantile(real, 0.999), rel=0.6), name
        assert (ours > 2 * real.max()).mean() <= 0.001, name


def test_numbers_that_are_heavy_together_stay_together() -> None:
    rng = torch.Generator().manual_seed(0)
    z = torch.randn(20_000, 2, generator=rng, dtype=torch.float64) @ torch.tensor([[1.0, 0.8], [0.0, 0.6]]).double()
    cuts = torch.special.ndtri(torch.linspace(0, 1, 6).double()[1:-1])
    bins = torch.searchsorted(cuts, z)  # five bins of a fifth each
    onehot = torch.cat([torch.nn.functional.one_hot(bins[:, j], 5) for j in range(2)], dim=1).double()
    copula = Copula.of(onehot.mean(0), onehot.T @ onehot / len(bins), [slice(0, 5), slice(5, 10)], Settings())
    last = (bins == 4).all(dim=1)
    place = copula.places(bins, rng)
    inside = ((torch.special.ndtr(z) - 0.8) / 0.2)[last]
    asked = float(torch.corrcoef(inside.T)[0, 1])
    assert asked > 0.3  # in the last bins of both
    assert float(torch.corrcoef(place[last].T)[0, 1]) == pytest.approx(asked, abs=0.1)
    assert float(place.min()) >= 0 and float(place.max()) <= 1
    null = copula.places(torch.full_like(bins, 5), rng)  # a bin past the last: nothing is known, nothing fails
    assert bool(torch.isfinite(null).all())
    told = (torch.special.ndtr(z[:, 0]) * 5 - bins[:, 0]).clamp(0, 1)  # where the first number lies is known
    follows = copula.places(bins, rng, {0: told})
    assert torch.allclose(follows[:, 0], told, atol=1e-4)
    score = torch.special.ndtri(((bins + follows) / 5).clamp(1e-6, 1 - 1e-6))
    assert float(torch.corrcoef(score.T)[0, 1]) == pytest.approx(0.8, abs=0.06)
    assert float(torch.corrcoef(follows[last].T)[0, 1]) == pytest.approx(asked, abs=0.1)


def test_sums_of_runs_tell_a_tail_that_single_cells_do_not_show() -> None:
    """A spike where the tail begins makes a steep fall likeliest cell by cell; what lies beyond was measured, too."""
    rng = np.random.default_rng(3)
    true = np.array([240.0, 10, 290] + [15] * 29)
    counts, widths = true + rng.normal(0, 40, len(true)), np.ones(len(true))
    members = np.zeros((4, len(true)))
    members[range(3), range(3)] = members[3, 3:] = 1
    runs = Runs(members, members @ true, 45.0)
    alone, told = (tail_weights(counts, widths, 40.0, true.sum(), TailSettings(), r) for r in (None, runs))
    wanted = true[3:].sum() / true.sum()
    assert abs(told[3:].sum() - wanted) < abs(alone[3:].sum() - wanted)
    assert abs(told[3:].sum() - wanted) < 0.15


def test_runs_lie_on_one_side_in_its_order() -> None:
    runs = Runs(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]), np.array([5.0, 7]), 1.0)
    low = runs.on(np.array([2, 1, 0]))
    assert low.counts.tolist() == [5.0]
    assert low.members.tolist() == [[0.0, 1, 1]]


def test_an_end_that_holds_noise_alone_stays_near_the_rows() -> None:
    """Nearly constant columns with generous bounds: a few rows of noise must not lie anywhere up to the bound."""
    rng, n = np.random.default_rng(3), 20_000
    text = "".join(f'[columns.k{i}]\nkind = "integer"\nmin = 0\nmax = 1000\n' for i in range(8))
    rows = pa.table({f"k{i}": np.where(rng.random(n) < 0.001 * (i % 2), 7, 0) for i in range(8)})
    release = measure(rows, make_plan(Schema.parse(text), 1.0, 1e-5, rows=n))
    made = train(release, seed=1, steps=20).sample(n)
    far = [max(made[name].to_pylist()) for name in made.column_names]
    assert sorted(far)[-2] < 50  # one of eight may be noise that stands out
