"""Columns of every type that a frame library, a database or Arrow has, each with cells at the edges of that type."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
import zoneinfo
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.encoding import cells
from dpmerf.encoding.codec import Codec
from dpmerf.schema import Schema
from dpmerf.sources.rows import open_rows

TOKYO = zoneinfo.ZoneInfo("Asia/Tokyo")
D = decimal.Decimal
LISTED = (
    '["x", "01234", "12345678901234567", "9007199254740993", "2020-01-01", "2020-01-02T06:00:00.5", "True", "0.1", '
    '"-5", "3.00", "18446744073709551615", "(0, 1]", "9999-12-31", "1", "ab", "inf", ""]'
)
READINGS = Schema.parse(
    f"""
[columns.number]
kind = "number"
min = -1e20
max = 1e20
nullable = true
[columns.small]
kind = "number"
min = -2
max = 2000
decimals = 3
[columns.whole]
kind = "integer"
min = -10
max = 2000
nullable = true
[columns.day]
kind = "date"
first = 0001-01-01
last = 9999-12-31
nullable = true
[columns.moment]
kind = "timestamp"
first = 0001-01-01T00:00:00
last = 9999-12-31T23:59:59
nullable = true
[columns.local]
kind = "timestamp"
first = 0001-01-01T00:00:00
last = 9999-12-31T23:59:59
nullable = true
reading = {{ zone = "Europe/Berlin" }}
[columns.clock]
kind = "time"
nullable = true
[columns.night]
kind = "time"
first = 22:00:00
last = 06:00:00
step = 60
[columns.flag]
kind = "flag"
nullable = true
[columns.text]
kind = "category"
values = {LISTED}
other = "other"
nullable = true
[columns.strict]
kind = "category"
values = {LISTED}
[columns.counted]
kind = "category"
values = [1, 1234, -5, 9007199254740993, 18446744073709551615]
other = 7
nullable = true
"""
)
CODEC = Codec(READINGS)


def places(data: Any) -> list[tuple[Any, ...]]:
    """What each cell of column `c` becomes under every kind of declared column, bit for bit, and whom it names."""
    found: list[tuple[Any, ...]] = []
    for batch in open_rows(data).batches(["c"]):
        array = batch.column("c")
        encoded = CODEC.encode(pa.table({name: array for name in READINGS.columns}))
        columns = [encoded.numbers[:, j].numpy().view(np.int64).tolist() for j in range(encoded.numbers.shape[1])]
        columns += [encoded.codes[name].tolist() for name in sorted(encoded.codes)]
        found += zip(*columns, cells.as_names(array), strict=True)
    return found


FLOATS = [0.0, -0.0, 0.1, 3.0, 1234.0, -5.0, float("inf"), float("-inf"), 1.5]
HUGE = [2**53 + 1, 12345678901234567, 12345678901234568, -(2**63), 1, 1234]
MOMENTS = [
    "2020-01-01T00:00:00",
    "2020-01-02T06:00:00.5",
    "1969-12-31T23:59:59.999999999",
    "2021-03-04T05:06:07.499999999",
    "2021-03-04T05:06:07.500000001",
]
FAR = [
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59",
    "2020-01-01T00:00:00",
    "20000-01-01T00:00:00",
    "1600-02-29T12:00:00",
]
TEXTS = [
    "x",
    "01234",
    "1234",
    "12345678901234567",
    "2020-01-01",
    "2020-01-01 00:00",
    "true",
    "True",
    "1.0",
    " 7 ",
    "",
    "é",
]
TIMES = [dt.time(0), dt.time(6, 30), dt.time(23, 59, 59, 999_999), dt.time(14, 0, 0, 500_000), dt.time(21, 59, 31)]
DAYS = [dt.date(2020, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)]
ZONED = [
    dt.datetime(2020, 1, 1, 9, tzinfo=TOKYO),
    dt.datetime(1, 1, 1, tzinfo=TOKYO),
    dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC),
]
DECIMALS = [D("3.00"), D("0.10"), D("1234.00"), D("-5.00"), D("1.00"), D("999.99")]
UUIDS = [uuid.UUID(int=5), uuid.UUID(int=2**127)]


def moments(unit: str, texts: list[str] = MOMENTS) -> np.ndarray:
    return np.array(texts, f"M8[{unit}]")


def objects(found: list[Any]) -> pd.Series:
    return pd.Series(found, dtype=object)


@lru_cache
def pandas_columns() -> dict[str, pd.Series]:
    """One series of every dtype: NumPy, nullable, Arrow-backed, object, categorical, period, interval, sparse."""
    found: dict[str, pd.Series] = {"bool": pd.Series([True, False, True])}
    for bits in (8, 16, 32, 64):
        found[f"int{bits}"] = pd.Series([0, 1, -5, 100], dtype=f"int{bits}")
        found[f"uint{bits}"] = pd.Series([0, 1, 100], dtype=f"uint{bits}")
        found[f"Int{bits}"] = pd.Series([0, 1, -5, None, 100], dtype=f"Int{bits}")
        found[f"UInt{bits}"] = pd.Series([0, 1, None, 100], dtype=f"UInt{bits}")
    found |= {f"float{bits}": pd.Series(FLOATS, dtype=f"float{bits}") for bits in (16, 32, 64)}
    found |= {
        "int64 huge": pd.Series(HUGE, dtype="int64"),
        "Int64 huge": pd.Series([*HUGE, None], dtype="Int64"),
        "uint64 huge": pd.Series([2**64 - 1, 2**63, 1234], dtype="uint64"),
        "longdouble": pd.Series(np.array([0.1, 3, 1234], np.longdouble)),
        "complex": pd.Series([1 + 0j, 2j]),
        "Float32": pd.Series([0.5, None, 3.0], dtype="Float32"),
        "Float64": pd.Series([0.1, None, 3.0, 1234.0], dtype="Float64"),
        "boolean": pd.Series([True, None, False], dtype="boolean"),
        "str": pd.Series(TEXTS),
        "string": pd.Series([*TEXTS, None], dtype="string"),
        "object str": pd.Series(TEXTS, dtype=object),
        "bytes": pd.Series([b"x", b"01234", b"\xff"]),
        "date": pd.Series(DAYS, dtype=object),
        "time": objects(TIMES),
        "time as Arrow": pd.Series(TIMES, dtype=pd.ArrowDtype(pa.time64("us"))),
        "datetime": objects([dt.datetime(2020, 1, 2, 6, 0, 0, 500_000), dt.datetime.min, dt.datetime.max]),
        "zoned datetime": pd.Series(ZONED, dtype=object),
        "decimal": pd.Series([*DECIMALS, D("NaN"), D("sNaN"), D("inf"), D("1e-400")], dtype=object),
        "uuid": pd.Series(UUIDS, dtype=object),
        "mixed": objects([1, 1.0, "1", True, None, {"a": 1}, [1], 10**400, -(10**400), object(), np.float32(0.5)]),
        "numpy scalars": objects([np.int8(5), np.uint64(2**64 - 1), np.bool_(True), np.float16(0.5), np.str_("x")]),
        "period": pd.Series(pd.period_range("2020-01", periods=3, freq="M")),
        "interval": pd.Series(pd.interval_range(0, 3)),
        "cut": pd.cut(pd.Series([0.5, 1.5, 2.5]), [0, 1, 2, 3]),
        "sparse int": pd.Series(pd.arrays.SparseArray([1, 0, 1234])),
        "sparse float": pd.Series(pd.arrays.SparseArray([0.1, np.nan, 1234.0])),
        "timedelta": pd.Series(pd.to_timedelta([1, 2], unit="s")),
        "category str": pd.Series(TEXTS, dtype="category"),
        "category int": pd.Series(HUGE, dtype="category"),
        "category float": pd.Series(FLOATS, dtype="category"),
        "category bool": pd.Series([True, False], dtype="category"),
        "category moment": pd.Series(moments("ns"), dtype="category"),
        "category zoned": pd.Series(pd.DatetimeIndex(moments("ns")).tz_localize("Asia/Tokyo"), dtype="category"),
        "category date": pd.Series(DAYS, dtype="category"),
        "category period": pd.Series(pd.period_range("2020-01", periods=3, freq="M"), dtype="category"),
        "category mixed": pd.Series([1, "x", 2.5, True], dtype="category"),
    }  # fmt: skip
    for unit in ("s", "ms", "us", "ns"):
        found[f"datetime64 {unit}"] = pd.Series(moments(unit))
        found[f"datetime64 {unit} zoned"] = pd.Series(pd.DatetimeIndex(moments(unit)).tz_localize("Asia/Tokyo"))
        if unit != "ns":
            found[f"datetime64 {unit} far"] = pd.Series(moments(unit, FAR))
            found[f"datetime64 {unit} far zoned"] = pd.Series(
                pd.DatetimeIndex(moments(unit, FAR[2:])).tz_localize("UTC")
            )
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"):
        texts = ["1970-01-01", "1970-01-01T00:00:05"] if unit in ("fs", "as") else ["2020-01-01", "1969-12-31T23:59"]
        found[f"np.datetime64 {unit}"] = pd.Series([np.datetime64(t, unit) for t in texts] + ["x"], dtype=object)
    for name, array in arrow_columns().items():
        try:
            found[f"arrow {name}"] = pd.Series(pd.array(array.to_pylist(), dtype=pd.ArrowDtype(array.type)))
        except (NotImplementedError, TypeError, ValueError, pa.ArrowException):
            continue  # pandas has no column of that type
    return found


@lru_cache
def arrow_columns() -> dict[str, pa.Array]:
    """One array of every Arrow type, a null among its cells."""
    found: dict[str, pa.Array] = {
        "null": pa.nulls(2),
        "bool": pa.array([True, None, False]),
        "bool8": pa.array([1, None, 0], pa.bool8()) if hasattr(pa, "bool8") else pa.array([True, None, False]),
        "int64 huge": pa.array([*HUGE, None]),
        "uint64 huge": pa.array([2**64 - 1, None, 2**63, 1234], pa.uint64()),
        "float16": pa.array(np.array(FLOATS, np.float16)),
        "date32": pa.array([*DAYS, None]),
        "date64": pa.array([*DAYS, None], pa.date64()),
        "time32": pa.array([dt.time(1), None, dt.time(6, 30), dt.time(23, 59, 59)], pa.time32("s")),
        "time32 ms": pa.array([dt.time(1), None, dt.time(14, 0, 0, 500_000)], pa.time32("ms")),
        "time64 us": pa.array([*TIMES, None], pa.time64("us")),
        "time64": pa.array([*TIMES, None], pa.time64("ns")),
        "duration": pa.array([dt.timedelta(1), None], pa.duration("us")),
        "month_day_nano": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        "string": pa.array([*TEXTS, None]),
        "large_string": pa.array([*TEXTS, None], pa.large_string()),
        "string_view": pa.array([*TEXTS, None], pa.string_view()),
        "binary": pa.array([b"x", b"01234", b"\xff", None]),
        "large_binary": pa.array([b"x", b"01234", b"\xff", None], pa.large_binary()),
        "binary_view": pa.array([b"x", b"01234", b"\xff", None], pa.binary_view()),
        "fixed binary": pa.array([b"ab", b"\xff\xff", None], pa.binary(2)),
        "uuid": pa.array([u.bytes for u in UUIDS] + [None], pa.uuid()) if hasattr(pa, "uuid") else pa.nulls(1),
        "list": pa.array([[1], None, []]),
        "large_list": pa.array([[1], None], pa.large_list(pa.int8())),
        "fixed list": pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
        "struct": pa.array([{"a": 1}, None]),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
        "dictionary text": pa.array([*TEXTS, None]).dictionary_encode(),
        "dictionary int": pa.array([*HUGE, None]).dictionary_encode(),
        "dictionary moment": pa.array(moments("ns")).dictionary_encode(),
        "run ends": pa.array(["x", "x", None, "01234"]).dictionary_encode().dictionary_decode(),
        "decimal128": pa.array([*DECIMALS, None], pa.decimal128(20, 2)),
        "decimal256": pa.array([*DECIMALS, None], pa.decimal256(60, 2)),
        "decimal128 fine": pa.array([D(f"0.{i}234567890123456789") for i in range(9)], pa.decimal128(38, 38)),
    }  # fmt: skip
    found["run ends"] = pc.run_end_encode(found["run ends"])
    for bits in (8, 16, 32, 64):
        found[f"int{bits}"] = pa.array([0, 1, -5, None, 100], f"int{bits}")
        found[f"uint{bits}"] = pa.array([0, 1, None, 100], f"uint{bits}")
    for name in ("float32", "float64"):
        found[name] = pa.array([*FLOATS, None, float("nan")], name)
    for name in ("decimal32", "decimal64"):
        if hasattr(pa, name):
            found[name] = pa.array([*DECIMALS, None], getattr(pa, name)(9, 2))
    for unit in ("s", "ms", "us", "ns"):
        found[f"timestamp {unit}"] = pa.array(moments(unit))
        found[f"timestamp {unit} zoned"] = pa.array(moments(unit)).cast(pa.timestamp(unit, "Asia/Tokyo"))
        if unit != "ns":
            found[f"timestamp {unit} far"] = pa.array(moments(unit, [FAR[0], FAR[1], FAR[2], FAR[4]]))
    return found


@lru_cache
def polars_columns() -> dict[str, pl.Series]:
    """One series of every dtype."""
    found: dict[str, pl.Series] = {
        "Null": pl.Series([None, None]),
        "Boolean": pl.Series([True, None, False]),
        "Int64 huge": pl.Series(HUGE),
        "UInt64 huge": pl.Series([2**64 - 1, 2**63, 1234], dtype=pl.UInt64),
        "Int128": pl.Series([1, 1234, None, 2**100], dtype=pl.Int128),
        "Float32": pl.Series(FLOATS, dtype=pl.Float32),
        "Float64": pl.Series([*FLOATS, float("nan"), None]),
        "String": pl.Series([*TEXTS, None]),
        "Categorical": pl.Series(TEXTS, dtype=pl.Categorical),
        "Enum": pl.Series(["x", None, "01234"], dtype=pl.Enum(["01234", "x"])),
        "Binary": pl.Series([b"x", b"01234", b"\xff"]),
        "Date": pl.Series([*DAYS, None]),
        "Time": pl.Series([dt.time(1), None]),
        "Duration": pl.Series([dt.timedelta(1), None]),
        "Decimal": pl.Series([*DECIMALS, None], dtype=pl.Decimal(20, 2)),
        "List": pl.Series([[1], None]),
        "Array": pl.Series([[1], None], dtype=pl.Array(pl.Int8, 1)),
        "Struct": pl.Series([{"a": 1}, None]),
        "Object": pl.Series([1, "x", None, True], dtype=pl.Object),
    }
    found |= {f"Int{b}": pl.Series([0, 1, -5, None, 100], dtype=getattr(pl, f"Int{b}")) for b in (8, 16, 32, 64)}
    found |= {f"UInt{b}": pl.Series([0, 1, None, 100], dtype=getattr(pl, f"UInt{b}")) for b in (8, 16, 32, 64)}
    for unit in ("ms", "us", "ns"):
        found[f"Datetime {unit}"] = pl.Series(moments(unit))
        found[f"Datetime {unit} zoned"] = pl.Series(moments(unit)).dt.replace_time_zone("Asia/Tokyo")
        if unit != "ns":
            found[f"Datetime {unit} far"] = pl.Series(moments(unit, [FAR[0], FAR[1], FAR[2], FAR[4]]))
    return found


DUCKDB = {
    "BOOLEAN": ["true", "false"],
    **{kind: ["1", "-5", "100"] for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")},
    **{kind: ["1", "100"] for kind in ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")},
    "FLOAT": ["0.5", "3.0"],
    "DOUBLE": ["0.1", "1234.0", "'nan'", "'inf'"],
    "DECIMAL(20, 2)": ["3.00", "1234.00", "0.10"],
    "VARCHAR": ["'x'", "'01234'", "'2020-01-01'", "''"],
    "ENUM('x', '01234')": ["'x'", "'01234'"],
    "BLOB": ["'x'", "'01234'"],
    "UUID": [f"'{u}'" for u in UUIDS],
    "DATE": ["'2020-01-01'", "'0001-01-01'", "'9999-12-31'", "'1969-12-31'"],
    "TIME": ["'01:00:00'"],
    "INTERVAL": ["'1 day'"],
    "TIMESTAMP": ["'2020-01-01'", "'2021-03-04 05:06:07.5'", "'0001-01-01'"],
    "TIMESTAMP_S": ["'2020-01-01'", "'1969-12-31 23:59:59'"],
    "TIMESTAMP_MS": ["'2020-01-01'", "'2020-01-02 06:00:00.5'"],
    "TIMESTAMP_NS": ["'2020-01-01'", "'2021-03-04 05:06:07.499999999'"],
    "TIMESTAMPTZ": ["'2020-01-01 00:00:00+00'", "'2020-01-02 09:00:00+09'"],
    "INTEGER[]": ["[1]"],
    "STRUCT(a INTEGER)": ["{'a': 1}"],
    "MAP(VARCHAR, INTEGER)": ["map {'a': 1}"],
}
