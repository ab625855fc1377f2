"""Histories: the plan of a release of persons with several rows, from public facts alone.

Each part is measured by tables, as a table of rows is: histograms cut the bins, then one-way tables by step (first or
later row) and pairs, then the strongest pairs again. Which pairs follows from what a history is drawn by: a row's own
columns with each other, with the person, with the number of rows, with the gap and with the same column before; and
the columns before with each other, without which two columns that say the same would count twice as evidence.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

from dpmerf.accounting.gaussian import check_delta, check_epsilon, epsilon_of, mu_of
from dpmerf.accounting.unit import Unit
from dpmerf.encoding.binning import FineGrid
from dpmerf.encoding.codec import Codec
from dpmerf.errors import PlanError
from dpmerf.plan import Plan, Stage
from dpmerf.plan.person_plan import PersonPlan, part_schemas, part_unit
from dpmerf.plan.queries import Histograms, PairsAgain, Tables
from dpmerf.schema import Integer, Numeric, Schema
from dpmerf.schema.extended_schema import GAP, before, count_of
from dpmerf.schema.person_schema import History, Persons

Pair = tuple[str, str]


@final
@dataclass(frozen=True)
class HistorySettings:
    """How the budget of persons with histories is spent. Chosen as in ADR 0014."""

    parent: float = 1.5  # a column of the persons' own table, where one of another table counts 1
    histograms: float = 0.12  # of a part's μ²
    counting: float = 0.20  # the same in the persons' own table, which says how many rows everybody has
    pair: float = 0.30
    again: float = 0.30  # for the strongest pairs; what is left is for one-way tables
    twice: int = 3  # one pair in so many is measured again
    followed: float = 3.0  # weight of the pair of a column and the same column before, where others have 1
    counted: float = 4.0  # weight of the histogram of a number of rows in that table, where others have 1
    fine: tuple[int, int] = (8, 256)  # fewest and most cells of a histogram
    whole: int = 2_048  # most numbers of rows that are told apart, each in a cell of its own, in the table of persons
    bins: tuple[int, int] = (4, 20)
    sub_bins: int = 8
    no_histogram: int = 8  # cells up to which a column is a table of its own anyway
    bin_noise: float = 6.0  # times its noise: what an average cell of a pair holds
    pair_noise: float = 16.0  # persons ÷ the noise of a pair's cell: more pairs than that leaves are not measured
    expected: int = 10_000  # persons, where nobody says how many to expect


SETTINGS = HistorySettings()


def make_person_plan(
    persons: Persons,
    epsilon: float,
    delta: float | None = None,
    *,
    rows: int | None = None,
    neighbours: str = "replace",
    settings: HistorySettings = SETTINGS,
) -> PersonPlan:
    """Price a release of persons before any row is read. `rows` is the expected number of persons."""
    count = settings.expected if rows is None else rows
    if not 1 <= count <= 2**53:
        raise PlanError(f"rows is {rows}: write the expected number of persons, 1 or more")
    for table in persons.tables[:1]:
        persons.schema_of(table).check_ids(count)
    epsilon = check_epsilon(epsilon)
    delta = check_delta(min(1e-5, 0.1 / count) if delta is None else delta)
    schemas = part_schemas(persons)
    shares = _shares(persons, schemas, settings)
    kept = delta
    for _ in range(2):  # the sampler's part of δ is known once there is a plan
        parts = {}
        for name, schema in schemas.items():
            unit = part_unit(persons, name, neighbours)
            mu = mu_of(epsilon, kept) * math.sqrt(shares[name])
            spent = epsilon if len(schemas) == 1 else epsilon_of(mu, delta)
            noise = unit.sensitivity(1.0, math.sqrt(2)) / mu
            stages = _stages(persons, name, schema, count, noise, settings)
            parts[name] = Plan(schema, spent, delta, unit, count, "histories", False, stages)
        if len(schemas) == 1:
            break
        kept = delta - 1.01 * sum(plan.discrete_delta_at(epsilon) for plan in parts.values())
    return PersonPlan(persons, epsilon, delta, count, parts)


def _shares(persons: Persons, schemas: dict[str, Schema], settings: HistorySettings) -> dict[str, float]:
    """Of μ²: a table of more columns has more tables to measure."""
    parent = persons.parent[0] if persons.parent else None
    columns = {n: len(schema.learned) * (settings.parent if n == parent else 1) for n, schema in schemas.items()}
    return {name: n / sum(columns.values()) for name, n in columns.items()}


def _stages(
    persons: Persons, part: str, schema: Schema, rows: int, noise: float, settings: HistorySettings
) -> tuple[Stage, ...]:
    codec = Codec(schema)
    history = next((h for h in persons.histories if h.name == part), None)
    by_label = schema.label is not None
    features = [name for name in schema.learned if name != schema.label]
    every_column = FineGrid(codec, settings.fine[1]).variables
    wide = [name for name, v in every_column.items() if v.size > settings.no_histogram]
    alike = _alike(schema, history, wide)
    drawn = tuple(name for name in wide if name not in alike) or tuple(schema.learned)
    most = (settings.pair + settings.again) * (rows / (settings.pair_noise * noise)) ** 2
    pairs = _pairs(features, history, most)
    again = settings.again if len(pairs) >= settings.twice else 0.0
    pair = settings.pair if pairs else 0.0
    share = settings.histograms if history else settings.counting
    single = 1 - share - pair - again
    cells = (0.1 * rows / (noise * math.sqrt(len(drawn) / share))) ** 2
    counts = () if history else tuple(map(count_of, persons.histories))
    weights = tuple(settings.counted if name in counts else 1.0 for name in drawn)
    histograms = Histograms(
        cells=_within(cells, settings.fine),
        columns=drawn,
        weights=weights if set(weights) > {1.0} else (),
        alike=tuple(alike.items()),
        whole=tuple(n for n in drawn if n in counts and _values(schema, n) <= settings.whole),
    )
    tables = Tables(
        bins=_bins(rows, noise, len(features), len(pairs), single, pair + again, settings),
        parts=settings.sub_bins,
        by_label=by_label,
        pairs=tuple(pairs),
        pair_weights=_pair_weights(pairs, settings),
        share_single=single / (single + pair),
        share_pair=pair / (single + pair),
        share_label_pair=0.0,
    )
    stages = (
        Stage("discover", share, histograms),
        Stage("tables", single + pair, tables),
    )
    return (
        stages if not again else (*stages, Stage("pairs again", again, PairsAgain(count=len(pairs) // settings.twice)))
    )


def _pairs(features: list[str], history: History | None, most: float) -> list[Pair]:
    """The pairs that a history is drawn by, family by family while there is room for them."""
    if history is None:
        families = [list(itertools.combinations(features, 2))]
    else:
        rows, persons = history.measured_rows, history.measured_persons
        count, order, counter = count_of(history), history.facts.order, history.facts.counter
        when = [] if order is None else [order, before(order), GAP]
        own = [*rows, *when]
        families = [
            [(name, before(name)) for name in rows if order is not None],
            [(count, name) for name in (*persons, *own)],
            list(itertools.combinations(rows, 2)),
            [(name, person) for name in rows for person in persons],
            [(a, b) for a in rows for b in when] + ([(before(order), GAP)] if order is not None else []),
            list(itertools.combinations(persons, 2)) + [(p, w) for p in persons for w in when],
            [(before(name), GAP) for name in rows if order is not None],
            list(itertools.combinations(map(before, rows), 2)) if order is not None else [],
            [(name, counter) for name in (*rows, *when[1:])] if counter is not None else [],
        ]
    found: list[Pair] = []
    for family in families:
        found += family[: max(0, int(most) - len(found))]
    return found


def _alike(schema: Schema, history: History | None, wide: list[str]) -> dict[str, str]:
    """The row before is a row: its numbers are cut as those of rows, of which there are more to tell where."""
    rows = history.measured_rows if history and history.facts.order is not None else ()
    numbers = [name for name in rows if isinstance(schema.columns[name], Numeric)]
    return {before(name): name for name in numbers if name in wide and before(name) in wide}


def _values(schema: Schema, name: str) -> int:
    """How many values a column of whole numbers has."""
    column = schema.columns[name]
    assert isinstance(column, Integer)
    return column.max - column.min + 1


def _pair_weights(pairs: list[Pair], settings: HistorySettings) -> tuple[float, ...]:
    """What follows what is what a history is drawn by; everything else about a row only corrects it."""
    weights = tuple(settings.followed if b == before(a) else 1.0 for a, b in pairs)
    return weights if set(weights) > {1.0} else ()


def _bins(
    rows: int, noise: float, columns: int, pairs: int, single: float, pair: float, settings: HistorySettings
) -> int:
    """As many bins as leave an average cell, of pairs if there are any, well above its noise."""
    if pairs == 0:
        return _within(rows / (2 * settings.bin_noise * noise * math.sqrt(columns / single)), settings.bins)
    return _within(math.sqrt(rows * math.sqrt(pair / pairs) / (settings.bin_noise * noise)), settings.bins)


def _within(value: float, limits: tuple[int, int]) -> int:
    return int(min(max(value, limits[0]), limits[1]))


__all__ = ["SETTINGS", "HistorySettings", "Unit", "make_person_plan"]
