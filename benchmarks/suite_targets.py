"""Targets of the suite: what a synthetic table must keep of tails, spikes, high order, codes, clocks and few rows.

One cell a table and seed, each with the figures that a target names; the page shows the worst of all seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from benchmarks import scoring, suite_simulated
from benchmarks.ablation import DELTA, EPSILON
from benchmarks.data import SETS
from benchmarks.methods import METHODS, Task, dpmerf_preset
from benchmarks.pages import table
from benchmarks.protocols import Split, split
from benchmarks.registry import Run
from benchmarks.store import Store
from benchmarks.suite_scores import utility
from benchmarks.suite_tables import FEW, FEW_TEST, SCORE_ROWS
from dpmerf.methods.settings import MethodSettings
from dpmerf.schema import Schema

Figures = dict[str, float]
FEW_PAIRS = (7_500, 10_000)  # rows learned from and judged by
SPIKES = {"fee": 37.25, "price": 499.99, "weight": 70.0}
ROUND = {"rent": 100, "income": 1_000, "age": 5}


@final
@dataclass(frozen=True)
class Target:
    """A figure of a table's cells, and what it must be."""

    line: int  # of the issue
    words: str
    table: str
    figure: str
    side: Literal["<=", ">="]
    value: float


def tails(real: np.ndarray, made: np.ndarray) -> Figures:
    """How far a column's mean, spread and outer quantiles are off, as shares of the real ones; and what lies beyond."""

    def off(f: Callable[[np.ndarray], Any]) -> float:
        return float(abs(f(made) / f(real) - 1))

    found = {"mean": off(np.mean), "sd": off(np.std), "q99": off(lambda v: np.quantile(v, 0.99))}
    found["q99.9"] = off(lambda v: np.quantile(v, 0.999))
    return {**found, "beyond": float((made > 2 * real.max()).mean())}


def _heavy(real: pa.Table, made: pa.Table, seed: int) -> Figures:
    found = {
        f"{name}, {what}": value
        for name in ("lognormal", "pareto", "zeros")
        for what, value in tails(_numbers(real, name), _numbers(made, name)).items()
    }
    both = [np.corrcoef(_numbers(t, "billed"), _numbers(t, "paid"))[0, 1] for t in (real, made)]
    return {**found, "correlation": float(abs(both[0] - both[1]))}


def _amount(real: pa.Table, made: pa.Table, seed: int) -> Figures:
    return {
        f"amount, {what}": value for what, value in tails(_numbers(real, "Amount"), _numbers(made, "Amount")).items()
    }


def _spikes(real: pa.Table, made: pa.Table, seed: int) -> Figures:
    def share(rows: pa.Table, name: str) -> float:
        return float((np.abs(_numbers(rows, name) - SPIKES[name]) < 1e-9).mean())

    return {f"spike of {name}": abs(share(made, name) / share(real, name) - 1) for name in SPIKES}


def _round(real: pa.Table, made: pa.Table, seed: int) -> Figures:
    return {
        f"multiples in {name}": float(
            abs(np.mean(_numbers(real, name) % to == 0) - np.mean(_numbers(made, name) % to == 0))
        )
        for name, to in ROUND.items()
    }


def _exclusive_or(real: pa.Table, made: pa.Table, seed: int) -> Figures:
    x, y = (np.stack([_numbers(t, f"b{j}") for j in range(6)], 1) for t in (made, real))
    forest = RandomForestClassifier(random_state=seed).fit(x, _numbers(made, "y"))
    return {"random forest": float(roc_auc_score(_numbers(real, "y"), forest.predict_proba(y)[:, 1]))}


def _codes(real: pa.Table, made: pa.Table, seed: int) -> Figures:
    def numbers(rows: pa.Table, name: str) -> np.ndarray:
        return np.array([int(text[1:]) for text in rows[name].to_pylist()])

    here, there = numbers(made, "code"), numbers(real, "code")
    shares = [np.bincount(code, minlength=suite_simulated.CODES) / len(code) for code in (here, there)]
    return {
        "consistent": float((here % suite_simulated.GROUPS == numbers(made, "group")).mean()),
        "one-way": float(np.abs(shares[0] - shares[1]).sum() / 2),
    }


