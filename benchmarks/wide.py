"""Wide: tables of very many columns, with parts of what the default does for them off. Judged on training rows."""

from __future__ import annotations

import time
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
from dpmerf.evaluate.classifiers import table_classifiers
from dpmerf.generators.elliptic.elliptic_settings import EllipticSettings

ON = ("isolet", "epileptic")
TRAIN = 0.8  # of the training rows; the others judge
MODELS = ("Logistic regression", "Gaussian naive Bayes", "Decision tree", "Random forest", "XGBoost")


def _wide(**changed: Any) -> Variant:
    return Variant(replace(DEFAULT, wide=replace(DEFAULT.wide, **changed)))


def _model(**changed: Any) -> Variant:
    return Variant(training=EllipticSettings(**changed))


VARIANTS: dict[str, Variant] = {
    "default": Variant(),
    "tables of neighbouring pairs in its place": Variant(replace(DEFAULT, auto=replace(DEFAULT.auto, wide=10**9))),
    "histograms: a fifth": _wide(histograms=0.2),
    "histograms not moved": _model(moved=False),
    "no covariance by distance": _model(by_distance=False),
    "axes looked for among all at once": _model(smoothest=0),
    "means shrunk alike in all directions": _model(along_axes=False),
    "classes as far apart as shrinkage leaves them": _model(restored=False),
    "larger groups": _wide(group_noise=2.0),
}


def run(this: Run) -> None:
    for name in ON:
        for repeat in range(1, this.runs + 1):
            for variant in VARIANTS:
                key = f"wide/{name}/{variant}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, variant, repeat))


def cell(this: Run, name: str, variant: str, repeat: int) -> dict[str, Any]:
    rows = _inside(split(SETS[name], "honest", repeat, this.data_dir, this.quick), repeat)
    before = time.process_time()
    asked = VARIANTS[variant]
    method = dpmerf_preset("default", asked.settings, asked.training)
    made = method(Task(rows.train, rows.schema, EPSILON, DELTA, repeat, this.quick))
    cost = round(time.process_time() - before, 1)
    makers = table_classifiers()
    utility = scoring.utility(made, rows, repeat, makers={m: makers[m] for m in MODELS})
    return {"cpu_seconds": cost, "utility": utility, **scoring.distances(made, rows)}


def _inside(rows: Split, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(rows.train.num_rows)
    at = round(TRAIN * len(order))
    train, test = (rows.train.take(pa.array(part)) for part in (order[:at], order[at:]))
    return Split(rows.schema, train, test, rows.score_rows)


def page(store: Store) -> str:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (name, variant, _), result in store.cells("wide"):
        if "utility" in result:
            found.setdefault((name, variant), []).append(result)
    rows = []
    for name, variant in ((n, v) for n in ON for v in VARIANTS if (n, v) in found):
        runs = found[name, variant]
        scored = [np.mean([r["utility"]["mean"][m] for r in runs]) for m in ("roc_auc", "roc_auc_hard", "pr_auc_hard")]
        distances = [np.mean([r[f"tv{k}"] for r in runs]) for k in (1, 2, 3)]
        cost = np.mean([r["cpu_seconds"] for r in runs])
        rows.append([name, variant, *(f"{v:.3f}" for v in [*scored, *distances]), f"{cost:.0f}", str(len(runs))])
    header = ["data", "variant", "ROC", "ROC hard", "PRC hard", "TV 1-way", "2-way", "3-way", "CPU s", "runs"]
    return table(header, rows) if rows else ""


EXPERIMENT = Experiment(
    "wide",
    "Tables of 178 and 617 columns: the default's parts off one at a time (five classifiers, on training rows)",
    "about 40 CPU minutes a run; --quick 5 minutes",
    run,
    page,
)
