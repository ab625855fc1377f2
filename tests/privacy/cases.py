"""Cases: every method as a tiny plan, two neighbouring tables that it hardly hides, and one that is quite different."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, final

import numpy as np
import pyarrow as pa

from dpmerf.accounting.unit import Unit
from dpmerf.audit.canary import random_row, table
from dpmerf.encoding import pixels
from dpmerf.encoding.codec import Codec
from dpmerf.methods.broken_counted import count_broken
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import Histograms, ImageBlock, ImageEmbedding, PairsAgain, PreferredValues, Tables
from dpmerf.plan.queries.pairs_again import picked_pairs
from dpmerf.plan.queries.preferred_values import worth_counting
from dpmerf.private import measure
from dpmerf.release import Release
from dpmerf.schema import Schema
from privacy.recorder import Recorder
from privacy.variants import (
    ADD,
    CATEGORIES,
    LABEL,
    NUMBERS,
    PERSON_ADD,
    RELATED,
    ROW,
    WHO,
    choice,
    directions,
    embedding,
    schema,
    worst,
)

ROWS = 300  # of tables whose bins matter: counts stand out of the noise
WALKS = 10  # from one table to another, in search of a flip
MIXED = NUMBERS + CATEGORIES + LABEL
FLAGS = "".join(f'[columns.{name}]\nkind = "flag"\n' for name in "fgh")  # no noise cuts their bins
ONE_ROW = Unit("who", 1, "add-remove")
MANY = 1_500  # features of an embedding whose noise is looked at as a whole
IMAGE = (
    '[columns.image]\nkind = "image"\nheight = 6\nwidth = 6\n[columns.y]\nkind = "category"\nvalues = ["0", "1", "2"]\n'
)


@final
@dataclass(frozen=True)
class Case:
    """Neighbours, and tables that share with them only what is public."""

    method: str
    plan: Plan
    out: pa.Table
    inside: pa.Table
    far: tuple[pa.Table, ...]

    @property
    def fresh(self) -> Plan:
        """The same plan, not yet priced."""
        return replace(self.plan)


def made_up(plan: Plan, rows: int, seed: int) -> pa.Table:
    """Rows drawn evenly, each of its own person."""
    rng = np.random.default_rng(seed)
    drawn = [random_row(plan.schema, rng) for _ in range(rows)]
    named = [row if (who := plan.unit.person) is None else {**row, who: f"p{i}"} for i, row in enumerate(drawn)]
    return table(plan.schema, named)


def far_from(plan: Plan, out: pa.Table) -> tuple[pa.Table, ...]:
    """Rows all alike, and of few kinds; as many where their number is public, else many more and far fewer."""
    rows = out.num_rows
    counts = (rows, rows) if plan.unit.rows_public else (3 * rows + 2, rows // 3)
    few = made_up(plan, 5, 99)
    return tuple(
        few.slice(0, kinds).take(np.arange(count) % kinds) for kinds, count in zip((1, 5), counts, strict=True)
    )


def unnoised(rows: pa.Table, plan: Plan) -> Release:
    """The release without noise: what a bug that forgets it would publish."""
    return measure.measure(rows, plan, noise=Recorder())


def cliff(plan: Plan, look: Callable[[Release], Any]) -> tuple[pa.Table, pa.Table]:
    """Two neighbours between which something that follows from a release would flip, if there were no noise.

    One table is turned into a quite different one row by row (or emptied), and the step that flips it found by halving.
    Of a few such walks the first is taken whose ends differ in what is looked at.
    """
    for seed in range(WALKS):
        if (found := _flip(plan, look, seed)) is not None:
            return found
    raise AssertionError("no two tables differ in what is looked at")


def _flip(plan: Plan, look: Callable[[Release], Any], seed: int) -> tuple[pa.Table, pa.Table] | None:
    rng = np.random.default_rng(seed)
    start, end = made_up(plan, ROWS, seed), made_up(plan, ROWS, seed + 1)
    end = end.take(rng.integers(0, ROWS // 60, ROWS))  # very few rows, often

    def at(step: int) -> pa.Table:
        kept = [end.slice(0, step)] if plan.unit.rows_public else []
        return pa.concat_tables([*kept, start.slice(step)]).combine_chunks()

    low, high = 0, ROWS if plan.unit.rows_public else ROWS - 20
    first = look(unnoised(at(low), plan))
    if look(unnoised(at(high), plan)) == first:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if look(unnoised(at(middle), plan)) == first else (low, middle)
    return at(high), at(low)


def bins_of(release: Release) -> Any:
    """All that was derived on the way, but the pairs that are measured again."""
    found = {stage: derived.to_json() for stage, derived in release.derived.items()}
    return {stage: fields for stage, fields in found.items() if "chosen" not in fields}


def pairs_of(release: Release) -> Any:
    return picked_pairs(release)


def _case(method: str, plan: Plan, pair: tuple[pa.Table, pa.Table]) -> Case:
    return Case(method, plan, pair[0], pair[1], far_from(plan, pair[0]))


def _worst(method: str, plan: Plan) -> Case:
    pair = worst(plan)
    return _case(method, plan, (pair.out, pair.inside))


def tables_plan(epsilon: float, unit: Unit = ROW, columns: str = MIXED) -> Plan:
    """Histograms, preferred values of numbers, tables of every pair, and one of them measured again."""
    made = schema(columns, "y")
    names = [name for name in made.learned if name != "y"]
    pairs = tuple((a, b) for i, a in enumerate(names) for b in names[i + 1 :])
    tables = Tables(bins=4, parts=2, by_label=True, pairs=pairs, share_single=0.5, share_pair=0.5, share_label_pair=0.0)
    histograms, codec = Histograms(cells=8, columns=tuple(names)), Codec(made)
    numbers = tuple(name for name in codec.numeric if worth_counting(codec, name, histograms))
    preferred = (Stage("preferred values", 0.1, PreferredValues(columns=numbers)),) if numbers else ()
    stages = (
        Stage("discover", 0.3 if numbers else 0.4, histograms),
        *preferred,
        Stage("tables", 0.4, tables),
        Stage("pairs again", 0.2, PairsAgain(count=1)),
    )
    return Plan(made, epsilon, 1e-5, unit, ROWS, "default", False, stages)


def images_plan(epsilon: float) -> Plan:
    made = Schema.parse('label = "y"\n' + IMAGE)
    blocks = (
        ImageBlock(view="pixels", dim=8, scales=(0.3,), share=0.6),
        ImageBlock(view="edges", dim=4, scales=(0.4,), share=0.3),
    )
    recipe = ImageEmbedding(blocks=blocks, tones=0.1, seed=3, counts=1.0)
    return Plan(made, epsilon, 1e-5, ROW, 12, "default", False, (Stage("embedding", 1.0, recipe),))


def pictures(count: int, seed: int, last: str | None = None, classes: int = 3) -> pa.Table:
    """Faint noise; the last one, if any, is black or bright."""
    x = np.random.default_rng(seed).integers(0, 120, (count, 6, 6, 1), dtype=np.uint8)
    labels = [str(i % classes) for i in range(count)]
    if last is not None:
        x[-1] = 0
        x[-1, 3:] = 0 if last == "black" else 255
        labels[-1] = "0" if last == "black" else "2"
    return pa.table({"image": pixels.pack(x), "y": labels})


def two_stages(epsilon: float) -> Plan:
    """Two measurements of the same kind that share the budget."""
    one = embedding(NUMBERS + LABEL, "y", ROW, 1.0, epsilon, dim=8)
    return replace(one, stages=tuple(Stage(name, 0.5, one.stages[0].query) for name in ("first", "second")))


def outlier(epsilon: float) -> Case:
    """Many rows close together, and one that may lie far away."""
    plan = embedding(NUMBERS, None, ROW, 0.0, epsilon)
    near = {"x": np.linspace(0.0, 0.1, 20).tolist(), "t": [0, 1] * 10}
    out, inside = ({"x": [*near["x"], last], "t": [*near["t"], 0]} for last in (0.1, 1.0))
    return _case("embedding", plan, (pa.table(out), pa.table(inside)))


def two_rows(epsilon: float) -> Case:
    """One row, or two that are far apart."""
    plan = embedding(NUMBERS, None, ADD, 1.0, epsilon)
    far = worst(embedding(NUMBERS, None, ROW, 1.0, epsilon))
    rows = [far.out.slice(far.out.num_rows - 1), far.inside.slice(far.inside.num_rows - 1)]
    return _case("embedding", plan, (rows[0], pa.concat_tables(rows)))


def crowd(epsilon: float) -> Case:
    """A person with five times as many rows as the cap allows, in five pieces of the table."""
    plan = embedding(NUMBERS + LABEL + WHO, "y", PERSON_ADD, 1.0, epsilon)
    base = pa.table({"x": [0.2, 0.8], "t": [3, 4], "y": [True, False], "who": ["a", "b"]})
    some = pa.table({"x": [1.0] * 3, "t": [9] * 3, "y": [True] * 3, "who": ["z"] * 3})
    return _case("persons", plan, (base, pa.concat_tables([base, *[some] * 5])))


def nameless(epsilon: float) -> Case:
    """The same, of rows without a person's name."""
    case = crowd(epsilon)
    who = case.inside.schema.get_field_index("who")
    names = pa.array([None if name == "z" else name for name in case.inside["who"].to_pylist()], pa.string())
    return replace(case, inside=case.inside.set_column(who, "who", names))


