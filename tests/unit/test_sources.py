"""Sources: CSV of any dialect, JSON lines, Excel, SQLite, DuckDB and a real PostgreSQL give the rows of the Parquet."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

from dpmerf.demo import hospital
from dpmerf.errors import DataError
from dpmerf.methods.presets import make_plan
from dpmerf.plan.known import Known
from dpmerf.private.contribute import Sums
from dpmerf.schema import Schema
from dpmerf.schema.notation import Reading
from dpmerf.sources.rows import Rows, open_rows
from dpmerf.sources.sql_table import Sqlite, open_sql, without_password

ROWS = 3000
SCHEMA = Schema.load(hospital.SCHEMA)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return hospital.hospital().slice(0, ROWS)


def _sums(rows: Rows) -> torch.Tensor:
    """The integer sums of the plan's first stage, as a release makes them."""
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=ROWS)
    stage = plan.stages[0]
    embedding = Known(plan, {}, None, "", {}).embedding(stage)
    sums, view = Sums(embedding.phi), embedding.view
    for batch in rows.batches(list(SCHEMA.needed)):
        sums.add(view(plan.codec.encode(batch)))
    assert sums.rows == ROWS
    return sums.total()


@pytest.fixture(scope="module")
def expected(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> torch.Tensor:
    path = tmp_path_factory.mktemp("parquet") / "visits.parquet"
    pq.write_table(table, path)
    return _sums(open_rows(path))


@pytest.fixture(scope="module")
def duck(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("duck") / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
    return path


@pytest.fixture(scope="module")
def lite(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lite") / "visits.db"
    names = ", ".join(f'"{name}"' for name in table.column_names)
    marks = ", ".join("?" for _ in table.column_names)
    rows = [[str(c) if hasattr(c, "isoformat") else c for c in row.values()] for row in table.to_pylist()]
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE visits ({names})")
        connection.executemany(f"INSERT INTO visits VALUES ({marks})", rows)
    connection.close()
    return path


def test_sqlite_gives_the_same_sums(lite: Path, expected: torch.Tensor) -> None:
    assert torch.equal(_sums(open_rows(f"sqlite:///{lite}?table=visits")), expected)
    assert torch.equal(_sums(open_rows(lite, Reading(query="SELECT * FROM visits;"))), expected)


def test_duckdb_gives_the_same_sums(duck: Path, expected: torch.Tensor) -> None:
    assert torch.equal(_sums(open_rows(f"{duck}?table=visits")), expected)
    assert torch.equal(_sums(open_rows(f"duckdb:///{duck}", Reading(table="main.visits"))), expected)


@pytest.fixture(scope="module")
def postgres(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own, started for these tests where the machine has one."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not folders and shutil.which("initdb") is None:
        pytest.skip("PostgreSQL is not installed here: apt-get install postgresql")
    home = folders[-1].parent if folders else Path(str(shutil.which("initdb"))).parent
    place = tmp_path_factory.mktemp("pg", numbered=True)
    user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        if shutil.which("runuser") is None or subprocess.run(["id", "postgres"], capture_output=True).returncode:
            pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres' to run it as")
        shutil.chown(place, "postgres")
        for folder in [place, *place.parents]:
            if str(folder).startswith("/tmp/"):
                folder.chmod(0o755 if folder != place else 0o700)
        user = ["runuser", "-u", "postgres", "--"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = place / "data"
    quiet = {"check": True, "capture_output": True, "cwd": "/"}
    try:
        subprocess.run([*user, home / "initdb", "-D", data, "-A", "trust", "-U", "me", "-N"], **quiet)
        options = f"-p {port} -k {place} -c listen_addresses=127.0.0.1 -c fsync=off"
        subprocess.run([*user, home / "pg_ctl", "-D", data, "-w", "-l", place / "log", "-o", options, "start"], **quiet)
    except subprocess.CalledProcessError:
        pytest.skip("PostgreSQL is installed here but does not start")
    try:
        address = f"postgresql://me:secret@127.0.0.1:{port}/postgres"
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(address) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("visits", table)
            connection.commit()
        yield address
    finally:
        subprocess.run([*user, home / "pg_ctl", "-D", data, "-m", "immediate", "stop"], capture_output=True, cwd="/")


def test_postgresql_gives_the_same_sums(postgres: str, expected: torch.Tensor) -> None:
    assert torch.equal(_sums(open_rows(f"{postgres}?table=visits")), expected)
    assert torch.equal(_sums(open_rows(postgres, Reading(query="SELECT * FROM visits"))), expected)


def test_postgresql_errors_never_show_the_password(postgres: str) -> None:
    for broken in (f"{postgres}?table=no_such", postgres.replace("127.0.0.1", "127.0.0.2") + "?table=visits"):
        with pytest.raises(DataError) as error:
            open_rows(broken)
        assert "secret" not in str(error.value) and "could not be asked" in str(error.value)


def test_a_query_that_fails_is_one_clear_error(lite: Path, duck: Path) -> None:
    for source in (f"sqlite:///{lite}", f"duckdb:///{duck}"):
        for reading in (Reading(query="SELEC nonsense"), Reading(table="nowhere")):
            with pytest.raises(DataError, match="could not be asked"):
                open_rows(source, reading)
        with pytest.raises(DataError, match="name one table or one query"):
            open_rows(source)
    with pytest.raises(DataError, match="there is no database file"):
        open_rows("sqlite:///nowhere.db?table=a")


def test_a_database_is_only_read(lite: Path, duck: Path) -> None:
    for reading in (Reading(query="DELETE FROM visits RETURNING *"), Reading(query="DROP TABLE visits")):
        for path in (lite, duck):
            with pytest.raises(DataError):
                open_rows(path, reading)
    assert len(sqlite3.connect(lite).execute("SELECT 1 FROM visits").fetchall()) == ROWS


def test_sqlite_cells_of_any_type_are_legal(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        odd = [(1,), ("x",), (2.5,), (None,), (b"\xff\x00",), (2**62,)]
        connection.executemany("INSERT INTO t VALUES (?)", odd)
        connection.execute("INSERT INTO t VALUES (CAST(x'ff41' AS TEXT))")
    rows = open_sql(str(path), Reading(table="t"))
    assert isinstance(rows, Sqlite)
    assert sum(batch.num_rows for batch in rows.batches(["a"])) == 7


def test_the_address_is_shown_without_its_password() -> None:
    assert "pw" not in without_password("postgresql://u:pw@h/db?password=pw")


def test_json_lines_give_the_same_sums(table: pa.Table, tmp_path: Path, expected: torch.Tensor) -> None:
    path = tmp_path / "visits.jsonl"
    path.write_text("\n".join(json.dumps(row, default=str) for row in table.to_pylist()))
    assert torch.equal(_sums(open_rows(path)), expected)


def test_a_damaged_json_line_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\nnot json\n[1]\n{"a": {"deep": 1}}\n')
    (batch,) = open_rows(path).batches(["a"])
    assert batch.column(0).to_pylist() == ["1", None, None, None, None]


def test_excel_gives_the_same_sums_and_asks_for_a_sheet(
    table: pa.Table, tmp_path: Path, expected: torch.Tensor
) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "visits"
    sheet.append(table.column_names)
    for row in table.to_pylist():
        sheet.append(list(row.values()))
    path = tmp_path / "visits.xlsx"
    book.save(path)
    assert torch.equal(_sums(open_rows(path)), expected)
    book.create_sheet("notes")
    book.save(path)
    with pytest.raises(DataError, match="2 sheets: visits, notes"):
        open_rows(path)
    assert "age" in open_rows(path, Reading(sheet="visits")).fields
    with pytest.raises(DataError, match="no sheet 'x'"):
        open_rows(path, Reading(sheet="x"))
    path.write_bytes(b"PK no workbook")
    with pytest.raises(DataError, match="damaged"):
        open_rows(path)


def _csv(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_the_delimiter_is_guessed_from_the_header_and_said(tmp_path: Path) -> None:
    for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "pipes")):
        path = _csv(tmp_path / "a.csv", f'a{mark}"b,c{mark}d"{mark}e\n1{mark}"x{mark}y"{mark}3\n')
        with pytest.warns(UserWarning, match=word):
            rows = open_rows(path)
        assert list(rows.fields) == ["a", f"b,c{mark}d", "e"]
        (batch,) = rows.batches(["a", "e"])
        assert batch.column("e").to_pylist() == ["3"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(open_rows(_csv(tmp_path / "b.csv", "a,b\n1;2;3;4,5\n")).fields) == ["a", "b"]


def test_a_single_column_that_is_several_is_an_error(tmp_path: Path) -> None:
    path = _csv(tmp_path / "a.csv", "a;b;c\n1;2;3\n")
    with pytest.raises(DataError, match="would be a single column"):
        open_rows(path, Reading(delimiter=","))
    with pytest.raises(DataError, match="can be split at commas or semicolons"):
        open_rows(_csv(tmp_path / "b.csv", "a, b;c\n1;2\n"))


@pytest.mark.parametrize("encoding", ["cp1252", "shift_jis", "utf-16", "utf-8-sig"])
def test_the_encoding_is_guessed_from_the_header(encoding: str, tmp_path: Path) -> None:
    name = "名前" if encoding == "shift_jis" else "Größe"
    path = _csv(tmp_path / "a.csv", f"{name},b\n{name},2\n", encoding)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rows = open_rows(path)
    assert list(rows.fields) == [name, "b"]
    assert bool(said) == (encoding in ("cp1252", "shift_jis"))
    (batch,) = rows.batches([name])
    assert batch.column(0).to_pylist() == [name]


def test_another_encoding_in_blocks_of_any_size(tmp_path: Path) -> None:
    text = "ä,b\n" + "".join(f"wörd{i},{i}\n" for i in range(30_000))
    rows = open_rows(_csv(tmp_path / "a.csv", text, "utf-16"), Reading(encoding="utf-16"))
    found = [cell for batch in rows.batches(["ä"]) for cell in batch.column(0).to_pylist()]
    assert found == [f"wörd{i}" for i in range(30_000)]
