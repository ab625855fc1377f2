"""Measure: the one private step. Spend, read, sum in integers, add noise, and let nothing else out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dpmerf.accounting.events import Selection
from dpmerf.errors import DataError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Known, Plan, Stage, View
from dpmerf.plan.noisy_tables import class_shares
from dpmerf.plan.price import Price
from dpmerf.private.ledger import Ledger
from dpmerf.private.local import columns_of, sum_locally
from dpmerf.private.noise import NoiseSource, OpenDPGaussian, check_sampler
from dpmerf.private.select import choose
from dpmerf.private.spark import sum_on_spark
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Charge, Release
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
    known = Known(plan, {}, None, noise.name, {})
    for stage, price in zip(plan.stages, plan.prices, strict=True):
        known = known.prepared(stage)
        embedding = known.embedding(stage)
        price.check(embedding.phi)  # σ, and the sampler's part of δ, hold for maps up to the priced one
        exact, n = summer(rows, plan, embedding.phi, embedding.view, bars, f"reading ({stage.name})")
        count = _public_count(known, n)
        noisy = _private(exact, embedding.phi, stage, price, known, noise, bars)
        known = known.answered(stage, noisy, count)
    return Release(plan, known.sums, known.rows, noise.name, known.derived, charge)


def _public_count(known: Known, n: int) -> int | None:
    """The number of rows where it is public; None where it is protected."""
    if not known.plan.unit.rows_public:
        return None
    if n == 0:
        raise DataError("the table has no rows")
    if known.rows is not None and n != known.rows:
        raise DataError("the data changed while it was read: the number of rows differs between two passes")
    return n


def _private(
    exact: Tensor, phi: FeatureMap, stage: Stage, price: Price, known: Known, noise: NoiseSource, bars: Bars
) -> Tensor:
    """What leaves the room: noisy sums, or which candidate was selected by noisy scores."""
    if isinstance(price.event, Selection):
        return torch.tensor([choose(exact, phi, class_shares(known), known.plan.unit, price.event.range, noise)])
    with bars.task(f"noise ({stage.name})", total=phi.dim) as advance:
        return noise.add(exact, price.sigma, advance)


def _charge(ledger: Ledger | None, plan: Plan) -> Charge | None:
    """Spend, for the plan's unit of privacy."""
    if ledger is None:
        return None
    entry = ledger.spend(plan.hash, f"release ({plan.method})", plan.events(ledger.epsilon), plan.unit)
    return Charge(ledger.id, entry.hash)
