"""Table: what every source of rows is, and how its reader's errors are told. Errors never quote a cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from dpmerf.errors import DataError
from dpmerf.sources.object_store import FilePath

BATCH = 16_384


class Rows(ABC):
    """A table that can be read from the start any number of times."""

    name: str = "table"  # of the file, if it is one
    guessed_types: bool = False  # were the types of columns chosen by looking at their cells?

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
        require_columns(columns, self.fields)


def require_columns(columns: list[str], there: Collection[str]) -> None:
    """DataError if a declared column is missing."""
    for name in columns:
        if name not in there:
            raise DataError(
                f"the schema names '{name}'; the table has no such column. "
                "Fix the name in the schema, or add the column to the table"
            )


def distinct(names: Sequence[str], where: str) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) < len(names):
        raise DataError(f"{where}: two columns have the same name. Rename one")


def seen(path: FilePath) -> tuple[int, int, int]:
    """What a file's entry says of it: another file, another length or another time is another table."""
    with readable(path, "data"):
        if not isinstance(path, Path):
            return path.seen()
        said = path.stat()
    return said.st_ino, said.st_size, said.st_mtime_ns


def check_same(path: FilePath, before: tuple[int, int, int]) -> None:
    """Between two readings a table must not be replaced: its columns could stand elsewhere."""
    if seen(path) != before:
        raise changed(path)


def changed(path: FilePath) -> DataError:
    """What a table that was replaced is told."""
    return DataError(f"{path} changed while it was read. Keep it as it is until the release is written")


@contextmanager
def readable(path: FilePath, kind: str) -> Iterator[None]:
    """Turn the reader's errors, which may quote cells, into one that does not."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"the file {path} is not there (any more)") from None
    except PermissionError:
        raise DataError(f"the file {path} may not be read: check its permissions") from None
    except Exception as problem:  # a reader of damaged bytes may raise anything
        if isinstance(problem, MemoryError) and not isinstance(problem, pa.ArrowException):
            raise
        raise DataError(f"{path} is damaged or not a {kind} file") from None
