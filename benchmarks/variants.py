"""Variants: the default plan on adult as other tables need it: other units of privacy, other targets, missing cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import scoring
from benchmarks.data import SETS
from benchmarks.pages import table
from benchmarks.protocols import Split, split
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.accounting.unit import Unit
from dpmerf.evaluate.utility import table_utility
from dpmerf.evaluate.views import Rows
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Id, Schema
from dpmerf.train import train

SET, EPSILON, DELTA = "adult", 1.0, 1e-5
PERSON, ROWS_EACH = "person", 4
NUMBER = "hours_per_week"
ROW = Unit()
MISSING = 0.1  # of the cells of every column but the label


@final
@dataclass(frozen=True)
class Variant:
    """How adult is changed, and what is protected."""

    what: str
    unit: Unit = ROW
    change: Callable[[Schema, pa.Table, int], tuple[Schema, pa.Table]] = lambda schema, rows, _: (schema, rows)
    target: str = "income"


def _persons(schema: Schema, rows: pa.Table, seed: int) -> tuple[Schema, pa.Table]:
    who = np.random.default_rng(seed).permutation(rows.num_rows) // ROWS_EACH
    columns = {PERSON: Id(), **schema.columns}
    return schema.model_copy(update={"columns": columns}), rows.add_column(0, PERSON, pa.array(who))


def _without_label(schema: Schema, rows: pa.Table, _: int) -> tuple[Schema, pa.Table]:
    return schema.model_copy(update={"label": None}), rows


def _number(schema: Schema, rows: pa.Table, _: int) -> tuple[Schema, pa.Table]:
    return schema.model_copy(update={"label": NUMBER}), rows


def _holes(schema: Schema, rows: pa.Table, seed: int) -> tuple[Schema, pa.Table]:
    rng = np.random.default_rng(seed)
    columns = dict(schema.columns)
    for i, name in enumerate(rows.column_names):
        if name != schema.label:
            columns[name] = columns[name].model_copy(update={"nullable": True})
            kept = pa.array(rng.random(rows.num_rows) >= MISSING)
            rows = rows.set_column(i, name, pc.if_else(kept, rows[name], None))
    return schema.model_copy(update={"columns": columns}), rows


VARIANTS = {
    "default": Variant("one row, replaced"),
    "add-remove": Variant("one row, added or removed", Unit(neighbours="add-remove")),
    "person": Variant(f"a person with up to {ROWS_EACH} rows", Unit(PERSON, ROWS_EACH), _persons),
    "unlabelled": Variant("no label declared", change=_without_label),
    "regression": Variant(f"a number as target ({NUMBER})", change=_number, target=NUMBER),
    "nulls": Variant(f"{MISSING:.0%} of all cells missing", change=_holes),
}


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for name in VARIANTS:
            key = f"variants/{name}/{repeat}"
            if this.wants(f"/{key}/"):
                this.store.cell(key, partial(cell, this, VARIANTS[name], repeat))


def cell(this: Run, variant: Variant, repeat: int) -> dict[str, Any]:
    rows = split(SETS[SET], "honest", repeat, this.data_dir, this.quick)
    schema, real = variant.change(rows.schema, rows.train, repeat)
    _, test = variant.change(rows.schema, rows.test, repeat + 1_000)
    plan = make_plan(schema, EPSILON, DELTA, rows=real.num_rows, unit=variant.unit, seed=repeat)
    made = train(measure(real, plan), seed=repeat).sample(real.num_rows)
    scored = Split(schema, real, test, rows.score_rows)
    ours, held, theirs = (Rows.read(t, schema) for t in (made, test, real))
    seen = table_utility(ours, held, theirs, variant.target, repeat, 10_000, 10_000)
    result, metric = seen.result, seen.result.metric
    best = max(result.models, key=lambda m: m.ceiling[metric] if m.ceiling else 0.0)
    return {
        "metric": metric,
        "mean": {"synthetic": result.mean.synthetic[metric], "real": (result.mean.ceiling or {}).get(metric)},
        "best": {"model": best.model, "synthetic": best.synthetic[metric], "real": (best.ceiling or {}).get(metric)},
        "nulls": {"synthetic": _nulls(made), "real": _nulls(real)},
        **scoring.distances(made, scored),
    }


def _nulls(rows: pa.Table) -> float:
    """The share of cells that are missing."""
    return round(sum(c.null_count for c in rows.columns) / (rows.num_rows * rows.num_columns), 4)


def page(store: Store) -> str:
    found: dict[str, list[dict[str, Any]]] = {}
    for (name, _), result in store.cells("variants"):
        if "mean" in result:
            found.setdefault(name, []).append(result)
    rows = []
    for name, variant in VARIANTS.items():
        if runs := found.get(name):
            scores = [_beside(runs, what, ".3f") for what in ("mean", "best")]
            missing = _beside(runs, "nulls", ".1%")
            distances = [f"{np.mean([r[f'tv{k}'] for r in runs]):.3f}" for k in (1, 2, 3)]
            metric = {"roc_auc": "ROC", "r2": "R²"}[runs[0]["metric"]]
            rows.append([variant.what, metric, *scores, missing, *distances, str(len(runs))])
    header = ["", "score", "mean of models (real rows)", "best model (real rows)", "missing cells (real)"]
    return table([*header, "TV 1-way", "2-way", "3-way", "runs"], rows) if rows else ""


def _beside(runs: list[dict[str, Any]], what: str, form: str) -> str:
    """Synthetic rows, and real ones in brackets: means over runs."""
    synthetic, real = (np.mean([r[what][rows] for r in runs]) for rows in ("synthetic", "real"))
    return f"{synthetic:{form}} ({real:{form}})"


EXPERIMENT = Experiment(
    "variants",
    "The default plan on adult for other units of privacy, without a label, with a number as target, with nulls",
    "about 10 CPU minutes a run; --quick 3 minutes",
    run,
    page,
)
