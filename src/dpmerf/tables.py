"""Tables: synthetic rows to a file, part by part, marked as synthetic and with their guarantee."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from dpmerf.errors import ArtefactError
from dpmerf.progress import SILENT, Bars

ENDINGS = (".csv", ".parquet")


def check_output(path: str | Path) -> Path:
    """A path that `write` can serve, in a folder that can be written to."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise ArtefactError(f"cannot write {target}: the name must end in {' or '.join(ENDINGS)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ArtefactError(f"cannot write to {target.parent}: {problem.strerror}") from None
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise ArtefactError(f"cannot write {target}: choose a file in a folder that may be written to")
    return target


def write(
    parts: Iterator[pa.Table], path: str | Path, guarantee: dict[str, object], total: int, bars: Bars = SILENT
) -> int:
    """Write CSV or Parquet; the file appears whole or not at all. Returns the number of rows."""
    target = check_output(path)
    temporary = target.with_name(f".{target.name}.part")
    count = 0
    try:
        with ExitStack() as stack:
            advance = stack.enter_context(bars.task("writing", total=total, counted="rows"))
            writer: pc.CSVWriter | pq.ParquetWriter | None = None
            for part in parts:
                if writer is None:
                    writer = stack.enter_context(_writer(temporary, target.suffix.lower(), part.schema, guarantee))
                writer.write_table(part.cast(_plain(part.schema)) if target.suffix.lower() == ".csv" else part)
                count += part.num_rows
                advance(part.num_rows)
        os.replace(temporary, target)
    except (OSError, pa.ArrowException) as problem:
        raise ArtefactError(
            f"cannot write {target}: {getattr(problem, 'strerror', None) or 'the disk refused'}"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _writer(
    path: Path, ending: str, schema: pa.Schema, guarantee: dict[str, object]
) -> pc.CSVWriter | pq.ParquetWriter:
    if ending == ".csv":
        return pc.CSVWriter(path, _plain(schema))
    note = {"synthetic": True, "guarantee": guarantee}
    return pq.ParquetWriter(path, schema.with_metadata({"dpmerf": json.dumps(note)}))


def _plain(schema: pa.Schema) -> pa.Schema:
    """CSV has no dictionaries."""
    return pa.schema(
        [pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )
