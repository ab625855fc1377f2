"""Synthesizer as scikit-learn sees it, with that library's own checks; arrays, save and load."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dpmerf
from conftest import MIXED
from dpmerf.errors import ArrayError, LedgerError, SchemaError, TrainError
from dpmerf.synthesizer import SchemaLabel, Synthesizer

pytestmark = [
    pytest.mark.filterwarnings("ignore:no ledger was charged"),
    pytest.mark.filterwarnings("ignore:Estimator Synthesizer does not inherit"),
]
SCHEMA = {"columns": {"age": {"kind": "integer", "min": 0, "max": 99}, "ill": {"kind": "flag"}}}


def test_scikit_learns_own_checks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(Synthesizer(1.0, 1e-5, bounds=(-10, 10)), on_fail=None, on_skip=None)
    wrong = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert not wrong, wrong
    passed = {one["check_name"] for one in found if one["status"] == "passed"}
    assert len(passed) >= 30, sorted(passed)


def test_settings_are_kept_as_given_and_cloned() -> None:
    tool = Synthesizer(2.0, schema=SCHEMA, unit="person:age,2", random_state=3)
    other = clone(tool)
    assert other is not tool and other.get_params() == tool.get_params() and other.schema == SCHEMA
    assert tool.set_params(epsilon=1.5) is tool and tool.epsilon == 1.5
    assert "epsilon=1.5" in repr(tool) and "progress" not in repr(tool)
    with pytest.raises(ValueError, match="no setting 'seed'"):
        tool.set_params(seed=1)
    with pytest.raises(NotFittedError):
        tool.sample(1)


@pytest.mark.parametrize("name", ["unset", "SchemaLabel"])
def test_a_label_may_have_any_name(name: str) -> None:
    """A label that is not given leaves the schema's own; no column's name means that."""
    columns = {name: {"kind": "flag"}, "ill": {"kind": "flag"}}
    tool = Synthesizer(1.0, schema={"label": "ill", "columns": columns}, label=name)
    assert clone(tool)._declared(None).label == name
    assert clone(tool.set_params(label=SchemaLabel))._declared(None).label == "ill"
    assert clone(tool.set_params(label=None))._declared(None).label is None


@pytest.mark.parametrize(
    ("make", "kind"), [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)]
)
def test_rows_come_back_in_the_kind_of_table_that_came_in(make: Any, kind: type) -> None:
    table = make({"age": [30, 40] * 100, "ill": [True, False] * 100})
    tool = Synthesizer(1.0, 1e-5, schema=SCHEMA, label="ill", random_state=5)
    assert tool.fit(table) is tool
    rows = tool.sample(20)
    assert isinstance(rows, kind) and len(rows) == 20
    assert isinstance(tool.set_params(output="pandas").sample(20, given={"ill": True}), pd.DataFrame)
    again, other = tool.sample(50, random_state=9), tool.sample(50, random_state=10)
    assert again.equals(tool.sample(50, random_state=9)) and not again.equals(other)
    assert list(tool.feature_names_in_) == ["age", "ill"] and tool.n_features_in_ == 2


def test_a_fitted_synthesizer_is_saved_and_loaded(tmp_path: Path) -> None:
    tool = Synthesizer(1.0, 1e-5, schema=SCHEMA).fit(pa.table({"age": [30, 40] * 100, "ill": [True, False] * 100}))
    tool.save(tmp_path / "fitted")
    back = Synthesizer.load(tmp_path / "fitted")
    assert back.sample(30).equals(tool.sample(30)) and back.release_.plan == tool.release_.plan
    assert back.epsilon == 1.0 and back.get_params()["delta"] == 1e-5
    with pytest.raises(NotFittedError):
        Synthesizer(1.0).save(tmp_path / "nothing")


def test_arrays_have_the_schemas_columns_in_order() -> None:
    cells = np.array([[30, True], [40, False]] * 100, dtype=object)
    rows = Synthesizer(1.0, 1e-5, schema=SCHEMA, output="pyarrow").fit(cells).sample(10)
    assert rows.column_names == ["age", "ill"]
    with pytest.raises(ArrayError, match="2 columns, the schema 6"):
        Synthesizer(1.0, schema=dpmerf.Schema.parse(MIXED)).fit(cells)
    with pytest.raises(SchemaError, match="one of the two"):
        Synthesizer(1.0).fit(cells)
    with pytest.raises(SchemaError, match="a table needs a schema"):
        Synthesizer(1.0, bounds=(0, 1)).fit(pd.DataFrame({"a": [1]}))
    with pytest.raises(TrainError, match="1 row or more"):
        Synthesizer(1.0, 1e-5, bounds=(0, 99)).fit(np.ones((50, 2))).sample(0)


def test_every_fit_is_paid_for(tmp_path: Path) -> None:
    tool = Synthesizer(1.0, 1e-5, bounds=(0, 1), ledger=tmp_path / "l.ledger")
    with pytest.warns(UserWarning, match="is a new ledger that allows epsilon = 1"):
        tool.fit(np.zeros((100, 2)))
    with pytest.raises(LedgerError, match="spent"):
        tool.fit(np.zeros((100, 2)))


def test_it_stands_in_a_pipeline() -> None:
    line = make_pipeline(Synthesizer(1.0, 1e-5, bounds=(-3, 3)))
    fitted = line.fit(np.random.default_rng(0).normal(size=(200, 3)))
    assert fitted[-1].sample(7).shape == (7, 3)
