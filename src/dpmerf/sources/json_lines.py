"""JSON lines: one object a line, flat. Every cell is a Python value and gets the one text that such a value has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, final

import pyarrow as pa

from dpmerf.errors import DataError
from dpmerf.sources.csv_file import first_line, opened
from dpmerf.sources.frames import objects
from dpmerf.sources.object_store import FilePath
from dpmerf.sources.table import BATCH, Rows, check_same, readable, seen


@final
class JsonLines(Rows):
    """The columns are the keys of the first line; a key that another line lacks is null there.

    A line that is no object is a row of nulls: a damaged line is a row like any other, and stops nothing.
    """

    guessed_types = True  # each cell has a type of its own

    def __init__(self, path: FilePath) -> None:
        self._path, self.name = path, path.name
        self._seen = seen(path)
        with readable(path, "JSON lines"), ExitStack() as stack:
            first = _parsed(first_line(opened(path, stack), path))
        if not first:
            raise DataError(f'{path}: the first line must be an object with all columns, as in {{"age": 1}}')
        self._names = list(first)

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return dict.fromkeys(self._names)

    @property
    def stored_count(self) -> int | None:
        return None

    def require(self, columns: list[str]) -> None:
        """Never fails: the first line is a row like any other, and what it lacks may stand in the others."""

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        check_same(self._path, self._seen)
        with readable(self._path, "JSON lines"), ExitStack() as stack:
            found: list[dict[str, Any]] = []
            for line in opened(self._path, stack):
                if not line.strip():
                    continue
                found.append(_parsed(line))
                if len(found) >= BATCH:
                    yield _batch(found, columns)
                    found = []
            if found:
                yield _batch(found, columns)


def _batch(found: list[dict[str, Any]], columns: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([objects([row.get(c) for row in found]) for c in columns], names=columns)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