def _clocks(real: pa.Table, made: pa.Table, seed: int) -> Figures:
    def counted(rows: pa.Table) -> np.ndarray:
        hour = rows["at"].to_numpy().astype("datetime64[h]").astype(np.int64) % 24
        kind = np.array([("office", "evening", "night").index(k) for k in rows["kind"].to_pylist()])
        day = rows["at"].to_numpy().astype("datetime64[D]").astype(np.int64) % 7
        return np.histogramdd(np.stack([hour, kind, day], 1), (np.arange(25), np.arange(4), np.arange(8)))[0] / len(
            hour
        )

    a, b = counted(real), counted(made)
    over = {"hour": (1, 2), "hour x category": (2,), "weekday": (0, 1), "weekday x category": (0,)}
    return {name: float(np.abs(a.sum(axis) - b.sum(axis)).sum() / 2) for name, axis in over.items()}


def _numbers(rows: pa.Table, name: str) -> np.ndarray:
    return rows[name].to_numpy(zero_copy_only=False).astype(np.float64)


Check = Callable[[pa.Table, pa.Table, int], Figures]
SIMULATED: dict[str, tuple[suite_simulated.Maker, int, Check]] = {
    "heavy tails": (suite_simulated.heavy_tails, 30_000, _heavy),
    "spikes": (suite_simulated.spikes, 20_000, _spikes),
    "round numbers": (suite_simulated.round_numbers, 20_000, _round),
    "exclusive or": (suite_simulated.exclusive_or, 20_000, _exclusive_or),
    "codes": (suite_simulated.codes, 50_000, _codes),
    "clocks": (suite_simulated.clocks, 30_000, _clocks),
}


def alone(task: Task) -> pa.Table:
    """Independent noisy columns: the same package with the whole budget on one-way tables, the label among them."""
    usual = MethodSettings()
    settings = replace(usual, tables=replace(usual.tables, pairs=False, most_classes=0))
    return dpmerf_preset("tables", settings)(task)


def few_names() -> tuple[str, ...]:
    return ("few strong pairs 7,500", *(f"{name} {rows:,}" for name, sizes in FEW.items() for rows in sizes))


def few_rows_of(name: str, seed: int, data_dir: Path | None) -> Split:
    """A table cut to few training rows, drawn by the seed, and rows to judge by."""
    if name.startswith("few strong pairs"):
        learn, judge = FEW_PAIRS
        schema, found = suite_simulated.few_strong_pairs(learn + judge, seed)
    else:
        data, rows = name.rsplit(" ", 1)
        cut = split(SETS[data], "honest", seed, data_dir)
        schema, found, learn, judge = cut.schema, cut.train, int(rows.replace(",", "")), FEW_TEST
        found = found.take(pa.array(np.random.default_rng([seed, 1]).permutation(found.num_rows)))
    return Split(schema, found.slice(0, learn), found.slice(learn, judge), SCORE_ROWS)


def few(name: str, seed: int, data_dir: Path | None) -> Figures:
    """One- and two-way distances and utility of the default, each beside those of independent noisy columns."""
    rows = few_rows_of(name, seed, data_dir)
    found: Figures = {}
    for method, make in (("default", METHODS["default"]), ("alone", alone)):
        made = make(Task(rows.train, rows.schema, EPSILON, DELTA, seed))
        far = scoring.distances(made, rows, seed)
        found |= {
            f"{method} 1-way": far["tv1"],
            f"{method} 2-way": far["tv2"],
            f"{method} utility": utility(made, rows, seed),
        }
    return {name: round(value, 5) for name, value in found.items()}


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        todo: dict[str, Callable[[], Figures]] = {name: partial(_simulated, name, repeat) for name in SIMULATED}
        todo["credit"] = partial(_credit, repeat, this.data_dir)
        todo |= {name: partial(few, name, repeat, this.data_dir) for name in few_names()}
        for name, make in todo.items():
            key = f"suite_targets/{name}/{repeat}"
            if this.wants(f"/{key}/"):
                this.store.cell(key, make)


