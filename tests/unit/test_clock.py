"""A timestamp is learned as week (or day), weekday and time of day: any moment survives, and hours go with others."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.suite_simulated import clocks

from dpmerf.encoding.binning import FineGrid
from dpmerf.encoding.codec import Codec
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.schema.person_schema import Persons
from dpmerf.schema.toml import write_schema
from dpmerf.train import train

AT = '[columns.at]\nkind = "timestamp"\nfirst = 2021-01-01T06:30:00\nlast = 2021-12-31T18:00:00\n'
FLAG = '[columns.ok]\nkind = "flag"\n'
PARTS = ("at (week)", "at (weekday)", "at (time)")


@pytest.mark.parametrize("last", ["2021-12-31T18:00:00", "2021-01-09T18:00:00"])
def test_every_moment_within_the_bounds_survives(last: str) -> None:
    codec = Codec(Schema.parse(AT.replace("2021-12-31T18:00:00", last) + "nullable = true\n"))
    first, end = dt.datetime(2021, 1, 1, 6, 30), dt.datetime.fromisoformat(last)
    moments = [None, first, dt.datetime(2021, 1, 4), dt.datetime(2021, 1, 9, 13, 59, 59), end]
    table = pa.table({"at": pa.array([*moments, dt.datetime(1999, 1, 1), dt.datetime(2030, 1, 1)], pa.timestamp("us"))})
    assert codec.decode(codec.encode(table))["at"].to_pylist() == [*moments, first, end]


@pytest.mark.parametrize(
    ("text", "learned"),
    [
        (AT, PARTS),
        (AT.replace("2021-12-31", "2021-01-09"), ("at (day)", "at (time)")),
        (AT.replace("2021-12-31", "2021-01-01"), ("at",)),  # one day
        (AT + "clock = false\n", ("at",)),
        (AT + "step = 86400\n", ("at",)),  # always the same time of day
        (f'label = "at"\n{FLAG}{AT}', ("ok", "at")),
        (f'{AT}{FLAG}[[relations]]\nrule = "if ok = true then at < 2021-03-01"\n', ("at", "ok")),
        (f'{AT}[columns."at (time)"]\nkind = "flag"\n', ("at", "at (time)")),  # the name is taken
    ],
)
def test_what_is_learned_of_a_timestamp(text: str, learned: tuple[str, ...]) -> None:
    schema = Schema.parse(text)
    assert tuple(Codec(schema).schema.learned) == learned
    assert Schema.from_json(schema.to_json()) == schema == Schema.parse(write_schema(schema))


def test_a_distance_may_start_at_a_moment_that_is_learned_in_parts() -> None:
    left = AT.replace("columns.at", "columns.left").replace("06:30", "07:30")
    codec = Codec(Schema.parse(f'{AT}{left}[[relations]]\nrule = "left >= at"\n'))
    assert tuple(codec.schema.learned)[:3] == PARTS and len(codec.schema.learned) == 4
    pairs = [dt.datetime(2021, 2, 1, 6), dt.datetime(2021, 2, 2, 7, 8, 9)]
    table = pa.table({name: pa.array([at], pa.timestamp("s")) for name, at in zip(("at", "left"), pairs, strict=True)})
    assert list(codec.decode(codec.encode(table)).to_pylist()[0].values()) == pairs


def test_parts_are_null_together() -> None:
    schema = Schema.parse(AT + "nullable = true\n" + FLAG)
    rng = np.random.default_rng(1)
    second = rng.integers(0, 300 * 86_400, 5_000)
    at = (np.datetime64("2021-01-02T00:00:00") + second).astype("datetime64[s]")
    table = pa.table({"at": pa.array(at, mask=rng.random(5_000) < 0.3), "ok": pa.array(second % 2 == 0)})
    made = train(measure(table, make_plan(schema, 1.0, 1e-5, rows=5_000)), seed=1, steps=60).sample(5_000)
    assert abs(made["at"].null_count / 5_000 - 0.3) < 0.03


def test_the_order_of_a_person_s_rows_stays_one_column() -> None:
    text = (
        '[person]\nkey = "who"\norder = "at"\n[columns.who]\nkind = "id"\n' + AT + AT.replace("columns.at", "columns.b")
    )
    (history,) = Persons.parse(text).histories
    assert history.facts.order in history.schema.measured.learned
    assert set(history.measured_rows) == {"b (week)", "b (weekday)", "b (time)"}


def test_cells_of_a_time_of_day_begin_with_quarters_of_an_hour() -> None:
    for most, width in ((256, 900), (60, 1_800), (8, 21_600)):
        fine = FineGrid(Codec(Schema.parse(AT)), most).numeric["at (time)"]
        assert set(np.diff(fine.edges)) == {width}
        assert [int(fine.edges[i]) for i in sorted(fine.marks)] == [0, 21_600, 43_200, 64_800]


def test_hours_and_weekdays_go_with_other_columns() -> None:
    schema, rows = clocks(20_000, 2)
    made = train(measure(rows, make_plan(schema, 1.0, 1e-5, rows=rows.num_rows)), seed=1, steps=100).sample(20_000)
    hours, days = [], []
    for table in (rows, made):
        at = table["at"].to_numpy()
        kind = np.array([("office", "evening", "night").index(k) for k in table["kind"].to_pylist()])
        hours.append(np.bincount(3 * (at.astype("datetime64[h]").astype(np.int64) % 24) + kind, minlength=72) / 20_000)
        days.append(np.bincount(3 * (at.astype("datetime64[D]").astype(np.int64) % 7) + kind, minlength=21) / 20_000)
    assert np.abs(hours[0] - hours[1]).sum() / 2 < 0.06
    assert np.abs(days[0] - days[1]).sum() / 2 < 0.03
