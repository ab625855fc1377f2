"""Every kind of plan that the product can make, tiny, and the pair of neighbouring tables that is worst for it."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dpmerf.accounting.unit import Unit
from dpmerf.audit.canary import Neighbours, neighbours
from dpmerf.methods.broken_counted import count_broken
from dpmerf.methods.presets import make_plan
from dpmerf.methods.settings import FewRowsSettings
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import ColumnSelection, Directions, Histograms, MeanEmbedding, SelectedTable, Tables
from dpmerf.schema import Schema

FULL = os.environ.get("DPMERF_PRIVACY") == "full"
ALARM = 1e-6  # chance that a sound product fails one check
ROW, ADD = Unit(), Unit(neighbours="add-remove")
PERSON, PERSON_ADD = Unit("who", 3), Unit("who", 3, "add-remove")

NUMBERS = '[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n[columns.t]\nkind = "integer"\nmin = 0\nmax = 9\n'
WHO = '[columns.who]\nkind = "id"\n'
CATEGORIES = '[columns.c]\nkind = "category"\nvalues = ["a", "b", "c"]\nnullable = true\n[columns.f]\nkind = "flag"\n'
ODD = (
    '[columns.d]\nkind = "date"\nfirst = 2020-01-01\nlast = 2020-03-01\nnullable = true\n'
    '[columns.l]\nkind = "number"\nmin = 0\nmax = 1000\nlog = true\ndecimals = 1\n'
)
RELATED = (
    '[columns.a]\nkind = "date"\nfirst = 2020-01-01\nlast = 2020-03-01\n'
    '[columns.b]\nkind = "date"\nfirst = 2020-01-01\nlast = 2020-06-01\nnullable = true\n'
    '[columns.p]\nkind = "number"\nmin = 0\nmax = 1\ndecimals = 2\n'
    '[columns.q]\nkind = "number"\nmin = 0\nmax = 2\ndecimals = 2\n'
    '[columns.w]\nkind = "category"\nvalues = ["u", "v", "w"]\n'
    '[columns.s]\nkind = "flag"\n[columns.k]\nkind = "integer"\nmin = 1\nmax = 3\n[columns.y]\nkind = "flag"\n'
    '[[relations]]\nname = "stay"\nlearn = "b - a"\nmin = "0d"\nmax = "30d"\n'
    '[[relations]]\nrule = "q = p * 2"\n[[relations]]\nrule = \'if w = "u" then s = true\'\n'
    '[[relations]]\nlookup = "k"\nby = "w"\ntable = { u = 1, v = 2, w = 3 }\n'
)
LABEL = '[columns.y]\nkind = "flag"\n'


def schema(columns: str, label: str | None = None) -> Schema:
    return Schema.parse((f'label = "{label}"\n' if label else "") + columns)


def embedding(
    columns: str, label: str | None, unit: Unit, counts: float, epsilon: float, dim: int = 4, scale: float = 0.2
) -> Plan:
    """The paper's embedding with few features."""
    recipe = MeanEmbedding(dim=dim, scales=(scale,), seed=3, by_label=label is not None, counts=counts)
    made = schema(columns, label)
    return Plan(made, epsilon, 1e-5, unit, 12, "paper", False, (Stage("embedding", 1.0, recipe),))


def preset(columns: str, label: str | None, unit: Unit, name: str, epsilon: float, **more: bool) -> Plan:
    return make_plan(schema(columns, label), epsilon, 1e-5, rows=60, unit=unit, preset=name, **more)


def directions(columns: str, label: str | None, unit: Unit, epsilon: float) -> Plan:
    """Histograms, then means and products: what wide tables get, with few columns."""
    made = schema(columns, label)
    scored = tuple(name for name in made.learned if name != label)
    recipe = Directions(group=1, by_label=label is not None, share_mean=0.35, share_products=0.6, share_length=0.05)
    stages = (Stage("discover", 0.4, Histograms(cells=8, columns=scored)), Stage("directions", 0.6, recipe))
    return Plan(made, epsilon, 1e-5, unit, 60, "default", False, stages)


