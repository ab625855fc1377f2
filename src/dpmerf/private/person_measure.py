"""Measure persons: the private step for persons with histories. Spend once for all parts, read once, then add noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from dpmerf.errors import DataError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Known, Plan, View
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.private.histories import Histories, PersonSums
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import noised
from dpmerf.private.noise import NoiseSource, OpenDPGaussian, check_sampler
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Charge, Release
from dpmerf.release.person_release import PersonRelease
from dpmerf.schema.person_schema import Persons
from dpmerf.sources.rows import Rows, open_rows
from dpmerf.sources.stored import check_types

Total = Callable[[FeatureMap, View, str], Tensor]  # exact sums of a map over all persons


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
    with Histories(tables, plan.persons) as histories:
        histories.read(bars)
        parts = {name: _answered(part, _total(histories, name, bars), noise, bars) for name, part in plan.parts.items()}
    return PersonRelease(plan, parts, charge)


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
        exact = total(embedding.phi, embedding.view, stage.name)
        known = known.answered(stage, noised(exact, embedding.phi, stage, price, known, noise, bars), None)
    return Release(plan, known.sums, known.rows, noise.name, known.derived, None)


def _total(histories: Histories, part: str, bars: Bars) -> Total:
    def total(phi: FeatureMap, view: View, what: str) -> Tensor:
        sums = PersonSums(phi)
        with bars.task(f"summing {part} ({what})"):
            for batch, sizes in histories.batches(part):
                sums.add(view(batch), sizes)
        return sums.total()

    return total
