"""Synthetic rows as files: what a spreadsheet would run is made text, unless it is asked for."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpmerf.output.table_files import write

ROWS = pa.table({"a": ["=cmd()", "+1", "-x", "plain", None], "n": [1, 2, 3, 4, 5]})


def test_formulas_are_text_in_csv(tmp_path: Path) -> None:
    assert write(iter([ROWS]), tmp_path / "t.csv", {}, 5) == 5
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == [
        '"\'=cmd()",1',
        '"+1",2',
        '"\'-x",3',
        '"plain",4',
        ",5",
    ]


def test_formulas_stay_where_they_are_wanted_or_harmless(tmp_path: Path) -> None:
    write(iter([ROWS]), tmp_path / "t.csv", {}, 5, formulas=True)
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == '"=cmd()",1'
    write(iter([ROWS]), tmp_path / "t.parquet", {}, 5)
    assert pq.read_table(tmp_path / "t.parquet").column("a").to_pylist()[0] == "=cmd()"


def test_moments_in_csv_are_whole_seconds(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 5, 6, 7, 30)
    for unit in ("s", "ms", "us", "ns"):
        table = pa.table({"seen": pa.array([moment, None], pa.timestamp(unit))})
        write(iter([table]), tmp_path / "t.csv", {}, 2)
        assert (tmp_path / "t.csv").read_text().splitlines() == ['"seen"', "2024-05-06 07:30:00", ""]
