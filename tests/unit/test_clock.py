"""A timestamp whose clock is learned apart: any moment survives, and hours go with other columns."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.suite_simulated import clocks

from dpmerf.encoding.codec import Codec
from dpmerf.errors import SchemaError
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.schema.toml import write_schema
from dpmerf.train import train

CLOCK = '\n[[relations]]\nclock = "at"\n'
AT = '[columns.at]\nkind = "timestamp"\nfirst = 2021-01-01T06:30:00\nlast = 2021-12-31T18:00:00\nnullable = true\n'


def test_every_moment_within_the_bounds_survives() -> None:
    codec = Codec(Schema.parse(AT + CLOCK))
    assert tuple(codec.schema.learned) == ("at (day)", "at (time)")
    first = dt.datetime(2021, 1, 1, 6, 30)
    moments = [None, first, dt.datetime(2021, 5, 9, 23, 59, 59), dt.datetime(2021, 12, 31, 18)]
    table = pa.table({"at": pa.array([*moments, dt.datetime(1999, 1, 1), dt.datetime(2030, 1, 1)], pa.timestamp("us"))})
    assert codec.decode(codec.encode(table))["at"].to_pylist() == [*moments, first, moments[-1]]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ('[columns.at]\nkind = "integer"\nmin = 0\nmax = 9\n', "not a timestamp over several days"),
        ('[columns.other]\nkind = "flag"\n', "no column 'at'"),
        (AT + '[columns."at (day)"]\nkind = "flag"\n', "name of a column already"),
        (AT + CLOCK, "follows already"),
    ],
)
def test_what_cannot_be_split_is_refused(columns: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.parse(columns + CLOCK)


def test_hours_go_with_other_columns() -> None:
    schema, rows = clocks(20_000, 2)
    schema = Schema.parse(write_schema(schema) + CLOCK)
    made = train(measure(rows, make_plan(schema, 1.0, 1e-5, rows=rows.num_rows)), seed=1, steps=100).sample(20_000)
    shares = []
    for table in (rows, made):
        hour = table["at"].to_numpy().astype("datetime64[h]").astype(np.int64) % 24
        kind = np.array([("office", "evening", "night").index(k) for k in table["kind"].to_pylist()])
        shares.append(np.bincount(3 * hour + kind, minlength=72) / len(hour))
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.06
