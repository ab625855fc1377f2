"""Proposition 1: the measured error of the noisy random-feature distance, against the paper's bound and the tight."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks import figures
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.accounting.gaussian import mu_of
from dpmerf.evaluate.twosample import kernel_mmd
from dpmerf.features.fourier import Fourier
from dpmerf.plan import proposition1 as error

DELTA = 1e-5
COLUMNS, SCALE = 2, 1.0
BASE: dict[str, float] = {"D": 1000, "n": 1000, "ε": 1.0}
GROW: dict[str, tuple[float, ...]] = {
    "D": (50, 100, 200, 500, 1000, 2000, 5000, 10_000),
    "n": (100, 200, 500, 1000, 2000, 5000),
    "ε": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
}
REPEATS = 30


def samples(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two samples that differ a little: standard normal, and shifted by a half."""
    rng = np.random.default_rng([seed, rows])
    return rng.standard_normal((rows, COLUMNS)), rng.standard_normal((rows, COLUMNS)) + 0.5


def errors(dim: int, rows: int, epsilon: float, repeats: int) -> np.ndarray:
    """(repeats,) |‖mean φ(x) + noise − mean φ(y)‖² − MMD²|, with new features and new noise each time."""
    x, y = samples(rows, seed=0)
    exact = kernel_mmd(x, y, SCALE) ** 2
    noise = 2 / (mu_of(epsilon, DELTA) * rows)  # sensitivity of the mean is 2/n
    found = []
    for repeat in range(repeats):
        phi = Fourier.draw(COLUMNS, dim, (SCALE,), seed=repeat)
        difference = phi(torch.from_numpy(x)).mean(0) - phi(torch.from_numpy(y)).mean(0)
        rng = np.random.default_rng([repeat, dim, rows])
        noisy = difference.numpy() + noise * rng.standard_normal(dim)
        found.append(abs(float(noisy @ noisy) - exact))
    return np.array(found)


def point(what: str, value: float, repeats: int) -> dict[str, Any]:
    at = {**BASE, what: value}
    dim, rows, multiplier = int(at["D"]), int(at["n"]), 1 / mu_of(at["ε"], DELTA)
    measured = errors(dim, rows, at["ε"], repeats)
    return {
        "at": value,
        "measured": float(measured.mean()),
        "largest": float(measured.max()),
        "paper_bound": error.paper_bound(dim, multiplier, rows),
        "tight_bound": error.tight_bound(dim, multiplier, rows),
    }


def cell(what: str, values: tuple[float, ...], repeats: int) -> dict[str, Any]:
    return {"points": [point(what, value, repeats) for value in values]}


def run(this: Run) -> None:
    repeats = 3 if this.quick else REPEATS
    for what, values in GROW.items():
        if this.wants(f"/proposition1/{what}/"):
            this.store.cell(f"proposition1/{what}", partial(cell, what, values, repeats))


def page(store: Store) -> str:
    found = {w: r["points"] for w in GROW if (r := store.read(f"proposition1/{w}")) and "points" in r}
    if not found:
        return ""
    lines = {
        "paper_bound": ("the paper's bound", "--"),
        "tight_bound": ("tight bound", "-"),
        "measured": ("measured", "o-"),
    }
    with figures.figure(
        store, "proposition1/proposition1.svg", 3 * len(found), 2.8, ncols=len(found), squeeze=False
    ) as (place, axes):
        for ax, (what, points) in zip(axes[0], found.items(), strict=True):
            for (key, (label, style)), colour in zip(
                lines.items(), (figures.MUTED, figures.THIRD, figures.STRONG), strict=True
            ):
                ax.plot([p["at"] for p in points], [p[key] for p in points], style, color=colour, label=label, ms=3)
            ax.set(xscale="log", yscale="log", xlabel=what)
        axes[0][0].set_ylabel("error of MMD²")
        axes[0][-1].legend(fontsize=7)
    rows = [
        [f"{w} = {p['at']:g}", f"{p['measured']:.4f}", f"{p['tight_bound']:.3f}", f"{p['paper_bound']:.3f}"]
        for w, points in found.items()
        for p in (points[0], points[-1])
    ]
    return f"![Proposition 1]({place})\n\n" + table(["", "measured mean error", "tight bound", "paper's bound"], rows)


EXPERIMENT = Experiment(
    "proposition1",
    "Proposition 1: measured error against both bounds as D, n and ε grow",
    "about 2 CPU minutes; --quick 1 minute",
    run,
    page,
)
