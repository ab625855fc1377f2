"""Rows: one way to open any table. It is read batch by batch, as often as a release needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

import narwhals as nw
import pyarrow as pa

from dpmerf import plugins
from dpmerf.errors import DataError
from dpmerf.schema.headers import stored_types, with_index
from dpmerf.schema.notation import Reading
from dpmerf.sources.columnar import Arrow, Parquet
from dpmerf.sources.csv_file import Csv
from dpmerf.sources.excel import Excel
from dpmerf.sources.frames import to_arrow
from dpmerf.sources.json_lines import JsonLines
from dpmerf.sources.object_store import FilePath, is_address, shown_address, stored
from dpmerf.sources.sql_table import SQL_ENDINGS, has_driver, is_database, open_sql
from dpmerf.sources.table import BATCH, Rows, distinct, require_columns

__all__ = ["BATCH", "Arrow", "Csv", "Eager", "Folder", "Frame", "Parquet", "Rows", "open_rows"]

TEXT_ENDINGS = tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".zst"))
JSON_ENDINGS = tuple(kind + packed for kind in (".jsonl", ".ndjson") for packed in ("", ".gz", ".zst"))
OPENERS: dict[str, Callable[[FilePath, Reading], Rows]] = {
    **dict.fromkeys(TEXT_ENDINGS, Csv),
    **dict.fromkeys(JSON_ENDINGS, lambda path, reading: JsonLines(path)),
    **dict.fromkeys((".parquet", ".pq"), lambda path, reading: Parquet(path)),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), lambda path, reading: Arrow(path)),
    **dict.fromkeys((".xlsx", ".xlsm"), lambda path, reading: Excel(path, reading.sheet)),
    **dict.fromkeys(SQL_ENDINGS, lambda path, reading: open_sql(str(path), reading)),
}


def open_rows(data: Any, reading: Reading | None = None) -> Rows:
    """A file, a folder, a database, or a frame (pandas, Polars, Arrow, Spark and whatever else narwhals knows).

    `reading` says how a text file is written; what it leaves out is guessed from the header line.
    """
    reading = reading or Reading()
    if isinstance(data, Rows):
        return data
    if isinstance(data, str) and has_driver(data):
        return open_sql(data, reading)
    if isinstance(data, str) and is_address(data):
        return _open_stored(data, reading)
    if isinstance(data, str) and is_database(data):
        return open_sql(data, reading)
    if isinstance(data, str | os.PathLike):
        return _open_path(Path(data), reading)
    if isinstance(data, pa.Table):
        return Frame(data)
    if isinstance(data, pa.RecordBatch):
        return Frame(pa.Table.from_batches([data]))
    if type(data).__module__.startswith("pyspark."):
        from dpmerf.sources.spark_table import SparkTable  # only where Spark is

        return SparkTable(data)
    try:
        frame = nw.from_native(with_index(data))
    except nw.exceptions.DuplicateError:
        raise DataError("the table: two columns have the same name. Rename one") from None
    except TypeError:
        raise DataError(
            f"a {type(data).__name__} is not a table. Pass a path, or a pandas, Polars or Arrow table"
        ) from None
    return Eager(_collected(frame) if isinstance(frame, nw.LazyFrame) else frame)


def _collected(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    try:
        return frame.collect()
    except Exception as problem:  # its words may quote a cell
        raise DataError(
            f"the query behind the table failed ({type(problem).__name__}): run it by itself and pass what it gives"
        ) from None


@final
class Frame(Rows):
    """A table in memory."""

    def __init__(self, table: pa.Table) -> None:
        distinct(table.column_names, "the table")
        self._table = table

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return {field.name: field.type for field in self._table.schema}

    @property
    def stored_count(self) -> int | None:
        return self._table.num_rows

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        yield from self._table.select(columns).to_batches(max_chunksize=BATCH)


@final
class Eager(Rows):
    """A frame of another library (pandas, Polars, …), made Arrow a batch at a time and only the columns asked for."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        distinct([str(name) for name in frame.columns], "the table")
        self._names = {str(name): name for name in frame.columns}
        self.guessed_types = frame.implementation.is_pandas_like() or frame.implementation.is_polars()

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return dict(stored_types(self._frame, self._names))

    @property
    def stored_count(self) -> int | None:
        return len(self._frame)

    def require(self, columns: list[str]) -> None:
        require_columns(columns, self._names)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        names = {name: self._names[name] for name in columns}
        for start in range(0, len(self._frame), BATCH):
            yield from to_arrow(self._frame[start : start + BATCH], names).to_batches()


@final
class Folder(Rows):
    """Files of one folder, in the order of their names, as one table."""

    def __init__(self, path: Path | str, parts: list[Rows]) -> None:
        self._path, self.name = path, str(path).rstrip("/").rpartition("/")[2]
        self._parts = parts

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return self._parts[0].fields

    @property
    def stored_count(self) -> int | None:
        counts = [part.stored_count for part in self._parts]
        return None if None in counts else sum(c for c in counts if c is not None)

    def require(self, columns: list[str]) -> None:
        for part in self._parts:
            try:
                part.require(columns)
            except DataError as problem:
                raise DataError(f"one of the files of {self._path} does not fit, {part.name}: {problem}") from None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        for part in self._parts:
            yield from part.batches(columns)


def _open_stored(address: str, reading: Reading) -> Rows:
    """A file or folder of an object store; databases must be files of this machine."""
    found = stored(address)
    if isinstance(found, Path):
        return _open_path(found, reading)
    known = tuple(ending for ending in OPENERS if ending not in SQL_ENDINGS)
    files = [f for f in (found if isinstance(found, list) else [found]) if f.name.lower().endswith(known)]
    files = [f for f in files if not f.name.startswith(("_", "."))] if isinstance(found, list) else files
    if not files:
        raise DataError(f"{shown_address(address)}: no CSV, Parquet, Arrow, Excel or JSON lines file is there")
    parts = [next(opener for end, opener in OPENERS.items() if f.name.lower().endswith(end))(f, reading) for f in files]
    return Folder(shown_address(address), parts) if isinstance(found, list) else parts[0]


def _open_path(path: Path, reading: Reading) -> Rows:
    name = path.name.lower()
    if path.is_dir():
        known = tuple(ending for ending in OPENERS if ending not in SQL_ENDINGS)
        files = sorted(
            p for p in path.iterdir() if p.name.lower().endswith(known) and not p.name.startswith(("_", "."))
        )
        if not files:
            raise DataError(f"the folder {path} holds no CSV, Parquet, Arrow, Excel or JSON lines file")
        return Folder(path, [_open_path(p, reading) for p in files])
    if not path.exists():
        raise DataError(f"there is no file {path}")
    if not path.is_file():
        raise DataError(f"{path} is no regular file (a pipe or a device): it must be read several times. Save it first")
    for ending, opener in OPENERS.items():
        if name.endswith(ending):
            return opener(path, reading)
    plugin = plugins.load("sources", path.suffix.lower().removeprefix("."))
    if plugin is not None:
        return plugin(path, reading)  # type: ignore[no-any-return]
    raise DataError(
        f"{path}: unknown kind of file. Use .csv or .tsv (.gz, .zst), .parquet, .arrow, .xlsx, .jsonl (.gz, .zst), "
        ".sqlite or .duckdb with '?table=NAME', or a folder of files"
    )
