"""Measure persons: the private step for persons with histories. Spend once for all parts, read once, then add noise."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from dpmerf.errors import DataError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Embedding, Known, Plan, View
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.private.histories import Histories, PersonSums
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import noised
from dpmerf.private.noise import NoiseSource, OpenDPGaussian, check_sampler
from dpmerf.private.persons import KEY_BYTES
from dpmerf.private.spark_histories import totals_on_spark
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Charge, Release
from dpmerf.release.person_release import PersonRelease
from dpmerf.schema.person_schema import Persons
from dpmerf.sources.rows import Rows, open_rows
from dpmerf.sources.spark_table import SparkTable
from dpmerf.sources.stored import check_types

Total = Callable[[FeatureMap, View], Tensor]  # exact sums of a map over all persons


def open_tables(data: Any, persons: Persons) -> dict[str, Rows]:
    """Every table of the schema, opened, with the columns that a release reads. No value is looked at."""
    given = data if isinstance(data, Mapping) else {persons.tables[0]: data}
    if missing := [name for name in persons.tables if name not in given]:
        raise DataError(f"the table '{missing[0]}' is missing: the schema has {', '.join(persons.tables)}")
    if extra := [str(name) for name in given if name not in persons.tables]:
        raise DataError(f"there is no table '{extra[0]}' in the schema. Its tables: {', '.join(persons.tables)}")
    opened = {}
    with Histories({}, persons) as names:
        for name in persons.tables:
            schema = persons.schema_of(name)
            rows = open_rows(given[name], schema.reading)
            rows.require([*names.names_of(name), persons.key])
            check_types(rows, schema)
            opened[name] = rows
    if len({isinstance(rows, SparkTable) for rows in opened.values()}) > 1:
        raise DataError("some tables are on Spark and some are not: pass all of them in one way")
    return opened


def measure_persons(
    data: Any,
    plan: PersonPlan,
    *,
    ledger: Ledger | None = None,
    noise: NoiseSource | None = None,
    bars: Bars = SILENT,
) -> PersonRelease:
    """Release what the plan says of persons: one table, or a table for each name.

    Formal guarantee: (plan.epsilon, plan.delta)-DP for a person with all rows in all tables. The ledger is charged,
    durably and once for all parts, before the first row is read.
    """
    tables = open_tables(data, plan.persons)
    if noise is None:
        check_sampler()
        noise = OpenDPGaussian()
    charge = _charge(ledger, plan)
    spark = {name: rows for name, rows in tables.items() if isinstance(rows, SparkTable)}
    if spark:
        add_up = totals_on_spark(spark, plan.persons, os.urandom(KEY_BYTES))
        parts = {name: _answered(part, partial(add_up, name), noise, bars) for name, part in plan.parts.items()}
        return PersonRelease(plan, parts, charge)
    with Histories(tables, plan.persons) as histories:
        histories.read(bars)
        parts = {
            name: _answered(part, partial(_total, histories, bars, name), noise, bars)
            for name, part in plan.parts.items()
        }
    return PersonRelease(plan, parts, charge)


def exact_sums(made_up: Any, persons: Persons, part: str, embedding: Embedding, key: bytes) -> Tensor:
    """One part's sums WITHOUT noise, under a known key: for audits, of tables that are made up."""
    with Histories(open_tables(made_up, persons), persons, key) as histories:
        histories.read(SILENT)
        return _total(histories, SILENT, part, embedding.phi, embedding.view)


def _charge(ledger: Ledger | None, plan: PersonPlan) -> Charge | None:
    """Spend for all parts at once, for a person."""
    if ledger is None:
        return None
    entry = ledger.spend(plan.hash, "release (histories)", plan.events(ledger.epsilon), plan.unit)
    return Charge(ledger.id, entry.hash)


def _answered(plan: Plan, total: Total, noise: NoiseSource, bars: Bars) -> Release:
    """One part, stage by stage: sum exactly, add noise, keep only what is noisy."""
    known = Known(plan, {}, None, noise.name, {})
    for stage, price in zip(plan.stages, plan.prices, strict=True):
        known = known.prepared(stage)
        embedding = known.embedding(stage)
        price.check(embedding.phi)  # σ, and the sampler's part of δ, hold for maps up to the priced one
        exact = total(embedding.phi, embedding.view)
        known = known.answered(stage, noised(exact, embedding.phi, stage, price, known, noise, bars), None)
    return Release(plan, known.sums, known.rows, noise.name, known.derived, None)


def _total(histories: Histories, bars: Bars, part: str, phi: FeatureMap, view: View) -> Tensor:
    sums = PersonSums(phi)
    with bars.task(f"summing {part}"):
        for batch, sizes in histories.batches(part):
            sums.add(view(batch), sizes)
    return sums.total()
