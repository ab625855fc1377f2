"""Privacy against utility: adult, honest protocol, from ε = 0.1 to ∞."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks import child, figures, scoring
from benchmarks.data import SETS
from benchmarks.methods import Task
from benchmarks.pages import table
from benchmarks.protocols import split
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store

SET, DELTA = "adult", 1e-5
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, math.inf)
METHODS = ("default", "paper")


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for method in METHODS:
            for epsilon in EPSILONS:
                key = f"epsilon-curve/{method}/{epsilon:g}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, method, epsilon, repeat))


def cell(this: Run, method: str, epsilon: float, repeat: int) -> dict[str, Any]:
    rows = split(SETS[SET], "honest", repeat, this.data_dir, this.quick)
    outcome = child.run(method, Task(rows.train, rows.schema, epsilon, DELTA, repeat, this.quick))
    utility = scoring.utility(outcome.rows, rows, repeat, this.quick)
    return {**outcome.cost(), "utility": utility, **scoring.distances(outcome.rows, rows)}


def page(store: Store) -> str:
    found: dict[str, dict[float, list[dict[str, Any]]]] = {}
    for (method, epsilon, _), result in store.cells("epsilon-curve"):
        if "utility" in result:
            found.setdefault(method, {}).setdefault(float(epsilon), []).append(result)
    if not found:
        return ""

    def mean(runs: list[dict[str, Any]], key: str) -> float:
        return float(np.mean([r[key] if key in r else r["utility"]["mean"][key] for r in runs]))

    rows = []
    with figures.figure(store, "epsilon-curve/adult.svg", 7, 2.8, ncols=2) as (place, axes):
        for method, colour in zip(METHODS, (figures.STRONG, figures.THIRD), strict=True):
            points = sorted(found.get(method, {}).items())
            at = [e if math.isfinite(e) else 30.0 for e, _ in points]
            for ax, key in zip(axes, ("roc_auc", "tv2"), strict=True):
                ax.plot(at, [mean(r, key) for _, r in points], "o-", color=colour, label=method, ms=3)
            for at_epsilon, runs in points:
                values = [f"{mean(runs, key):.3f}" for key in ("roc_auc", "roc_auc_hard", "tv1", "tv2", "tv3")]
                rows.append([method, "∞" if math.isinf(at_epsilon) else f"{at_epsilon:g}", *values, str(len(runs))])
        axes[0].set(xscale="log", xlabel="ε (rightmost: ∞)", ylabel="ROC-AUC, mean of 12")
        axes[1].set(xscale="log", yscale="log", xlabel="ε (rightmost: ∞)", ylabel="TV, 2-way")
        axes[0].legend(fontsize=7)
    header = ["preset", "ε", "ROC", "ROC hard", "TV 1-way", "2-way", "3-way", "runs"]
    return f"![utility and distance against ε]({place})\n\n" + table(header, rows)


EXPERIMENT = Experiment(
    "epsilon-curve",
    "Privacy against utility: adult, ε in {0.1, …, 10, ∞}",
    "about 2 CPU hours a run; --quick 10 minutes",
    run,
    page,
    runs=3,
)
