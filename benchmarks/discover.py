"""Discover: how good bought facts are, and what rows made with them lose against a schema written by hand.

Judged on the rows themselves: NOT COVERED by any guarantee.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data import SETS, read
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.accounting.unit import Unit
from dpmerf.cli.discover_command import SHARE
from dpmerf.discovery import Discovery, Purchase
from dpmerf.encoding import cells
from dpmerf.evaluate.views import Rows
from dpmerf.methods.presets import make_plan
from dpmerf.methods.readable_first import in_doubt, readable_first
from dpmerf.private.discover import discover, public_fields
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.schema.notation import Reading
from dpmerf.sources.rows import open_rows
from dpmerf.train import train

ON = {"adult": "adult_train", "census": "census_train", "covtype": "covtype"}
EPSILON, BOUGHT = 1.0, 0.1
MADE = ("by hand", "by hand, asked first", "bought", "bought, a tenth of the budget")


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for name in ON:
            key = f"discover/facts/{name}/{repeat}"
            if this.wants(f"/{key}/"):
                this.store.cell(key, partial(facts, this, name))
        for made in MADE:
            key = f"discover/two-way/{made}/{repeat}"
            if this.wants(f"/{key}/"):
                this.store.cell(key, partial(two_way, this, made, repeat))


def facts(this: Run, name: str) -> dict[str, Any]:
    """Bounds and named values at ε = 0.1, with nothing declared but names and stored types."""
    rows = _table(this, name)
    held, wide, named = [], [], []
    for column, found in _bought(rows, BOUGHT).facts.columns.items():
        if found.kind in ("integer", "number"):
            values = cells.numbers(rows.column(column))
            values = values[~np.isnan(values)]
            low, high = found.known["min"], found.known["max"]
            held.append(float(((values >= low) & (values <= high)).mean()))
            wide.append(float((high - low) / (values.max() - values.min())))
        elif found.kind == "category":
            listed = pa.array(found.known["values"])
            named.append(float(np.mean(np.isin(rows.column(column).to_numpy(), listed.to_numpy(zero_copy_only=False)))))
        else:
            named.append(0.0)
    return {"held": held, "wide": wide, "named": named}


def two_way(this: Run, made: str, seed: int) -> dict[str, Any]:
    """Mean total variation over pairs of columns of adult at ε = 1, coded by the schema by hand and by a bought one."""
    rows, hand = _table(this, "adult"), SETS["adult"].schema
    found = _bought(rows, BOUGHT) if made != MADE[3] else _bought(rows, EPSILON, SHARE)
    bought = found.schema().with_label(hand.label)
    source = open_rows(rows)
    delta = min(1e-5, 0.1 / rows.num_rows)
    if made in MADE[2:]:
        plan = make_plan(bought, found.purchase.rest(EPSILON, delta), delta, rows=rows.num_rows)
    else:
        plan = make_plan(hand, EPSILON, delta, rows=rows.num_rows)
    if made == "by hand, asked first":
        plan = readable_first(plan, in_doubt(hand, source.fields, source.guessed_types))
    synthetic = train(measure(source, plan), seed=seed).sample(rows.num_rows, seed=seed)
    return {"by hand": _distance(synthetic, rows, hand), "bought": _distance(synthetic, rows, bought)}


def _distance(synthetic: pa.Table, real: pa.Table, schema: Schema) -> float:
    ours, theirs = (Rows.read(t, schema.as_written, "table") for t in (synthetic, real))
    names = [column.name for column in ours.all_coded()]
    a = {c.name: c for c in ours.all_coded()}
    b = {c.name: c for c in theirs.all_coded()}
    found = []
    for i, first in enumerate(names):
        for second in names[:i]:
            size = a[second].size
            p, q = (
                np.bincount(s[first].codes * size + s[second].codes, minlength=a[first].size * size) for s in (a, b)
            )
            found.append(float(np.abs(p / p.sum() - q / q.sum()).sum() / 2))
    return float(np.mean(found))


def _bought(rows: pa.Table, epsilon: float, share: float | None = None) -> Discovery:
    """At so much ε, or for a share of it, as `synth --discover` does."""
    source = open_rows(rows)
    asked = Purchase.of(public_fields(source), None, epsilon, None, Unit(), rows.num_rows, Reading())
    return discover(source, asked if share is None else asked.at_most(share))


def _table(this: Run, name: str) -> pa.Table:
    frame = read(ON[name], SETS[name].origin, this.data_dir)
    return pa.Table.from_pandas(frame.head(20_000) if this.quick else frame, preserve_index=False)


def page(store: Store) -> str:
    """Markdown."""
    rows = []
    for name in ON:
        runs = [r for (kind, on, *_), r in store.cells("discover") if kind == "facts" and on == name]
        if runs:
            held = [float(np.mean(np.array(r["held"]) >= 0.999)) for r in runs]
            wide = [float(np.mean(np.array(r["wide"]) <= 2.0)) for r in runs]
            named = [float(np.mean(r["named"])) if r["named"] else 1.0 for r in runs]
            rows.append([name, str(len(runs)), *(f"{np.mean(v):.3f}" for v in (held, wide, named))])
    heads = ["table", "runs", "bounds that hold 99.9 % of the rows", "bounds within 2 × the real range", "mass named"]
    text = table(heads, rows) if rows else ""
    lines = []
    for made in MADE:
        runs = [r for (kind, by, *_), r in store.cells("discover") if kind == "two-way" and by == made]
        if runs:
            lines.append(
                [made, str(len(runs)), *(f"{np.mean([r[c] for r in runs]):.4f}" for c in ("by hand", "bought"))]
            )
    heads = ["schema", "runs", "two-way distance, values listed by hand", "values as bought"]
    return text + ("\n\n" + table(heads, lines) if lines else "")


EXPERIMENT = Experiment(
    "discover", "Bought facts against a schema by hand, ε = 0.1 of 1", "15 minutes", run, page, runs=3
)
