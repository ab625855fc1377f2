"""Verdict: is what a plan calls visible visible, and what it calls noise noise? Judged on the rows: NOT COVERED.

A column is visible if at most ROUGH of the rows lie in a wrong cell of TEN, by the root mean square of what is wrong
with the released tables that tell so many cells of it apart. A table of fewer cells does not count: of one or two cells
noise always leaves little to be wrong.
A pair is visible if a group of ROUGH_PAIR of the rows stands out of what is wrong with its released counts: if GROUP
times their root mean square error, over all cells by both columns and with all tables that hold them, is less.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data import SETS
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.demo import hospital
from dpmerf.evaluate.verdict import GROUP, ROUGH, ROUGH_PAIR, TEN, foreseen
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Measurement
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.schema import Schema

EPSILONS = (0.1, 1.0, 3.0)
SIZES = {"adult": (2_000, 20_000), "census": (5_000, 20_000), "cervical": (800,), "covtype": (2_000, 20_000)}
SIZES |= {"intrusion": (5_000, 20_000), "credit": (5_000, 20_000), "isolet": (5_000,), "epileptic": (10_000,)}
SIZES |= {"hospital": (5_000,)}


def run(this: Run) -> None:
    for name, sizes in SIZES.items():
        for rows in sizes[:1] if this.quick else sizes:
            for epsilon in EPSILONS:
                key = f"verdict/{name}/{rows}/{epsilon:g}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, rows, epsilon))


def cell(this: Run, name: str, rows: int, epsilon: float) -> dict[str, Any]:
    """How many columns and pairs were called right, of how many."""
    if name == "hospital":
        schema, drawn = Schema.load(hospital.SCHEMA), hospital.hospital().slice(0, rows)
    else:
        frame = SETS[name].frame(0, this.data_dir)
        schema, drawn = SETS[name].schema, SETS[name].table(frame.sample(min(rows, len(frame)), random_state=0))
    plan = make_plan(schema, epsilon, 1e-5, rows=drawn.num_rows)
    said, release = foreseen(plan), measure(drawn, plan)
    codes = _codes(release, drawn)
    held: defaultdict[frozenset[str], list[Measurement]] = defaultdict(list)  # columns or pairs -> tables
    for m in release.measurements:
        if m.dense is None and all(v.name in codes for v in m.variables):
            for size in (1, 2):
                for key in itertools.combinations(m.columns, size):
                    held[frozenset(key)].append(m)
    found: dict[str, Any] = {"columns": [0, 0], "pairs": [0, 0], "red": [0, 0], "seen": [0, 0]}
    for at, (lights, kind, visible) in enumerate(
        ((said.columns, "columns", _column_visible), (said.pairs, "pairs", _pair_visible))
    ):
        for light in lights:
            true = visible(held[frozenset(light.columns)], codes, light.columns)
            if true is not None:
                found[kind][0] += light.visible == true
                found[kind][1] += 1
                found["red"][at] += not light.visible
                found["seen"][at] += true
    return found


def _codes(release: Release, rows: pa.Table) -> dict[str, np.ndarray]:
    """The real cell of each row in every variable that was counted."""
    batch = release.codec.encode(rows)
    found: dict[str, np.ndarray] = {}
    for stage in release.plan.stages:
        found |= {name: code.numpy() for name, code in release.embedding(stage).view(batch).codes.items()}
    return found


def _errors(m: Measurement, codes: dict[str, np.ndarray], columns: tuple[str, ...]) -> np.ndarray:
    """Released less real counts by the given columns, in the order of the columns."""
    real = np.zeros([v.size for v in m.variables])
    np.add.at(real, tuple(codes[v.name] for v in m.variables), 1.0)
    error = m.values.numpy() - real
    error = error.sum(axis=tuple(i for i, name in enumerate(m.columns) if name not in columns))
    kept = [name for name in m.columns if name in columns]
    return np.transpose(error, [kept.index(name) for name in columns])


def _column_visible(tables: list[Measurement], codes: dict[str, np.ndarray], columns: tuple[str, ...]) -> bool | None:
    if not tables:
        return None
    errors = [_errors(m, codes, columns) for m in tables]
    told = min(TEN, max(map(len, errors)))
    kept = [(e, m) for e, m in zip(errors, tables, strict=True) if len(e) >= told]
    weights = np.array([1 / (m.sigma**2 * m.cells) for _, m in kept])
    variances = np.array([(e**2).sum() / told for e, _ in kept])  # of one of `told` cells
    spread = math.sqrt((weights**2 * variances).sum()) / weights.sum()
    apart = told * spread * math.sqrt(2 / math.pi) / 2
    return bool(apart <= ROUGH * len(codes[kept[0][1].variables[0].name]))


def _pair_visible(tables: list[Measurement], codes: dict[str, np.ndarray], columns: tuple[str, ...]) -> bool | None:
    errors = [_errors(m, codes, columns) for m in tables]
    shape = min((e.shape for e in errors), key=lambda shape: shape[0] * shape[1], default=None)
    kept = [(e, m) for e, m in zip(errors, tables, strict=True) if e.shape == shape]
    if not kept:
        return None
    weights = [error.size / (m.sigma**2 * m.cells) for error, m in kept]
    mean = np.average([error for error, _ in kept], axis=0, weights=weights)
    rows = len(codes[kept[0][1].variables[0].name])
    return bool(GROUP * np.sqrt((mean**2).mean()) <= ROUGH_PAIR * rows)


def page(store: Store) -> str:
    """Markdown."""
    lines, right, all_ = [], np.zeros(2, int), np.zeros(2, int)
    for (name, rows, epsilon), r in store.cells("verdict"):
        cells = [r[k] for k in ("columns", "pairs")]
        right, all_ = right + [c[0] for c in cells], all_ + [c[1] for c in cells]
        seen = [f"{r['seen'][i]} of {cells[i][1]}" for i in (0, 1)]
        lines.append([name, rows, epsilon, *(f"{c[0]} of {c[1]}" for c in cells), *seen])
    if not lines:
        return ""
    shares = [f"{a} of {b}: {a / max(b, 1):.1%}" for a, b in zip(right, all_, strict=True)]
    lines.append(["all", "", "", *shares, "", ""])
    heads = ["table", "rows", "ε", "columns called right", "pairs called right", "columns visible", "pairs visible"]
    return table(heads, lines)


EXPERIMENT = Experiment("verdict", "What a plan calls visible against what is", "10 minutes", run, page)
