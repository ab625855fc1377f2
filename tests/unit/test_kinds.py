"""A kind of column that only this file knows goes all the way: draft, plan, release, model, rows, report."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpmerf
from dpmerf.encoding.codec import Codec
from dpmerf.report.make import make_report
from dpmerf.schema import KINDS, Numeric, Schema
from dpmerf.schema.kinds.column import Cells, Form
from dpmerf.schema.quantities import Fact
from dpmerf.sources.rows import open_rows


@final
class Spans(Form):
    def holds(self, stored: pa.DataType) -> bool:
        return pa.types.is_duration(stored)

    def texts(self, array: pa.Array) -> list[str | None]:
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[array.type.unit]
        return [None if at is None else f"{at // unit} s" for at in array.view(pa.int64()).to_pylist()]

    def of_object(self, cell: Any) -> str | None:
        return f"{cell // dt.timedelta(seconds=1)} s" if type(cell) is dt.timedelta else None


class Span(Numeric):
    """A length of time in whole seconds up to `longest`."""

    kind: Literal["span"] = "span"
    title = "span – a length of time"
    hint = "longest, in seconds"
    needs = ("longest",)
    asks = ("longest",)
    usual = pa.duration("s")
    form = Spans()
    longest: int

    @property
    def line(self) -> tuple[float, float, float | None, bool]:
        return 0, self.longest, 1, False

    def read(self, cells: Cells, array: Any) -> np.ndarray:
        return cells.each(array, lambda text: float(m[1]) if (m := re.fullmatch(r"(-?[0-9]+) s", text)) else None)

    def array(self, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
        return pa.array(values.astype(np.int64), pa.int64(), mask=absent).cast(pa.duration("s"))

    def shown(self, value: float) -> str:
        return f"{value:.0f} s"

    exact = shown

    def at(self, place: float) -> dt.timedelta:
        return dt.timedelta(seconds=round(place * self.longest))

    def fact(self) -> Fact:
        return Fact("number", 0.0, float(self.longest), self.nullable, 1.0)

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        return {} if pa.types.is_duration(stored) else None


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    KINDS["span"] = Span
    Schema.model_rebuild(force=True)
    yield
    del KINDS["span"]
    Schema.model_rebuild(force=True)


SCHEMA = '[columns.wait]\nkind = "span"\nlongest = 600\nnullable = true\n[columns.ill]\nkind = "flag"\n'


def test_a_new_kind_goes_all_the_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    seconds = np.clip(rng.normal(300, 30, 2_000), 0, 600).astype(np.int64)
    rows = pa.table({"wait": pa.array(seconds).cast(pa.duration("s")), "ill": rng.random(2_000) < 0.3})
    drafted = Schema.draft(rows)
    assert 'kind = "span"' in drafted and 'longest = "?"' in drafted and "longest, in seconds" in drafted
    schema = Schema.parse(SCHEMA)
    assert Schema.from_json(schema.to_json()) == schema
    plan = dpmerf.make_plan(schema, 5.0, 1e-5, rows=rows.num_rows)
    release = dpmerf.release(rows, plan, ledger=tmp_path / "ledger")
    model = dpmerf.train(release, seed=1)
    made = model.sample(500, seed=2)
    waits = pa.Table.from_pandas(made) if not isinstance(made, pa.Table) else made
    column = waits.column("wait").cast(pa.duration("s")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    assert 250 < np.nanmedian(column) < 350 and np.nanmax(column) <= 600
    assert "wait" in make_report(release, model, real=rows).html()


def test_its_cells_have_one_place_in_every_form() -> None:
    codec = Codec(Schema.parse(SCHEMA))
    objects = np.array([dt.timedelta(seconds=5), None, "7 s"], dtype=object)
    forms = [
        pd.DataFrame({"wait": objects, "ill": [True] * 3}),
        pa.table({"wait": ["5 s", None, "7 s"], "ill": [True] * 3}),
        pa.table({"wait": pa.array([5_000, None, 7_999], pa.duration("ms")), "ill": [True] * 3}),
    ]
    found = []
    for data in forms:
        (batch,) = open_rows(data).batches(["wait", "ill"])
        found.append(codec.encode(pa.Table.from_batches([batch])))
    assert all(bool((f.numbers == found[0].numbers).all()) for f in found)
    assert all(f.codes["wait#null"].tolist() == [0, 1, 0] for f in found)
