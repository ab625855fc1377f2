"""Intervals of a release beside real rows: about 95 % hold, and wrong rows are noticed. NOT COVERED."""

import numpy as np
import pyarrow as pa
import pytest

from conftest import mixed_rows
from dpmerf.evaluate.intervals_held import intervals_held
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.schema import Schema
from fixed_noise import SeededNoise

ROWS = 4_000


@pytest.fixture(scope="module")
def releases(mixed_schema: Schema) -> list[Release]:
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=ROWS)
    return [measure(mixed_rows(ROWS), plan, noise=SeededNoise(seed)) for seed in range(6)]


@pytest.mark.parametrize(("seed", "same"), [(0, True), (5, False)])
def test_most_intervals_hold(releases: list[Release], seed: int, same: bool) -> None:
    found = [intervals_held(r, mixed_rows(ROWS, seed=seed), same) for r in releases]
    assert found[0].covered is False and found[0].shares >= 5 and found[0].means >= 2
    shares = np.mean([f.shares_held for f in found if f.shares_held is not None])
    means = np.mean([f.means_held for f in found if f.means_held is not None])
    assert shares > 0.85 and means > 0.7
    assert ("population" in found[0].about) != same


def test_other_rows_are_noticed(releases: list[Release]) -> None:
    rows = mixed_rows(ROWS)
    wards = pa.array(["a"] * ROWS, rows["ward"].type)
    other = rows.set_column(rows.schema.get_field_index("ward"), "ward", wards)
    found = intervals_held(releases[0], other, True)
    assert found.shares_held is not None and found.shares_held < 0.8
