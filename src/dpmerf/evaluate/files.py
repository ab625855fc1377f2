"""Files: the tables that an evaluation reads, by the same reader as a release, whole and in memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dpmerf.encoding.notations import as_written
from dpmerf.schema import Schema
from dpmerf.schema.notation import Reading
from dpmerf.sources.rows import open_rows


def first_rows(path: Path, most: int) -> pa.Table | None:
    """The first rows of a file, without reading the rest; None if it has none."""
    rows = open_rows(path)
    parts: list[pa.RecordBatch] = []
    for batch in rows.batches(list(rows.fields)):
        parts.append(batch.slice(0, most - sum(map(len, parts))))
        if sum(map(len, parts)) >= most:
            break
    return pa.Table.from_batches(parts) if parts else None


def read_table(path: Path | str, schema: Schema | None = None) -> pa.Table:
    """A table from a file or a database. With a schema: cells as it declares them, rewritten as this program writes.

    What a failure says names the file, never what it holds.
    """
    rows = open_rows(path if isinstance(path, Path) else str(path), schema.reading if schema else Reading())
    names = list(rows.fields)
    batches = list(rows.batches(names))
    table = pa.Table.from_batches(batches) if batches else pa.table({name: pa.nulls(0) for name in names})
    return table if schema is None else as_written(table, schema)
