"""Verdict: is what a plan calls visible visible, and what it calls noise noise? Judged on the rows: NOT COVERED."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data import SETS
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.evaluate.verdict import FIVE, ROUGH, ROUGH_PAIR, TEN, foreseen
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.release import Release

EPSILONS = (0.1, 1.0, 3.0)
MOST_ROWS = 20_000
SIZES = {"adult": (2_000, 20_000), "census": (5_000, 20_000), "cervical": (800,), "covtype": (2_000, 20_000)}
SIZES |= {"intrusion": (5_000, 20_000), "credit": (5_000, 20_000), "isolet": (5_000,), "epileptic": (10_000,)}


def run(this: Run) -> None:
    for name, sizes in SIZES.items():
        for rows in sizes[:1] if this.quick else sizes:
            for epsilon in EPSILONS:
                key = f"verdict/{name}/{rows}/{epsilon:g}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, rows, epsilon))


def cell(this: Run, name: str, rows: int, epsilon: float) -> dict[str, Any]:
    """How many columns and pairs were called right, of how many."""
    frame = SETS[name].frame(0, this.data_dir)
    drawn = SETS[name].table(frame.sample(min(rows, len(frame)), random_state=0))
    plan = make_plan(SETS[name].schema, epsilon, 1e-5, rows=drawn.num_rows)
    said, release = foreseen(plan), measure(drawn, plan)
    codes = _codes(release, drawn)
    found: dict[str, Any] = {"columns": [0, 0], "pairs": [0, 0], "red": 0}
    for lights, kind, most, limit in (
        (said.columns, "columns", TEN, ROUGH),
        (said.pairs, "pairs", FIVE, ROUGH_PAIR),
    ):
        for light in lights:
            apart = _apart(release, codes, light.columns, most)
            if apart is not None:
                found[kind][0] += light.visible == (apart <= limit)
                found[kind][1] += 1
                found["red"] += not light.visible
    return found


def _codes(release: Release, rows: pa.Table) -> dict[str, np.ndarray]:
    """The real cell of each row in every variable that was counted."""
    batch = release.codec.encode(rows)
    found: dict[str, np.ndarray] = {}
    for stage in release.plan.stages:
        found |= {name: code.numpy() for name, code in release.embedding(stage).view(batch).codes.items()}
    return found


def _apart(release: Release, codes: dict[str, np.ndarray], columns: tuple[str, ...], most: int) -> float | None:
    """Total variation between released and real, by the sharpest table that holds the columns."""
    tables = [m for m in release.measurements if m.dense is None and set(columns) <= set(m.columns)]
    tables = [m for m in tables if all(v.name in codes for v in m.variables)]
    if not tables:
        return None
    m = min(tables, key=lambda m: m.sigma**2 * m.cells)
    real = np.zeros([v.size for v in m.variables])
    np.add.at(real, tuple(codes[v.name] for v in m.variables), 1.0)
    error = m.values.numpy() - real
    error = error.sum(axis=tuple(i for i, name in enumerate(m.columns) if name not in columns))
    for axis in range(error.ndim):
        starts = np.unique(np.linspace(0, error.shape[axis], min(most, error.shape[axis]) + 1).astype(int)[:-1])
        error = np.add.reduceat(error, starts, axis=axis)
    return float(np.abs(error).sum()) / 2 / len(codes[m.variables[0].name])


def page(store: Store) -> str:
    """Markdown."""
    lines = []
    for (name, rows, epsilon), r in store.cells("verdict"):
        right = [f"{r[k][0]} of {r[k][1]}" for k in ("columns", "pairs")]
        lines.append([name, rows, epsilon, *right, str(r["red"])])
    return (
        table(["table", "rows", "ε", "columns called right", "pairs called right", "called noise"], lines)
        if lines
        else ""
    )


EXPERIMENT = Experiment("verdict", "What a plan calls visible against what is", "10 minutes", run, page)
