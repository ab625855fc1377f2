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

NAME, SET, DELTA = "epsilon-curve", "adult", 1e-5
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, math.inf)
METHODS = ("default", "paper")


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for method in METHODS:
            for epsilon in EPSILONS:
                key = f"{NAME}/{method}/{epsilon:g}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, method, epsilon, repeat))


def cell(this: Run, method: str, epsilon: float, repeat: int) -> dict[str, Any]:
    """As of `peers`, whose default is the same, where that was run."""
    same = f"peers/{SET}/{epsilon:g}/{method}/{repeat}"
    if not (this.quick or this.store.redo) and "utility" in (known := this.store.read(same) or {}):
        return {**known, "same_as": same}
    rows = split(SETS[SET], "honest", repeat, this.data_dir, this.quick)
    outcome = child.run(method, Task(rows.train, rows.schema, epsilon, DELTA, repeat, this.quick))
    utility = scoring.utility(outcome.rows, rows, repeat, this.quick)
    return {**outcome.cost(), "utility": utility, **scoring.distances(outcome.rows, rows)}


def page(store: Store) -> str:
    found: dict[str, dict[float, list[dict[str, Any]]]] = {}
    for (method, epsilon, _), result in store.cells(NAME):
        if "utility" in result:
            found.setdefault(method, {}).setdefault(float(epsilon), []).append(result)
    if not found:
        return ""

    rows = []
    with figures.figure(store, "epsilon-curve/adult.svg", 7, 2.8, ncols=2) as (place, axes):
        for method, colour in zip(METHODS, (figures.STRONG, figures.THIRD), strict=True):
            if not (points := sorted(found.get(method, {}).items())):
                continue
            at = [e if math.isfinite(e) else 30.0 for e, _ in points]
            for ax, key in zip(axes, ("roc_auc", "tv2"), strict=True):
                middle, error = zip(*(mean_and_error(r, key) for _, r in points), strict=True)
                ax.errorbar(at, middle, error, fmt="o-", color=colour, label=method, ms=3, capsize=2)
            for at_epsilon, runs in points:
                values = [_shown(runs, key) for key in ("roc_auc", "roc_auc_hard", "tv1", "tv2", "tv3")]
                rows.append([method, "∞" if math.isinf(at_epsilon) else f"{at_epsilon:g}", *values, str(len(runs))])
        axes[0].set(xscale="log", xlabel="ε (rightmost: ∞)", ylabel="ROC-AUC, mean of 12")
        axes[1].set(xscale="log", yscale="log", xlabel="ε (rightmost: ∞)", ylabel="TV, 2-way")
        axes[0].legend(fontsize=7)
    header = ["preset", "ε", "ROC", "ROC hard", "TV 1-way", "2-way", "3-way", "runs"]
    said = "±: standard error of the mean of runs, where there are several (bars in the figure)."
    return f"![utility and distance against ε]({place})\n\n{table(header, rows)}\n\n{said}"


def mean_and_error(runs: list[dict[str, Any]], key: str) -> tuple[float, float]:
    """A score's mean over runs and its standard error, 0 of a single run.

    >>> mean_and_error([{"tv2": 0.1}, {"tv2": 0.3}], "tv2")
    (0.2, 0.1)
    """
    values = [r[key] if key in r else r["utility"]["mean"][key] for r in runs]
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return round(float(np.mean(values)), 6), round(float(error), 6)


def _shown(runs: list[dict[str, Any]], key: str) -> str:
    mean, error = mean_and_error(runs, key)
    return f"{mean:.3f} ± {error:.3f}" if len(runs) > 1 else f"{mean:.3f}"


EXPERIMENT = Experiment(
    NAME,
    "Privacy against utility: adult, ε in {0.1, …, 10, ∞}",
    "about 2 CPU hours a run; --quick 10 minutes",
    run,
    page,
    runs=3,
)