def choice(columns: str, unit: Unit, epsilon: float) -> Plan:
    """A column chosen by noisy scores: what few rows with many columns get, with few columns."""
    made = schema(columns, "y")
    tables = Tables(bins=4, parts=1, by_label=True, pairs=(), share_single=1.0, share_pair=0.0, share_label_pair=0.0)
    shares = FewRowsSettings()
    stages = (
        Stage("discover", shares.histograms, Histograms(cells=8, columns=tuple(made.learned))),
        Stage("tables", shares.single, tables),
        Stage("column selection", shares.selection, ColumnSelection()),
        Stage("selected table", shares.selected, SelectedTable()),
    )
    return Plan(made, epsilon, 1e-5, unit, 60, "default", False, stages)


Maker = Callable[[float], Plan]
VARIANTS: dict[str, Maker] = {
    "vanilla": lambda e: embedding(NUMBERS, None, ROW, 0.0, e),
    "labelled, balanced": lambda e: embedding(NUMBERS + LABEL, "y", ROW, 0.0, e),
    "labelled, imbalanced": lambda e: embedding(NUMBERS + LABEL, "y", ROW, 1.0, e),
    "heterogeneous": lambda e: embedding(NUMBERS + CATEGORIES + LABEL, "y", ROW, 1.0, e),
    "all categorical": lambda e: embedding(CATEGORIES + LABEL, "y", ROW, 1.0, e),
    "numeric label": lambda e: embedding(NUMBERS, "t", ROW, 1.0, e, dim=2),
    "add/remove": lambda e: embedding(NUMBERS + CATEGORIES, None, ADD, 1.0, e),
    "person": lambda e: embedding(NUMBERS + LABEL + WHO, "y", PERSON, 1.0, e),
    "person, add/remove": lambda e: embedding(NUMBERS + LABEL + WHO, "y", PERSON_ADD, 1.0, e),
    "discover + tables": lambda e: preset(NUMBERS + ODD + LABEL, "y", ROW, "default", e),
    "discover + tables, unlabelled": lambda e: preset(NUMBERS + CATEGORIES, None, ROW, "default", e),
    "discover + tables, add/remove": lambda e: preset(NUMBERS + LABEL, "y", ADD, "default", e),
    "discover + directions": lambda e: directions(NUMBERS + ODD + LABEL, "y", ROW, e),
    "discover + directions, unlabelled": lambda e: directions(NUMBERS + ODD, None, ROW, e),
    "discover + directions, person": lambda e: directions(NUMBERS + LABEL + WHO, "y", PERSON_ADD, e),
    "discover + tables + pairs again": lambda e: make_plan(  # planned for more rows than there are: few get no pairs
        schema(NUMBERS + CATEGORIES + LABEL, "y"), e, 1e-5, rows=20_000
    ),
    "discover + tables + choice": lambda e: choice(NUMBERS + CATEGORIES + LABEL, ROW, e),
    "discover + tables + choice, person": lambda e: choice(NUMBERS + CATEGORIES + LABEL + WHO, PERSON_ADD, e),
    "relations": lambda e: embedding(RELATED, "y", ROW, 1.0, e),
    "relations, tables": lambda e: preset(RELATED, "y", ROW, "default", e),
    "relations, counted": lambda e: count_broken(embedding(RELATED, None, ADD, 1.0, e), ["all"]),
    "discover + tables, person": lambda e: preset(NUMBERS + LABEL + WHO, "y", PERSON, "default", e),
}


def worst(plan: Plan) -> Neighbours:
    """A pair of neighbouring tables that comes close to the plan's sensitivity."""
    return neighbours(plan, rows=6)


def antipodal() -> Neighbours:
    """The plain release, one frequency, and two rows exactly opposite on its circle: the whole of the sensitivity."""
    plan = embedding('[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n', None, ROW, 0.0, 1.0, dim=2, scale=0.02)
    frequency = abs(float(plan.stages[0].query.nominal(plan).blocks[0].dense.frequencies[0, 0]))  # type: ignore[union-attr]
    place = float(np.pi / frequency)
    assert place < 1
    return Neighbours(plan, pa.table({"x": [0.5, 0.0]}), pa.table({"x": [0.5, place]}), {"x": place})
