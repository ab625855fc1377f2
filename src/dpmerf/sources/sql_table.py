"""SQL: a table or a query of SQLite, DuckDB or PostgreSQL as a source, streamed in constant memory.

`sqlite:///FILE`, `duckdb:///FILE` and `postgresql://USER:PASSWORD@HOST/DATABASE`, or the path of a database file; which
table or query is declared (`[reading] table = …`, `--read table=…`) or stands at the end, as `?table=visits`. The
database is asked for the columns' types first, so that a mistake shows before anything is spent. Its errors may quote
cells and its address a password: neither is ever told.
"""

from __future__ import annotations

import os
import re
import sqlite3
import urllib.parse
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, final

import pyarrow as pa

from dpmerf.errors import DataError
from dpmerf.schema.notation import Reading
from dpmerf.sources.frames import objects
from dpmerf.sources.table import BATCH, Rows, distinct

SQL_ENDINGS = (".sqlite", ".sqlite3", ".db", ".duckdb", ".ddb")
_ADDRESS = re.compile(r"^(sqlite|duckdb|postgres|postgresql)://")
_ENDING = re.compile(r"\.(sqlite3?|db|duckdb|ddb)\?(table|query)=", re.IGNORECASE)


def has_driver(source: str) -> bool:
    """Does a text begin as the address of a database?"""
    return bool(_ADDRESS.match(source))


def is_database(source: str) -> bool:
    """Does a text name a database, rather than a file of rows?

    >>> is_database("postgresql://me@host/db"), is_database("visits.db?table=visits"), is_database("visits.csv")
    (True, True, False)
    """
    return bool(_ADDRESS.match(source) or _ENDING.search(source))


def open_sql(source: str, reading: Reading | None = None) -> Rows:
    """The table or query that the address names, or `reading` does."""
    told = reading or Reading()
    address, _, tail = source.partition("?")
    named = urllib.parse.parse_qs(tail)
    own = {key: named.pop(key)[0] for key in ("table", "query") if key in named}
    table, query = own.get("table", told.table), own.get("query", told.query)
    kind = _ADDRESS.match(source)
    postgres = kind is not None and kind[1].startswith("postgres")
    if bool(table) == bool(query):
        raise DataError(
            f"{without_password(address)}: name one table or one query of the database, as in --read table=visits or "
            '--read query="SELECT age, ward FROM visits"'
        )
    asked = query.strip().rstrip(";") if query else f"SELECT * FROM {_table(table)}"
    if postgres:
        rest = urllib.parse.urlencode(named, doseq=True)
        return Postgres(address + (f"?{rest}" if rest else ""), asked)
    path = address[len(kind[0]) :].replace("/", "", 1) if kind else address
    if not os.path.isfile(path):
        raise DataError(f"there is no database file {path}")
    duck = kind[1] == "duckdb" if kind else path.lower().endswith((".duckdb", ".ddb"))
    return DuckDb(path, asked) if duck else Sqlite(path, asked)


def without_password(address: str) -> str:
    """An address as it may be shown.

    >>> without_password("postgresql://me:secret@host:5432/db?password=secret")
    'postgresql://me@host:5432/db'
    """
    parts = urllib.parse.urlsplit(address)
    if not parts.netloc:
        return parts.path if not parts.scheme else f"{parts.scheme}://{parts.path}"
    user = f"{parts.username}@" if parts.username else ""
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{user}{place}{parts.path}"


class Query(Rows):
    """A query that is run anew for every pass over its rows."""

    def __init__(self, address: str, query: str) -> None:
        self._address, self._query = address, query
        self.name = without_password(address)
        with self._asking() as connection:
            found = self._described(connection)
        distinct([name for name, _ in found], f"{self.name}, the query")
        self._fields = dict(found)
        if not self._fields:
            raise DataError(f"{self.name}: the query gives no columns. Write a SELECT")

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return dict(self._fields)

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        names = ", ".join(_quoted(c) for c in columns)
        with self._asking() as connection:
            yield from self._read(connection, f"SELECT {names} FROM ({self._query}) AS asked", columns)

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        """A connection for one pass; errors say what to do, never what the database said."""
        try:
            with closing(self._connect()) as connection:
                yield connection
        except DataError:
            raise
        except Exception as problem:
            raise DataError(
                f"{self.name}: the database could not be asked ({type(problem).__name__}). Check that it is there "
                "and lets you in, and that the table or query works by itself; its own words may quote cells and are "
                "not shown"
            ) from None

    @abstractmethod
    def _connect(self) -> Any:
        """A connection that only reads."""

    @abstractmethod
    def _described(self, connection: Any) -> list[tuple[str, pa.DataType | None]]:
        """Columns and types; no row is fetched."""

    @abstractmethod
    def _read(self, connection: Any, query: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a query, a batch at a time."""


@final
class Sqlite(Query):
    """A SQLite file, by Python's own module. Each cell has a type of its own, whatever the column declares."""

    guessed_types = True

    def _connect(self) -> Any:
        place = urllib.parse.quote(os.path.abspath(self._address))
        connection = sqlite3.connect(f"file:{place}?mode=ro", uri=True, check_same_thread=False)
        connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        return connection

    def _described(self, connection: Any) -> list[tuple[str, pa.DataType | None]]:
        found = connection.execute(f"SELECT * FROM ({self._query}) AS asked LIMIT 0")
        return [(column[0], None) for column in found.description]

    def _read(self, connection: Any, query: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        cursor = connection.execute(query)
        while found := cursor.fetchmany(BATCH):
            arrays = [objects(list(cells)) for cells in zip(*found, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=columns)


@final
class DuckDb(Query):
    """A DuckDB file, handed over as Arrow."""

    def _connect(self) -> Any:
        try:
            import duckdb
        except ImportError:
            raise DataError('DuckDB is not installed here: pip install "dpmerf[databases]"') from None
        return duckdb.connect(self._address, read_only=True)

    def _described(self, connection: Any) -> list[tuple[str, pa.DataType | None]]:
        found = self._reader(connection, f"SELECT * FROM ({self._query}) AS asked LIMIT 0")
        return [(field.name, field.type) for field in found.schema]

    def _read(self, connection: Any, query: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._reader(connection, query)

    @staticmethod
    def _reader(connection: Any, query: str) -> Any:
        relation = connection.sql(query)  # lazily: rows stream
        return (relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader)(
            BATCH
        )


@final
class Postgres(Query):
    """A PostgreSQL database, by its Arrow driver (ADBC)."""

    def _connect(self) -> Any:
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise DataError('PostgreSQL needs its Arrow driver: pip install "dpmerf[databases]"') from None
        connection = dbapi.connect(self._address)
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        return connection

    def _described(self, connection: Any) -> list[tuple[str, pa.DataType | None]]:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({self._query}) AS asked LIMIT 0")
            return [(field.name, field.type) for field in cursor.fetch_arrow_table().schema]

    def _read(self, connection: Any, query: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with connection.cursor() as cursor:
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                for start in range(0, batch.num_rows, BATCH):
                    yield batch.slice(start, BATCH)


def _quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _table(name: str) -> str:
    """A table's name in SQL; `schema.table` is two names."""
    return ".".join(_quoted(part) for part in name.split("."))
