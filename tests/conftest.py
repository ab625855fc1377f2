"""What many tests need: real data where it is there, and small tables of every variant."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.schema import Schema

MIXED = """
label = "ill"
[columns.key]
kind = "id"
[columns.age]
kind = "integer"
min = 0
max = 100
[columns.dose]
kind = "number"
min = 0
max = 10
decimals = 1
nullable = true
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
other = "else"
[columns.seen]
kind = "date"
first = 2020-01-01
last = 2020-12-31
[columns.ill]
kind = "flag"
"""


@pytest.fixture(scope="session")
def data_dir() -> Path:
    folder = os.environ.get("DPMERF_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the real data sets: set DPMERF_DATA to their folder")
    return Path(folder)


@pytest.fixture(scope="session")
def mixed_schema() -> Schema:
    return Schema.parse(MIXED)


def mixed_rows(n: int, seed: int = 0) -> pa.Table:
    """Rows that fit `MIXED`: the old are ill more often, and ward c gets high doses."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, n)
    ward = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    dose = np.clip(np.where(ward == "c", 8.0, 2.0) + rng.normal(0, 0.5, n), 0, 10).round(1)
    return pa.table(
        {
            "key": np.arange(n),
            "age": age,
            "dose": pa.array(dose, mask=rng.random(n) < 0.1),
            "ward": ward,
            "seen": pa.array(np.datetime64("2020-01-01") + rng.integers(0, 366, n).astype("timedelta64[D]")),
            "ill": rng.random(n) < np.where(age > 60, 0.4, 0.02),
        }
    )


@pytest.fixture(scope="session")
def mixed_table() -> pa.Table:
    return mixed_rows(4_000)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the privacy tests found, also when they ran in other processes."""
    for what, title in (("planted", "planted bugs"), ("audit", "attacks on the product, at 95 % confidence")):
        reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        lines = [str(v) for r in reports for name, v in getattr(r, "user_properties", []) if name == what]
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.line(line)
