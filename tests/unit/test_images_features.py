"""Views and their Fourier features: norm at most 1, a function of one picture alone, smooth for the generator."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmerf.accounting.unit import Unit
from dpmerf.encoding.binning import to_simplex
from dpmerf.features.algebra import BITS, of, onehot
from dpmerf.features.circle import cos_sin
from dpmerf.features.filter_bank import FourierOf, Views, gabor_bank, projected
from dpmerf.features.tones import BINS, Tones, bin_of
from dpmerf.generators.images.finish import AT_ONCE, bend, fitted, tone_curves
from dpmerf.generators.images.training_settings import FinishSettings
from dpmerf.methods.presets import make_plan
from dpmerf.private.contribute import bounded
from dpmerf.sources.picture_facts import declare

VIEWS = ("pixels", "coarse", "edges", "windows")
SIZES = [(1, 28, 28), (3, 12, 20), (1, 5, 4), (3, 64, 64)]


def pictures(shape: tuple[int, int, int], n: int, seed: int) -> torch.Tensor:
    """Random, sparse, black, white, checkered and single-pixel pictures, as the codec would give them."""
    rng = np.random.default_rng(seed)
    c, h, w = shape
    x = rng.integers(0, 256, (n, c, h, w)) * (rng.random((n, c, h, w)) < rng.random((n, 1, 1, 1)))
    x[0], x[1 % n] = 0, 255
    x[2 % n] = 255 * (np.indices((h, w)).sum(axis=0) % 2)
    x[3 % n] = 0
    x[3 % n, 0, h // 2, w // 2] = 1
    return torch.from_numpy(x.reshape(n, -1) / 255.0)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("view", VIEWS)
def test_norm_and_batch_independence(shape: tuple[int, int, int], view: str) -> None:
    dense = FourierOf.draw(Views(*shape), view, 96, (0.2, 1.0), seed=1)
    x = pictures(shape, 40, seed=2)
    whole = dense(x)
    assert whole.shape == (40, dense.dim)
    assert float(whole.norm(dim=1).max()) <= 1 + 1e-12
    order = torch.randperm(40)
    assert torch.equal(Views(*shape)(x[order])[view], Views(*shape)(x)[view][:, order])  # the views, bit for bit
    alone = torch.cat([Views(*shape)(x[i : i + 1])[view] for i in range(40)], dim=1)
    assert torch.equal(alone, Views(*shape)(x)[view])


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(VIEWS), st.integers(0, 2**31), st.floats(0.01, 100.0))
def test_integer_rows_stay_within_the_bound(view: str, seed: int, scale: float) -> None:
    """The hunt for violations in integers: also where the length-scale is absurd."""
    dense = FourierOf.draw(Views(1, 12, 12), view, 64, (scale,), seed=seed % 1000)
    (block,) = of(dense).blocks
    whole = bounded(dense(pictures((1, 12, 12), 16, seed)), block)
    assert float((whole * whole).sum(dim=1).max()) <= block.integer_norm**2
    assert block.integer_norm == 2**BITS


def test_projections_are_exact() -> None:
    """Adding in another order, or in Python's exact fractions, gives the same angle."""
    from fractions import Fraction

    views = Views(1, 28, 28)
    dense = FourierOf.draw(views, "edges", 4, (0.2, 0.4), seed=0)
    row = torch.round(views(pictures((1, 28, 28), 5, 0))["edges"][0, 4] * 2**20) / 2**20
    column = dense.frequencies[0, :, 0]
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row.tolist(), column.tolist(), strict=True))
    assert float(exact) == float((row * column).sum()) == float((row * column).flip(0).sum())


def test_filters_are_unit_and_deaf_to_constants() -> None:
    bank = gabor_bank(8)
    even, odd = bank[0::2], bank[1::2]
    assert torch.allclose((even**2 + odd**2).sum(dim=(1, 2, 3)), torch.ones(8, dtype=torch.float64), atol=1e-4)
    assert float(bank.sum(dim=(2, 3)).abs().max()) < 1e-4


