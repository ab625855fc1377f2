"""Measure: the one private step. Spend, read, sum in integers, add noise, and let nothing else out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dpmerf.errors import DataError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Plan
from dpmerf.plan.queries import Choice, View
from dpmerf.private.ledger import Ledger
from dpmerf.private.local import columns_of, sum_locally
from dpmerf.private.noise import NoiseSource, OpenDPGaussian, check_sampler
from dpmerf.private.select import choose
from dpmerf.private.spark import sum_on_spark
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Charge, Release
from dpmerf.release.derive import derive
from dpmerf.release.noisy_tables import class_shares
from dpmerf.sources.pictures import open_data
from dpmerf.sources.rows import Rows
from dpmerf.sources.spark_table import SparkTable
from dpmerf.sources.stored import check_types

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
    check_types(rows, plan.schema)
    if noise is None:
        check_sampler()
        noise = OpenDPGaussian()
    charge = _charge(ledger, plan)
    summer = summer or (sum_on_spark if isinstance(rows, SparkTable) else sum_locally)
    sums: dict[str, Tensor] = {}
    count: int | None = None
    binning: dict[str, Any] | None = None
    for stage, price in zip(plan.stages, plan.prices, strict=True):
        so_far = Release(plan, sums, count, noise.name, binning)
        phi = so_far.feature_map(stage)
        choice = isinstance(stage.recipe, Choice)
        price.check(phi)  # σ, and the sampler's part of δ, hold for maps up to the priced one
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
        binning = derive(Release(plan, sums, count, noise.name, binning), stage)
    return Release(plan, sums, count, noise.name, binning, charge)


def _charge(ledger: Ledger | None, plan: Plan) -> Charge | None:
    """Spend, for the plan's unit of privacy."""
    if ledger is None:
        return None
    extra = plan.discrete_delta_at(ledger.epsilon)
    entry = ledger.spend(plan.hash, f"release ({plan.preset})", plan.mu, extra, plan.choices, plan.unit)
    return Charge(ledger.id, entry.hash)