def _simulated(name: str, seed: int) -> Figures:
    make, rows, check = SIMULATED[name]
    schema, real = make(rows, seed)
    return _checked(schema, real, check, seed)


def _credit(seed: int, data_dir: Path | None) -> Figures:
    rows = split(SETS["credit"], "honest", seed, data_dir)
    return _checked(rows.schema, rows.train, _amount, seed)


def _checked(schema: Schema, real: pa.Table, check: Check, seed: int) -> Figures:
    made = METHODS["default"](Task(real, schema, EPSILON, DELTA, seed))
    return {name: round(value, 5) for name, value in check(real, made, seed).items()}


def targets() -> list[Target]:
    """Lines 1 to 4, as far as they are one figure each."""
    most = {"mean": 0.05, "q99": 0.10, "q99.9": 0.30, "beyond": 0.001}
    words = {
        "mean": "mean",
        "q99": "99 % quantile",
        "q99.9": "99.9 % quantile",
        "beyond": "share beyond twice the maximum",
    }
    columns = [(name, "heavy tails") for name in ("lognormal", "pareto", "zeros")] + [("amount", "credit")]
    found = [
        Target(1, f"{name}: {words[what]}", of, f"{name}, {what}", "<=", value)
        for name, of in columns
        for what, value in most.items()
    ]
    found.append(Target(1, "lognormal: sd", "heavy tails", "lognormal, sd", "<=", 0.30))
    found += [Target(2, f"{name}: share of its spike", "spikes", f"spike of {name}", "<=", 0.20) for name in SPIKES]
    found += [
        Target(2, f"{n}: share of round numbers", "round numbers", f"multiples in {n}", "<=", 0.10) for n in ROUND
    ]
    found.append(Target(2, "correlation of two heavy columns", "heavy tails", "correlation", "<=", 0.1))
    found.append(Target(3, "exclusive or of three: random forest", "exclusive or", "random forest", ">=", 0.90))
    found.append(Target(4, "codes consistent with their group", "codes", "consistent", ">=", 0.85))
    found.append(Target(4, "codes: one-way TV", "codes", "one-way", "<=", 0.10))
    found.append(Target(4, "hour of day: TV", "clocks", "hour", "<=", 0.015))
    return [*found, Target(4, "hour × category: TV", "clocks", "hour x category", "<=", 0.03)]


def page(store: Store) -> str:
    """Each target with the worst figure and the mean of its seeds; then few rows beside independent noisy columns."""
    cells: dict[str, list[Figures]] = {}
    for (name, _), result in store.cells("suite_targets"):
        if "error" not in result:
            cells.setdefault(name, []).append(result)
    lines = []
    for t in targets():
        if seen := [r[t.figure] for r in cells.get(t.table, [])]:
            worst = max(seen) if t.side == "<=" else min(seen)
            held = sum(v <= t.value if t.side == "<=" else v >= t.value for v in seen)
            sign = "≤" if t.side == "<=" else "≥"
            lines.append(
                [
                    str(t.line),
                    t.words,
                    f"{sign} {t.value:g}",
                    f"{np.mean(seen):.4f}",
                    f"{worst:.4f}",
                    f"{held} of {len(seen)}",
                ]
            )
    beside = []
    for name in few_names():
        if runs := cells.get(name):
            shown = [_beside(runs, what) for what in ("1-way", "2-way", "utility")]
            beside.append([name, *shown, str(len(runs))])
    first = table(["line", "figure", "target", "mean", "worst", "holds in"], lines) if lines else ""
    second = table(["line 5: few rows", "TV 1-way", "2-way", "utility", "runs"], beside) if beside else ""
    return "\n\n".join(text for text in (first, second) if text)


def _beside(runs: list[Figures], what: str) -> str:
    """The mean of the default, that of independent noisy columns, and their mean difference with its standard error."""
    ours, theirs = (np.array([r[f"{method} {what}"] for r in runs]) for method in ("default", "alone"))
    apart = ours - theirs
    error = f" ± {apart.std(ddof=1) / np.sqrt(len(apart)):.4f}" if len(apart) > 1 else ""
    return f"{ours.mean():.4f} against {theirs.mean():.4f} ({apart.mean():+.4f}{error})"
