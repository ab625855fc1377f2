"""Extended rows: each row beside the one before it; a function of the person's own rows."""

import datetime as dt

import numpy as np
import pyarrow as pa

from dpmerf.private.histories import Histories
from dpmerf.progress import SILENT
from dpmerf.schema.person_schema import Persons
from dpmerf.sources.rows import open_rows

SCHEMA = """
[person]
key = "pid"
order = "day"
most = 2
largest = 9
counter = "visit"
[columns.pid]
kind = "id"
[columns.born]
kind = "date"
first = 1920-01-01
last = 2019-01-01
per = "person"
[columns.day]
kind = "date"
first = 2019-01-01
last = 2020-12-31
[columns.visit]
kind = "integer"
min = 1
max = 40
[columns.age]
kind = "integer"
min = 0
max = 110
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
[[relations]]
rule = "age = years(born, day)"
"""


def _table(rows: list[tuple[object, str, str, str]]) -> pa.Table:
    pid, born, day, ward = zip(*rows, strict=True)
    days = [[dt.date.fromisoformat(d) for d in column] for column in (born, day)]
    n = len(rows)
    zeros = pa.array([7] * n)
    return pa.table(
        {"pid": list(pid), "born": days[0], "day": days[1], "visit": zeros, "age": zeros, "ward": list(ward)}
    )


def test_rows_in_order_with_gap_counter_and_the_row_before() -> None:
    table = _table(
        [
            (1, "1990-05-05", "2019-03-01", "b"),
            (1, "1970-01-01", "2019-01-05", "a"),  # the first in time: its birth date holds
            (2, "1980-01-01", "2019-02-02", "c"),
        ]
    )
    with Histories({"rows": open_rows(table)}, Persons.parse(SCHEMA), b"k" * 32) as histories:
        histories.read(SILENT)
        ((batch, sizes),) = histories.batches("rows")
        codec = histories.extended["rows"].codec
        rows = codec.values(batch)
    order = np.lexsort((rows["step"], -rows["number of rows"]))
    assert sorted(sizes.tolist()) == [1, 2]
    assert rows["number of rows"][order].tolist() == [2, 2, 1]
    assert rows["step"][order].tolist() == [0, 1, 0]
    assert rows["visit"][order].tolist() == [1, 2, 1]  # counted, not read
    assert rows["ward"][order].tolist() == [0, 1, 2]
    assert rows["ward before"][order].tolist() == [3, 0, 3]  # null, a, null
    gap = rows["gap"][order]
    assert np.isnan(gap[[0, 2]]).all() and gap[1] == 55
    first = (dt.date(2019, 1, 5) - dt.date(1970, 1, 1)).days
    assert rows["day"][order][0] == first and np.isnan(rows["day"][order][1])  # of a first row
    assert rows["day before"][order][1] == first and np.isnan(rows["day before"][order][0])
    assert (rows["born"][order][:2] == 0).all()


def test_the_row_before_the_window_is_known() -> None:
    days = [f"2019-01-{d:02d}" for d in range(1, 9)]
    table = _table([("x", "1970-01-01", day, "abc"[i % 3]) for i, day in enumerate(days)])
    for key in (b"a" * 32, b"b" * 32, b"c" * 32):
        with Histories({"rows": open_rows(table)}, Persons.parse(SCHEMA), key) as histories:
            histories.read(SILENT)
            ((batch, sizes),) = histories.batches("rows")
            rows = histories.extended["rows"].codec.values(batch)
        assert sizes.tolist() == [2] and rows["number of rows"].tolist() == [8, 8]
        later = rows["step"] == 1
        assert (np.diff(rows["visit"]) == 1).all()
        assert ((rows["ward before"][later] + 1) % 3 == rows["ward"][later]).all()


def test_a_key_is_its_text_whatever_the_type() -> None:
    names = [pa.array([1, 1, 2]), pa.array([1.0, 1.0, 2.0]), pa.array(["1", "1", "2"])]
    found = []
    for name in names:
        table = _table([(0, "1970-01-01", f"2019-01-0{i + 1}", "a") for i in range(3)])
        table = table.set_column(0, "pid", name)
        with Histories({"rows": open_rows(table)}, Persons.parse(SCHEMA), b"k" * 32) as histories:
            histories.read(SILENT)
            found.append(sorted(next(iter(histories.batches("rows")))[1].tolist()))
    assert found == [[1, 2]] * 3
