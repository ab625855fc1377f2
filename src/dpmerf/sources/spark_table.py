"""A Spark table as a source: opened and described here, summed where it lies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import pyarrow as pa

from dpmerf.errors import DataError
from dpmerf.sources.rows import Rows


def open_spark(source: str, master: str | None = None) -> SparkTable:
    """A Parquet path or the name of a table, read by Spark. `master` only if no session is running."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise DataError('Spark is not installed here: pip install "dpmerf[spark]" (it needs Java 17)') from None
    try:
        builder = SparkSession.builder.appName("dpmerf")
        if master is not None:
            builder = builder.master(master)
        if "PYSPARK_PYTHON" not in os.environ and (master or "local").startswith("local"):
            os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = builder.getOrCreate()
        looks_like_path = "/" in source or source.endswith(".parquet") or os.path.exists(source)
        return SparkTable(spark.read.parquet(source) if looks_like_path else spark.table(source))
    except PySparkException:
        raise DataError(f"Spark cannot read '{source}': give a Parquet path or the name of a table") from None
    except Exception as problem:  # no Java, no cluster
        raise DataError(f"Spark did not start ({type(problem).__name__}): check Java and --master") from None


@final
class SparkTable(Rows):
    """A Spark DataFrame. It is summed where it lies; it is never read into this process."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        from pyspark.sql.pandas.types import to_arrow_type

        found: dict[str, pa.DataType | None] = {}
        for field in self.frame.schema.fields:
            try:
                found[field.name] = to_arrow_type(field.dataType)
            except Exception:  # a type that Arrow does not have: its cells are null
                found[field.name] = None
        return found

    @property
    def stored_count(self) -> int | None:
        with quiet():
            return int(self.frame.count())

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        raise DataError("a Spark table is summed on Spark, not read here")


@contextmanager
def quiet() -> Iterator[None]:
    """Turn Spark's errors, which may quote cells, into one that does not."""
    try:
        yield
    except DataError:
        raise
    except Exception as problem:
        raise DataError(
            f"Spark could not read or sum the table ({type(problem).__name__}). A file may be damaged or gone, its "
            "columns may differ from those of the others, or dpmerf may be missing on the executors: see Spark's log"
        ) from None
