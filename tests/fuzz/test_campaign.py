"""A small part of the campaign (`make fuzz` runs all of it): other cases of every kind, and faults where they hurt."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy

from dpmerf.errors import ArtefactError
from dpmerf.model import Model
from dpmerf.plan import digest
from dpmerf.release import Release
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


def _rewritten(path: Path, document: dict[str, Any]) -> None:
    document["hash"] = digest({k: v for k, v in document.items() if k != "hash"})
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("wrong", ["gone", "negative", "with a gap", "too few", "parts over two bins"])
def test_a_release_whose_bins_were_edited(wrong: str, ground: Ground, tmp_path: Path) -> None:
    """Found by the campaign: the hash of the edited file fits, and only a question showed that its bins do not."""
    shutil.copytree(ground.folder / "release", tmp_path / "r")
    document = json.loads((tmp_path / "r" / "release.json").read_text())
    bins = document["derived"]["tables"]["bins"]
    size = len(bins["age"])
    match wrong:
        case "gone":
            del bins["age"]
        case "negative":
            bins["age"] = [-1] * size
        case "with a gap":
            bins["age"] = [2] * size
        case "too few":
            bins["age"] = bins["age"][1:]
        case _:
            document["derived"]["tables"]["parts"]["age"], bins["age"] = [0] * size, [0] * (size - 1) + [1]
    _rewritten(tmp_path / "r" / "release.json", document)
    with pytest.raises(ArtefactError, match="damaged"):
        Release.load(tmp_path / "r")


def test_a_model_whose_classes_have_no_shares(ground: Ground, tmp_path: Path) -> None:
    """Found by the campaign: drawing from it ended in an internal error."""
    shutil.copytree(ground.folder / "model", tmp_path / "m")
    tensors = safetensors.numpy.load_file(tmp_path / "m" / "weights.safetensors")
    tensors["shares"] *= 0
    safetensors.numpy.save_file(tensors, tmp_path / "m" / "weights.safetensors")
    document = json.loads((tmp_path / "m" / "model.json").read_text())
    document["weights_sha256"] = hashlib.sha256((tmp_path / "m" / "weights.safetensors").read_bytes()).hexdigest()
    _rewritten(tmp_path / "m" / "model.json", document)
    with pytest.raises(ArtefactError, match="damaged"):
        Model.load(tmp_path / "m")
