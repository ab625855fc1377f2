"""Synthetic rows come back in the kind of table that came in, with its own types and its index."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmerf
from dpmerf.encoding.codec import Codec
from dpmerf.output.as_given import Given
from dpmerf.schema import Schema

ROWS = 240
BERLIN = "Europe/Berlin"
GRADES = ["low", "middle", "high"]
pytestmark = pytest.mark.filterwarnings("ignore:no ledger")
COLUMNS: dict[str, dict[str, Any]] = {
    "key": {"kind": "id"},
    "visits": {"kind": "integer", "min": 0, "max": 9, "nullable": True},
    "score": {"kind": "number", "min": 0, "max": 1},
    "price": {"kind": "number", "min": 0, "max": 99, "decimals": 2, "dtype": "decimal128(6, 2)"},
    "ok": {"kind": "flag", "nullable": True},
    "ward": {"kind": "category", "values": ["a", "b"]},
    "grade": {"kind": "category", "values": GRADES},
    "day": {"kind": "date", "first": dt.date(2020, 1, 1), "last": dt.date(2020, 12, 31)},
    "came": {
        "kind": "timestamp",
        "first": dt.datetime(2020, 1, 1),
        "last": dt.datetime(2020, 12, 31),
        "step": 86_400,
        "reading": {"zone": BERLIN},
    },
    "at": {"kind": "time", "step": 60},
}


def pandas_frame() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 300, ROWS), unit="D")
    return pd.DataFrame(
        {
            "key": pd.array([f"00{i}" for i in range(ROWS)], dtype="string"),
            "visits": pd.array(np.where(draw.random(ROWS) < 0.1, None, draw.integers(0, 9, ROWS)), dtype="Int64"),
            "score": pd.array(draw.random(ROWS), dtype="Float64"),
            "price": [decimal.Decimal(int(i)) / 100 for i in draw.integers(0, 9_900, ROWS)],
            "ok": pd.array(np.where(draw.random(ROWS) < 0.1, None, draw.random(ROWS) < 0.5), dtype="boolean"),
            "ward": pd.array(draw.choice(["a", "b"], ROWS), dtype="string"),
            "grade": pd.Categorical(draw.choice(GRADES, ROWS), GRADES, ordered=True),
            "day": [day.date() for day in days],
            "came": days.tz_localize(BERLIN),
            "at": [dt.time(int(h), 30) for h in draw.integers(0, 24, ROWS)],
        }
    )


def test_pandas_types_and_index_come_back() -> None:
    frame = pandas_frame().set_index("key")
    made = dpmerf.synthesize(frame, {"columns": COLUMNS}, epsilon=5.0, delta=1e-5)
    assert {n: str(t) for n, t in made.dtypes.items()} == {n: str(t) for n, t in frame.dtypes.items()}
    assert made.index.name == "key" and made.index.dtype == frame.index.dtype and made.index.is_unique
    assert all(isinstance(key, str) for key in made.index)
    assert made.grade.cat.ordered and list(made.grade.cat.categories) == GRADES
    assert made.visits.isna().any() and made.ok.isna().any()
    assert {type(cell) for cell in made.price} == {decimal.Decimal} and {type(cell) for cell in made.day} == {dt.date}
    assert {type(cell) for cell in made["at"]} == {dt.time}
    assert str(made.came.dt.tz) == BERLIN and (made.came == made.came.dt.normalize()).all()  # midnights in Berlin
    assert made.came.dt.month.nunique() > 6  # summer and winter


def test_a_frame_without_declared_zones_has_the_same_moments() -> None:
    frame = pd.DataFrame({"came": pd.date_range("2020-01-01", periods=300, tz=BERLIN)})
    facts = {key: fact for key, fact in COLUMNS["came"].items() if key != "reading"} | {"step": 3600}
    made = dpmerf.synthesize(frame, {"columns": {"came": facts}}, epsilon=5.0, delta=1e-5)
    assert made.came.dtype == frame.came.dtype


def test_types_that_pandas_chose_by_the_cells_are_left_to_the_schema() -> None:
    """A null turns int64 into float64: what comes back must not say whether there was one."""
    schema = Schema.from_dict({"columns": {"n": {"kind": "integer", "min": 0, "max": 9}}})
    table = Codec(schema).decode(Codec(schema).encode(pa.table({"n": [1, 2]})))
    found = [Given.of(pd.DataFrame({"n": cells})).back(table, schema) for cells in ([1, 2], [1, None], ["x", 2])]
    assert {str(frame.n.dtype) for frame in found} == {"int64"}


def test_a_type_that_is_too_narrow_for_the_schema_is_not_taken() -> None:
    schema = Schema.from_dict({"columns": {"n": {"kind": "integer", "min": 0, "max": 999}}})
    table = pa.table({"n": [1, 999]})
    assert str(Given.of(pd.DataFrame({"n": pd.array([1], "Int8")})).back(table, schema).n.dtype) == "Int64"
    assert str(Given.of(pd.DataFrame({"n": pd.array([1], "Int16")})).back(table, schema).n.dtype) == "Int16"
    assert Given.of(pl.DataFrame({"n": pl.Series([1], dtype=pl.Int8)})).back(table, schema)["n"].dtype == pl.Int64


def test_polars_and_arrow_types_come_back() -> None:
    types = {
        "key": pl.String, "visits": pl.Int16, "score": pl.Float32, "ok": pl.Boolean, "ward": pl.String,
        "grade": pl.Enum(GRADES), "day": pl.Date, "came": pl.Datetime("ms", BERLIN),
    }  # fmt: skip
    frame = pl.from_pandas(pandas_frame()[list(types)]).with_columns(pl.col(n).cast(t) for n, t in types.items())
    facts = {"columns": {name: COLUMNS[name] for name in types}}
    made = dpmerf.synthesize(frame, facts, epsilon=5.0, delta=1e-5)
    assert dict(made.schema) == dict(frame.schema)
    assert made["came"].dt.hour().unique().to_list() == [0]
    table = frame.to_arrow()
    again = dpmerf.synthesize(table, facts, epsilon=5.0, delta=1e-5)
    for name in types:
        one, other = again.schema.field(name).type, table.schema.field(name).type
        assert one == other or (pa.types.is_dictionary(one) and one.value_type == pa.string()), name


def test_berlin_midnights_of_a_typed_table_stay_ones_by_its_draft() -> None:
    table = pa.Table.from_pandas(pandas_frame()[["came", "ward"]])
    draft = dpmerf.Schema.draft(table)
    assert 'zone = "Europe/Berlin"' in draft
    facts = {'first = "?"': "first = 2020-01-01T00:00:00", 'last = "?"': "last = 2020-12-31T00:00:00\nstep = 86400"}
    for gap, fact in (facts | {'values = ["?"]': 'values = ["a", "b"]'}).items():
        draft = draft.replace(gap, fact)
    made = dpmerf.synthesize(table, Schema.parse(draft), epsilon=5.0, delta=1e-5)
    assert made.schema.field("came").type.tz == BERLIN
    assert set(made["came"].to_pandas().dt.hour) == {0}


def test_objects_in_a_draft_are_left_to_a_person() -> None:
    text = dpmerf.Schema.draft(pd.DataFrame({"when": pd.Series([dt.date(2020, 1, 1)], dtype=object)}))
    assert 'kind = "?"' in text and "large_string" not in text
