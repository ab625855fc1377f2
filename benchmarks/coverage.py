"""Coverage: do 95 % intervals hold the truth in 95 of 100 releases? Each draws its rows and its noise anew."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import coverage_copies, coverage_direct
from benchmarks.pages import table
from benchmarks.populations import Population, population
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store

NAMES, EPSILONS = ("adult", "census", "hospital"), (1.0, 0.3)
BATCH = 10  # releases a cell
FAMILIES = ("one-way share", "two-way share", "mean", "median", "difference of means")
ABOUT = ("table", "population")
HOW = ("copies", "as if real", "real")  # kinds of intervals of regression coefficients


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for name in NAMES if not this.quick else ("adult", "hospital"):
            for epsilon in EPSILONS:
                key = f"coverage/direct/{name}/{epsilon:g}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(direct, this, name, epsilon, repeat))
                if name in coverage_copies.REGRESSIONS:
                    key = f"coverage/copies/{name}/{epsilon:g}/{repeat}"
                    if this.wants(f"/{key}/") and (not this.quick or epsilon == 1):
                        this.store.cell(key, partial(copies, this, name, epsilon, repeat))
                key = f"coverage/foretold/{name}/{epsilon:g}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(foretold, this, name, epsilon))


def direct(this: Run, name: str, epsilon: float, repeat: int) -> dict[str, Any]:
    size = 3 if this.quick else BATCH
    seeds = range(repeat * 1_000, repeat * 1_000 + size)
    return coverage_direct.releases(_people(name, this.data_dir, this.quick), epsilon, seeds, timed=repeat == 1)


def copies(this: Run, name: str, epsilon: float, repeat: int) -> dict[str, Any]:
    return coverage_copies.release(_people(name, this.data_dir, this.quick), epsilon, 70_000 + repeat)


def foretold(this: Run, name: str, epsilon: float) -> dict[str, Any]:
    return coverage_direct.foretold(_people(name, this.data_dir, this.quick), epsilon, range(3 if this.quick else 10))


@cache
def _people(name: str, data_dir: Path | None, quick: bool) -> Population:
    return population(name, data_dir, quick)


def page(store: Store) -> str:
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (name, epsilon, _), result in store.cells("coverage/direct"):
        if "families" in result:
            cells.setdefault((name, epsilon), []).append(result)
    if not cells:
        return ""
    return "\n\n".join((_covered(cells), _times(cells, store), _coefficients(store), _foretold(store)))


def _covered(cells: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    rows = []
    for (name, epsilon), found in cells.items():
        for about in ABOUT:
            shares = [_pooled(found, family, about) for family in FAMILIES]
            releases = sum(r["releases"] for r in found)
            rows.append(
                [
                    name,
                    epsilon,
                    f"the {about}" if about == "population" else "this table",
                    *(_percent(s) for s in shares),
                    _percent(float(np.mean([s for s in shares if s is not None]))),
                    str(releases),
                ]
            )
    return table(["drawn from", "ε", "about", *FAMILIES, "mean", "releases"], rows)


def _pooled(found: Iterable[dict[str, Any]], family: str, about: str) -> float | None:
    parts = [r["families"][f"{family}/{about}"] for r in found if f"{family}/{about}" in r["families"]]
    total = sum(p["n"] for p in parts)
    return sum(p["hits"] for p in parts) / total if total else None


def _coefficients(store: Store) -> str:
    """Coverage of the truth, and width beside that from real rows, over releases and coefficients."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (name, epsilon, _), result in store.cells("coverage/copies"):
        if "coefficients" in result:
            cells.setdefault((name, epsilon), []).append(result["coefficients"])
    rows = []
    for (name, epsilon), found in cells.items():
        every = [c for one in found for c in one.values()]
        covered = [np.mean([c[how][0] <= c["truth"] <= c[how][1] for c in every]) for how in HOW]
        by_name = {
            k: np.mean([o[k]["copies"][0] <= o[k]["truth"] <= o[k]["copies"][1] for o in found]) for k in found[0]
        }
        least = min(by_name, key=lambda k: by_name[k])
        widths = [(c["copies"][1] - c["copies"][0]) / (c["real"][1] - c["real"][0]) for c in every]
        rows.append(
            [
                name,
                epsilon,
                *(_percent(float(c)) for c in covered),
                f"{_percent(float(by_name[least]))} ({least})",
                f"{np.median(widths):.1f}",
                str(len(found[0])),
                str(len(found)),
            ]
        )
    if not rows:
        return ""
    header = ["drawn from", "ε", "20 copies", "synthetic rows as if real", "real rows", "copies, least covered"]
    return table([*header, "width ÷ real rows' (median)", "coefficients", "releases"], rows)


def _times(cells: dict[tuple[str, str], list[dict[str, Any]]], store: Store) -> str:
    rows = []
    for name in NAMES:
        seconds = [
            r["seconds_all_tables"]
            for (n, _), found in cells.items()
            if n == name
            for r in found
            if r["seconds_all_tables"] is not None
        ]
        both = [r["seconds"] for (n, *_), r in store.cells("coverage/copies") if n == name and "seconds" in r]
        ratio = f"{np.median([b['copies'] / b['training'] for b in both]):.1f}" if both else "–"
        train = f"{np.median([b['training'] for b in both]):.1f}" if both else "–"
        if seconds:
            rows.append([name, f"{np.median(seconds):.1f}", train, ratio])
    return table(["drawn from", "all 1- and 2-way tables (s)", "training (CPU s)", "20 copies ÷ training"], rows)


def _foretold(store: Store) -> str:
    rows = []
    for (name, epsilon), found in store.cells("coverage/foretold"):
        if "foretold" not in found:
            continue
        said, seen = found["foretold"], found["seen"]
        ratios = [seen["means"][column] / half for column, half in said["means"].items()]
        rows.append(
            [
                name,
                epsilon,
                f"{100 * said['share']:.3f}",
                f"{100 * seen['share']:.3f}",
                f"{seen['share'] / said['share']:.2f}",
                f"{np.median(ratios):.2f} ({min(ratios):.2f} … {max(ratios):.2f})",
            ]
        )
    header = ["drawn from", "ε", "share ±, foretold (points)", "seen", "seen ÷ foretold"]
    return table([*header, "mean ±, seen ÷ foretold: median (range) over columns"], rows)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


EXPERIMENT = Experiment(
    "coverage",
    "Coverage of 95 % intervals: direct answers, about the table and about the population; regressions by copies",
    "about 5 CPU minutes a run of ten releases of each kind and four with copies; --quick 3 minutes",
    run,
    page,
    runs=20,
)