def rare(epsilon: float) -> Case:
    """Rows all alike but for four, or five, of a rare category."""
    plan = tables_plan(epsilon)
    row = {"x": 0.2, "t": 3, "c": "a", "f": False, "y": True}
    sides = [[row] * (46 - many) + [{**row, "c": "b"}] * many for many in (4, 5)]
    return _case("tables", plan, (table(plan.schema, sides[0]), table(plan.schema, sides[1])))


def even_choice(epsilon: float) -> Case:
    """Two columns that tell the classes equally well, but for one row that makes one or the other the better.

    Flags have no bins to cut, and the columns have the same margins: without noise the choice is the same every time.
    """
    plan = choice(FLAGS + LABEL, ROW, epsilon)
    tells = [(i % 5 > 1) == (i % 7 > 0) for i in range(150)]
    base = [{"f": told, "g": told, "h": i % 2 > 0, "y": i % 5 > 1} for i, told in enumerate(tells)]
    sides = [[*base, {"f": better, "g": not better, "h": True, "y": True}] for better in (True, False)]
    return _case("few rows", plan, (table(plan.schema, sides[0]), table(plan.schema, sides[1])))


def close_choice(epsilon: float) -> Case:
    """A row whose label moves the score of one column up and of another down, as far as any row can."""
    plan = choice(MIXED, ROW, epsilon)
    row = {"x": 0.2, "t": 3, "c": "a", "f": True, "y": False}
    base = [row] * 100 + [{**row, "c": "b", "f": False, "y": True}] * 100
    sides = [[*base, {**row, "c": "b", "y": label}] for label in (False, True)]
    return _case("few rows", plan, (table(plan.schema, sides[0]), table(plan.schema, sides[1])))


