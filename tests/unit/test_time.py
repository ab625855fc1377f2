"""The column kind `time`: a time of day, over midnight or not, in whatever way it is stored, from rows to rows."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from command import dpmerf
from dpmerf.app import forms
from dpmerf.encoding.codec import Axis, Codec
from dpmerf.errors import SchemaError
from dpmerf.metadata import frictionless, sdv
from dpmerf.schema import Schema
from dpmerf.schema.kinds.time_of_day import Time
from dpmerf.sources.rows import open_rows

DAY = '[columns.at]\nkind = "time"\nnullable = true\n'
NIGHT = '[columns.at]\nkind = "time"\nfirst = 22:00:00\nlast = 06:00:00\nstep = 60\n'
TIMES = [dt.time(0), dt.time(6, 30), dt.time(23, 59, 59, 999_999), None]


def _back(text: str, data: Any) -> list[dt.time | None]:
    """Cells as they come back from numbers."""
    codec = Codec(Schema.parse(text))
    (batch,) = open_rows(data).batches(["at"])
    return codec.decode(codec.encode(pa.Table.from_batches([batch]))).column("at").to_pylist()


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"at": pa.array(TIMES, pa.time64("us"))}),
        pa.table({"at": pa.array(TIMES, pa.time64("ns"))}),
        pa.table({"at": ["00:00", "6:30", "23:59:59.999999", "soon"]}),
        pa.table({"at": ["24:00:00", " 06:30:00 ", "23:59:59", "25:00"]}),
        pd.DataFrame({"at": TIMES}),
        pl.DataFrame({"at": TIMES}),
    ],
)
def test_a_time_is_the_same_in_every_form(data: Any) -> None:
    assert _back(DAY, data) == [dt.time(0), dt.time(6, 30), dt.time(23, 59, 59), None]


def test_a_night_goes_over_midnight_and_times_outside_to_the_nearer_end() -> None:
    cells = ["22:00", "23:59:40", "00:00", "03:15:29", "06:00", "07:00", "13:59", "14:01", "21:00", ""]
    expected = ["22:00", "00:00", "00:00", "03:15", "06:00", "06:00", "06:00", "22:00", "22:00", "22:00"]
    assert _back(NIGHT, pa.table({"at": cells})) == [dt.time.fromisoformat(t) for t in expected]
    axis = Axis.of(Time(first=dt.time(22), last=dt.time(6), step=60))
    assert (axis.low, axis.high, axis.levels) == (79_200, 108_000, 481)


def test_whole_minutes_of_a_whole_day_wrap_at_midnight() -> None:
    text = '[columns.at]\nkind = "time"\nstep = 60\n'
    found = _back(text, pa.table({"at": ["23:59:29", "23:59:31", "00:00:29"]}))
    assert found == [dt.time(23, 59), dt.time(0), dt.time(0)]


def test_damaged_times_mean_nothing_and_raise_nothing() -> None:
    wrong = pa.array([-1, 86_400, 2**31 - 1], pa.int32()).view(pa.time32("s"))
    assert _back(DAY, pa.table({"at": wrong})) == [None, None, None]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ("first = 06:00:00\nlast = 06:00:00", "differ"),
        ("first = 06:00:00.5", "whole seconds"),
        ("step = 0", "step"),
        ('first = "six"', "first"),
    ],
)
def test_a_schema_that_makes_no_sense_says_so(facts: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.parse(f'[columns.at]\nkind = "time"\n{facts}\n')


@pytest.mark.parametrize("dtype", ["time32[s]", "time32[ms]", "time64[us]", "string"])
def test_declared_types_hold_times(dtype: str) -> None:
    codec = Codec(Schema.parse(DAY + f'dtype = "{dtype}"\n'))
    found = codec.decode(codec.encode(pa.table({"at": ["06:30", None]})))
    assert str(found.schema.field("at").type) == dtype and found.column("at").null_count == 1
    with pytest.raises(SchemaError, match="does not hold"):
        Codec(Schema.parse(DAY + 'dtype = "int8"\n'))


def test_a_draft_knows_times() -> None:
    text = Schema.draft(pa.table({"at": pa.array(TIMES, pa.time64("us"))}))
    assert 'kind = "time"' in text and 'dtype = "time64[us]"' in text


@pytest.mark.parametrize("form", [frictionless, sdv])
def test_other_metadata_knows_times_of_day(form: ModuleType) -> None:
    for text in (DAY, NIGHT):
        schema = Schema.parse(text)
        found = form.read(form.write(schema), None)
        assert found.columns["at"].kind == "time"
    night = frictionless.read(frictionless.write(Schema.parse(NIGHT)), None).columns["at"]
    assert (night.known["first"], night.known["last"]) == (dt.time(22), dt.time(6))


def test_the_page_asks_for_times() -> None:
    found = forms.facts({"kind": "time", "first": "22:00", "last": "06:00", "step": "60"})
    assert found.known == {"first": dt.time(22), "last": dt.time(6), "step": 60} and "time" in forms.WORDS


def test_the_audits_rows_reach_both_ends() -> None:
    column = Time(first=dt.time(22), last=dt.time(6))
    assert [column.at(place) for place in (0.0, 0.25, 1.0)] == [dt.time(22), dt.time(0), dt.time(6)]


def test_from_a_file_to_a_report(tmp_path: Path) -> None:
    """Most rows lie within an hour of midnight, on both sides of it; so they do in what comes back."""
    rng = np.random.default_rng(0)
    seconds = np.rint(rng.normal(0, 1_500, 3_000)).astype(np.int64) % 86_400
    at = pa.array(seconds.astype(np.int32)).cast(pa.time32("s"))
    pc.write_csv(pa.table({"at": at, "ill": rng.random(3_000) < 0.3}), tmp_path / "data.csv")
    facts = NIGHT.replace("22:00", "12:00").replace("06:00:00", "11:59:00")
    (tmp_path / "schema.toml").write_text(facts + '[columns.ill]\nkind = "flag"\n')
    done = dpmerf("synth", "data.csv", "--schema", "schema.toml", "--epsilon", 3, "-o", "out", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = [
        dt.time.fromisoformat(t)
        for t in pc.read_csv(
            tmp_path / "out" / "synthetic.csv", convert_options=pc.ConvertOptions(column_types={"at": pa.string()})
        )
        .column("at")
        .to_pylist()
    ]
    assert len(made) == 3_000
    assert np.mean([t.hour in (23, 0) for t in made]) > 0.9
    assert 0.35 < np.mean([t.hour == 23 for t in made]) < 0.65
    assert dpmerf("verify", "out/release", cwd=tmp_path).returncode == 0
    told = dpmerf("answer", "out/release", "share of ill by at", cwd=tmp_path)
    assert told.returncode == 0 and "12:00:00" in told.stdout and "11:59:00" in told.stdout, told.stderr
