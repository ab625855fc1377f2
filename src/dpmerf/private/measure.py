"""Measure: the one private step. Spend, read, sum in integers, add noise, and let nothing else out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dpmerf.accounting.events import Added, Gaussian, Selection
from dpmerf.errors import DataError, UnreadableError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Known, Plan, Stage, View
from dpmerf.plan.noisy_tables import class_shares
from dpmerf.plan.price import Price
from dpmerf.plan.queries import Readability
from dpmerf.plan.queries.readability import readable_shares
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
    go_on: bool = False,
) -> Release:
    """Release what the plan says of the data.

    Formal guarantee: the result is (plan.epsilon, plan.delta)-DP for plan.unit. The ledger is charged, durably, before
    the first row is read: a crash may waste budget, never leak it. Where the plan first asks whether the columns can be
    read, only that is charged at first; UnreadableError, which says nothing but noisy shares, ends the release where
    they cannot be read beyond doubt, with the rest unspent (unless `go_on`).
    """
    rows = open_data(data, plan.schema)
    rows.require(columns_of(plan))
    check_types(rows, plan.schema)
    if noise is None:
        check_sampler()
        noise = OpenDPGaussian()
    look = plan.stage(Readability) if plan.has(Readability) else None
    charge = _charge(ledger, plan, look)
    summer = summer or (sum_on_spark if isinstance(rows, SparkTable) else sum_locally)
    known = Known(plan, {}, None, noise.name, {})
    for stage, price in zip(plan.stages, plan.prices, strict=True):
        known = known.prepared(stage)
        embedding = known.embedding(stage)
        price.check(embedding.phi)  # σ, and the sampler's part of δ, hold for maps up to the priced one
        exact, n = summer(rows, plan, embedding.phi, embedding.view, bars, f"reading ({stage.name})")
        count = _public_count(known, n)
        noisy = noised(exact, embedding.phi, stage, price, known, noise, bars)
        known = known.answered(stage, noisy, count)
        if stage is look:
            if not go_on:
                _stop_if_unreadable(known, charge)
            charge = _charge_rest(ledger, plan, stage)
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


def noised(
    exact: Tensor, phi: FeatureMap, stage: Stage, price: Price, known: Known, noise: NoiseSource, bars: Bars
) -> Tensor:
    """What leaves the room: noisy sums, or which candidate was selected by noisy scores."""
    if isinstance(price.event, Selection):
        return torch.tensor([choose(exact, phi, class_shares(known), known.plan.unit, price.event.range, noise)])
    with bars.task(f"noise ({stage.name})", total=phi.dim) as advance:
        return noise.add(exact, price.sigma, advance)


def _stop_if_unreadable(known: Known, charge: Charge | None) -> None:
    """End a release that would spend on nothing. Decided by noisy shares alone, which is all that the message holds."""
    schema = known.plan.schema
    found = [words for column in readable_shares(known) if (words := column.problem(schema)) is not None]
    if not found:
        return
    spent = known.plan.price_of(known.plan.stage(Readability)).mu
    where = "the ledger was charged for this look alone" if charge else "only this look was spent"
    raise UnreadableError(
        f"{len(found)} of {len(schema.needed)} columns cannot be read as declared: {'; '.join(found)}. The main budget "
        f"is unspent; {where} (mu = {spent:.4f}). Fix the schema, or release all the same with --go-on"
    )


def _charge(ledger: Ledger | None, plan: Plan, look: Stage | None) -> Charge | None:
    """Spend, for the plan's unit of privacy: all of it, or what the look at the columns costs if there is room for all.

    What the discrete sampler adds to δ, in all stages, is charged with the first entry.
    """
    if ledger is None:
        return None
    events = plan.events(ledger.epsilon)
    if look is None:
        entry = ledger.spend(plan.hash, f"release ({plan.method})", events, plan.unit)
    else:
        ledger.check_room(events, plan.unit)
        added = [event for event in events if isinstance(event, Added)]
        entry = ledger.spend(plan.hash, "readability", [Gaussian(plan.price_of(look).mu), *added], plan.unit)
    return Charge(ledger.id, entry.hash)


def _charge_rest(ledger: Ledger | None, plan: Plan, look: Stage) -> Charge | None:
    """Spend what the look left over, before any other stage reads a row."""
    if ledger is None:
        return None
    spent = plan.price_of(look).mu
    rest = Gaussian(math.sqrt((plan.mu - spent) * (plan.mu + spent)))
    selections = [Selection(r) for r in plan.selections]
    entry = ledger.spend(plan.hash, f"release ({plan.method})", [rest, *selections], plan.unit)
    return Charge(ledger.id, entry.hash)