def related(epsilon: float, counted: bool = False) -> Case:
    """Rows that break three relations of four, and a last one that breaks them or keeps them all."""
    plan = embedding(RELATED, None, ROW, 0.0, epsilon)
    plan = count_broken(plan, ["all"]) if counted else plan
    broken = {"a": dt.date(2020, 2, 1), "b": dt.date(2020, 1, 1), "p": 0.5, "q": 1.0, "w": "u", "s": False, "k": 3}
    kept = broken | {"b": dt.date(2020, 3, 1), "s": True, "k": 1}
    sides = [[{**row, "y": i % 2 > 0} for i, row in enumerate([broken] * 20 + [last])] for last in (broken, kept)]
    return _case("embedding", plan, (table(plan.schema, sides[0]), table(plan.schema, sides[1])))


Maker = Callable[[float], Case]
CASES: dict[str, Maker] = {
    "embedding": lambda e: _worst("embedding", embedding(MIXED, "y", ROW, 1.0, e)),
    "embedding, add-remove": lambda e: _worst("embedding", embedding(NUMBERS + CATEGORIES, None, ADD, 1.0, e)),
    "embedding, many features": lambda e: _worst("embedding", embedding(NUMBERS, None, ADD, 1.0, e, dim=MANY)),
    "embedding, two stages": lambda e: _worst("embedding", two_stages(e)),
    "embedding, outlier": outlier,
    "embedding, two rows": two_rows,
    "tables": lambda e: _case("tables", p := tables_plan(e), cliff(p, bins_of)),
    "tables, pairs": lambda e: _case("tables", p := tables_plan(e, ROW, FLAGS + LABEL), cliff(p, pairs_of)),
    "tables, add-remove": lambda e: _case("tables", p := tables_plan(e, ADD), cliff(p, bins_of)),
    "wide": lambda e: _worst("wide", directions(NUMBERS + LABEL, "y", ROW, e)),
    "few rows": even_choice,
    "tables, rare": rare,
    "few rows, close": close_choice,
    "relations": related,
    "relations, counted": lambda e: related(e, counted=True),
    "images": lambda e: Case(
        "images", images_plan(e), pictures(8, 0, "black"), pictures(8, 0, "bright"), (pictures(8, 1, classes=1),)
    ),
    "persons": crowd,
    "persons, nameless": nameless,
    "persons, tables": lambda e: _case(
        "persons",
        p := tables_plan(e, Unit("who", 1, "add-remove"), MIXED + WHO),
        cliff(p, bins_of),
    ),
}


@lru_cache(maxsize=64)
def case(name: str, epsilon: float = 1.0) -> Case:
    """Made once, with the sound product."""
    return CASES[name](epsilon)
