"""Suite: the default on many tables, by training rows alone. What rules are chosen on, leaving tables out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks import suite_targets
from benchmarks.ablation import DELTA, EPSILON
from benchmarks.methods import Task, dpmerf_preset
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from benchmarks.suite_scores import independent, scores, utility
from benchmarks.suite_tables import rows_of, table_names

WIDE_TABLES = ("epileptic", "isolet")  # their scores take long: left out of --quick
COLUMNS = {
    "tv1": "TV 1-way",
    "tv2": "2-way",
    "tv3": "3-way",
    "novelty": "new pairs",
    "mean_error": "means",
    "sd_error": "sds",
    "correlation_error": "correlations",
    "q0.99": "99 %",
    "q0.999": "99.9 %",
    "told_apart": "told apart",
}


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for name in table_names():
            if this.quick and (name in WIDE_TABLES or name.endswith("000")):
                continue
            for method in ("real", "default"):
                key = f"suite/{name}/{method}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, method, repeat))
    if not this.quick:
        suite_targets.run(this)


def cell(this: Run, name: str, method: str, repeat: int) -> dict[str, Any]:
    rows = rows_of(name, repeat, this.data_dir, this.quick)
    if method == "real":
        return {**scores(rows.train, rows, repeat), "independent": utility(independent(rows, repeat), rows, repeat)}
    made = dpmerf_preset(method)(Task(rows.train, rows.schema, EPSILON, DELTA, repeat, this.quick))
    return scores(made, rows, repeat)


def page(store: Store) -> str:
    """One line a table; where results of an earlier state of the package are stored, they stand before an arrow."""
    found = {which: _means(store, which) for which in ("suite", "suite_before")}
    lines = []
    for name in table_names():
        real, ours = found["suite"].get((name, "real")), found["suite"].get((name, "default"))
        before = found["suite_before"].get((name, "default"))
        if real is None or (ours is None and before is None):
            continue
        figures = [_arrow(_way(before, real), _way(ours, real))]
        for key in COLUMNS:
            pair = _arrow(*((f"{m[key]:.3f}" if m and key in m else "") for m in (before, ours)))
            beside = f" ({real[key]:.3f})" if key in real else ""
            figures.append(f"{pair}{beside}" if pair else "–")
        lines.append([name, *figures, str(int((ours or before or {})["runs"]))])
    shown = table(["table", "utility", *COLUMNS.values(), "runs"], lines) if lines else ""
    return "\n\n".join(text for text in (shown, suite_targets.page(store)) if text)


def _means(store: Store, experiment: str) -> dict[tuple[str, str], dict[str, float]]:
    runs: dict[tuple[str, str], list[dict[str, float]]] = {}
    for (name, method, _), result in store.cells(experiment):
        if "error" not in result:
            runs.setdefault((name, method), []).append(result)
    return {
        which: {key: float(np.mean([r[key] for r in of])) for key in of[0]} | {"runs": len(of)}
        for which, of in runs.items()
    }


def _way(ours: dict[str, float] | None, real: dict[str, float]) -> str:
    """Utility as the share of the way from independent columns to real rows."""
    if not ours:
        return ""
    return f"{(ours['utility'] - real['independent']) / max(real['utility'] - real['independent'], 1e-3):.2f}"


def _arrow(before: str, now: str) -> str:
    return f"{before} → {now}" if before and now else now or before


EXPERIMENT = Experiment(
    "suite",
    "The default on 26 tables, real and simulated, by held-out training rows (three classifiers)",
    "about 60 CPU minutes a run; --quick 8 minutes",
    run,
    page,
    runs=3,
)
