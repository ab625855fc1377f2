"""Holes that a review of the core found, each closed and kept closed."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from dpmerf.accounting.unit import Unit
from dpmerf.encoding import cells
from dpmerf.encoding.binning import Binning
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.errors import DataError, LedgerError
from dpmerf.features.algebra import of
from dpmerf.features.dense import Dense
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import Histograms, Tables
from dpmerf.private.contribute import bounded
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.sources.rows import Rows, open_rows
from privacy.variants import VARIANTS

SCHEMA = Schema.parse(
    """
[columns.number]
kind = "number"
min = 0
max = 10
[columns.name]
kind = "category"
values = ["x", "3", "true"]
other = "?!"
[columns.day]
kind = "date"
first = 2000-01-01
last = 2020-01-01
[columns.flag]
kind = "flag"
nullable = true
"""
)


def broken_text() -> pa.Array:
    """A text column whose first cell is not UTF-8, as files can hold it."""
    offsets = np.array([0, 2, 3], np.int32)
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"\xff\xfe3")])


def test_broken_utf8_is_a_cell_like_any_other(tmp_path: Path) -> None:
    table = pa.table({name: broken_text() for name in SCHEMA.columns})
    whole = pa.table({name: pa.array(["?", "3"]) for name in SCHEMA.columns})
    found, expected = Codec(SCHEMA).encode(table), Codec(SCHEMA).encode(whole)
    assert torch.equal(found.numbers[1], expected.numbers[1])
    assert all(found.codes[name][1] == expected.codes[name][1] for name in found.codes)
    assert cells.as_names(table["name"])[1] == "3"
    pq.write_table(table, tmp_path / "broken.parquet")
    release = measure(tmp_path / "broken.parquet", make_plan(SCHEMA, 1.0, 1e-5, rows=2))
    assert release.rows == 2


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True],
        [np.int64(3), np.int64(4), np.int64(5)],
        [3, 4, 5],
        [0.25, np.nan, 3.0],
        np.array([0.1, 0.2, 3.0], np.float32),
        list(pd.to_datetime(["2001-01-01T05:00", "2002-02-02T23:30", "2003-01-01T00:00"]).tz_localize("Asia/Tokyo")),
        [dt.datetime(2001, 1, 1, 12), dt.datetime(2002, 2, 2), dt.datetime(2003, 3, 3)],
        ["3", "x", "true"],
        pd.array([True, None, False], dtype="boolean"),
        pd.array([3, None, 4], dtype="Int64"),
    ],
    ids=["bool", "numpy-int", "int", "float", "float32", "zoned", "naive", "text", "boolean", "Int64"],
)
def test_one_odd_cell_does_not_change_how_the_others_are_read(column: object) -> None:
    """pandas chooses a column's type by all of its cells: a replaced cell may turn it into objects."""
    plain = pd.Series(column)
    odd = plain.astype(object).copy()
    odd.iloc[2] = "odd one out"

    def encoded(series: pd.Series) -> Batch:
        frame = pd.DataFrame({name: series for name in SCHEMA.columns})
        return Codec(SCHEMA).encode(next(iter(open_rows(frame).batches(list(SCHEMA.columns)))))

    before, after = encoded(plain), encoded(odd)
    assert torch.equal(before.numbers[:2], after.numbers[:2])
    for name, code in before.codes.items():
        assert torch.equal(code[:2], after.codes[name][:2]), name


def test_frames_that_arrow_refuses_are_read_and_never_quoted() -> None:
    for odd in (pd.Categorical([1, "SECRET", 2.5]), [1 + 2j, 3, 4], pd.arrays.SparseArray([1, 0, 0])):
        frame = pd.DataFrame({"number": [1, 2, 3], "name": odd, "day": ["2001-01-01"] * 3, "flag": [True] * 3})
        assert open_rows(frame).stored_count == 3


def test_an_empty_cell_of_a_one_column_csv_is_a_row(tmp_path: Path) -> None:
    for text in ("number\n1\n\n3\n", 'number\n1\n""\n3\n', "number\n1\n2\n3\n"):
        (tmp_path / "one.csv").write_text(text)
        assert sum(b.num_rows for b in open_rows(tmp_path / "one.csv").batches(["number"])) == 3


