"""Label × triples: a label that no pair of columns tells comes back, and only where rows can show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.suite_simulated import exclusive_or, few_strong_pairs

from dpmerf.errors import PlanError
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
    assert (label == (bits.sum(0) % 2 == 1)).mean() == pytest.approx(0.95, abs=0.03)
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
