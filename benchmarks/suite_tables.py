"""The tables of the suite: real ones, by their training rows alone, and simulated ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.data import HERE, SETS, read
from benchmarks.protocols import Split, split
from benchmarks.suite_simulated import SIMULATED, Maker
from dpmerf.demo import hospital
from dpmerf.schema import Schema

MOST_ROWS = 40_000  # of a table; a quarter of them judge
QUICK_ROWS = 4_000
SCORE_ROWS = 10_000  # that classifiers are trained on, at most
JUDGES = 0.25
HOSPITAL_ROWS = 27_000
FEW = {"adult": (1_000, 3_000), "census": (1_000, 3_000), "covtype": (1_000, 3_000)}  # training rows of cut tables
FEW_TEST = 10_000

Loader = Callable[[int, Path | None], tuple[Schema, pa.Table]]  # seed, data folder


def table_names() -> tuple[str, ...]:
    return tuple(_LOADERS)


def rows_of(name: str, seed: int, data_dir: Path | None, quick: bool) -> Split:
    """Rows to learn from and rows to judge by: both are training rows of the set, drawn by the seed."""
    schema, found = _LOADERS[name](seed, data_dir)
    order = np.random.default_rng([seed, 1]).permutation(found.num_rows)
    few = int(name.rsplit(" ", 1)[1].replace(",", "")) if name.endswith("000") else None
    if few:
        learn, judge = order[:few], order[few : few + FEW_TEST]
    else:
        order = order[: QUICK_ROWS if quick else MOST_ROWS if name not in SIMULATED else None]
        at = round((1 - JUDGES) * len(order))
        learn, judge = order[:at], order[at:]
    return Split(schema, found.take(pa.array(learn)), found.take(pa.array(judge)), SCORE_ROWS)


def _paper(name: str, seed: int, data_dir: Path | None) -> tuple[Schema, pa.Table]:
    rows = split(SETS[name], "honest", seed, data_dir)
    return rows.schema, rows.train


def _randhie(seed: int, data_dir: Path | None) -> tuple[Schema, pa.Table]:
    schema = Schema.load(HERE / "schemas" / "randhie.toml").without_relations()
    frame = read("randhie", "https://cran.r-project.org/package=sampleSelection", data_dir)
    return schema, pa.Table.from_pandas(frame[list(schema.columns)], preserve_index=False)


_NAFLD = """
label = "status"
[columns.age]
kind = "integer"
min = 0
max = 110
[columns.male]
kind = "flag"
[columns.weight]
kind = "number"
min = 20
max = 300
decimals = 1
nullable = true
[columns.height]
kind = "integer"
min = 100
max = 230
nullable = true
[columns.bmi]
kind = "number"
min = 5
max = 100
nullable = true
[columns.futime]
kind = "integer"
min = 0
max = 10000
[columns.status]
kind = "flag"
"""


def _nafld(seed: int, data_dir: Path | None) -> tuple[Schema, pa.Table]:
    schema = Schema.parse(_NAFLD)
    frame: pd.DataFrame = read("nafld_persons", "https://cran.r-project.org/package=survival", data_dir)
    frame = frame.astype({"male": bool, "status": bool})
    return schema, pa.Table.from_pandas(frame[list(schema.columns)], preserve_index=False)


def _hospital(seed: int, data_dir: Path | None) -> tuple[Schema, pa.Table]:
    return Schema.load(hospital.SCHEMA), hospital.hospital(HOSPITAL_ROWS, seed)


def _simulated(make: Maker, rows: int, seed: int, data_dir: Path | None) -> tuple[Schema, pa.Table]:
    return make(rows, seed)


_LOADERS: dict[str, Loader] = {
    **{name: partial(_paper, name) for name in SETS},
    "randhie": _randhie,
    "nafld": _nafld,
    "hospital": _hospital,
    **{name: partial(_simulated, s.make, s.rows) for name, s in SIMULATED.items()},
    **{f"{name} {rows:,}": partial(_paper, name) for name, sizes in FEW.items() for rows in sizes},
}
