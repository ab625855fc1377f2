"""The codec: exact round trips, and a place for every cell."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmerf.encoding.codec import Codec
from dpmerf.errors import SchemaError
from dpmerf.schema import Schema
from dpmerf.sources.rows import open_rows

TYPES = """
[columns.i8]
kind = "integer"
min = -5
max = 100
step = 5
dtype = "int8"
[columns.u]
kind = "integer"
min = 0
max = 1000000
log = true
nullable = true
dtype = "uint32"
[columns.f]
kind = "number"
min = -1
max = 1
decimals = 3
dtype = "float"
[columns.g]
kind = "number"
min = 0
max = 1e6
log = true
decimals = 2
nullable = true
[columns.c]
kind = "category"
values = [3, 1, 2]
nullable = true
[columns.k]
kind = "category"
values = ["x", "é", ""]
dtype = "dictionary"
[columns.d]
kind = "date"
first = 1900-01-01
last = 2100-01-01
step = 7
nullable = true
[columns.t]
kind = "timestamp"
first = 1999-12-31T23:59:59
last = 2030-01-01T00:00:00
step = 60
dtype = "timestamp[ms, tz=Europe/Berlin]"
[columns.b]
kind = "flag"
nullable = true
"""
SCHEMA = Schema.parse(TYPES)
CODEC = Codec(SCHEMA)


def _maybe(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | values


ROWS = st.fixed_dictionaries(
    {
        "i8": st.integers(0, 21).map(lambda k: -5 + 5 * k),
        "u": _maybe(st.integers(0, 10**6)),
        "f": st.integers(-1000, 1000).map(lambda k: k / 1000),
        "g": _maybe(st.integers(0, 10**8).map(lambda k: k / 100)),
        "c": _maybe(st.sampled_from([1, 2, 3])),
        "k": st.sampled_from(["x", "é", ""]),
        "d": _maybe(st.integers(0, 10_000).map(lambda k: dt.date(1900, 1, 1) + dt.timedelta(days=7 * k))),
        "t": st.integers(0, 10**7).map(lambda k: dt.datetime(1999, 12, 31, 23, 59, 59) + dt.timedelta(minutes=k)),
        "b": _maybe(st.booleans()),
    }
)


def _table(rows: list[dict]) -> pa.Table:
    arrays = {}
    for name, kind in CODEC.types.items():
        cells = [row[name] for row in rows]
        if name == "t":
            arrays[name] = pa.array(cells, pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC")).cast(kind)
        elif name == "k":
            arrays[name] = pa.array(cells, pa.string()).dictionary_encode().cast(kind)
        else:
            arrays[name] = pa.array(cells, kind)
    return pa.table(arrays)


@given(st.lists(ROWS, min_size=1, max_size=20))
@settings(max_examples=150, deadline=None)
def test_declared_values_survive_exactly(rows: list[dict]) -> None:
    table = _table(rows)
    back = CODEC.decode(CODEC.encode(table))
    assert back.schema == table.schema
    for name in table.column_names:
        assert back.column(name).to_pylist() == table.column(name).to_pylist(), name


ODD = st.one_of(
    st.text(max_size=20),
    st.floats(),
    st.sampled_from(
        ["1e999", "nan", "-inf", "NaN", "１２", "0x10", "1_000", "😀", "", " 7 ", "2020-02-30", "\x00", "1e-400"]
    ),
)


@given(st.lists(ODD.map(str), min_size=1, max_size=10))
@settings(max_examples=200, deadline=None)
def test_any_text_finds_a_place_and_depends_on_itself_alone(texts: list[str]) -> None:
    clean = [t.encode("utf-8", "replace").decode() for t in texts]
    together = CODEC.encode(pa.table({name: pa.array(clean) for name in SCHEMA.columns}))
    decoded = CODEC.decode(together)
    assert CODEC.decode(CODEC.encode(decoded)).equals(decoded)  # every place is a declared one
    for i, text in enumerate(clean):
        alone = CODEC.encode(pa.table({name: pa.array([text]) for name in SCHEMA.columns}))
        assert (alone.numbers[0] == together.numbers[i]).all()
        assert all(alone.codes[v][0] == together.codes[v][i] for v in alone.codes)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, 2**62]),
        pa.array([math.nan, math.inf, -math.inf]),
        pa.array([b"\xff", None, b""]),
        pa.array([[1], None, []]),
        pa.array([{"a": 1}, None, {"a": 2}]),
        pa.array([True, None, False]),
        pa.array([dt.time(1), None, dt.time(2)]),
        pa.array([dt.timedelta(1), None, dt.timedelta(2)]),
        pa.array(["a" * 10_000_000, None, "😀"]),
        pa.array([None, None, None]),
        pa.array([dt.datetime(1, 1, 1), None, dt.datetime(9999, 1, 1)]),
        pa.array(["x", None, "y"]).dictionary_encode(),
        pa.array(["x", None, "y"], pa.string_view()),
        pa.array([1, None, 3], pa.decimal128(38, 2)),
        pa.array([2**64 - 1, None, 0], pa.uint64()),
    ],
    ids=str,
)
def test_any_stored_type_is_taken(array: pa.Array) -> None:
    table = CODEC.decode(CODEC.encode(pa.table({name: array for name in SCHEMA.columns})))
    assert table.num_rows == 3


def test_out_of_range_is_clipped_and_unknown_takes_its_place() -> None:
    schema = Schema.parse(
        '[columns.n]\nkind = "number"\nmin = 0\nmax = 1\n'
        '[columns.o]\nkind = "category"\nvalues = ["a"]\nother = "rest"\nnullable = true\n'
        '[columns.p]\nkind = "category"\nvalues = ["a", "b"]\n'
    )
    table = pa.table({"n": [5.0, -math.inf, math.nan], "o": ["zzz", None, "a"], "p": ["zzz", None, "b"]})
    codec = Codec(schema)
    assert codec.decode(codec.encode(table)).to_pydict() == {
        "n": [1.0, 0.0, 0.0],
        "o": ["rest", None, "a"],
        "p": ["a", "a", "b"],
    }


def test_frames_of_every_make_mean_the_same() -> None:
    cells = {"i8": [5, 10], "k": ["x", "é"], "f": [0.5, -0.25]}
    schema = Schema.parse(
        "\n".join(f"[columns.{n}]{TYPES.split(f'[columns.{n}]')[1].split('[columns')[0]}" for n in cells)
    )
    codec = Codec(schema)
    frames = [
        pa.table(cells),
        pd.DataFrame(cells),
        pl.DataFrame(cells),
        pl.LazyFrame(cells),
        pd.DataFrame(cells).astype(object),
        pd.DataFrame({name: pd.Series(c, dtype="category") for name, c in cells.items()}),
    ]
    tables = [codec.decode(codec.encode(next(open_rows(f).batches(list(cells))))) for f in frames]
    assert all(t.equals(tables[0]) for t in tables)


def test_mixed_python_objects_are_taken_cell_by_cell() -> None:
    frame = pd.DataFrame({"i8": np.array([5, "10", None, {"a": 1}, 15.0, object()], dtype=object)})
    schema = Schema.parse('[columns.i8]\nkind = "integer"\nmin = 0\nmax = 20\nnullable = true\n')
    codec = Codec(schema)
    table = codec.decode(codec.encode(next(open_rows(frame).batches(["i8"]))))
    assert table.column("i8").to_pylist() == [5, 10, None, None, 15, None]


def test_ids_are_generated_never_read() -> None:
    schema = Schema.parse('[columns.key]\nkind = "id"\ndtype = "string"\n[columns.b]\nkind = "flag"\n')
    codec = Codec(schema)
    batch = codec.encode(pa.table({"b": [True, False]}))
    assert codec.decode(batch, first_id=7).column("key").to_pylist() == ["7", "8"]


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(SchemaError, match="no Arrow type"):
        Codec(Schema.parse('[columns.b]\nkind = "flag"\ndtype = "int31"\n'))


def test_a_typed_row_refuses_what_is_not_declared() -> None:
    assert CODEC.row({"c": "3", "b": "yes"}).codes["c"].item() == 0
    for name, value in (("c", 9), ("b", "maybe"), ("f", 7), ("nobody", 1), ("i8", None)):
        with pytest.raises(SchemaError):
            CODEC.row({name: value})
