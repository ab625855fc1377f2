"""Excel: one sheet of a workbook, row by row. Every cell gets the one text that such a value has."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import pyarrow as pa

from dpmerf.errors import DataError
from dpmerf.sources.frames import objects
from dpmerf.sources.object_store import FilePath
from dpmerf.sources.table import BATCH, Rows, check_same, distinct, readable, seen


@final
class Excel(Rows):
    """A sheet whose first row is the header. A workbook with several sheets needs the name of one.

    Every row that the sheet stores is a row, also one without values: their number must not depend on cells.
    """

    guessed_types = True  # each cell has a type of its own

    def __init__(self, path: FilePath, sheet: str = "") -> None:
        self._path, self.name = path, path.name
        self._seen = seen(path)
        with self._workbook() as book:
            names = [s.title for s in book.worksheets]
            if sheet and sheet not in names:
                raise DataError(f"{path} has no sheet '{sheet}'. It has: {', '.join(names)}")
            if not sheet and len(names) > 1:
                raise DataError(
                    f'{path} has {len(names)} sheets: {", ".join(names)}. Declare one: sheet = "{names[0]}" '
                    "below [reading] in the schema, or --read sheet=NAME"
                )
            self._sheet = sheet or names[0]
            header = next(book[self._sheet].iter_rows(values_only=True), ())
        self._header = [None if cell is None else str(cell) for cell in header]
        named = [name for name in self._header if name]
        if not named:
            raise DataError(f"the sheet '{self._sheet}' of {path} is empty: it has no header row")
        distinct(named, str(path))

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return {name: None for name in self._header if name}

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        check_same(self._path, self._seen)
        places = [self._header.index(name) for name in columns]
        with self._workbook() as book:
            found: list[tuple[Any, ...]] = []
            for row in book[self._sheet].iter_rows(min_row=2, values_only=True):
                found.append(row)
                if len(found) >= BATCH:
                    yield _batch(found, places, columns)
                    found = []
            if found:
                yield _batch(found, places, columns)

    @contextmanager
    def _workbook(self) -> Iterator[Any]:
        try:
            import openpyxl
            from openpyxl.utils.exceptions import InvalidFileException
        except ImportError:
            raise DataError('Excel files need openpyxl: pip install "dpmerf[excel]"') from None
        with readable(self._path, "Excel"), self._path.open("rb") as file:
            try:
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            except (zipfile.BadZipFile, InvalidFileException, KeyError, ValueError):
                raise DataError(f"{self._path} is damaged or not an Excel file") from None
            try:
                yield book
            finally:
                book.close()


def _batch(found: list[tuple[Any, ...]], places: list[int], columns: list[str]) -> pa.RecordBatch:
    arrays = [objects([row[i] if i < len(row) else None for row in found]) for i in places]
    return pa.RecordBatch.from_arrays(arrays, names=columns)
