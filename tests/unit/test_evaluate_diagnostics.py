"""Diagnostics: from the release alone, and true to what is known about the noise."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from conftest import mixed_rows
from dpmerf.accounting.unit import Unit
from dpmerf.evaluate import diagnostics
from dpmerf.evaluate.views import Rows
from dpmerf.generators.base import History
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from fixed_noise import FixedNoise

ROWS = 4000


@pytest.fixture(scope="module", params=["default", "paper"])
def release(request, mixed_schema):
    plan = make_plan(mixed_schema, 2.0, 1e-5, rows=ROWS, unit=Unit(), preset=request.param)
    return measure(mixed_rows(ROWS), plan, noise=FixedNoise(3))


def test_signal_to_noise_covers_every_block(release):
    found = diagnostics.signals(release)
    assert sum(s.coordinates for s in found) == sum(len(s) for s in release.sums.values())
    assert all(s.signal_to_noise >= 0 and s.noise > 0 for s in found)
    assert max(s.signal_to_noise for s in found) > 3


def test_more_noise_means_less_signal(mixed_schema):
    def best(epsilon: float) -> float:
        plan = make_plan(mixed_schema, epsilon, 1e-5, rows=ROWS, preset="paper")
        return max(s.signal_to_noise for s in diagnostics.signals(measure(mixed_rows(ROWS), plan, noise=FixedNoise(3))))

    assert best(0.1) < best(1.0) < best(10.0)


def test_predicted_errors_of_counts_are_those_of_the_noise(release):
    errors = {c.column: c for c in diagnostics.count_errors(release)}
    assert list(errors) == list(release.plan.schema.learned)
    one_way = diagnostics.one_way(release, 20)
    real = Rows.read(mixed_rows(ROWS), release.plan.schema)
    for name, noisy in one_way.items():
        truth = real.coded(name, 20, declared_scale=True).shares()
        assert noisy.shares.shape == truth.shape
        assert np.all(np.abs(noisy.shares - truth) < 5 * noisy.noise + 0.02), name  # cells may straddle two bins
    assert errors["ward"].noise is not None and 0 < errors["ward"].share < 0.1
    if release.plan.method == "paper":
        assert errors["age"].noise is None  # numbers are measured together, by Fourier features
    else:
        assert set(one_way) == set(errors)


def test_verdicts_follow_the_noise_floor():
    def verdict(loss: float) -> str:
        return diagnostics.fit(History(1.0, [1], [loss], [])).verdict

    assert "underfits" in verdict(5) and "noise included" in verdict(1.0) and "noise" in verdict(0.3)
    assert diagnostics.fit(History(1.0)).ratio is None


def test_a_category_of_many_values_takes_memory_by_its_values_and_not_their_square():
    values = [f"v{i}" for i in range(20_000)]
    columns = {"c": {"kind": "category", "values": values}, "y": {"kind": "flag"}}
    plan = make_plan(Schema.from_json({"label": "y", "columns": columns}), 2.0, 1e-5, rows=ROWS)
    made = measure(pa.table({"c": values[:ROWS], "y": [True] * ROWS}), plan, noise=FixedNoise(3))
    tracemalloc.start()
    found = diagnostics.one_way(made, 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found["c"].shares) == len(found["c"].noise) == 20_000 and abs(found["c"].shares.sum() - 1) < 1
    assert peak < 50 * 2**20
