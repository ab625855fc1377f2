"""Known values on the real Adult rows (skipped where they are not there). Scores on real rows: NOT COVERED."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dpmerf.evaluate import classifiers, evaluate
from dpmerf.evaluate.fidelity import fidelity
from dpmerf.evaluate.utility import Split, compare, fit_models
from dpmerf.evaluate.views import Design, Rows
from dpmerf.schema import Schema

pytestmark = [pytest.mark.data, pytest.mark.slow, pytest.mark.xdist_group("adult-evaluation")]
SCHEMA = Path(__file__).parents[2] / "benchmarks" / "schemas" / "adult.toml"


@pytest.fixture(scope="module")
def adult(data_dir) -> tuple[pa.Table, pa.Table]:
    tables = tuple(data_dir / f"adult_{part}.parquet" for part in ("train", "test"))
    if not all(path.exists() for path in tables):
        pytest.skip("needs adult_train.parquet and adult_test.parquet in DPMERF_DATA")
    return tuple(pa.parquet.read_table(path) for path in tables)


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema.load(SCHEMA)


def mean_scores(train: Rows, test: Rows):
    design = Design.fit(train, without="income")
    sides = [Split(design(r), r.coded("income").codes) for r in (train, test)]
    fitted = fit_models(*sides, classifiers.table_classifiers(), "binary", seed=0)
    return fitted, compare(fitted, None, fitted)[1].synthetic


def test_training_on_real_rows_reproduces_known_values(adult, schema):
    train, test = (Rows.read(t, schema) for t in adult)
    fitted, mean = mean_scores(train, test)
    assert fitted["XGBoost"].metrics["roc_auc"] >= 0.92
    assert mean["roc_auc_hard"] == pytest.approx(0.74, abs=0.03)
    assert mean["roc_auc"] > 0.85


def test_shuffled_labels_teach_nothing(adult, schema):
    train, test = adult
    order = np.random.default_rng(0).permutation(train.num_rows)
    place = train.column_names.index("income")
    wrong = train.set_column(place, "income", train["income"].take(pa.array(order)))
    _, mean = mean_scores(*(Rows.read(t, schema).sample(6000, 0) for t in (wrong, test)))
    assert mean["roc_auc_hard"] == pytest.approx(0.5, abs=0.02)


def test_a_copy_of_real_rows_is_perfect(adult, schema):
    rows = Rows.read(adult[1], schema)
    found = fidelity(rows, rows, quick=True)
    assert [m.largest for m in found.marginals] == [0, 0, 0, 0]
    assert found.detection.auc == pytest.approx(0.5, abs=0.02)


def test_a_quick_evaluation_takes_less_than_90_cpu_seconds(adult, schema):
    train, test = adult
    start = time.process_time()
    found = evaluate(train, test, schema, train=train, quick=True)
    assert time.process_time() - start < 90
    assert found.utility is not None
    assert found.utility.mean.synthetic == found.utility.mean.ceiling  # the synthetic rows are the training rows
    assert found.utility.mean.floor["roc_auc"] == pytest.approx(0.5, abs=0.02)
    assert found.fidelity.detection.auc == pytest.approx(0.5, abs=0.02)
    assert found.nearest.copies == 1 and found.nearest.baseline_copies < 0.02
