"""Few rows: what the selection of one column by noisy scores is worth, and where. Judged on training rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import scoring
from benchmarks.ablation import DEFAULT, DELTA, EPSILON, Variant
from benchmarks.data import SETS
from benchmarks.methods import Task, dpmerf_preset
from benchmarks.pages import table
from benchmarks.protocols import Split, split
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.methods import presets

ON = {
    "cervical": (686,),
    "adult": (500, 1_000),
    "covtype": (500, 1_000),
    "census": (500, 1_000),
    "intrusion": (500, 1_000),
}
TEST_ROWS = 3_000
SMALL = 0.8  # of a table that has no rows to spare: the part that rows are drawn from, with replacement
ALWAYS = Variant(replace(DEFAULT, auto=replace(DEFAULT.auto, few_rows=1e9, too_few=0.0, selection_columns=1)))
VARIANTS: dict[str, Variant] = {
    "no selection": Variant(replace(DEFAULT, auto=replace(DEFAULT.auto, few_rows=0.0))),
    "a selection": ALWAYS,
    "a selection, and the other columns as without one": replace(ALWAYS, training=Settings(stands_out=2.0)),
}


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for name, sizes in ON.items():
            for rows in sizes[:1] if this.quick else sizes:
                for variant in VARIANTS:
                    key = f"few_rows/{name}/{rows}/{variant}/{repeat}"
                    if this.wants(f"/{key}/"):
                        this.store.cell(key, partial(cell, this, name, rows, variant, repeat))


def cell(this: Run, name: str, count: int, variant: str, repeat: int) -> dict[str, Any]:
    rows = _few(split(SETS[name], "honest", repeat, this.data_dir), count, repeat)
    asked = VARIANTS[variant]
    method = dpmerf_preset("default", asked.settings, asked.training)
    made = method(Task(rows.train, rows.schema, EPSILON, DELTA, repeat, this.quick))
    return {"utility": scoring.utility(made, rows, repeat, this.quick), **scoring.distances(made, rows)}


def _few(rows: Split, count: int, seed: int) -> Split:
    """So many of the training rows, and others of them to judge."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(rows.train.num_rows)
    train, test = order[:count], order[count : count + TEST_ROWS]
    if len(test) < count:
        at = round(SMALL * len(order))
        train, test = rng.choice(order[:at], count), order[at:]
    return Split(rows.schema, rows.train.take(pa.array(train)), rows.train.take(pa.array(test)), rows.score_rows)


def page(store: Store) -> str:
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for (name, count, variant, _), result in store.cells("few_rows"):
        if "utility" in result:
            found.setdefault((name, count, variant), []).append(result)
    rows = []
    for name, count, variant in ((n, str(c), v) for n, sizes in ON.items() for c in sizes for v in VARIANTS):
        runs = found.get((name, count, variant))
        if not runs:
            continue
        means = [r["utility"]["mean"] for r in runs]
        kinds = ("roc_auc", "roc_auc_hard", "pr_auc_hard") if "roc_auc" in means[0] else ("f1_weighted",)
        scored = "/".join(f"{np.mean([m[kind] for m in means]):.3f}" for kind in kinds)
        last = [m[kinds[-1]] for m in means]
        error = f"{np.std(last, ddof=1) / len(last) ** 0.5:.3f}" if len(last) > 1 else "–"
        distances = [f"{np.mean([r[f'tv{k}'] for r in runs]):.3f}" for k in (1, 2, 3)]
        shown = f"**{variant}**" if variant == _default(name, int(count)) else variant
        rows.append([name, count, shown, scored, error, *distances, str(len(runs))])
    scores = "ROC/ROC hard/PRC hard, or F1"
    header = ["data", "rows", "variant", scores, "error of the last", "TV 1-way", "2-way", "3-way", "runs"]
    return table(header, rows) if rows else ""


def _default(name: str, count: int) -> str:
    """Which variant the default is: public facts decide."""
    stages = presets.make_plan(SETS[name].schema, EPSILON, DELTA, rows=count).stages
    return "a selection" if any(stage.name == "column selection" for stage in stages) else "no selection"


EXPERIMENT = Experiment(
    "few_rows",
    "Tables of 500 to 1,000 rows: one column chosen by noisy scores, or none (12 classifiers, on training rows)",
    "about 2 CPU minutes a run; --quick 1 minute",
    run,
    page,
)
