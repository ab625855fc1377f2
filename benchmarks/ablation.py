"""Ablation: the default preset on adult with one of its parts off at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from benchmarks import scoring
from benchmarks.data import SETS
from benchmarks.methods import Task, dpmerf_preset
from benchmarks.pages import table
from benchmarks.protocols import split
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.methods.settings import MethodSettings, Shares

SET, EPSILON, DELTA = "adult", 1.0, 1e-5
DEFAULT = MethodSettings()
USUAL, AMPLE = DEFAULT.tables.usual, DEFAULT.tables.ample


@final
@dataclass(frozen=True)
class Variant:
    """The default with something off: other settings of the method or of its generator."""

    settings: MethodSettings = DEFAULT
    training: Any = None  # settings of the generator


def _tables(**changed: Any) -> Variant:
    return Variant(replace(DEFAULT, tables=replace(DEFAULT.tables, **changed)))


VARIANTS: dict[str, Variant] = {
    "default": Variant(),
    "no pairs measured again": _tables(usual=AMPLE),
    "no label × pair tables": _tables(usual=USUAL._replace(pair=0.28, label_pair=0.0)),
    "no pair tables but by label": _tables(usual=AMPLE._replace(pair=0.0, label_pair=0.44)),
    "a fifth to label × column": _tables(usual=USUAL._replace(single=0.20, pair=0.32)),
    "no pairs at all": _tables(pairs=False),
    "histograms: a tenth": _tables(usual=Shares(0.10, 0.32, 0.29, 0.05, 0.24)),
    "histograms: a third": _tables(usual=Shares(0.33, 0.24, 0.22, 0.03, 0.18)),
    "the shares of before": _tables(usual=Shares(0.15, 0.38, 0.15, 0.09, 0.23)),
    "histograms of every column": _tables(no_histogram=0),
    "no parts inside bins": _tables(parts=1),
    "coarse bins (at most 5)": _tables(bins=(4, 5)),
    "numbers uncorrelated inside bins": Variant(training=Settings(most_correlation=0.0)),
    "interactions by cell, not smooth": Variant(training=Settings(smooth=0.0)),
    "no ridge": Variant(training=Settings(priors=(1e6,))),
    "counts not matched by the rows": Variant(training=Settings(gain=0.0)),
    "no shrinkage of classes": Variant(training=Settings(shrink_classes=False)),
    "flat inside bins": Variant(training=Settings(shaped=False)),
    "no empty cells": Variant(training=Settings(empty=1.0)),
    "columns redrawn one at a time": Variant(training=Settings(together=2.0)),
    "a quarter of the chains": Variant(training=Settings(chains=2_048)),
}


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for name in VARIANTS:
            key = f"ablation/{name}/{repeat}"
            if this.wants(f"/{key}/"):
                this.store.cell(key, partial(cell, this, name, repeat))


def cell(this: Run, name: str, repeat: int) -> dict[str, Any]:
    rows = split(SETS[SET], "honest", repeat, this.data_dir, this.quick)
    variant = VARIANTS[name]
    method = dpmerf_preset("default", variant.settings, variant.training)
    made = method(Task(rows.train, rows.schema, EPSILON, DELTA, repeat, this.quick))
    return {"utility": scoring.utility(made, rows, repeat, quick=True), **scoring.distances(made, rows)}


def page(store: Store) -> str:
    found: dict[str, list[dict[str, Any]]] = {}
    for (name, _), result in store.cells("ablation"):
        if "utility" in result:
            found.setdefault(name, []).append(result)
    rows = []
    for name in (n for n in VARIANTS if n in found):
        runs = found[name]
        roc = [np.mean([r["utility"]["mean"][m] for r in runs]) for m in ("roc_auc", "roc_auc_hard")]
        distances = [np.mean([r[f"tv{k}"] for r in runs]) for k in (1, 2, 3)]
        rows.append([name, *(f"{v:.4f}" for v in [*roc, *distances]), str(len(runs))])
    header = ["variant", "ROC, three models", "ROC hard", "TV 1-way", "2-way", "3-way", "runs"]
    return table(header, rows) if rows else ""


EXPERIMENT = Experiment(
    "ablation",
    "The default preset on adult with one part off at a time (three classifiers)",
    "about 15 CPU minutes a run; --quick 5 minutes",
    run,
    page,
)
