"""Table 1 of the paper: eight tables, twelve classifiers, (1, 1e-5)-DP and ε = ∞, in two protocols."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from benchmarks import child, scoring
from benchmarks.baselines import BASELINES
from benchmarks.data import SETS
from benchmarks.methods import METHODS, Task
from benchmarks.protocols import PROTOCOLS, split
from benchmarks.registry import Experiment, Run
from benchmarks.table1_page import page

EPSILON, DELTA = 1.0, 1e-5
NO_NOISE = " without noise"  # NOT PRIVATE
QUICK = ("adult", "cervical", "covtype")
BASELINE_RUNS = 3


def columns(protocol: str) -> list[str]:
    """Every method of the table; ε = ∞ for DP-MERF; baselines with the paper's rows."""
    ours = [m for m in METHODS if m != "real"]
    return ["real", *ours, *(m + NO_NOISE for m in ours), *(BASELINES if protocol == "paper" else ())]


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for name in QUICK if this.quick else SETS:
            for protocol in PROTOCOLS:
                for column in columns(protocol):
                    if column in BASELINES and repeat > BASELINE_RUNS:
                        continue
                    key = f"table1/{protocol}/{name}/{column.replace(' ', '-')}/{repeat}"
                    if this.wants(f"/{key}/"):
                        this.store.cell(key, partial(cell, this, protocol, name, column, repeat))


def cell(this: Run, protocol: str, name: str, column: str, repeat: int) -> dict[str, Any]:
    """One method on one set: its cost, its scores and its distances from the real training rows."""
    rows = split(SETS[name], protocol, repeat, this.data_dir, this.quick)
    method = column.removesuffix(NO_NOISE)
    epsilon = math.inf if column.endswith(NO_NOISE) else EPSILON
    task = Task(rows.train, rows.schema, epsilon, DELTA, repeat, this.quick)
    cost = {}
    synthetic = rows.train
    if method != "real":
        outcome = child.run(method, task)
        synthetic, cost = outcome.rows, outcome.cost()
    return {
        "train_rows": rows.train.num_rows,
        "epsilon": None if column == "real" or math.isinf(epsilon) else epsilon,
        "delta": DELTA,
        **cost,
        "utility": scoring.utility(synthetic, rows, repeat, this.quick),
        **scoring.distances(synthetic, rows),
    }


EXPERIMENT = Experiment(
    "table1",
    "Table 1: 8 tables x {real, paper preset, default, baselines} at (1, 1e-5) and without noise, 12 classifiers",
    "about 6 CPU hours a run without baselines, 12 with; --quick 10 minutes",
    run,
    page,
    runs=5,
)
