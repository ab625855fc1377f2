"""Spark: the same integers as one process, whatever the partitions, and whatever fails on the way."""

from __future__ import annotations

import glob
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import dpmerf
from dpmerf.accounting.unit import Unit
from dpmerf.errors import DataError
from dpmerf.methods.presets import make_plan
from dpmerf.plan.known import Known
from dpmerf.private.ledger import Ledger
from dpmerf.private.local import sum_locally
from dpmerf.private.measure import measure
from dpmerf.private.spark import sum_on_spark
from dpmerf.progress import SILENT
from dpmerf.schema import Schema
from dpmerf.sources import spark_table
from dpmerf.sources.rows import open_rows
from dpmerf.sources.spark_table import SparkTable
from fixed_noise import FixedNoise

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17, which is not installed", allow_module_level=True)
pytest.importorskip("pyspark", reason='Spark is not installed: pip install "dpmerf[spark]"')

SCHEMA = Schema.parse(
    """
label = "ward"
[columns."who is.it"]
kind = "id"
[columns.x]
kind = "number"
min = -3
max = 3
nullable = true
[columns.when]
kind = "timestamp"
first = 2020-01-01T00:00:00
last = 2021-01-01T00:00:00
[columns.day]
kind = "date"
first = 2020-01-01
last = 2021-01-01
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
[columns.ok]
kind = "flag"
"""
)
N = 3_000


def _table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "who is.it": pa.array([None if i == 0 else "" if i == 1 else f"p{i}" for i in rng.integers(0, 400, N)]),
            "x": pa.array(rng.normal(size=N), mask=rng.random(N) < 0.1),
            "when": pa.array(1_577_836_800_000_000 + rng.integers(0, 31_536_000, N) * 1_000_000, pa.timestamp("us")),
            "day": pa.array(rng.integers(18_262, 18_600, N).astype(np.int32)).cast(pa.date32()),
            "ward": pa.array(["a", "b", "c", "?"]).take(pa.array(rng.integers(0, 4, N))),
            "ok": rng.random(N) < 0.3,
        }
    )


TABLE = _table()


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master("local[2,3]").appName("dpmerf tests")  # a task may fail twice
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "Asia/Tokyo",  # not UTC: moments must not move
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def frame(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("spark") / "table.parquet"
    pq.write_table(TABLE, path)
    return session.read.parquet(str(path))


def _stages(preset: str, unit: Unit | None = None) -> list[tuple[Any, ...]]:
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=N, preset=preset, unit=unit)
    release = measure(TABLE, plan, noise=FixedNoise())
    return [(plan, release.embedding(stage).phi, release.embedding(stage).view) for stage in plan.stages]


@pytest.mark.parametrize(("preset", "cuts"), [("default", (1, 3, 16)), ("paper", (3,))])
def test_sums_are_bit_identical_to_local_ones(frame: Any, preset: str, cuts: tuple[int, ...]) -> None:
    for partitions in cuts:
        for plan, phi, view in _stages(preset):
            here, n = sum_locally(open_rows(TABLE), plan, phi, view, SILENT, "")
            there, m = sum_on_spark(SparkTable(frame.repartition(partitions)), plan, phi, view, SILENT, "")
            assert n == m == N
            assert torch.equal(here, there), partitions


@pytest.mark.parametrize("most", [1, 4])
def test_persons_are_capped_to_the_same_rows(frame: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmerf.private.persons.os.urandom", lambda n: b"k" * n)
    ((plan, phi, view),) = _stages("paper", Unit("who is.it", most))
    here, n = sum_locally(open_rows(TABLE), plan, phi, view, SILENT, "")
    there, m = sum_on_spark(SparkTable(frame.repartition(5)), plan, phi, view, SILENT, "")
    assert n == m < N
    assert torch.equal(here, there)


class FailsOnce:
    """A view that fails, or kills its worker, the first `times` it is used, after some rows were already summed."""

    def __init__(self, view: Any, marker: Path, kill: bool = False, times: int = 1) -> None:
        self.view, self.marker, self.kill, self.times, self.calls = view, str(marker), kill, times, 0

    def __call__(self, batch: Any) -> Any:
        self.calls += 1
        done = len(glob.glob(f"{self.marker}*"))
        if self.calls > 1 and done < self.times:
            Path(f"{self.marker}{done}-{os.getpid()}").touch()
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("this task fails once")
        return self.view(batch)


@pytest.fixture
def small_batches(session: Any) -> Iterator[None]:
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "400")
    yield
    session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.parametrize("kill", [False, True], ids=["task fails", "worker is killed"])
def test_a_task_that_is_retried_changes_nothing(frame: Any, tmp_path: Path, small_batches: None, kill: bool) -> None:
    ((plan, phi, view),) = _stages("paper")
    here, n = sum_locally(open_rows(TABLE), plan, phi, view, SILENT, "")
    spoiled = FailsOnce(view, tmp_path / "failed", kill)
    there, m = sum_on_spark(SparkTable(frame.repartition(3)), plan, phi, spoiled, SILENT, "")
    assert list(tmp_path.glob("failed*")), "the task was meant to fail"
    assert n == m and torch.equal(here, there)


def test_workers_that_are_killed_for_good_end_in_one_error(
    frame: Any, tmp_path: Path, small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=N, preset="paper")
    real = Known.embedding

    def killing(self: Known, stage: Any) -> Any:
        embedding = real(self, stage)
        return replace(embedding, view=FailsOnce(embedding.view, tmp_path / "killed", kill=True, times=99))

    monkeypatch.setattr(Known, "embedding", killing)
    with pytest.raises(DataError, match="Spark could not read"):
        dpmerf.release(frame.repartition(3), plan, ledger=tmp_path / "l")
    assert len(Ledger.load(tmp_path / "l").entries()) == 1, "spent before reading"


def test_a_release_from_a_spark_frame(frame: Any, tmp_path: Path) -> None:
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=N)
    made = dpmerf.release(frame, plan, ledger=tmp_path / "spark.ledger")
    assert made.rows == N
    made.save(tmp_path / "release")
    assert dpmerf.verify(tmp_path / "release").release.rows == N
    exact = measure(frame, plan, noise=FixedNoise())
    local = measure(TABLE, plan, noise=FixedNoise())
    assert all(torch.equal(exact.sums[name], local.sums[name]) for name in local.sums)


def test_failures_are_plain_and_keep_the_ledger(session: Any, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        pq.write_table(TABLE.slice(1000 * i, 1000), folder / f"{i}.parquet")
    frame = session.read.parquet(str(folder))
    (folder / "1.parquet").write_bytes(b"PAR1 not parquet PAR1")
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=N)
    ledger = Ledger.open(tmp_path / "l", 1.0, 1e-5)
    with pytest.raises(DataError, match="Spark could not read"):
        measure(frame, plan, ledger=ledger)
    assert len(ledger.entries()) == 1
    with pytest.raises(DataError, match="no such column"):
        measure(frame.drop("ward"), plan)
    with pytest.raises(DataError, match="cannot read"):
        spark_table.open_spark(str(tmp_path / "nothing.parquet"))
