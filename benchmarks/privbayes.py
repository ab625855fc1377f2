"""The supplement's table against PrivBayes: α-way marginals of adult and census, discretised, at ε = 1, 0.3 and 0.1."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks import child, everything
from benchmarks.data import SETS, DataSet
from benchmarks.methods import Task
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.evaluate.marginals import marginals
from dpmerf.evaluate.views import Rows
from dpmerf.schema import AnyColumn, Category, Numeric, Schema

DELTA, BINS = 1e-5, 16
ORDERS = {"adult": (3, 4), "census": (2, 3)}
EPSILONS = (1.0, 0.3, 0.1)
DOMAINS = {"D": None, "D*": 15}  # the largest number of values of a column
METHODS = ("privbayes", "paper", "default")
# (set, domain, α) -> (PrivBayes, DP-MERF) at the three ε, as published.
PUBLISHED: dict[tuple[str, str, int], tuple[tuple[float, ...], tuple[float, ...]]] = {
    ("adult", "D", 3): ((0.275, 0.446, 0.577), (0.348, 0.405, 0.480)),
    ("adult", "D", 4): ((0.377, 0.547, 0.673), (0.468, 0.508, 0.590)),
    ("adult", "D*", 3): ((0.182, 0.284, 0.317), (0.235, 0.287, 0.352)),
    ("adult", "D*", 4): ((0.257, 0.371, 0.401), (0.301, 0.363, 0.453)),
    ("census", "D", 2): ((0.131, 0.180, 0.291), (0.172, 0.190, 0.222)),
    ("census", "D", 3): ((0.264, 0.323, 0.429), (0.291, 0.302, 0.337)),
    ("census", "D*", 2): ((0.111, 0.136, 0.199), (0.139, 0.140, 0.176)),
    ("census", "D*", 3): ((0.199, 0.258, 0.325), (0.228, 0.234, 0.269)),
}


def discretised(data: DataSet, domain: str, this: Run) -> tuple[pa.Table, Schema]:
    """Every column as codes by public rules: 16 equal bins of the axis (15 in D*); in D* category i is i mod 15."""
    frame = data.frame(0, this.data_dir)
    frame = frame.sample(min(len(frame), 3_000), random_state=0) if this.quick else frame
    rows = Rows.read(data.table(frame), data.schema)
    most = DOMAINS[domain]
    codes: dict[str, np.ndarray] = {}
    columns: dict[str, AnyColumn] = {}
    for name, column in data.schema.learned.items():
        coded = rows.coded(name, bins=min(BINS, most or BINS), declared_scale=isinstance(column, Numeric))
        size = min(coded.size, most or coded.size)
        codes[name] = coded.codes % size
        columns[name] = Category(values=tuple(range(size)), dtype="int64")
    table_ = pa.Table.from_pandas(pd.DataFrame(codes), preserve_index=False)
    return table_, Schema(label=data.schema.label, columns=columns)


def run(this: Run) -> None:
    for name in ("adult",) if this.quick else ORDERS:
        for domain in DOMAINS:
            for method in METHODS:
                for epsilon in EPSILONS:
                    key = f"privbayes/{name}/{domain.replace('*', '-star')}/{method}/{epsilon:g}"
                    if this.wants(f"/{key}/"):
                        this.store.cell(key, partial(cell, this, name, domain, method, epsilon))


def cell(this: Run, name: str, domain: str, method: str, epsilon: float) -> dict[str, Any]:
    rows, schema = discretised(SETS[name], domain, this)
    outcome = child.run(method, Task(rows, schema, epsilon, DELTA, 1, this.quick))
    ours, theirs = (Rows.read(t, schema).all_coded() for t in (outcome.rows, rows))
    distances = {f"tv{k}": round(marginals(ours, theirs, None, k, 300, 0).mean, 4) for k in ORDERS[name]}
    return {**outcome.cost(), **distances}


def errors(store: Store, name: str, domain: str, method: str, order: int) -> list[float | None]:
    """The mean error of α-way marginals at each ε; None where a cell was not run."""
    place = f"privbayes/{name}/{domain.replace('*', '-star')}/{method}"
    cells = [store.read(f"{place}/{epsilon:g}") or {} for epsilon in EPSILONS]
    return [cell.get(f"tv{order}") for cell in cells]


def page(store: Store) -> str:
    rows = []
    for (name, domain, order), published in PUBLISHED.items():
        shown = domain.replace("*", "\\*")
        row = [f"{name} {shown}, α = {order}"]
        for method in METHODS:
            found = errors(store, name, domain, method, order)
            row.append(" / ".join("–" if v is None else f"{v:.3f}" for v in found))
        row += [" / ".join(f"{v:.3f}" for v in values) for values in published]
        rows.append(row)
    if all("0." not in "".join(row[1:4]) for row in rows):
        return ""
    shown = table(["", *METHODS, "PrivBayes as published", "DP-MERF as published"], rows)
    wanted = {
        f"{name} {domain} {method} at ε = {epsilon:g}": [f"privbayes/{name}/{folder}/{method}/{epsilon:g}"]
        for name in ORDERS
        for domain, folder in (("D", "D"), ("D\\*", "D-star"))
        for method in METHODS
        for epsilon in EPSILONS
    }
    return "\n\n".join(filter(None, [shown, everything.not_run(wanted, store)]))


EXPERIMENT = Experiment(
    "privbayes",
    "Supplement: α-way marginals of discretised adult and census at ε in {1, 0.3, 0.1}, against PrivBayes",
    "about 4 CPU hours; --quick 10 minutes",
    run,
    page,
)
