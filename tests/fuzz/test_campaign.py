"""A small part of the campaign (`make fuzz` runs all of it): other cases of every kind, and faults where they hurt."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fuzz import bombs, faults
from fuzz.__main__ import campaign
from fuzz.ground import Ground, lay


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return lay(tmp_path_factory.mktemp("ground"))


def test_hostile_input_of_every_kind(ground: Ground, tmp_path: Path) -> None:
    said: list[str] = []
    tallies = campaign(ground, tmp_path, 140, said.append)
    assert not said
    assert sum(t.cases for t in tallies) >= 140 and all(t.cases for t in tallies)
    assert any(t.accepted for t in tallies) and any(t.refused for t in tallies)


SMALL_BOMBS = [
    "release that claims large pairs",
    "release.json, brackets",
    "sums that claim 8 TB",
    "pictures of 128 × 128 × 3",
    "png with a text of 1 GB",
]


def test_some_bombs(ground: Ground, tmp_path: Path) -> None:
    said: list[str] = []
    tally = bombs.run(ground, tmp_path / "x", said.append, SMALL_BOMBS)
    assert not said and tally.cases == len(SMALL_BOMBS) and 50_000 < tally.peak < 1_000_000  # kB


def test_the_judge_sees_a_process_that_takes_too_much(ground: Ground, tmp_path: Path) -> None:
    """Planted: the memory allowed is less than Python's own."""
    name = "sums that claim 8 TB"
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(bombs, "MOST_MB", 10)
        (wrong,) = bombs.one(name, bombs.BOMBS[name], ground, tmp_path / "x", bombs.Tally("planted"))
    assert wrong.endswith(" MB")


def test_a_full_disk_at_every_call_of_a_release(ground: Ground, tmp_path: Path) -> None:
    said: list[str] = []
    tally = faults.every_fault(ground, tmp_path / "x", faults.RELEASE, faults.ERRORS[:1], said.append)
    assert not said and tally.cases >= 60 and tally.refused > tally.cases / 2


def test_one_ledger_and_five_processes(ground: Ground, tmp_path: Path) -> None:
    said: list[str] = []
    assert faults.races(ground, tmp_path / "x", said.append, 2).cases == 2
    assert not said


def test_the_judge_sees_a_ledger_that_counts_too_little(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted faults: a charge that is not written, and a release that is not kept."""
    said: list[str] = []
    with monkeypatch.context() as planted:
        planted.setattr("dpmerf.private.ledger.append", lambda path, file, line: None)
        said += faults.one(ground, tmp_path / "x", faults.RELEASE, faults.Injector(), faults.Tally("planted"))
    with monkeypatch.context() as planted:
        home = importlib.import_module("dpmerf.release.release")
        planted.setattr(home, "write_folder", lambda path, files: None)
        said += faults.one(ground, tmp_path / "x", faults.RELEASE, faults.Injector(), faults.Tally("planted"))
    assert "read with 0 entries" in said and "paid for and lost" in said
