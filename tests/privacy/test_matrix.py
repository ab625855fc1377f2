"""A cell's place is a function of the cell, whatever type the rest of the column forces on it.

Every type of pandas, Polars, Arrow and DuckDB, as it is, as objects, with one null and with one cell of another kind:
the other cells keep their places, under every kind of declared column and as names of persons.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpmerf.encoding import cells
from dpmerf.errors import DataError
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.sources.rows import open_rows
from privacy.matrix import DUCKDB, arrow_columns, pandas_columns, places, polars_columns
from privacy.variants import FULL

FOREIGN: list[Any] = [
    "odd one out", 0.5, None, pd.Timestamp("2021-05-05"), pd.Timestamp("2021-05-05", tz="UTC"), 1, True, b"x", 10**30,
    pd.NaT, pd.NA, {"a": 1}, "12", "",
]  # fmt: skip


def same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]], what: str, names: bool = True) -> None:
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a == b if names else a[:-1] == b[:-1], f"{what}: cell {i} moved"


def pandas_variants(series: pd.Series) -> dict[str, pd.Series]:
    """Series whose first cells are those of `series`, in whatever type pandas gives them beside another last cell."""
    ways: dict[str, Callable[[], pd.Series]] = {
        "object": lambda: series.astype(object),
        "list": lambda: pd.Series(series.tolist(), dtype=object),
        "as category": lambda: series.astype("category"),
        "masked": lambda: _longer(series, series.iloc[-1]).mask(pd.Series([*[False] * len(series), True])),
    }
    for foreign in FOREIGN if FULL else FOREIGN[:4]:
        ways[f"with {foreign!r}"] = lambda foreign=foreign: _longer(series, foreign)
    for foreign in FOREIGN if FULL else ():
        ways[f"as objects with {foreign!r}"] = lambda foreign=foreign: _longer(series.astype(object), foreign)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, make in ways.items():
            with contextlib.suppress(NotImplementedError, TypeError, ValueError, pa.ArrowException):
                found[what] = make()  # where pandas itself refuses, there is no such table
    assert "list" in found
    if isinstance(getattr(series.dtype, "pyarrow_dtype", None), pa.BaseExtensionType):
        del found["list"]  # pandas hands out other objects there than in a column of objects
    return found


def _longer(series: pd.Series, last: object) -> pd.Series:
    return pd.concat([series, pd.Series([last])], ignore_index=True)


@pytest.mark.parametrize("name", pandas_columns())
def test_pandas(name: str) -> None:
    series = pandas_columns()[name]
    expected = places(pd.DataFrame({"c": series}))
    for what, other in pandas_variants(series).items():
        same(places(pd.DataFrame({"c": other}))[: len(series)], expected, f"{name}, {what}")


@pytest.mark.parametrize("name", polars_columns())
def test_polars(name: str) -> None:
    series = polars_columns()[name]
    expected = places(pl.DataFrame({"c": series}))
    if "ns" in name:  # a list of Polars has no nanoseconds
        found = {"pandas": pd.Series(series.to_arrow().to_pylist(), dtype=object)}
    else:
        objects = series.to_list()
        found = {"object": pl.Series(objects, dtype=pl.Object), "pandas": pd.Series(objects, dtype=object)}
    others = (None, 0.5, 1) if series.dtype.is_numeric() else (None,)  # the rest are casts that the caller asks for
    for foreign in others:
        both = [pl.DataFrame({"c": series}), pl.DataFrame({"c": [foreign]})]
        found[f"with {foreign!r}"] = pl.concat(both, how="vertical_relaxed")["c"]
    for what, other in found.items():
        frame = pl.DataFrame({"c": other}) if isinstance(other, pl.Series) else pd.DataFrame({"c": other})
        same(places(frame)[: len(series)], expected, f"{name}, {what}")


@pytest.mark.parametrize("name", arrow_columns())
def test_arrow(name: str) -> None:
    """Arrow columns have one type for good: they are compared with the same cells as objects, and beside a null."""
    array = arrow_columns()[name]
    expected = places(pa.table({"c": array}))
    if name != "run ends":
        longer = pa.concat_arrays([array, pa.nulls(1, array.type)])
        same(places(pa.table({"c": longer}))[: len(array)], expected, f"{name}, with a null")
    same(places(pa.table({"c": pa.chunked_array([array[:1], array[1:]])})), expected, f"{name}, in chunks")
    objects = pd.DataFrame({"c": pd.Series(array.to_pylist(), dtype=object)})
    huge = name in ("int64 huge", "dictionary int", "uint64 huge")  # their names have more digits than a float
    same(places(objects), expected, f"{name}, as objects", names=not huge)


@pytest.mark.parametrize("kind", DUCKDB)
def test_duckdb(kind: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("set timezone = 'Asia/Tokyo'")
    rows = [f"({literal}::{kind})" for literal in DUCKDB[kind]]
    query = f"select * from (values {', '.join(rows)}) as t(c)"
    expected = places(connection.sql(query))
    assert len(expected) == len(rows)
    with_null = connection.sql(f"{query} union all select null::{kind}")
    same(sorted(places(with_null)[: len(rows)]), sorted(expected), f"{kind}, with a null")
    if kind.startswith("TIMESTAMP"):  # as objects of Python they have no nanoseconds, and zones need another package
        objects = connection.sql(query).to_arrow_table()["c"].to_pylist()
    else:
        objects = [row[0] for row in connection.sql(query).fetchall()]
    same(places(pd.DataFrame({"c": pd.Series(objects, dtype=object)})), expected, f"{kind}, as objects")


def test_zip_codes_that_were_read_as_numbers() -> None:
    """`pd.read_csv` makes "01234" a number unless one cell stands in the way: the listed text is found either way."""
    schema = Schema.parse('[columns.zip]\nkind = "category"\nvalues = ["01234", "98101", "00501"]\nother = "else"\n')
    plan = make_plan(schema, 1.0, 1e-5, rows=4)
    frames = [
        pd.DataFrame({"zip": ["01234", "98101", "00501", "?"]}),
        pd.DataFrame({"zip": [1234, 98101, 501, 1]}),
        pd.DataFrame({"zip": [1234.0, 98101.0, 501.0, np.nan]}),
        pd.DataFrame({"zip": pd.Series([1234, 98101, 501, "?"], dtype=object)}),
    ]
    found = [plan.codec.encode(next(iter(open_rows(f).batches(["zip"])))).codes["zip"].tolist() for f in frames]
    assert found == [[0, 1, 2, 3]] * 4
    for frame in frames:
        measure(frame, plan)


@pytest.mark.parametrize("listed", ['["1", "2", "01"]', '["2020-01-01", "2020-01-01 00:00"]', '["true", "1"]'])
def test_texts_that_read_alike_are_refused_in_frames_whatever_the_cells(listed: str) -> None:
    """There a number cannot say which text it was, and its column may be numbers or text because of one cell."""
    schema = Schema.parse(f'[columns.code]\nkind = "category"\nvalues = {listed}\n')
    plan = make_plan(schema, 1.0, 1e-5, rows=2)
    said = set()
    for cells_of in ([1, 2], [1.0, np.nan], [True, False], ["1", "01"], ["1", 1], pd.to_datetime(["2020-01-01"] * 2)):
        for frame in (pd.DataFrame({"code": cells_of}), pl.DataFrame({"code": pl.Series(cells_of, strict=False)})):
            with pytest.raises(DataError, match="Pass the path") as refusal:
                measure(frame, plan)
            said.add(str(refusal.value))
    assert len(said) == 1
    measure(pa.table({"code": ["01", "1"]}), plan)


def test_persons_keep_all_digits_in_files_and_are_one_name_in_frames() -> None:
    ids = [10**17 + i for i in range(5)]
    assert len(set(cells.as_names(pa.array(ids)))) == 5
    with_null = pd.Series([*ids, None])
    assert [p[-1] for p in places(pd.DataFrame({"c": with_null}))][:5] == [
        p[-1] for p in places(pd.DataFrame({"c": ids}))
    ]
