"""The artefact: whole, verified, and refused when anything was changed."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
import torch

import dpmerf
from dpmerf.accounting.unit import Unit
from dpmerf.errors import ArtefactError, DataError
from dpmerf.methods.presets import make_plan
from dpmerf.plan import digest
from dpmerf.private.measure import measure
from dpmerf.release.release import DOCUMENT, TENSORS, Release
from dpmerf.release.verify import verify
from dpmerf.schema import Schema
from fixed_noise import FixedNoise


@pytest.fixture(scope="module", params=["default", "paper"])
def folder(request, mixed_schema: Schema, mixed_table: pa.Table, tmp_path_factory) -> Path:
    plan = make_plan(mixed_schema, 1, 1e-5, rows=4_000, preset=request.param)
    path = tmp_path_factory.mktemp(request.param) / "release"
    measure(mixed_table, plan).save(path)
    return path


def test_verify_accepts_it_and_load_returns_the_same(folder: Path) -> None:
    release = verify(folder).release
    again = Release.load(folder)
    assert again.plan == release.plan and again.rows == 4_000
    assert all(torch.equal(again.sums[k], release.sums[k]) for k in release.sums)
    assert "(1, 1e-05)-differentially private" in (folder / "CARD.md").read_text()


def _changed(folder: Path, tmp_path: Path, change, reseal: bool = False) -> Path:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    document = json.loads((copy / DOCUMENT).read_text())
    change(document)
    if reseal:
        document["hash"] = digest({k: v for k, v in document.items() if k != "hash"})
    (copy / DOCUMENT).write_text(json.dumps(document))
    return copy


CHANGES = {
    "its plan was changed": lambda d: d["plan"].update(rows=5),
    "its plan was changed ": lambda d: d["plan"].update(epsilon=0.5),
    "'epsilon' does not follow": lambda d: d["guarantee"].update(epsilon=0.1),
    "'noise_in_rows' does not follow": lambda d: d["guarantee"].update(noise_in_rows={}),
    "'unit' does not follow": lambda d: d["guarantee"].update(unit="Protected: everybody."),
    "description was changed": lambda d: d.update(rows=5),
    "sums were changed": lambda d: d.update(sums_sha256="0" * 64),
    "not a release of format": lambda d: d.update(format=9),
}


@pytest.mark.parametrize("words", CHANGES)
def test_changes_are_named(folder: Path, tmp_path: Path, words: str) -> None:
    with pytest.raises(ArtefactError, match=words.strip()):
        verify(_changed(folder, tmp_path, CHANGES[words]))


@pytest.mark.parametrize(
    "words", ["'epsilon' does not follow", "'noise_in_rows' does not follow", "'unit' does not follow"]
)
def test_a_forger_who_mends_the_hash_is_still_caught(folder: Path, tmp_path: Path, words: str) -> None:
    with pytest.raises(ArtefactError, match=words):
        verify(_changed(folder, tmp_path, CHANGES[words], reseal=True))


def test_every_kind_of_byte_change_in_the_sums_is_noticed(folder: Path, tmp_path: Path) -> None:
    whole = (folder / TENSORS).read_bytes()
    for place in (0, 9, len(whole) // 2, len(whole) - 1):
        copy = tmp_path / str(place)
        shutil.copytree(folder, copy)
        (copy / TENSORS).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ArtefactError, match="sums were changed"):
            verify(copy)


def test_a_test_noise_source_is_refused_by_name(mixed_schema: Schema, mixed_table: pa.Table, tmp_path: Path) -> None:
    plan = make_plan(mixed_schema, 1, 1e-5, rows=4_000, preset="paper")
    measure(mixed_table, plan, noise=FixedNoise()).save(tmp_path / "r")
    assert "NOT PRIVATE" in (tmp_path / "r" / "CARD.md").read_text()
    with pytest.raises(ArtefactError, match="TEST-ONLY"):
        verify(tmp_path / "r")


def test_nothing_is_overwritten_and_unreadable_folders_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="exists already"):
        Release.load(folder).save(folder)
    with pytest.raises(ArtefactError, match="cannot read"):
        Release.load(tmp_path / "nowhere")
    (tmp_path / DOCUMENT).write_text('{"format": NaN}')
    with pytest.raises(ArtefactError, match="not JSON"):
        Release.load(tmp_path)


def test_a_protected_number_of_rows_is_only_estimated(mixed_schema: Schema, mixed_table: pa.Table) -> None:
    for preset in ("default", "paper"):
        plan = make_plan(mixed_schema, 5, 1e-5, rows=1_000, unit=Unit(neighbours="add-remove"), preset=preset)
        release = measure(mixed_table, plan)
        assert release.rows is None
        assert release.rows_estimate != 4_000 and release.rows_estimate == pytest.approx(4_000, rel=0.1)


def test_a_person_counts_with_at_most_k_rows(mixed_schema: Schema, mixed_table: pa.Table) -> None:
    crowd = mixed_table.set_column(0, "key", pa.array([i % 100 for i in range(4_000)]))
    plan = make_plan(mixed_schema, 10, 1e-5, rows=300, unit=Unit.parse("person:key,3"))
    assert measure(crowd, plan).rows_estimate == pytest.approx(300, rel=0.1)


def test_an_empty_table_is_refused_where_rows_are_public(mixed_schema: Schema, mixed_table: pa.Table) -> None:
    plan = make_plan(mixed_schema, 1, 1e-5)
    with pytest.raises(DataError, match="no rows"):
        measure(mixed_table.slice(0, 0), plan)
    private = make_plan(mixed_schema, 1, 1e-5, unit=Unit(neighbours="add-remove"))
    assert measure(mixed_table.slice(0, 0), private).rows is None


OLD = Path(__file__).parents[1] / "artefacts" / "format2"  # written by dpmerf before format 3


def test_a_release_whose_cells_are_cut_by_other_rules_is_refused_plainly() -> None:
    with pytest.raises(ArtefactError, match="with the version of dpmerf that did"):
        verify(OLD / "tables")


@pytest.mark.parametrize("name", ["wide", "few"])
def test_releases_of_format_2_are_read_verified_and_trained(name: str) -> None:
    """Stored files outlive the code that wrote them: scores and selections are found where they were."""
    checked = verify(OLD / name)
    assert any("another version" in words for words in checked.unknown)
    release = checked.release
    assert release.derived and all(release.embedding(stage).dim > 0 for stage in release.plan.stages)
    assert dpmerf.train(release, seed=1).sample(20).num_rows == 20


def test_rewording_the_unit_breaks_no_stored_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit is data: in the plan, in the guarantee. Words are for people alone."""
    monkeypatch.setattr(Unit, "describe", lambda self: "Somebody is protected.")
    for place in (folder, OLD / "wide"):
        assert Release.load(place).plan.unit == Unit()
