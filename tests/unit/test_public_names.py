"""What Python shows of the package: help for every public name, a short repr, a table in a notebook."""

from __future__ import annotations

import inspect
import pydoc
import re
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmerf
from conftest import mixed_rows
from dpmerf.errors import DpmerfError, SchemaError
from dpmerf.report import make_report

NAMES = [name for name in dpmerf.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_help_shows_parameters_and_an_example(name: str) -> None:
    thing = getattr(dpmerf, name)
    told = pydoc.plain(pydoc.render_doc(thing))
    assert "Parameters\n" in told and ">>> " in told, name
    document = inspect.getdoc(thing) or ""
    said = set(re.findall(r"\w+", document))
    if thing is not DpmerfError:  # an exception takes any words
        missing = [p for p in inspect.signature(thing).parameters if p not in said]
        assert not missing, f"{name} does not say what {missing} are"
    for method, own in inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else ():
        if not method.startswith("_") and str(getattr(own, "__module__", "")).startswith("dpmerf"):
            assert own.__doc__, f"{name}.{method} says nothing of itself"


@pytest.fixture(scope="module")
def things(mixed_schema: dpmerf.Schema) -> dict[str, Any]:
    plan = dpmerf.make_plan(mixed_schema, 1.0, 1e-5, rows=500, unit=dpmerf.Unit("key", 1))
    release = dpmerf.release(mixed_rows(500), plan)
    model = dpmerf.train(release, seed=7)
    report = make_report(release, model)
    return {"Schema": mixed_schema, "Plan": plan, "Release": release, "Model": model, "Report": report}


@pytest.mark.filterwarnings("ignore:no ledger")
def test_repr_is_one_line_and_a_notebook_gets_a_table(things: dict[str, Any]) -> None:
    for name, thing in things.items():
        shown = repr(thing)
        assert shown.startswith(f"{name}(") and "\n" not in shown and len(shown) < 900, shown
        table = thing._repr_html_()
        assert table.startswith("<table>") and f"<b>{name}</b>" in table
    assert "epsilon=1" in repr(things["Plan"]) and "about" in repr(things["Release"])  # the number of rows is noisy
    assert "max = 100" in things["Schema"]._repr_html_() and "seed=7" in repr(things["Model"])


@pytest.mark.filterwarnings("ignore:no ledger")
def test_an_answer_is_a_table_with_labels(things: dict[str, Any]) -> None:
    found = dpmerf.answer(things["Release"], "count", by=("ward", "ill"))
    table = found.to_arrow()
    assert table.num_rows == len(found.lines) and table.column_names[:3] == ["ward", "ill", "estimate"]
    assert set(table["ward"].to_pylist()) >= {"a", "b", "c"} and "ward = a, ill" in found._repr_html_()
    assert repr(found).startswith("Answer(question=")


def test_names_in_a_notebook_are_escaped() -> None:
    schema = dpmerf.Schema.from_dict({"columns": {"<script>x": {"kind": "flag"}}})
    assert "<script>" not in schema._repr_html_() and "&lt;script&gt;x" in schema._repr_html_()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_draft_reads_names_and_types_and_no_value(make: Any) -> None:
    text = dpmerf.Schema.draft(make({"age": [71, 47], "ward": ["SECRET-1", "SECRET-2"], "ok": [True, False]}))
    assert 'kind = "integer"' in text and 'kind = "flag"' in text and "SECRET" not in text and "71" not in text
    with pytest.raises(SchemaError, match='still "\\?"'):
        dpmerf.Schema.parse(text)


def test_a_draft_of_something_else_is_one_clear_error() -> None:
    with pytest.raises(SchemaError, match=r"dpmerf schema draft patients\.csv"):
        dpmerf.Schema.draft("patients.csv")
    with pytest.raises(SchemaError, match="not a table"):
        dpmerf.Schema.draft(3)
