"""Label × triples: a label that no pair of columns tells comes back, and only where rows can show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.suite_simulated import exclusive_or, few_strong_pairs

from dpmerf.errors import PlanError
from dpmerf.generators.maxent.triples import _interaction
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Stage
from dpmerf.plan.queries import Histograms, LabelTriples, Tables
from dpmerf.private.measure import measure
from dpmerf.train import train


def test_an_exclusive_or_of_three_columns_comes_back() -> None:
    schema, rows = exclusive_or(20_000, 3)
    made = train(measure(rows, make_plan(schema, 1.0, 1e-5, rows=20_000)), seed=1).sample(10_000)
    bits = np.stack([made[f"b{j}"].to_numpy(zero_copy_only=False) for j in range(3)])
    label = made["y"].to_numpy(zero_copy_only=False)
    # with fresh noise; independent columns give 0.5
    assert (label == (bits.sum(0) % 2 == 1)).mean() == pytest.approx(0.95, abs=0.06)
    assert abs(bits.mean(1) - 0.5).max() < 0.03  # and columns alone stay as they are


def test_triples_that_agree_with_the_model_leave_rows_as_they_are() -> None:
    schema, rows = exclusive_or(20_000, 3, order=2)
    model = train(measure(rows, make_plan(schema, 1.0, 1e-5, rows=20_000)), seed=1)
    assert model.generator._triples is None  # type: ignore[attr-defined]


def test_they_are_measured_only_where_rows_can_show_them() -> None:
    schema, _ = exclusive_or(10, 0)
    assert make_plan(schema, 1.0, 1e-5, rows=20_000).has(LabelTriples)
    assert not make_plan(schema, 1.0, 1e-5, rows=2_000).has(LabelTriples)
    many, _ = few_strong_pairs(10, 0)
    assert not make_plan(many, 1.0, 1e-5, rows=7_500).has(LabelTriples)


def test_the_map_has_norm_one() -> None:
    schema, _ = exclusive_or(10, 0)
    plan = make_plan(schema, 1.0, 1e-5, rows=20_000)
    phi = plan.query(LabelTriples).nominal(plan)
    assert phi.norm_bound == pytest.approx(1) and phi.diameter == pytest.approx(2**0.5)


@pytest.mark.parametrize("triple", [("b0", "b1", "b1"), ("b0", "b1", "y"), ("b0", "b1", "z")])
def test_a_triple_of_other_columns_is_refused(triple: tuple[str, str, str]) -> None:
    schema, _ = exclusive_or(10, 0)
    plan = make_plan(schema, 1.0, 1e-5, rows=20_000)
    stages = [Stage("discover", 0.5, plan.query(Histograms)), Stage("tables", 0.4, plan.query(Tables))]
    with pytest.raises(PlanError, match="names a column or a pair"):
        replace(plan, stages=(*stages, Stage("triples", 0.1, LabelTriples(triples=(triple,)))))


def test_what_pairs_explain_and_what_is_noise_is_no_interaction() -> None:
    """A rare class beside a common one: its table is all noise, and the model's pairs are somewhat off."""
    rng = torch.Generator().manual_seed(5)
    shares = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    table = shares[:, None, None] * shares[:, None] * shares
    true = torch.stack([table * 190_000, table * 2_000])
    tilted = true * torch.tensor([1.01, 0.99, 0.95])[:, None] * torch.tensor([1.0, 1.02, 0.96])[:, None, None]
    noise = torch.full((2,), 180.0**2, dtype=torch.float64)
    for _ in range(50):
        values = true + 180 * torch.randn(true.shape, generator=rng, dtype=torch.float64)
        found = _interaction(tilted, values, noise)
        moved = (true * (found - 1).abs()).sum((1, 2, 3)) / true.sum((1, 2, 3))
        assert float(moved[0]) < 0.01 and float(moved[1]) == 0  # of a class's rows
    sign = torch.tensor([1.0, -1.0, 0.0])
    real = true + torch.tensor([2_000.0, 0.0]).view(2, 1, 1, 1) * sign[:, None, None] * sign[:, None] * sign
    values = real + 180 * torch.randn(true.shape, generator=rng, dtype=torch.float64)
    found = _interaction(true, values, noise)
    assert bool((found[1] == 1).all())
    assert float(found[0, 0, 1, 1]) == pytest.approx(float(real[0, 0, 1, 1] / true[0, 0, 1, 1]), abs=0.1)
