"""Files that are broken, hostile or replaced: one clear error, before the budget where it can be known, no bomb."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import resource
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from PIL import Image as Pil

from dpmerf.encoding.codec import Codec
from dpmerf.errors import DataError, SchemaError
from dpmerf.schema import Schema
from dpmerf.sources import columnar, csv_records
from dpmerf.sources.npz import Npz
from dpmerf.sources.pictures import open_data
from dpmerf.sources.rows import open_rows

MISFITS = [
    'kind = "integer"\nmin = 0\nmax = 1000\ndtype = "int8"',
    'kind = "integer"\nmin = -1\nmax = 10\ndtype = "uint8"',
    'kind = "number"\nmin = 0\nmax = 1\ndtype = "int64"',
    'kind = "number"\nmin = 0\nmax = 1000000\ndtype = "float16"',
    'kind = "number"\nmin = 0\nmax = 1000\ndecimals = 2\ndtype = "decimal128(4, 2)"',
    'kind = "date"\nfirst = 1600-01-01\nlast = 2600-01-01\ndtype = "timestamp[ns]"',
    'kind = "timestamp"\nfirst = 2000-01-01T00:00:00\nlast = 2001-01-01T00:00:00\ndtype = "date32"',
    'kind = "category"\nvalues = ["a", "b"]\ndtype = "int8"',
    'kind = "category"\nvalues = [1, 300]\ndtype = "int8"',
    'kind = "flag"\ndtype = "date32"',
    'kind = "id"\ndtype = "int8"',
]
FITS = [
    'kind = "integer"\nmin = 0\nmax = 100\ndtype = "int8"',
    'kind = "number"\nmin = 0\nmax = 1\ndtype = "float32"',
    'kind = "number"\nmin = 0\nmax = 100\ndecimals = 2\ndtype = "decimal128(10, 2)"',
    'kind = "date"\nfirst = 2000-01-01\nlast = 2020-01-01\ndtype = "date64[ms]"',
    'kind = "timestamp"\nfirst = 2000-01-01T00:00:00\nlast = 2020-01-01T00:00:00\ndtype = "timestamp[us, tz=UTC]"',
    'kind = "category"\nvalues = ["a", "b"]\nother = "c"\nnullable = true\ndtype = "dictionary"',
    'kind = "flag"\ndtype = "int8"',
    'kind = "id"\ndtype = "int32"',
]


def _schema(column: str) -> Schema:
    return Schema.parse(f'[columns.x]\n{column}\n[columns.y]\nkind = "flag"\n')


@pytest.mark.parametrize("column", MISFITS)
def test_a_dtype_that_does_not_hold_its_column_is_refused(column: str) -> None:
    with pytest.raises(SchemaError, match=r"column 'x': `dtype`"):
        Codec(_schema(column))


@pytest.mark.parametrize("column", FITS)
def test_a_dtype_that_holds_its_column_is_taken(column: str) -> None:
    Codec(_schema(column))


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    for source in (tmp_path / "t.parquet", tmp_path / "t.arrow", table, frame):
        with pytest.raises(DataError, match="same name"):
            open_rows(source)


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_file_that_is_replaced_between_two_readings(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"

    def write(names: list[str]) -> None:
        table = pa.table({name: [1.0, 2.0] for name in names})
        if ending == "csv":
            path.write_text(",".join(names) + "\n1,2\n3,4\n")
        elif ending == "parquet":
            pq.write_table(table, path)
        else:
            feather.write_feather(table, path)

    write(["a", "b"])
    rows = open_rows(path)
    assert sum(b.num_rows for b in rows.batches(["a"])) == 2
    time.sleep(0.01)  # time stamps have a grain
    write(["b", "a"])
    with pytest.raises(DataError, match="changed while it was read"):
        list(rows.batches(["a"]))


def test_swapped_columns_are_seen_even_with_the_old_time_stamp(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    rows, said = open_rows(path), path.stat()
    path.write_text("b,a\n1,2\n")
    os.utime(path, ns=(said.st_atime_ns, said.st_mtime_ns))
    with pytest.raises(DataError, match="changed while it was read"):
        list(rows.batches(["a"]))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(DataError, match="no regular file"):
        open_rows(tmp_path / "t.csv")


def test_lines_that_end_with_a_carriage_return_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\r" + b"1,x\r" * 200_000)
    monkeypatch.setattr(csv_records, "BLOCK", 2**16)
    with open(path, "rb") as file:
        assert max(map(len, csv_records._blocks(file))) <= 2**16 + 4
    assert sum(batch.num_rows for batch in open_rows(path).batches(["a"])) == 200_000


@pytest.mark.parametrize("cell", ["x", '"x'])  # a line, and a quoted cell, that never end
def test_a_record_without_an_end(cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LONGEST", 2**24)
    with gzip.open(tmp_path / "t.csv.gz", "wt", compresslevel=1) as file:
        file.write("a,b\n1,2\n" + cell)
        for _ in range(40):
            file.write(("y" * 2**20) + ("\n" if cell[0] == '"' else ""))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="damaged"):
        list(open_rows(tmp_path / "t.csv.gz").batches(["a"]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_the_limit_of_the_csv_module_is_put_back(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n"1\n2",' + "x" * 200_000 + "\n")
    before = csv.field_size_limit()
    assert sum(b.num_rows for b in open_rows(tmp_path / "t.csv").batches(["a"])) == 1
    assert csv.field_size_limit() == before


def test_a_wide_header_is_read_and_one_without_an_end_refused(tmp_path: Path) -> None:
    names = [f"column{i}" for i in range(30_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + "1," * 29_999 + "1\n")
    assert next(iter(open_rows(tmp_path / "wide.csv").batches(names))).schema.names == names
    (tmp_path / "endless.csv").write_text("abcdefg," * 2**18)
    with pytest.raises(DataError, match="is no header"):
        open_rows(tmp_path / "endless.csv")


def test_a_batch_that_unfolds_to_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar, "LARGEST", 2**22)
    table = pa.table({"a": np.zeros(3 * 10**6, np.int8), "b": np.zeros(3 * 10**6, np.int8)})
    path = tmp_path / "t.arrow"
    feather.write_feather(table, path, compression="zstd", chunksize=len(table))
    assert path.stat().st_size < 10**5
    with pytest.raises(DataError, match=r"at most 2,097,152 rows"):
        open_rows(path)
    feather.write_feather(table, path, compression="zstd")
    assert sum(batch.num_rows for batch in open_rows(path).batches(["b"])) == len(table)


def _npz(path: Path, header: bytes, data: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        length = len(header) + (64 - (10 + len(header)) % 64)
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + header.ljust(length) + data)
    return path


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 8, 8)}",  # no values
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999, 8, 8)}",
        b"{'descr': '|u1', 'fortran_order': True, 'shape': (-1, 8, 8)}",
        b"{'descr': '|u1', 'fortran_order': False, 'shape': ()}",
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 8",
        b"{'descr': 'nonsense', 'fortran_order': False, 'shape': (3, 8, 8)}",
        b"\xff\xfe{",
        b"(" * 60_000,
    ],
)
def test_headers_of_arrays_that_lie(header: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged"):
        Npz(_npz(tmp_path / "x.npz", header)).header("x")


def test_an_array_stored_last_axis_first_is_not_unpacked_without_limit(tmp_path: Path) -> None:
    size = 2**29 + 64
    path = tmp_path / "x.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w") as file,
    ):
        header = {"descr": "|u1", "fortran_order": True, "shape": (size // 64, 8, 8)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(size // 2**20):
            file.write(bytes(2**20))
        file.write(bytes(size % 2**20))
    assert path.stat().st_size < 2**23
    with pytest.raises(DataError, match="Fortran order"):
        Npz(path).header("x")


def test_only_named_decoders_read_pictures(tmp_path: Path) -> None:
    """PostScript in a .png would start Ghostscript; a pipe would be waited for; a bomb would fill the memory."""
    (tmp_path / "set" / "a").mkdir(parents=True)
    (tmp_path / "set" / "b").mkdir()
    eps = io.BytesIO()
    Pil.new("L", (8, 8), 200).save(eps, "EPS")
    (tmp_path / "set" / "a" / "1.png").write_bytes(eps.getvalue())
    os.mkfifo(tmp_path / "set" / "a" / "2.png")
    Pil.new("1", (12_000, 12_000)).save(tmp_path / "set" / "a" / "3.png")
    Pil.new("L", (8, 8), 200).save(tmp_path / "set" / "b" / "4.png")
    columns = {
        "image": {"kind": "image", "height": 8, "width": 8},
        "label": {"kind": "category", "values": ["a", "b"]},
    }
    rows = open_data(tmp_path / "set", Schema.from_json({"label": "label", "columns": columns}))
    assert rows.stored_count == 3
    (batch,) = rows.batches(["image", "label"])
    assert [max(cell) for cell in batch.column("image").to_pylist()] == [0, 0, 200]


def test_files_that_are_damaged_in_any_way_give_one_error(tmp_path: Path) -> None:
    """Every byte of a small Parquet and Arrow file, cut and changed."""
    table = pa.table({"a": pa.array([1.0, None]), "b": ["x", "y"]})
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.arrow", compression="uncompressed")
    rng = np.random.default_rng(0)
    for name in ("t.parquet", "t.arrow"):
        whole = (tmp_path / name).read_bytes()
        for place in rng.choice(len(whole), 150, replace=False):
            data = bytearray(whole)
            data[place] ^= 1 << int(rng.integers(8))
            (tmp_path / f"x{name}").write_bytes(bytes(data) if place % 3 else whole[:place])
            with contextlib.suppress(DataError):
                list(open_rows(tmp_path / f"x{name}").batches(["a"]))
