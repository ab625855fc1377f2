"""What goes wrong in the middle of a release: one clear error, the ledger spent, no artefact, nothing half-made."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command import dpmerf
from dpmerf.errors import ArtefactError, DataError
from dpmerf.folders import check_writable, keep
from dpmerf.methods.presets import make_plan
from dpmerf.output.whole_files import appearing
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.schema import Schema
from dpmerf.sources.rows import Rows, open_rows
from fixed_noise import FixedNoise

SCHEMA_TEXT = '[columns.a]\nkind = "number"\nmin = 0\nmax = 1\n[columns.b]\nkind = "category"\nvalues = ["x", "y"]\n'
PLAN = make_plan(Schema.parse(SCHEMA_TEXT), 1.0, 1e-5, rows=3_000)


def _table(n: int = 1_000) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.random(n), "b": pa.array(["x", "y"]).take(pa.array(rng.integers(0, 2, n)))})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    for i in range(3):
        pq.write_table(_table(), tmp_path / "parts" / f"{i}.parquet")
    return tmp_path / "parts"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "study.ledger", 1.0, 1e-5)


def _leftovers(place: Path) -> list[str]:
    return sorted(p.name for p in place.iterdir() if p.name not in ("parts", "study.ledger", "plan.json", "data.csv"))


def test_a_file_that_vanishes_between_opening_and_reading(folder: Path, ledger: Ledger, tmp_path: Path) -> None:
    rows = open_rows(folder)
    (folder / "1.parquet").unlink()
    with pytest.raises(DataError, match=r"1\.parquet is not there"):
        measure(rows, PLAN, ledger=ledger)
    assert len(ledger.entries()) == 1
    assert _leftovers(tmp_path) == []


def test_a_file_that_is_cut_short(folder: Path, ledger: Ledger) -> None:
    rows = open_rows(folder)
    whole = (folder / "2.parquet").read_bytes()
    (folder / "2.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"2\.parquet changed while it was read"):
        measure(rows, PLAN, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_one_file_of_many_lacks_a_column(folder: Path, ledger: Ledger) -> None:
    pq.write_table(_table().drop_columns(["b"]), folder / "1.parquet")
    with pytest.raises(DataError, match=r"1\.parquet.*'b'"):
        measure(folder, PLAN, ledger=ledger)
    assert ledger.entries() == ()  # seen before anything was spent


def test_one_file_of_many_has_another_type(folder: Path) -> None:
    """Another type is not another shape: its cells are read for what they say."""
    table = _table()
    pq.write_table(table.set_column(0, "a", table["a"].cast(pa.string())), folder / "1.parquet")
    assert measure(folder, PLAN, noise=FixedNoise()).rows == 3_000


def test_rows_that_change_between_two_passes(folder: Path, ledger: Ledger) -> None:
    rows = open_rows(folder)

    class Shrinking(Rows):
        passes = 0

        @property
        def fields(self) -> dict[str, pa.DataType | None]:
            return rows.fields

        @property
        def stored_count(self) -> int | None:
            return None

        def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
            self.passes += 1
            yield from rows.batches(columns)
            if self.passes == 1:
                yield from _table(1).select(columns).to_batches()

    with pytest.raises(DataError, match="changed while it was read"):
        measure(Shrinking(), PLAN, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_a_full_disk(folder: Path, ledger: Ledger, tmp_path: Path) -> None:
    made = measure(folder, PLAN, ledger=ledger)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
        with pytest.raises(ArtefactError, match="cannot write"):
            made.save(tmp_path / "release")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert _leftovers(tmp_path) == []
    assert len(ledger.entries()) == 1
    made.save(tmp_path / "release")  # with room again, the release is not lost
    assert (tmp_path / "release" / "release.json").exists()


@pytest.mark.parametrize("kind", ["the working folder", "an empty folder", "a link to an empty folder"])
def test_an_empty_folder_that_is_there_is_filled(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of these can be replaced by a rename: the release that was paid for would be lost."""
    (tmp_path / "out").mkdir()
    target = tmp_path / "out"
    if kind == "the working folder":
        monkeypatch.chdir(target)
        target = Path(".")
    elif kind == "a link to an empty folder":
        target = tmp_path / "link"
        target.symlink_to(tmp_path / "out")
    measure(folder, PLAN).save(target)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["CARD.md", "release.json", "sums.safetensors"]
    Release.load(target)


