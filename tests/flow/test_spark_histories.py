"""Persons on Spark: the same integers as in one process, whatever the partitions."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from dpmerf.private.spark_histories import totals_on_spark
from dpmerf.sources.spark_table import SparkTable
from flow.test_spark import session  # noqa: F401  # a fixture, and the marks that Spark needs
from privacy.person_hunt import hostile, maps, person, persons, sums, tables

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_sums_of_persons_are_identical(session: Any, tmp_path: Path) -> None:  # noqa: F811
    rng = np.random.default_rng(5)
    crowd: dict[Any, Any] = {f"p{i}": person(rng, int(n)) for i, n in enumerate(rng.integers(0, 30, 80))}
    crowd |= {f"h{i}": one for i, one in enumerate(hostile(1))} | {None: person(rng, 5)}
    spark = {}
    for name, table in tables(crowd).items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        spark[name] = SparkTable(session.read.parquet(str(tmp_path / f"{name}.parquet")).repartition(3))
    total, local = totals_on_spark(spark, persons(), b"k" * 32), sums(crowd, b"k" * 32)
    for part, (phi, view) in maps().items():
        assert torch.equal(total(part, phi, view), torch.from_numpy(local[part])), part
