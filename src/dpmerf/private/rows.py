"""Rows: one way to read any table, batch by batch, as often as a release needs. Errors never quote a cell."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, final

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmerf.errors import DataError

BATCH = 16_384
CSV_ENDINGS = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")


class Rows(ABC):
    """A table that can be read from the start any number of times."""

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
        missing = [name for name in columns if name not in self.fields]
        if missing:
            raise DataError(
                f"the schema names '{missing[0]}'; the table has no such column. "
                "Mend the name in the schema, or add the column to the table"
            )


def open_rows(data: Any) -> Rows:
    """A file, a folder of files, or a frame (pandas, Polars, Arrow and whatever else narwhals knows)."""
    if isinstance(data, Rows):
        return data
    if isinstance(data, str | os.PathLike):
        return _open_path(Path(data))
    if isinstance(data, pa.Table):
        return Frame(data)
    if isinstance(data, pa.RecordBatch):
        return Frame(pa.Table.from_batches([data]))
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"a {type(data).__name__} is not a table. Pass a path, or a pandas, Polars or Arrow table"
        ) from None
    return Frame(_to_arrow(frame.lazy().collect() if isinstance(frame, nw.LazyFrame) else frame))


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
class Parquet(Rows):
    """One Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path = path
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
        self._path = path
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
                for start in range(0, batch.num_rows, BATCH):
                    yield batch.slice(start, BATCH)


@final
class Csv(Rows):
    """One CSV file, plain, gzip or zstd. Every cell is read as text and every record is one row: a short record is
    filled with empty cells and a long one cut, so that no cell can change how another row is read. A quotation mark
    that is opened and never closed swallows the lines after it: that is a damaged file, not a cell."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._delimiter = "\t" if ".tsv" in path.name.lower() else ","
        csv.field_size_limit(2**31 - 1)
        with self._open() as file:
            self._header = self._read_header(csv.reader(file, delimiter=self._delimiter))

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return dict.fromkeys(self._header)

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        places = [self._header.index(name) for name in columns]
        with self._open() as file:
            reader = csv.reader(file, delimiter=self._delimiter)
            self._read_header(reader)
            lines: list[list[str]] = []
            weight = 0
            for line in reader:
                if not line:
                    if len(self._header) > 1:
                        continue
                    line = [""]  # an empty cell of a table of one column: a row like any other
                lines.append(line)
                weight += sum(map(len, line))
                if len(lines) == BATCH or weight > 64_000_000:
                    yield self._batch(lines, places, columns)
                    lines, weight = [], 0
            if lines:
                yield self._batch(lines, places, columns)

    def _batch(self, lines: list[list[str]], places: list[int], columns: list[str]) -> pa.RecordBatch:
        arrays = [
            pa.array([(line[i] or None) if i < len(line) else None for line in lines], pa.large_string())
            for i in places
        ]
        return pa.RecordBatch.from_arrays(arrays, names=columns)

    def _read_header(self, reader: Any) -> list[str]:
        header = next(reader, None)
        if not header:
            raise DataError(f"{self._path} is empty: it has no header line")
        if len(set(header)) < len(header):
            raise DataError(f"{self._path}: two columns have the same name. Rename one")
        return [name.removeprefix("\ufeff") for name in header]

    @contextmanager
    def _open(self) -> Iterator[TextIO]:
        with _readable(self._path, "CSV"):
            raw: Any
            if self._path.suffix == ".gz":
                raw = gzip.open(self._path, "rb")
            elif self._path.suffix == ".zst":
                raw = pa.CompressedInputStream(pa.OSFile(str(self._path)), "zstd")
            else:
                raw = open(self._path, "rb")  # noqa: SIM115 (closed below)
            with raw, io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="") as text:
                yield text


@final
class Folder(Rows):
    """Files of one folder, in the order of their names, as one table."""

    def __init__(self, path: Path, parts: list[Rows]) -> None:
        self._path = path
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
            part.require(columns)

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
    except (pa.ArrowException, OSError, EOFError, csv.Error, UnicodeError):
        raise DataError(f"{path} is damaged or not a {kind} file") from None


def _to_arrow(frame: Any) -> pa.Table:
    """A frame as an Arrow table; columns of Python objects are taken cell by cell.

    A frame library chooses the type of a whole column by its cells, so one odd cell can turn numbers into objects.
    The other cells must mean the same in either form: `_as_text` writes what the typed column would have said.
    """
    arrays = {}
    for name in frame.columns:
        series = frame[name]
        if series.dtype == nw.Object or str(getattr(series.to_native(), "dtype", "")) == "object":
            arrays[str(name)] = _objects(series.to_list())
            continue
        try:
            arrays[str(name)] = series.to_arrow()
        except (pa.ArrowException, UnicodeError, TypeError, ValueError):  # may quote a cell
            arrays[str(name)] = _objects(series.to_list())
    return pa.table(arrays)


def _objects(cells: list[Any]) -> pa.Array:
    return pa.array([_as_text(cell) for cell in cells], pa.large_string())


def _as_text(cell: Any) -> str | None:
    """What a Python object means as a cell; what means nothing is null. A function of this cell alone."""
    if isinstance(cell, np.generic) and not isinstance(cell, np.datetime64 | np.timedelta64):
        cell = cell.item()
    if isinstance(cell, str):
        return cell.encode("utf-8", "replace").decode()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int):
        return str(cell) if abs(cell) < 10**300 else None
    if isinstance(cell, float):
        return None if cell != cell else str(int(cell)) if cell == cell // 1 and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.date | dt.datetime):
        if cell != cell:
            return None
        zoned = isinstance(cell, dt.datetime) and cell.tzinfo is not None
        return (cell.astimezone(dt.UTC).replace(tzinfo=None) if zoned else cell).isoformat()
    if isinstance(cell, decimal.Decimal):
        return str(cell)
    return None
