"""The supplement's comparison with Balog et al.: how close released points come to the true mean embedding, as they
grow.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from benchmarks import child, figures
from benchmarks.baselines.reducedset import noisy_embedding, reduced_set
from benchmarks.methods import Task
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.features.fourier import Fourier
from dpmerf.schema import Schema

COLUMNS, CLUSTERS, ROWS, EPSILON, DELTA = 5, 10, 20_000, 1.0, 1e-5
DIM, STEPS, SCALE = 2_000, 300, math.sqrt(COLUMNS / 6)  # the length-scale is public: a unit cube's spread
POINTS = (10, 20, 50, 100, 200, 500, 1000, 2000)
MORE = (5_000, 20_000)  # points of a generator, which are not optimised one by one
METHODS = {"reduced-set": "reduced set (Balog et al.)", "paper": "DP-MERF, paper preset", "default": "DP-MERF, default"}


def data(rows: int) -> np.ndarray:
    """(rows, 5) a mixture of ten Gaussians in the unit cube."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.2, 0.8, (CLUSTERS, COLUMNS))
    return np.clip(centres[rng.integers(CLUSTERS, size=rows)] + 0.05 * rng.standard_normal((rows, COLUMNS)), 0, 1)


def distance(x: np.ndarray, z: np.ndarray, w: np.ndarray) -> float:
    """‖mean embedding of x − Σ w·φ(z)‖ with the exact kernel, over all rows of x."""
    each = np.full(len(x), 1 / len(x))
    squared = _inner(x, each, x, each) - 2 * _inner(x, each, z, w) + _inner(z, w, z, w)
    return float(math.sqrt(max(0.0, squared)))


def _inner(a: np.ndarray, of_a: np.ndarray, b: np.ndarray, of_b: np.ndarray) -> float:
    """⟨Σ of_a·φ(a), Σ of_b·φ(b)⟩, a block of rows at a time."""
    found = 0.0
    for at in range(0, len(a), 1_000):
        rows = a[at : at + 1_000]
        squared = (rows**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * rows @ b.T
        found += float(of_a[at : at + 1_000] @ (np.exp(-squared.clip(min=0) / (2 * SCALE**2)) @ of_b))
    return found


def run(this: Run) -> None:
    for method in METHODS:
        key = f"balog/{method}"
        if this.wants(f"/{key}/"):
            this.store.cell(key, partial(cell, this, method))


def cell(this: Run, method: str) -> dict[str, Any]:
    x = data(2_000 if this.quick else ROWS)
    sizes = POINTS[:4] if this.quick else POINTS if method == "reduced-set" else (*POINTS, *MORE)
    if method == "reduced-set":
        rng = torch.Generator().manual_seed(1)
        phi = Fourier.draw(COLUMNS, DIM, (SCALE,), seed=0)
        target = noisy_embedding(torch.from_numpy(x), phi, EPSILON, DELTA, rng)
        found = []
        for size in sizes:
            z, w = reduced_set(target, phi, size, COLUMNS, 50 if this.quick else STEPS, rng)
            found.append(distance(x, z.double().numpy(), w.double().numpy()))
        return {"points": list(sizes), "distance": found}
    names = [f"x{i}" for i in range(COLUMNS)]
    schema = Schema.parse("\n".join(f'[columns.{n}]\nkind = "number"\nmin = 0\nmax = 1' for n in names))
    rows = pa.Table.from_pandas(pd.DataFrame(x, columns=names), preserve_index=False)
    outcome = child.run(method, Task(rows, schema, EPSILON, DELTA, 1, this.quick))
    made = outcome.rows.to_pandas()[names].to_numpy(float)
    found = [distance(x, made[:size], np.full(size, 1 / size)) for size in sizes]
    return {**outcome.cost(), "points": list(sizes), "distance": found}


def page(store: Store) -> str:
    found = {m: r for m in METHODS if (r := store.read(f"balog/{m}")) and "points" in r}
    if not found:
        return ""
    with figures.figure(store, "balog/balog.svg", 4.5, 3) as (place, axes):
        for (method, result), colour in zip(
            found.items(), (figures.MUTED, figures.THIRD, figures.STRONG), strict=False
        ):
            axes.plot(result["points"], result["distance"], "o-", ms=3, color=colour, label=METHODS[method])
        axes.set(xscale="log", yscale="log", xlabel="synthetic points", ylabel="distance to the true mean embedding")
        axes.legend(fontsize=7)
    sizes = max((r["points"] for r in found.values()), key=len)
    rows = []
    for method, result in found.items():
        at = dict(zip(result["points"], result["distance"], strict=True))
        rows.append([METHODS[method], *(f"{at[s]:.4f}" if s in at else "–" for s in sizes)])
    shown = table(["", *(f"{s:,}" for s in sizes)], rows)
    return "\n\n".join(filter(None, [f"![distance as points grow]({place})", shown, _why_no_more(store)]))


def _why_no_more(store: Store) -> str:
    """Why a reduced set ends at fewer points than a generator."""
    line = store.line("balog/reduced-set")
    if not line or "distance" not in line["result"] or line["result"]["points"][-1] >= MORE[-1]:
        return ""
    points, distances = line["result"]["points"], line["result"]["distance"]
    best = points[int(np.argmin(distances))]
    return (
        f"–: a reduced set is optimised point by point; the {sum(points):,} points of its line took "
        f"{line['seconds']:.0f} s, and from {best:,} on its distance falls no further."
    )


EXPERIMENT = Experiment(
    "balog",
    "5-D mixture: distance to the true mean embedding as synthetic points grow, reduced set against DP-MERF",
    "about 5 CPU minutes; --quick 2 minutes",
    run,
    page,
)
