"""Files that lie elsewhere: the same batches as from a path, one clear error otherwise, and never a key in it."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import torch

from command import dpmerf
from dpmerf.errors import DataError
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.sources.rows import Rows, open_rows
from fixed_noise import FixedNoise

TABLE = pa.table({"age": list(range(300)), "ward": ["a", "b", None] * 100})
SCHEMA = Schema.parse(
    '[columns.age]\nkind = "integer"\nmin = 0\nmax = 300\n'
    '[columns.ward]\nkind = "category"\nvalues = ["a", "b"]\nnullable = true\n'
)


@pytest.fixture
def store() -> Iterator[str]:
    """A store in memory, which fsspec gives to Arrow."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/clinic/v.parquet", "wb") as file:
        pq.write_table(TABLE, file)
    with memory.open("/clinic/v.feather", "wb") as file:
        pyarrow.feather.write_feather(TABLE, file)
    text = pa.BufferOutputStream()
    pyarrow.csv.write_csv(TABLE, text)
    whole = text.getvalue().to_pybytes()
    memory.pipe("/clinic/v.csv", whole)
    memory.pipe("/clinic/v.csv.gz", gzip.compress(whole))
    memory.pipe("/clinic/v.jsonl", b"".join(b'{"age": %d, "ward": "a"}\n' % i for i in range(300)))
    memory.pipe("/parts/1.csv", b"age,ward\n1,a\n")
    memory.pipe("/parts/2.csv", b"age,ward\n2,b\n")
    memory.pipe("/parts/_done", b"")
    yield "memory://clinic"
    memory.rm("/clinic", recursive=True)
    memory.rm("/parts", recursive=True)


def _ages(rows: Rows) -> list[int]:
    return [int(str(cell)) for batch in rows.batches(["age"]) for cell in batch.column(0).to_pylist()]


@pytest.mark.parametrize("name", ["v.parquet", "v.feather", "v.csv", "v.csv.gz", "v.jsonl"])
def test_a_stored_file_reads_like_a_file(store: str, name: str) -> None:
    rows = open_rows(f"{store}/{name}")
    assert set(rows.fields) == {"age", "ward"} and rows.name == name
    for _ in range(2):  # any number of times
        assert _ages(rows) == list(range(300))


def test_a_stored_folder_is_one_table(store: str) -> None:
    assert _ages(open_rows("memory://parts")) == [1, 2]


def test_a_file_that_was_replaced_is_refused(store: str) -> None:
    import fsspec

    rows = open_rows(f"{store}/v.csv")
    fsspec.filesystem("memory").pipe("/clinic/v.csv", b"age,ward\n1,a\n")
    with pytest.raises(DataError, match="changed while it was read"):
        _ages(rows)


def test_an_address_of_this_machine_feeds_a_release(store: str, tmp_path: Path) -> None:
    path = tmp_path / "a b.parquet"
    pq.write_table(TABLE, path)
    assert "%20" in path.as_uri() and _ages(open_rows(path.as_uri())) == list(range(300))
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=300)
    made = [measure(data, plan, noise=FixedNoise()) for data in (path, path.as_uri(), f"{store}/v.parquet")]
    for other in made[1:]:
        assert all(torch.equal(other.sums[name], sums) for name, sums in made[0].sums.items())


WRONG = {
    "memory://clinic/none.csv": "there is no file memory://clinic/none.csv",
    "memory://clinic/v.txt2": "there is no file",
    "nosuch://KEY:hush@place/v.csv": "neither Arrow nor fsspec reads nosuch://",
    "file://host/v.csv": "three slashes",
    "file:///no/such/v.csv": "there is no file",
    "s3://KEY:hush@bucket/v.csv?endpoint_override=127.0.0.1:9&scheme=http&token=hush": "the store could not be asked",
    "s3://KEY:hush@bucket/v.db?table=hush&endpoint_override=127.0.0.1:9&scheme=http": "the store could not be asked",
}


@pytest.mark.parametrize("address", WRONG)
def test_one_clear_error_without_a_key(store: str, address: str) -> None:
    with pytest.raises(DataError, match=WRONG[address]) as told:
        open_rows(address)
    assert "hush" not in str(told.value) and "KEY" not in str(told.value)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(DataError, match=r"dpmerf\[stores\]"):
        open_rows("memory://clinic/v.csv")


def test_the_command_line_shows_no_key(tmp_path: Path) -> None:
    done = dpmerf("schema", "draft", "s3://KEY:hush@bucket/v.csv?endpoint_override=127.0.0.1:9&scheme=http")
    assert done.returncode == 4 and done.stderr.count("error:") == 1
    assert "hush" not in done.stderr + done.stdout and "Traceback" not in done.stderr
