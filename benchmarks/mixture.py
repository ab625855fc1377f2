"""The paper's 2-D figure: 25 Gaussians in 5 classes, drawn again from one noisy embedding, with their likelihood."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks import child, figures
from benchmarks.methods import Task
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.evaluate.twosample import negative_log_likelihood
from dpmerf.schema import Schema

SIDE, SPREAD, PER_CLUSTER = 5, 0.2, 3_600  # 90,000 rows, as in the paper after its split
SHOWN = 1_000
COLUMNS = ("paper", "default", "paper without noise", "dp-cgan", "dp-cgan without noise")
TITLES = {
    "real": "real",
    "paper": "DP-MERF, paper preset, ε = 1",
    "default": "DP-MERF, default, ε = 1",
    "paper without noise": "paper preset, ε = ∞",
    "dp-cgan": "DP-CGAN, ε = 1",
    "dp-cgan without noise": "CGAN, ε = ∞",
}
SCHEMA = """
label = "class"
[columns.x]
kind = "number"
min = -1
max = 5
[columns.y]
kind = "number"
min = -1
max = 5
[columns.class]
kind = "category"
values = [0, 1, 2, 3, 4]
dtype = "int64"
"""


def clusters() -> tuple[np.ndarray, np.ndarray]:
    """(25, 2) centres on the integer grid and their classes; no two neighbours share one."""
    i, j = np.divmod(np.arange(SIDE**2), SIDE)
    return np.stack([i, j], axis=1).astype(float), (i + 2 * j) % SIDE


def draw(per_cluster: int, seed: int) -> pa.Table:
    centres, classes = clusters()
    rng = np.random.default_rng(seed)
    points = np.repeat(centres, per_cluster, axis=0) + SPREAD * rng.standard_normal((SIDE**2 * per_cluster, 2))
    frame = pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "class": np.repeat(classes, per_cluster)})
    return pa.Table.from_pandas(frame.sample(frac=1, random_state=seed), preserve_index=False)


def score(rows: pa.Table) -> dict[str, float]:
    """Mean −log p(x, class), with the right normaliser and with the authors' (√(2π)·σ in place of 2π·σ²)."""
    frame = rows.to_pandas()
    points, labels = frame[["x", "y"]].to_numpy(float), frame["class"].to_numpy()
    centres, classes = clusters()

    def log_density(z: np.ndarray) -> np.ndarray:
        squared = ((z[:, None, :] - centres[None]) ** 2).sum(2) / (2 * SPREAD**2)  # (n, 25)
        own = classes[None, :] == labels[:, None]
        return np.logaddexp.reduce(np.where(own, -squared, -np.inf), axis=1) - math.log(2 * math.pi * SPREAD**2 * 25)

    nearest = ((points[:, None, :] - centres[None]) ** 2).sum(2).argmin(1)
    shares = np.bincount(nearest, minlength=SIDE**2) / len(points)
    right = negative_log_likelihood(points, log_density)
    return {
        "nll": round(right, 4),
        "nll_authors": round(right - math.log(math.sqrt(2 * math.pi) * SPREAD), 4),
        "modes": int((shares > 0.01).sum()),  # a mode's true share is 0.04
        "right_class": round(float((classes[nearest] == labels).mean()), 4),
    }


def run(this: Run) -> None:
    keys = {column: f"mixture/{column.replace(' ', '-')}" for column in ("real", *COLUMNS)}
    wanted = [column for column, key in keys.items() if this.wants(f"/{key}/")]
    if wanted:
        rows = draw(100 if this.quick else PER_CLUSTER, seed=0)
        this.store.cell(keys.pop("real"), lambda: {**score(rows), "points": _points(rows)})  # the others' yardstick
        for column in (c for c in wanted if c in keys):
            this.store.cell(keys[column], partial(cell, this, rows, column))


def cell(this: Run, rows: pa.Table, column: str) -> dict[str, Any]:
    epsilon = math.inf if column.endswith("without noise") else 1.0
    task = Task(rows, Schema.parse(SCHEMA), epsilon, 1e-5, 1, this.quick)
    outcome = child.run(column.removesuffix(" without noise"), task)
    return {**outcome.cost(), **score(outcome.rows), "points": _points(outcome.rows)}


def _points(rows: pa.Table) -> list[list[float]]:
    """A few rows for the figure: x, y, class."""
    frame = rows.to_pandas().sample(min(SHOWN, rows.num_rows), random_state=0)
    return [[round(float(x), 2), round(float(y), 2), int(c)] for x, y, c in frame[["x", "y", "class"]].to_numpy()]


def page(store: Store) -> str:
    found = {c: r for c in ("real", *COLUMNS) if (r := store.read(f"mixture/{c.replace(' ', '-')}")) and "nll" in r}
    if not found:
        return ""
    with figures.figure(
        store, "mixture/mixture.svg", 2.3 * len(found), 2.6, ncols=len(found), squeeze=False, sharex=True, sharey=True
    ) as (place, axes):
        for ax, (column, result) in zip(axes[0], found.items(), strict=True):
            x, y, c = np.array(result["points"]).T
            ax.scatter(x, y, c=c, s=2, cmap="tab10", vmax=9, rasterized=True)
            ax.set_title(f"{TITLES[column]}\nNLL {result['nll']:.2f}", fontsize=7)
            ax.set(xticks=range(SIDE), yticks=range(SIDE), aspect="equal", xlim=(-1, 5), ylim=(-1, 5))
    rows = [
        [TITLES[c], f"{r['nll']:.3f}", f"{r['nll_authors']:.3f}", f"{r['modes']} of 25", f"{r['right_class']:.1%}"]
        for c, r in found.items()
    ]
    header = ["", "NLL per point", "NLL, authors' normaliser", "modes", "right class for its place"]
    return f"![the mixture, real and synthetic]({place})\n\n" + table(header, rows)


EXPERIMENT = Experiment(
    "mixture",
    "2-D mixture of 25 Gaussians: figure and likelihood of what is generated",
    "about 10 CPU minutes; --quick 2 minutes",
    run,
    page,
)
