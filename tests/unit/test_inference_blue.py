"""The estimate of a table is unbiased, its variance exact, and no linear estimate from the same tables is better."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.inference.blue import solve
from dpmerf.inference.evidence import Counted, Evidence, evidence
from dpmerf.methods.presets import make_plan
from dpmerf.plan.queries import Histograms
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from fixed_noise import SeededNoise

SCHEMA = """
label = "ok"
[columns.a]
kind = "integer"
min = 0
max = 7
[columns.b]
kind = "category"
values = ["x", "y", "z"]
[columns.c]
kind = "category"
values = ["u", "v"]
[columns.ok]
kind = "flag"
"""
PLAN = make_plan(Schema.parse(SCHEMA), 1.0, 1e-5, rows=1_000)
NAMES = ("a", "b", "c", "ok")
FINE = (8, 3, 2, 2)
A_BINS, A_PARTS = np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 2, 2, 3, 4, 4])


def known(truth: np.ndarray, rng: np.random.Generator | None, rows_public: bool = True) -> Evidence:
    """Tables as a release has them: fine histograms, label × column in parts, pairs in bins, one of them twice."""
    groups = {(n, level): np.arange(k) for n, k in zip(NAMES, FINE, strict=True) for level in ("fine", "part", "bin")}
    groups["a", "part"], groups["a", "bin"] = A_PARTS, A_BINS
    asked = [(("a",), "fine", 9.0), (("b",), "fine", 9.0)]
    asked += [(("ok", n), "part", 5.0) for n in "abc"]
    asked += [(pair, "bin", 14.0) for pair in itertools.combinations("abc", 2)]
    asked += [(("ok", *pair), "bin", 20.0) for pair in itertools.combinations("abc", 2)] + [(("a", "b"), "bin", 7.0)]
    tables = []
    for columns, level, sigma in asked:
        exact = truth.sum(axis=tuple(i for i, n in enumerate(NAMES) if n not in columns))
        exact = exact.transpose([sorted(columns, key=NAMES.index).index(c) for c in columns])
        for axis, c in enumerate(columns):
            of = groups[c, level]
            exact = np.moveaxis(
                np.stack([np.moveaxis(exact, axis, 0)[of == g].sum(0) for g in range(of.max() + 1)]), 0, axis
            )
        noise = rng.normal(0, sigma, exact.shape) if rng is not None else 0.0
        tables.append(Counted("test", columns, (level,) * len(columns), exact + noise, sigma**2))
    rows = int(truth.sum()) if rows_public else None
    return Evidence(PLAN.codec, PLAN.query(Histograms).grid(PLAN.codec), tuple(tables), groups, rows, 1_000)


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 40, FINE).astype(float)


def best_covariance(e: Evidence) -> np.ndarray:
    """Of the best linear unbiased estimate of all cells of all columns at once, on what the tables can tell."""
    places = np.indices(FINE).reshape(len(FINE), -1)
    size = places.shape[1]
    precision = np.zeros((size, size))
    for t in e.tables:
        code = np.zeros(size, np.int64)
        for c, level in zip(t.columns, t.levels, strict=True):
            code = code * e.size(c, level) + e.group_of[c, level][places[NAMES.index(c)]]
        precision += (code[:, None] == code[None]) / t.variance
    if e.rows is not None:  # the total is known exactly
        project = np.eye(size) - np.full((size, size), 1 / size)
        precision = project @ precision @ project
    return np.linalg.pinv(precision, rcond=1e-10)


@pytest.mark.parametrize("rows_public", [True, False])
@pytest.mark.parametrize("columns", [("a",), ("b",), ("c",), ("a", "b"), ("ok", "a"), ("b", "c"), ("ok", "a", "b")])
def test_no_linear_estimate_is_much_better(truth: np.ndarray, columns: tuple[str, ...], rows_public: bool) -> None:
    e = known(truth, None, rows_public)
    joint = solve(e, columns)
    assert joint is not None
    best, places = best_covariance(e), np.indices(FINE).reshape(len(FINE), -1)
    for cell in itertools.product(*(range(k) for k in joint.shape)):
        w = np.ones(places.shape[1])
        for c, level, at in zip(columns, joint.levels, cell, strict=True):
            w = w * (e.group_of[c, level][places[NAMES.index(c)]] == at)
        i = int(np.ravel_multi_index(cell, joint.shape))
        width = math.sqrt(joint.covariance[i, i] / float(w @ best @ w))
        assert 0.999 < width < 1.03, (columns, cell)


def test_without_noise_the_counts_are_exact(truth: np.ndarray) -> None:
    for columns, axes in ((("a",), (1, 2, 3)), (("ok", "c"), (0, 1))):
        joint = solve(known(truth, None), columns)
        assert joint is not None
        want = truth.sum(axis=axes)
        want = want.T if len(columns) == 2 else want
        np.testing.assert_allclose(joint.counts, want.ravel(), rtol=1e-8)


def test_it_is_unbiased_and_its_variance_is_exact(truth: np.ndarray) -> None:
    rng, runs = np.random.default_rng(1), 300
    found = []
    for _ in range(runs):
        joint = solve(known(truth, rng), ("a", "b"))
        assert joint is not None
        found.append(joint.counts)
    exact = solve(known(truth, None), ("a", "b"))
    assert exact is not None
    error = np.sqrt(exact.covariance.diagonal())
    z = (np.mean(found, 0) - exact.counts) / error * math.sqrt(runs)
    assert np.abs(z).max() < 4.5
    ratio = np.std(found, 0) / error
    assert ratio.min() > 0.88 and ratio.max() < 1.12


def test_a_table_that_was_not_measured_has_no_estimate(truth: np.ndarray) -> None:
    assert solve(known(truth, None), ("a", "b", "c")) is None


def test_of_a_real_release(mixed_schema: Schema, mixed_table: pa.Table) -> None:
    release = measure(mixed_table, make_plan(mixed_schema, 5.0, 1e-5, rows=4_000), noise=SeededNoise())
    joint = solve(evidence(release), ("ward",))
    assert joint is not None
    want = [mixed_table["ward"].to_pylist().count(w) for w in "abc"] + [0]
    z = (joint.counts - want) / np.sqrt(joint.covariance.diagonal())
    assert np.abs(z).max() < 5 and joint.counts.sum() == pytest.approx(4_000)
