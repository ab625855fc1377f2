"""Thousands of releases of neighbouring tables: nobody tells them apart better than the claim allows, and we can see.

The attacker knows both tables and scores each release by the likelihood ratio, the best statistic there is. A bound on
μ that holds with all but 10⁻⁶ decides; the figure printed is the bound at 95 %.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmerf.accounting.gaussian import epsilon_of, mu_of
from dpmerf.audit.bounds import MuBound, mu_bound
from dpmerf.audit.canary import Neighbours, tile
from dpmerf.plan.queries import Tables
from dpmerf.private.measure import measure
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.release import Release
from privacy.recorder import Recorder
from privacy.variants import ALARM, FULL, VARIANTS, antipodal, worst

pytestmark = pytest.mark.privacy
RELEASES = 300 if FULL else 100  # whole releases on each side
EPSILONS = (1.0, 10.0) if FULL else (10.0,)


def scores(pair: Neighbours, make: Callable[[pa.Table], Release], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood ratios of `count` releases of each table, made afresh each time."""
    fixed = not any(s.query.derives for s in pair.plan.stages)  # else what is measured differs by release
    one = make(pair.out)
    known = [pair.exact(one, stage) for stage in pair.plan.stages] if fixed else []

    def score(release: Release) -> float:
        if not fixed:
            return pair.score(release)
        total = 0.0
        for (out, inside), price in zip(known, pair.plan.prices, strict=True):
            change = (inside - out).double() / price.sigma
            total += float(((release.sums[price.stage] - out).double() / price.sigma - change / 2) @ change)
        return total

    return tuple(np.array([score(make(side)) for _ in range(count)]) for side in (pair.out, pair.inside))  # type: ignore[return-value]


def judge(
    name: str, pair: Neighbours, out: np.ndarray, inside: np.ndarray, record: Callable[[str, Any], None]
) -> MuBound:
    plan = pair.plan
    reported = mu_bound(out, inside, 0.95)
    record(
        "audit",
        f"{name:<34} claim ε = {plan.epsilon:<4g} μ = {plan.mu:.4f} | shown ε ≥ "
        f"{reported.epsilon_lower(plan.delta):.3f}, μ in [{reported.lower:.4f}, {reported.upper:.4f}] "
        f"| {2 * len(out):,} releases",
    )
    sure = mu_bound(out, inside, 1 - ALARM)
    assert sure.lower <= plan.mu, f"{name}: the claim is broken"
    return sure


def test_the_plain_release_is_seen_and_not_exceeded(record_property: Callable[[str, Any], None]) -> None:
    """(1, 1e-5), one row replaced by its opposite: at least 0.8 of the claim is shown, never more than all of it."""
    pair = antipodal()
    release = measure(pair.out, pair.plan)
    out, inside = pair.exact(release, pair.plan.stages[0])
    sigma, count = pair.plan.prices[0].sigma, 200_000 if FULL else 60_000
    assert abs(pair.true_mu(release) / pair.plan.mu - 1) < 1e-4
    change = (inside - out).double()
    sides = [
        ((OpenDPGaussian().add(tile(mine, count), sigma) - out).double() @ change / sigma**2).numpy()
        for mine in (out, inside)
    ]
    sure = judge("plain release", pair, sides[0], sides[1], record_property)
    shown = mu_bound(sides[0], sides[1], 0.95).epsilon_lower(1e-5)
    assert shown >= 0.8, "the audit is blind"
    assert sure.epsilon_lower(1e-5) <= 1.0
    assert sure.upper >= pair.plan.mu  # the noise is not too large either


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants(variant: str, epsilon: float, record_property: Callable[[str, Any], None]) -> None:
    pair = worst(VARIANTS[variant](epsilon))
    reached = pair.true_mu(measure(pair.out, pair.plan))
    assert 0.2 * pair.plan.mu < reached <= pair.plan.mu * (1 + 1e-9)
    out, inside = scores(pair, lambda table: measure(table, pair.plan), RELEASES)
    sure = judge(variant, pair, out, inside, record_property)
    fixed = not any(isinstance(s.query, Tables) for s in pair.plan.stages)
    assert sure.upper >= (reached if fixed else 0.3 * pair.plan.mu)  # an attacker who sees nothing proves nothing


@pytest.mark.spark
@pytest.mark.skipif(not FULL, reason="starts Spark: part of the full run")
def test_spark(record_property: Callable[[str, Any], None]) -> None:
    """Sums from Spark are the local ones to the last bit, and so is what an attacker can see."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    from pyspark.sql import SparkSession

    pair = worst(VARIANTS["heterogeneous"](10.0))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frames = {id(side): session.createDataFrame(side.to_pandas()) for side in (pair.out, pair.inside)}
        recorder = Recorder()
        for side in (pair.out, pair.inside):
            measure(frames[id(side)], pair.plan, noise=recorder)
        release = measure(pair.out, pair.plan)
        for (sums, _), local in zip(recorder.calls, pair.exact(release, pair.plan.stages[0]), strict=True):
            assert torch.equal(sums, local)
        out, inside = scores(pair, lambda table: measure(frames[id(table)], pair.plan), 30)
        judge("Spark, heterogeneous", pair, out, inside, record_property)
    finally:
        session.stop()


def test_two_releases_share_one_budget() -> None:
    """Two plans at the ε that a ledger leaves them: together they show no more than the ledger's limit."""
    together = mu_of(10.0, 1e-5)
    pair = worst(VARIANTS["labelled, imbalanced"](epsilon_of(together / 2**0.5, 1e-5)))
    out, inside = scores(pair, lambda table: measure(table, pair.plan), 2 * RELEASES)
    both = [s.reshape(2, -1).sum(axis=0) for s in (out, inside)]
    assert mu_bound(both[0], both[1], 1 - ALARM).lower <= together
    assert mu_bound(both[0], both[1], 1 - ALARM).upper >= 0.6 * together


def test_bounds_hold_at_the_stated_confidence() -> None:
    """The statistics themselves: on made-up Gaussian scores with a known μ the bound is rarely above it."""
    rng = np.random.default_rng(0)
    for mu in (0.27, 2.0):
        above, runs = 0, 400 if FULL else 100
        for _ in range(runs):
            found = mu_bound(rng.normal(0, 1, 200), rng.normal(mu, 1, 200), 0.9)
            above += found.lower > mu
        assert above <= 0.15 * runs
    assert mu_bound(np.zeros(50), np.ones(50)).lower == float("inf")
    assert mu_bound(np.zeros(50), np.zeros(50)).lower == 0
    assert torch.equal(tile(torch.tensor([1, 2]), 2), torch.tensor([[1, 2], [1, 2]]))
