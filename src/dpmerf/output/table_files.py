"""Tables: synthetic rows to a file, part by part, marked as synthetic and with their guarantee."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from dpmerf.errors import ArtefactError
from dpmerf.output.whole_files import appearing
from dpmerf.progress import SILENT, Bars

ENDINGS = (".csv", ".parquet")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[\d., ]*\d[\d., ]*([eE][+-]?\d+)?%?")


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
    parts: Iterator[pa.Table],
    path: str | Path,
    guarantee: dict[str, object],
    total: int,
    bars: Bars = SILENT,
    formulas: bool = False,
) -> int:
    """Write CSV or Parquet; the file appears whole or not at all. Returns the number of rows.

    In CSV a text that a spreadsheet would run as a formula gets an apostrophe before it, unless `formulas` are wanted.
    """
    target = check_output(path)
    if "NOT PRIVATE" in guarantee and target.suffix.lower() == ".csv":
        raise ArtefactError(f"{guarantee['NOT PRIVATE']}. CSV has no place for that mark: write .parquet")
    count, text = 0, target.suffix.lower() == ".csv"
    try:
        with appearing(target) as temporary, ExitStack() as stack:
            advance = stack.enter_context(bars.task("writing", total=total, counted="rows"))
            writer: pc.CSVWriter | pq.ParquetWriter | None = None
            for part in parts:
                if writer is None:
                    writer = stack.enter_context(_writer(temporary, target.suffix.lower(), part.schema, guarantee))
                writer.write_table(_for_csv(part, formulas) if text else part)
                count += part.num_rows
                advance(part.num_rows)
    except (OSError, pa.ArrowException) as problem:
        raise ArtefactError(
            f"cannot write {target}: {getattr(problem, 'strerror', None) or 'the disk refused'}"
        ) from None
    return count


def write_csv(parts: Iterator[pa.Table], output: TextIO, guarantee: dict[str, object], formulas: bool = False) -> int:
    """The same rows as CSV to an open stream, such as standard output. Returns the number of rows."""
    if "NOT PRIVATE" in guarantee:
        raise ArtefactError(f"{guarantee['NOT PRIVATE']}. CSV has no place for that mark: write .parquet")
    count = 0
    for part in parts:
        lines = io.BytesIO()
        pc.write_csv(_for_csv(part, formulas), lines, pc.WriteOptions(include_header=count == 0))
        output.write(lines.getvalue().decode("utf-8"))
        count += part.num_rows
    return count


def is_formula(text: str) -> bool:
    """Would a spreadsheet run this cell? Numbers with a sign are none.

    >>> is_formula("=cmd()"), is_formula("-1.5"), is_formula("-A1"), is_formula("a=b")
    (True, False, True, False)
    """
    return bool(_FORMULA.match(text)) and not _NUMBER.fullmatch(text)


def _for_csv(part: pa.Table, formulas: bool) -> pa.Table:
    part = part.cast(_plain(part.schema))
    if formulas:
        return part
    for i, field in enumerate(part.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            values = part.column(i).dictionary_encode().combine_chunks()
            known = values.dictionary.to_pylist()
            if any(is_formula(v) for v in known):
                safe = pa.array([f"'{v}" if is_formula(v) else v for v in known], field.type)
                part = part.set_column(i, field, safe.take(values.indices))
    return part


def _writer(
    path: Path, ending: str, schema: pa.Schema, guarantee: dict[str, object]
) -> pc.CSVWriter | pq.ParquetWriter:
    if ending == ".csv":
        return pc.CSVWriter(path, _plain(schema))
    return pq.ParquetWriter(path, schema.with_metadata({"dpmerf": synthetic_note(guarantee)}))


def synthetic_note(guarantee: dict[str, object]) -> str:
    """What a file of synthetic rows says about itself, as JSON."""
    mark = {"NOT PRIVATE": guarantee["NOT PRIVATE"]} if "NOT PRIVATE" in guarantee else {}
    return json.dumps({"synthetic": True, **mark, "guarantee": guarantee})


def _plain(schema: pa.Schema) -> pa.Schema:
    """CSV has no dictionaries, and moments are whole seconds: nobody wants to read six zeros after each."""
    return pa.schema([pa.field(f.name, _plain_type(f.type)) for f in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("s", kind.tz)
    return kind.value_type if pa.types.is_dictionary(kind) else kind
