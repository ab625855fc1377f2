"""Measure: the one private step. Spend, read, sum in integers, add noise, and let nothing else out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dpmerf.counts import class_shares, most_dependent
from dpmerf.errors import DataError, LedgerError, PlanError
from dpmerf.features.algebra import BITS, FeatureMap
from dpmerf.grid import Binning
from dpmerf.plan import Plan, Stage
from dpmerf.private.choose import choose
from dpmerf.private.images import open_data
from dpmerf.private.ledger import Ledger
from dpmerf.private.local import columns_of, sum_locally
from dpmerf.private.noise import NoiseSource, OpenDPGaussian
from dpmerf.private.rows import Rows
from dpmerf.private.spark import SparkTable, sum_on_spark
from dpmerf.progress import SILENT, Bars
from dpmerf.recipes import Choice, Directions, Histograms, SecondLook, Tables, View
from dpmerf.release import Release
from dpmerf.scores import Scores

Summer = Callable[[Rows, Plan, FeatureMap, View, Bars, str], tuple[Tensor, int]]


def measure(
    data: Any,
    plan: Plan,
    *,
    ledger: Ledger | None = None,
    noise: NoiseSource | None = None,
    bars: Bars = SILENT,
    summer: Summer | None = None,
) -> Release:
    """Release what the plan says of the data.

    Formal guarantee: the result is (plan.epsilon, plan.delta)-DP for plan.unit. The ledger is charged, durably, before
    the first row is read: a crash may waste budget, never leak it.
    """
    rows = open_data(data, plan.schema)
    rows.require(columns_of(plan))
    noise = noise or OpenDPGaussian()
    if ledger is not None:
        _charge(ledger, plan)
    summer = summer or (sum_on_spark if isinstance(rows, SparkTable) else sum_locally)
    sums: dict[str, Tensor] = {}
    count: int | None = None
    binning: dict[str, Any] | None = None
    for stage, price in zip(plan.stages, plan.prices, strict=True):
        so_far = Release(plan, sums, count, noise.name, binning)
        phi = so_far.feature_map(stage)
        choice = isinstance(stage.recipe, Choice)
        # More coordinates than the discrete sampler's part of delta was counted for: not by any row
        if not choice and phi.dim > price.coordinates:
            raise PlanError(f"stage '{stage.name}' is larger than it was priced: make the plan with `dpmerf plan`")
        exact, n = summer(rows, plan, phi, so_far.view(stage), bars, f"reading ({stage.name})")
        if plan.unit.rows_public:
            if n == 0:
                raise DataError("the table has no rows")
            if count is not None and n != count:
                raise DataError("the data changed while it was read: the number of rows differs between two passes")
            count = n
        if choice:
            (loss_range,) = plan.choices
            index = choose(exact, phi, class_shares(so_far), plan.unit, loss_range, noise)
            sums = {**sums, stage.name: torch.tensor([index])}
            continue
        with bars.task(f"noise ({stage.name})", total=phi.dim) as advance:
            sums = {**sums, stage.name: noise.add(exact, price.sigma, advance)}
        if isinstance(stage.recipe, Histograms):
            binning = _digested(Release(plan, sums, count, noise.name, None), stage)
        again = next((s.recipe for s in plan.stages if isinstance(s.recipe, SecondLook)), None)
        if isinstance(stage.recipe, Tables) and again is not None:
            known = Release(plan, sums, count, noise.name, binning)
            binning = {**(binning or {}), "chosen": most_dependent(known, again.count)}
    return Release(plan, sums, count, noise.name, binning)


def _charge(ledger: Ledger, plan: Plan) -> None:
    """Spend. A ledger counts for one unit of privacy: prices for rows and for persons do not add up."""
    purpose = f"release ({plan.preset}). {plan.unit.describe()}"
    for entry in ledger.entries():
        if (earlier := entry.purpose.partition(". ")[2]) not in ("", plan.unit.describe()):
            raise LedgerError(
                f"{ledger.path} counts for another unit of privacy ({earlier.rstrip('.')}): keep one ledger per "
                "dataset and unit. Nothing was read"
            )
    ledger.spend(plan.hash, purpose, plan.mu, plan.discrete_delta_at(ledger.epsilon), plan.choices)


def _digested(release: Release, stage: Stage) -> dict[str, Any] | None:
    """What the next stage needs to know of the noisy histograms: post-processing."""
    plan = release.plan
    measured = release.measurements(stage)
    noisy = {name: m.values.flatten() for name, m in zip(plan.histograms.columns, measured, strict=True)}
    sigma = measured[0].sigma
    for at, later in enumerate(plan.stages):
        match later.recipe:
            case Tables():
                return _cut_bins(release, at, later.recipe, noisy, sigma).to_json()
            case Directions():
                grid = plan.histograms.grid(release.codec)
                return Scores.estimate(grid, noisy, sigma, release.rows_estimate).to_json()
    return None


def _cut_bins(release: Release, at: int, tables: Tables, noisy: dict[str, Tensor], sigma: float) -> Binning:
    plan = release.plan
    whole = frozenset({plan.schema.label} if tables.by_label and plan.schema.label else ())
    grid = plan.histograms.grid(release.codec)
    single = plan.nominal_map(plan.stages[at]).blocks[0]  # label × column: its weight is that of the real one
    part_sigma = plan.prices[at].sigma / (single.weight * 2**BITS)
    return Binning.cut(grid, noisy, sigma, release.rows_estimate, tables.bins, whole, tables.parts, part_sigma)