class Liar(Dense):
    """Claims a norm of 1 and returns whatever it was given."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value

    @property
    def name(self) -> str:
        return "liar"

    @property
    def dim(self) -> int:
        return self.value.shape[1]

    def __call__(self, numbers: torch.Tensor) -> torch.Tensor:
        return self.value[: numbers.shape[0]]


@pytest.mark.parametrize("length", [1.0, 1 + 1e-9, 1.5, 3.0, 1e6, 1e16, 1e160, 1e308, float("inf"), float("nan")])
def test_the_norm_is_enforced_whatever_the_map_returns(length: float) -> None:
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(200, 7, generator=generator, dtype=torch.float64)
    direction[0] = torch.tensor([1.0, 0, 0, 0, 0, 0, 0])
    direction[1] = torch.tensor([3.0, 4.0, 0, 0, 0, 0, 0]) / 5
    values = direction / direction.norm(dim=1, keepdim=True) * length
    for weight in (1.0, 0.3, 4.0):
        block = (weight * of(Liar(values))).blocks[0]
        whole = bounded(values, block)
        squares = [sum(int(x) ** 2 for x in row) for row in whole.tolist()]
        assert max(squares) <= block.integer_norm**2
        assert bool((whole == whole.trunc()).all())


def test_bins_never_outgrow_what_was_priced() -> None:
    """Many heavy single values with light ones between them: the case that used to cut more bins than the price."""
    schema = Schema.parse('[columns.a]\nkind = "integer"\nmin = 0\nmax = 200\n[columns.b]\nkind = "flag"')
    plan = make_plan(schema, 1.0, 1e-5, rows=20_000)
    tables = next(s.query for s in plan.stages if isinstance(s.query, Tables))
    grid = plan.query(Histograms).grid(plan.codec)
    nominal = Binning.equal(grid, 2 * tables.bins).variables["a"].size
    rng = np.random.default_rng(0)
    single = np.flatnonzero(grid.numeric["a"].widths == 1)
    for heavies in range(1, 2 * tables.bins):
        mass = rng.exponential(0.1, grid.numeric["a"].size)
        mass[single[1 :: len(single) // heavies][:heavies]] = 20_000 / heavies
        counts = {"a": mass / mass.sum() * 20_000, "b": np.array([1e4, 1e4])}
        for sigma in (0.01, 30.0):
            cut = Binning.cut(grid, counts, {"a": sigma, "b": sigma}, 20_000.0, tables.bins, frozenset())
            assert cut.variables["a"].size <= nominal
            assert sorted(set(cut.bin_of["a"].tolist())) == list(range(cut.variables["a"].size))


def test_shares_that_miss_one_by_a_rounding_do_not_overspend() -> None:
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=100)
    first, second = plan.stages
    slack = Stage(second.name, second.share * (1 + 9e-10), second.query)
    made = Plan(plan.schema, 1.0, 1e-5, plan.unit, 100, "default", False, (first, slack))
    assert sum(p.mu**2 for p in made.prices) <= made.mu**2 * (1 + 1e-15)


def test_one_ledger_counts_for_one_unit(tmp_path: Path) -> None:
    """μ of releases for rows and μ of releases for persons do not add up to anything."""
    table = pa.table({"number": [1.0, 2.0], "name": ["x", "3"], "day": ["2001-01-01"] * 2, "flag": [True, None]})
    ledger = Ledger.open(tmp_path / "study.ledger", 3.0, 1e-5)
    measure(table, make_plan(SCHEMA, 1.0, 1e-5, rows=2), ledger=ledger)
    measure(table, make_plan(SCHEMA, 1.0, 1e-5, rows=2), ledger=ledger)
    with pytest.raises(LedgerError, match="another unit of privacy"):
        measure(table, make_plan(SCHEMA, 1.0, 1e-5, rows=2, unit=Unit(neighbours="add-remove")), ledger=ledger)
    assert len(ledger.entries()) == 2


def test_rows_that_appear_between_two_readings_are_refused() -> None:
    """The cap on a person's rows is chosen in a first reading: a table that grew since would pass it by."""
    plan = VARIANTS["person"](1.0)
    first = pa.table({"x": [0.1, 0.2], "t": [1, 2], "y": [True, False], "who": ["a", "b"]})
    more = pa.concat_tables([first] + [first.slice(0, 1)] * 50)

    class Growing(Rows):
        fields = {name: None for name in first.column_names}  # noqa: RUF012
        stored_count = None
        readings = 0

        def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
            self.readings += 1
            yield from (first if self.readings == 1 else more).select(columns).to_batches()

    with pytest.raises(DataError, match="changed while it was read"):
        measure(Growing(), plan)
