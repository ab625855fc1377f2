"""Memory of a release of persons: the whole process, for a million rows and for ten, of ten rows a person each.

Rows of a person lie anywhere in the file, so nothing can be summed before all of it is read.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sizes import measured

ROWS_A_PERSON = 10
AT_ONCE = 1_000_000  # rows that are made at a time
SCHEMA = """
[person]
key = "id"
order = "day"
most = 8
largest = 40
[columns.id]
kind = "id"
pattern = "P[0-9]{7}"
[columns.day]
kind = "integer"
min = 0
max = 3650
[columns.ward]
kind = "category"
values = ["a", "b", "c", "d"]
[columns.score]
kind = "number"
min = 0
max = 1
"""


def memory(rows: int) -> dict[str, Any]:
    """CPU seconds, seconds and peak megabytes of `dpmerf release`, by the number of rows."""
    with tempfile.TemporaryDirectory() as box:
        place = Path(box)
        (place / "schema.toml").write_text(SCHEMA)
        _write(place / "data.parquet", rows)
        persons = rows // ROWS_A_PERSON
        budget = ["--epsilon", "1", "--delta", "1e-6", "--rows", str(persons)]
        planned = measured(["plan", "schema.toml", *budget, "-o", "plan.json"], place)
        released = measured(["release", "data.parquet", "--plan", "plan.json", "-o", "release"], place)
        found = {"rows": rows, "persons": persons, "file_mb": os.path.getsize(place / "data.parquet") >> 20, **released}
        return found | {"refused": planned["refused"]} if "refused" in planned else found


def _write(path: Path, rows: int) -> None:
    """Every row belongs to any of the persons."""
    rng = np.random.default_rng(0)
    schema = pa.schema({"id": pa.string(), "day": pa.int64(), "ward": pa.string(), "score": pa.float64()})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, AT_ONCE):
            n = min(AT_ONCE, rows - start)
            who = pa.array(rng.integers(0, rows // ROWS_A_PERSON, n)).cast(pa.string())
            day, score = rng.integers(0, 3651, n), rng.random(n)
            ward = pa.array(np.array(list("abcd"))[rng.integers(0, 4, n)])
            writer.write_table(pa.table([who, day, ward, score], schema=schema))
