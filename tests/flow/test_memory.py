"""Memory: a release of five million rows needs hardly more than one of fifty thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCHEMA = """
[columns.a]
kind = "number"
min = 0
max = 1
[columns.b]
kind = "category"
values = ["x", "y", "z"]
[columns.c]
kind = "integer"
min = 0
max = 9
"""
CHILD = """
import resource, sys
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
made = measure(sys.argv[1], make_plan(Schema.load("schema.toml"), 1.0, 1e-6, rows=50_000))
print(made.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def _peak(place: Path, data: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", CHILD, data], cwd=place, capture_output=True, text=True, check=True)
    rows, peak = map(int, done.stdout.split())
    return rows, peak


@pytest.mark.slow
def test_memory_is_flat_in_rows(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rng = np.random.default_rng(0)
    n = 250_000
    letters = pa.array(["x", "y", "z"]).take(pa.array(rng.integers(0, 3, n)))
    table = pa.table({"a": rng.random(n), "b": letters, "c": rng.integers(0, 10, n)})
    pq.write_table(table.slice(0, 50_000), tmp_path / "few.parquet")
    pq.write_table(table, tmp_path / "part.parquet")
    (tmp_path / "many").mkdir()
    for i in range(20):  # one file, twenty times over
        (tmp_path / "many" / f"{i:02}.parquet").symlink_to(tmp_path / "part.parquet")
    few, small = _peak(tmp_path, "few.parquet")
    many, large = _peak(tmp_path, "many")
    assert (few, many) == (50_000, 5_000_000)
    assert large - small < 200, f"{small} MB for {few:,} rows, {large} MB for {many:,}"
