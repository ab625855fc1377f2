"""Columnar files: Parquet and Arrow (Feather), with stored types, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpmerf.errors import DataError
from dpmerf.sources.object_store import FilePath, arrow_file
from dpmerf.sources.table import BATCH, Rows, check_same, distinct, readable, seen

LARGEST = 2**30  # bytes of an Arrow batch
MANY_ROWS = 2**21  # of a batch: 32 times as many as Arrow's own writers put into one


@final
class Parquet(Rows):
    """One Parquet file."""

    def __init__(self, path: FilePath) -> None:
        self._path, self.name = path, path.name
        self._seen = seen(path)
        with readable(path, "Parquet"), arrow_file(path) as raw, pq.ParquetFile(raw) as file:
            distinct(file.schema_arrow.names, str(path))
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
        check_same(self._path, self._seen)
        with readable(self._path, "Parquet"), arrow_file(self._path) as raw, pq.ParquetFile(raw) as file:
            yield from file.iter_batches(batch_size=BATCH, columns=columns)


@final
class Arrow(Rows):
    """One Arrow IPC (Feather) file."""

    def __init__(self, path: FilePath) -> None:
        self._path, self.name = path, path.name
        self._seen = seen(path)
        with readable(path, "Arrow"), arrow_file(path) as file:
            reader = pa.ipc.open_file(file)
            distinct(reader.schema.names, str(path))
            self._fields = {field.name: field.type for field in reader.schema}
            _check_batches(file, reader, path)

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return self._fields

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        check_same(self._path, self._seen)
        with readable(self._path, "Arrow"), arrow_file(self._path) as file:
            places = [list(self._fields).index(name) for name in columns]
            reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=places))
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i).select(columns)
                for column in batch.columns:
                    _check_structure(column)
                for start in range(0, batch.num_rows, BATCH):
                    yield batch.slice(start, BATCH)


def _check_batches(file: pa.NativeFile, reader: pa.ipc.RecordBatchFileReader, path: FilePath) -> None:
    """Refuse batches of very many rows that take more than `LARGEST` bytes: a batch is read whole, however small it is
    on the disk. One narrow column says how many rows it has; a text counts as the four bytes that say where it ends.
    """
    widths = [_width(field.type) for field in reader.schema]
    if not widths:
        return
    options = pa.ipc.IpcReadOptions(included_fields=[widths.index(min(widths))])
    narrow = pa.ipc.open_file(file, options=options)
    for i in range(narrow.num_record_batches):
        rows = narrow.get_batch(i).num_rows
        if rows > MANY_ROWS and rows * sum(widths) > 8 * LARGEST:
            raise DataError(
                f"{path} holds batches too large to be read whole: write them with at most {MANY_ROWS:,} rows each"
            )


def _width(kind: pa.DataType) -> int:
    """Bits of a cell."""
    try:
        return int(kind.bit_width)
    except ValueError:
        return 32


def _check_structure(array: pa.Array) -> None:
    """Refuse offsets, indices and lengths that point outside their buffers, which Arrow takes on trust.

    Only the structure is looked at, never a value: a date that is not at midnight, a decimal with too many digits or
    broken UTF-8 is a cell like any other, and no cell may stop a release.
    """
    kind = array.type
    array.validate()
    if isinstance(array, pa.ExtensionArray):
        _check_structure(array.storage)
    elif pa.types.is_dictionary(kind):
        _check_structure(array.dictionary)
        bound = pc.max(array.indices).as_py() if len(array) else None
        if bound is not None and (bound >= len(array.dictionary) or pc.min(array.indices).as_py() < 0):
            raise pa.ArrowInvalid("an index lies outside the dictionary")
    elif pa.types.is_run_end_encoded(kind):
        _check_structure(array.values)
        ends = array.run_ends.to_numpy(zero_copy_only=False).astype(np.int64)
        if len(array) and (
            not len(ends) or ends[0] < 1 or (np.diff(ends) < 1).any() or ends[-1] < len(array) + array.offset
        ):
            raise pa.ArrowInvalid("run ends do not rise to the length of the array")
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        array.view(pa.binary()).validate(full=True)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        array.view(pa.large_binary()).validate(full=True)
    elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        array.view(pa.binary_view()).validate(full=True)