def test_a_place_that_cannot_take_the_release_is_refused_before_the_charge(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(ArtefactError, match="link to nothing"):
        check_writable(tmp_path / "link")
    with pytest.raises(ArtefactError, match="cannot write"):
        check_writable(tmp_path / "out", 2**60)  # no disk has room for that
    with pytest.raises(ArtefactError, match="cannot write"):
        check_writable(tmp_path / ("n" * 300))
    assert list(tmp_path.iterdir()) == [tmp_path / "link"]


def test_a_release_that_cannot_be_saved_is_saved_elsewhere(folder: Path, tmp_path: Path) -> None:
    made = measure(folder, PLAN)

    def save(place: Path) -> None:
        if place.name == "out":
            raise ArtefactError("cannot write out: the disk refused")
        made.save(place)

    with pytest.raises(ArtefactError, match="not lost: it is in") as said:
        keep(save, tmp_path / "out")
    assert Release.load(str(said.value).rpartition(" is in ")[2]).plan == PLAN


def test_two_processes_write_one_file_and_the_killed_one_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    (tmp_path / f".rows.csv.{process.pid}.part").write_text("half")
    (tmp_path / f".rows.csv.{os.getpid()}x.part").write_text("not ours")
    with appearing(tmp_path / "rows.csv") as place:
        assert str(os.getpid()) in place.name
        place.write_text("whole")
    assert (tmp_path / "rows.csv").read_text() == "whole"
    assert sorted(p.name for p in tmp_path.iterdir()) == [f".rows.csv.{os.getpid()}x.part", "rows.csv"]


SLOW = textwrap.dedent(
    """
    import sys, time
    from dpmerf.cli import main
    from dpmerf.sources import rows
    whole = rows.Csv.batches
    def slowly(self, columns):
        for batch in whole(self, columns):
            print("reading", flush=True)
            yield batch
            time.sleep(60)
    rows.Csv.batches = slowly
    sys.argv = ["dpmerf", "release", "data.csv", "--plan", "plan.json", "--ledger", "study.ledger", "-o", "out", "-q"]
    main()
    """
)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_in_the_middle(how: signal.Signals, tmp_path: Path) -> None:
    PLAN.save(tmp_path / "plan.json")
    (tmp_path / "data.csv").write_text("a,b\n" + "0.5,x\n" * 100)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    start = time.monotonic()
    os.kill(process.pid, how)
    _, words = process.communicate(timeout=50)
    assert time.monotonic() - start < 50
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(how, -how)
    if how != signal.SIGKILL:
        assert words.startswith("error: stopped") and words.count("\n") == 1
    assert _leftovers(tmp_path) == []
    assert len(Ledger.load(tmp_path / "study.ledger").entries()) == 1


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_rows_of_no_person(neighbours: str, tmp_path: Path) -> None:
    """A table without rows is the neighbour of one with a single person: it is released like any other."""
    columns = '[columns.p]\nkind = "id"\n[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n[columns.b]\nkind = "flag"\n'
    (tmp_path / "s.toml").write_text(columns)
    (tmp_path / "none.csv").write_text("p,x,b\n")
    (tmp_path / "one.csv").write_text("p,x,b\n7,0.5,yes\n")
    asked = ["--epsilon", "1", "--rows", "100", "--unit", "person:p,2", "--neighbours", neighbours]
    assert dpmerf("plan", "s.toml", *asked, "-o", "p.json", cwd=tmp_path).returncode == 0
    said = []
    for name in ("none", "one"):
        words = ["release", f"{name}.csv", "--plan", "p.json", "--ledger", f"{name}.ledger", "-o", name, "-q"]
        ended = dpmerf(*words, cwd=tmp_path)
        said.append((ended.returncode, ended.stdout, ended.stderr))
        assert dpmerf("verify", name, "-q", cwd=tmp_path).returncode == 0
        purposes = [e.purpose.split()[0] for e in Ledger.load(tmp_path / f"{name}.ledger").entries()]
        assert purposes == ["readability", "release"]
    assert said[0] == said[1] and said[0][0] == 0