def test_generator_side_is_close_and_smooth() -> None:
    dense = FourierOf.draw(Views(1, 28, 28), "windows", 200, (0.2, 0.35), seed=0)
    x = pictures((1, 28, 28), 6, 3)
    y = x.float().requires_grad_()
    values = cos_sin(projected(dense.views(y, ("windows",))["windows"], dense.frequencies.float()))
    assert torch.allclose(values.double(), dense(x), atol=2e-3)
    values.sum().backward()
    assert y.grad is not None and bool(torch.isfinite(y.grad).all())


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("shape", [(3, 28, 28), (2, 16, 16, 3)])
def test_class_counts_are_free(preset: str, shape: tuple[int, ...]) -> None:
    schema = declare((np.zeros(shape, np.uint8), np.zeros(shape[0])), classes=4).schema
    plan = make_plan(schema, 1.0, 1e-5, rows=60_000, preset=preset)
    summary = plan.summary()
    assert math.isclose(summary["diameter"], 2.0, rel_tol=1e-9)
    assert abs(summary["noise_multiplier"] - 3.731) < 1e-3
    label = plan.codec.label
    assert label is not None and plan.stages[0].query.nominal(plan).blocks[-1] == onehot(label).blocks[0]


def test_protected_numbers_of_rows_cost_little() -> None:
    schema = declare((np.zeros((3, 8, 8), np.uint8), np.zeros(3)), classes=4).schema
    plan = make_plan(schema, 1.0, 1e-5, rows=60_000, unit=Unit.parse("row", "add-remove"), balanced=True)
    (stage,) = plan.summary()["stages"]
    assert stage["sensitivity"] < 1.05 and stage["blocks"][-1]["noise"] < 20


@pytest.mark.parametrize("channels", [1, 3])
def test_tones_are_shares_and_curves_reach_them(channels: int) -> None:
    x = pictures((channels, 12, 12), 30, 4)
    dense = Tones(channels, 144)
    values = dense(x)
    assert float(values.norm(dim=1).max()) <= 1 + 1e-12 and values.shape == (30, dense.dim)
    order = torch.randperm(30)
    assert torch.equal(dense(x[order]), values[order]) and torch.equal(dense(x[:1]), values[:1])
    assert bin_of(torch.tensor([0, 1, 254, 255])).tolist() == [0, 1, BINS - 2, BINS - 1]
    wanted = (values.mean(dim=0) * math.sqrt(channels)).view(1, channels, BINS)
    hazy = 0.1 + 0.6 * torch.rand(200, channels, 144)
    curves = tone_curves(wanted, hazy[None])
    bent = bend(hazy.flatten(1), curves, torch.zeros(200, dtype=torch.long))
    got = (dense.__class__(channels, 144)(bent.double()).mean(dim=0) * math.sqrt(channels)).view_as(wanted)
    assert float((got - wanted).abs().max()) < 0.02
    assert bool((curves.diff(dim=2) >= 0).all())


def test_curves_bend_each_picture_alone() -> None:
    """Pictures of two classes with two channels, more than are bent at once."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(AT_ONCE + 7, 2 * 16, generator=rng)
    labels = torch.randint(2, (len(x),), generator=rng)
    shares = to_simplex(torch.rand(2, 2, BINS, generator=rng, dtype=torch.float64))
    curves = tone_curves(shares, torch.rand(2, 50, 2, 16, generator=rng))
    together = bend(x, curves, labels)
    for i in (0, AT_ONCE - 1, AT_ONCE, len(x) - 1):
        assert torch.equal(bend(x[i : i + 1], curves, labels[i : i + 1])[0], together[i])


def test_grain_is_as_strong_as_the_judge_allows() -> None:
    """A judge that wants pixels to vary gets the most grain, one that abhors it none; tones are kept either way."""
    rng = torch.Generator().manual_seed(0)
    flat = torch.linspace(0.1, 0.9, 144).repeat(2, 300, 1, 1)  # two classes, no variation within them
    wanted = torch.zeros(2, 1, BINS, dtype=torch.float64)
    wanted[..., 0], wanted[..., 9], wanted[..., -1] = 0.6, 0.3, 0.1

    def variation(x: torch.Tensor) -> float:
        return float(x.view(2, 300, -1).std(dim=1).mean())

    judged = {
        d: fitted(wanted, flat, d, FinishSettings(), rng)
        for d in (lambda x: 1 - variation(x), variation, lambda _: 0.0)
    }
    most, *none = judged.values()
    assert most.grain == max(FinishSettings().grains) and all(finish.grain == 0 for finish in none)
    labels = torch.zeros(300, dtype=torch.long)
    for finish in judged.values():
        made = finish(flat[0].flatten(1), labels, rng)
        assert abs(float((made * 255).round().eq(0).float().mean()) - 0.6) < 0.03
    assert variation(most(flat[0].flatten(1).repeat(2, 1), labels.repeat(2), rng)) > 0.05
