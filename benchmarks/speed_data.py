"""A table of mixed columns of any size, for measuring speed: simulated, nobody's data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmerf.accounting.unit import Unit
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import MeanEmbedding
from dpmerf.schema import Schema

LEVELS = (2, 3, 5, 8, 12, 20, 41)  # of the categories, over and over
PART = 100_000  # rows written at a time


def kinds(columns: int) -> list[str]:
    """8 numbers, 2 integers, a date, a moment, 7 categories and a flag in every 20 columns."""
    cycle = ["number", "category"] * 7 + ["integer", "flag", "integer", "date", "number", "timestamp"]
    return [cycle[i % len(cycle)] for i in range(columns)]


def schema(columns: int = 20, classes: int = 12) -> Schema:
    return Schema.parse(schema_text(columns, classes))


def schema_text(columns: int = 20, classes: int = 12) -> str:
    """The same as TOML."""
    text = ['label = "label"', '[columns.label]\nkind = "category"', f"values = {_levels('label', classes)}"]
    for i, kind in enumerate(kinds(columns - 1)):
        text.append(f'[columns.c{i}]\nkind = "{kind}"')
        match kind:
            case "number":
                text.append("min = -4.0\nmax = 4.0" + ("\nnullable = true" if i % 3 == 0 else ""))
            case "integer":
                text.append(f"min = 0\nmax = {100 if i % 2 else 100_000}")
            case "date":
                text.append("first = 2010-01-01\nlast = 2025-12-31")
            case "timestamp":
                text.append("first = 2010-01-01T00:00:00\nlast = 2025-12-31T00:00:00\nnullable = true")
            case "category":
                text.append(f"values = {_levels(f'c{i}', LEVELS[i % len(LEVELS)])}")
    return "\n".join(text)


def table(n: int, seed: int, columns: int = 20, classes: int = 12) -> pa.Table:
    rng = np.random.default_rng(seed)
    found = {"label": _drawn(rng, n, _levels("label", classes))}
    for i, kind in enumerate(kinds(columns - 1)):
        match kind:
            case "number":
                found[f"c{i}"] = pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1 if i % 3 == 0 else None)
            case "integer":
                found[f"c{i}"] = pa.array((rng.random(n) ** 3 * (100 if i % 2 else 100_000)).astype(np.int64))
            case "date":
                found[f"c{i}"] = pa.array(rng.integers(14_700, 20_000, n).astype(np.int32)).cast(pa.date32())
            case "timestamp":
                moments = rng.integers(1_262_304_000, 1_760_000_000, n) * 1_000_000
                found[f"c{i}"] = pa.array(moments, mask=rng.random(n) < 0.05).cast(pa.timestamp("us"))
            case "category":
                found[f"c{i}"] = _drawn(rng, n, _levels(f"c{i}", LEVELS[i % len(LEVELS)]))
            case "flag":
                found[f"c{i}"] = pa.array(rng.random(n) < 0.3)
    return pa.table(found)


def write(path: Path, n: int, columns: int = 20, classes: int = 12) -> Path:
    """A Parquet file of n rows, written part by part."""
    with pq.ParquetWriter(path, table(1, 0, columns, classes).schema) as writer:
        for start in range(0, n, PART):
            writer.write_table(table(min(PART, n - start), start, columns, classes))
    return path


def folder(path: Path, file: Path, times: int) -> Path:
    """A folder that holds one file many times over: as many rows to read, no more disk."""
    path.mkdir()
    for i in range(times):
        (path / f"{i:03}.parquet").symlink_to(file)
    return path


def embedding_plan(declared: Schema, dim: int, rows: int) -> Plan:
    """The paper's embedding with D features, by label."""
    recipe = MeanEmbedding(dim=dim, scales=(1.0,), seed=0, by_label=True, counts=1.0)
    return Plan(declared, 1.0, 1e-5, Unit(), rows, "paper", False, (Stage("embedding", 1.0, recipe),))


def _levels(name: str, count: int) -> list[str]:
    return [f"{name} value {j}" for j in range(count)]


def _drawn(rng: np.random.Generator, n: int, levels: list[str]) -> pa.Array:
    return pa.array(levels).take(pa.array(np.minimum(rng.geometric(0.3, n) - 1, len(levels) - 1)))
