"""Associations from released tables: intervals hold the truth, and pairs that are all noise are named as such."""

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.evaluate.association import cramers_v
from dpmerf.inference.evidence import evidence
from dpmerf.inference.strength import strength, strengths
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from fixed_noise import SeededNoise

ROWS = 3_000
SCHEMA = "".join(f'[columns.{n}]\nkind = "category"\nvalues = ["p", "q", "r"]\n' for n in "abc")


@pytest.fixture(scope="module")
def codes() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 3, (2, ROWS))
    return {"a": a, "b": np.where(rng.random(ROWS) < 0.4, a, rng.integers(0, 3, ROWS)), "c": c}


def test_intervals_hold_the_association(codes: dict[str, np.ndarray]) -> None:
    table = pa.table({n: np.array(list("pqr"))[v] for n, v in codes.items()})
    plan = make_plan(Schema.parse(SCHEMA), 0.5, 1e-5, rows=ROWS)
    truth = cramers_v(codes["a"], 3, codes["b"], 3)
    hits, drowned, runs = 0, 0, 25
    for seed in range(runs):
        known = evidence(measure(table, plan, noise=SeededNoise(seed)))
        found = strength(known, ("a", "b"))
        assert found is not None and not found.drowned
        hits += found.low <= truth <= found.high
        other = strength(known, ("a", "c"))
        assert other is not None and other.low == 0
        drowned += other.drowned
        assert strengths(known)[0].columns == ("a", "b")
    assert hits >= 21 and drowned >= 15
