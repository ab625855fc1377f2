"""Adult, all rows, ε = 1, from the command line: in time, legal in every row, and useful."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dpmerf.encoding.codec import Codec
from dpmerf.schema import Category, Schema

SCHEMA = Path(__file__).parents[2] / "benchmarks" / "schemas" / "adult.toml"


@pytest.mark.data
@pytest.mark.slow
def test_adult_end_to_end(data_dir: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "dpmerf.cli", "synth", data_dir / "adult_train.parquet", "--schema", SCHEMA,
        "--label", "income", "--epsilon", 1, "--delta", 1e-5, "-o", tmp_path / "out", "--json",
    ]  # fmt: skip
    before = os.times()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    after = os.times()
    assert done.returncode == 0, done.stderr
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < 300, f"{used:.0f} CPU seconds"

    rows = pq.read_table(json.loads(done.stdout)["synthetic"])
    schema = Schema.load(SCHEMA)
    codec = Codec(schema)
    assert rows.num_rows == 32_561
    assert codec.decode(codec.encode(rows)).equals(rows)  # dtypes, steps, bounds and categories hold in every row
    real = pq.read_table(data_dir / "adult_test.parquet")
    auc = _boosted_auc(codec, rows, real)
    assert auc >= 0.80, auc


@pytest.mark.data
def test_every_category_can_be_produced(data_dir: Path) -> None:
    from dpmerf.methods.presets import make_plan
    from dpmerf.private.measure import measure
    from dpmerf.train import train

    schema = Schema.load(SCHEMA)
    plan = make_plan(schema, 1, 1e-5, rows=32_561)
    model = train(measure(data_dir / "adult_train.parquet", plan), seed=0, steps=5)
    for name, column in schema.columns.items():
        if isinstance(column, Category):
            for value in column.levels:
                assert set(model.sample(3, given={name: value})[name].to_pylist()) == {value}


def _boosted_auc(codec: Codec, train, test) -> float:
    def arrays(table) -> tuple[np.ndarray, np.ndarray]:
        batch = codec.encode(table)
        codes = np.stack([c.numpy() for name, c in batch.codes.items() if name != "income"], axis=1)
        return np.hstack([batch.numbers.numpy(), codes]), batch.codes["income"].numpy()

    (x, y), (test_x, test_y) = arrays(train), arrays(test)
    model = GradientBoostingClassifier(random_state=0).fit(x, y)
    return float(roc_auc_score(test_y, model.predict_proba(test_x)[:, 1]))
