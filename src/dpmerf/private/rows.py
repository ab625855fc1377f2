"""Rows: one way to read any table, batch by batch, as often as a release needs. Errors never quote a cell."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, final

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpmerf.errors import DataError
from dpmerf.private.frames import to_arrow
from dpmerf.private.lines import Records

BATCH = 16_384
CSV_ENDINGS = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")


class Rows(ABC):
    """A table that can be read from the start any number of times."""

    name: str = "table"  # of the file, if it is one

    @property
    @abstractmethod
    def fields(self) -> dict[str, pa.DataType | None]:
        """Column names, with the stored type where the format has one. No value is read."""

    @abstractmethod
    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The named columns, in batches of bounded size."""

    @property
    @abstractmethod
    def stored_count(self) -> int | None:
        """The number of rows where the container states it; None: it must be counted."""

    def require(self, columns: list[str]) -> None:
        """Fail, quoting the schema only, when a column is missing."""
        _require(columns, self.fields)


def _require(columns: list[str], there: Collection[str]) -> None:
    for name in columns:
        if name not in there:
            raise DataError(
                f"the schema names '{name}'; the table has no such column. "
                "Mend the name in the schema, or add the column to the table"
            )


def open_rows(data: Any) -> Rows:
    """A file, a folder of files, or a frame (pandas, Polars, Arrow, Spark and whatever else narwhals knows)."""
    if isinstance(data, Rows):
        return data
    if isinstance(data, str | os.PathLike):
        return _open_path(Path(data))
    if isinstance(data, pa.Table):
        return Frame(data)
    if isinstance(data, pa.RecordBatch):
        return Frame(pa.Table.from_batches([data]))
    if type(data).__module__.startswith("pyspark."):
        from dpmerf.private.spark import SparkTable  # it builds on this module

        return SparkTable(data)
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"a {type(data).__name__} is not a table. Pass a path, or a pandas, Polars or Arrow table"
        ) from None
    return Eager(frame.collect() if isinstance(frame, nw.LazyFrame) else frame)


@final
class Frame(Rows):
    """A table in memory."""

    def __init__(self, table: pa.Table) -> None:
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
        self._names = {str(name): name for name in frame.columns}

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return {field.name: field.type for field in to_arrow(self._frame[:0], self._names).schema}

    @property
    def stored_count(self) -> int | None:
        return len(self._frame)

    def require(self, columns: list[str]) -> None:
        _require(columns, self._names)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        names = {name: self._names[name] for name in columns}
        for start in range(0, len(self._frame), BATCH):
            yield from to_arrow(self._frame[start : start + BATCH], names).to_batches()


@final
class Parquet(Rows):
    """One Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, path.name
        with _readable(path, "Parquet"):
            file = pq.ParquetFile(path)
            self._fields = {field.name: field.type for field in file.schema_arrow}
            self._count = file.metadata.num_rows

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return self._fields

    @property
    def stored_count(self) -> int | None:
        return self._count

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        with _readable(self._path, "Parquet"), pq.ParquetFile(self._path, memory_map=False) as file:
            yield from file.iter_batches(batch_size=BATCH, columns=columns)


@final
class Arrow(Rows):
    """One Arrow IPC (Feather) file."""

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, path.name
        with _readable(path, "Arrow"), pa.OSFile(str(path)) as file:
            self._fields = {field.name: field.type for field in pa.ipc.open_file(file).schema}

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return self._fields

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        with _readable(self._path, "Arrow"), pa.OSFile(str(self._path)) as file:
            reader = pa.ipc.open_file(file)
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i).select(columns)
                for column in batch.columns:
                    _check_structure(column)
                for start in range(0, batch.num_rows, BATCH):
                    yield batch.slice(start, BATCH)


def _check_structure(array: pa.Array) -> None:
    """Refuse offsets, indices and lengths that point outside their buffers, which Arrow takes on trust.

    Only the structure is looked at: text is checked as bytes, for broken UTF-8 is a cell like any other.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        _check_structure(array.dictionary)
        bound = pc.max(array.indices).as_py() if len(array) else None
        if bound is not None and (bound >= len(array.dictionary) or pc.min(array.indices).as_py() < 0):
            raise pa.ArrowInvalid("an index lies outside the dictionary")
        array = array.indices
    elif pa.types.is_nested(kind):
        return  # never read
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        array = array.view(pa.binary() if pa.types.is_string(kind) else pa.large_binary())
    elif pa.types.is_string_view(kind):
        array = array.view(pa.binary_view())
    array.validate(full=True)


@final
class Csv(Rows):
    """One CSV file, plain, gzip or zstd. Every cell is read as text and every record is one row: a short record is
    filled with empty cells and a long one cut, so that no cell can change how another row is read. A quotation mark
    that is opened and never closed swallows the lines after it: that is a damaged file, not a cell."""

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, path.name
        self._delimiter = "\t" if ".tsv" in path.name.lower() else ","
        with self._open() as records:
            self._header = records.header

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return dict.fromkeys(self._header)

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        places = [self._header.index(name) for name in columns]
        with self._open() as records:
            for arrays in records.columns(places):
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    @contextmanager
    def _open(self) -> Iterator[Records]:
        with _readable(self._path, "CSV"), ExitStack() as stack:
            file = stack.enter_context(open(self._path, "rb"))
            stream: Any = file
            if self._path.suffix == ".gz":
                stream = stack.enter_context(gzip.open(file, "rb"))
            elif self._path.suffix == ".zst":
                stream = stack.enter_context(pa.CompressedInputStream(pa.PythonFile(file), "zstd"))
            records = Records(stream, self._delimiter)
            if not records.header:
                raise DataError(f"{self._path} is empty: it has no header line")
            records.header = [name.removeprefix("\ufeff") for name in records.header]
            if len(set(records.header)) < len(records.header):
                raise DataError(f"{self._path}: two columns have the same name. Rename one")
            yield records


@final
class Folder(Rows):
    """Files of one folder, in the order of their names, as one table."""

    def __init__(self, path: Path, parts: list[Rows]) -> None:
        self._path, self.name = path, path.name
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


def _open_path(path: Path) -> Rows:
    name = path.name.lower()
    if path.is_dir():
        known = CSV_ENDINGS + PARQUET_ENDINGS + ARROW_ENDINGS
        files = sorted(
            p for p in path.iterdir() if p.name.lower().endswith(known) and not p.name.startswith(("_", "."))
        )
        if not files:
            raise DataError(f"the folder {path} holds no CSV, Parquet or Arrow file")
        return Folder(path, [_open_path(p) for p in files])
    if not path.exists():
        raise DataError(f"there is no file {path}")
    if name.endswith(PARQUET_ENDINGS):
        return Parquet(path)
    if name.endswith(ARROW_ENDINGS):
        return Arrow(path)
    if name.endswith(CSV_ENDINGS):
        return Csv(path)
    raise DataError(f"{path}: unknown kind of file. Use .csv (.gz, .zst), .parquet, .arrow, or a folder of them")


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    """Turn the reader's errors, which may quote cells, into one that does not."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"the file {path} is not there (any more)") from None
    except PermissionError:
        raise DataError(f"the file {path} may not be read: check its permissions") from None
    except (pa.ArrowException, OSError, EOFError, csv.Error, UnicodeError, zlib.error):
        raise DataError(f"{path} is damaged or not a {kind} file") from None
