"""Releases forged with care, hashes recomputed: `verify` refuses what can be known, a signature catches the rest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import save as save_tensors

from dpmerf.accounting.unit import Unit
from dpmerf.encoding.binning import Binning
from dpmerf.encoding.normal_scores import Scores
from dpmerf.errors import ArtefactError, DpmerfError
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Known, Plan, digest
from dpmerf.plan.queries import Tables
from dpmerf.plan.queries.pairs_again import Picked, picked_pairs
from dpmerf.private.local import sum_locally
from dpmerf.private.measure import measure
from dpmerf.private.noise import NoiseSource, OpenDPGaussian
from dpmerf.progress import SILENT
from dpmerf.release import Release
from dpmerf.release.plausible import ALPHA, Table, check_noise, disagreement, likely, remainders, uniform
from dpmerf.release.signature import make_keys
from dpmerf.release.verify import _tables, verify
from dpmerf.schema import Schema
from dpmerf.sources.rows import Frame

N = 3_000
COLUMNS = [f"c{i}" for i in range(7)]
TOML = 'label = "y"\n[columns.y]\nkind = "flag"\n[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n' + "".join(
    f'[columns.{name}]\nkind = "category"\nvalues = ["a", "b", "c", "d"]\n' for name in COLUMNS
)
SCHEMA = Schema.parse(TOML)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = np.random.default_rng(1)
    categories = {name: rng.choice(list("abcd"), N, p=[0.4, 0.3, 0.2, 0.1]) for name in COLUMNS}
    return pa.table({"y": rng.random(N) < 0.3, "x": rng.random(N) ** 2, **categories})


@pytest.fixture(scope="module")
def plan() -> Plan:
    made = make_plan(SCHEMA, 1, 1e-5, rows=N)
    assert [s.name for s in made.stages] == ["discover", "tables", "pairs again"]
    return made


@pytest.fixture(scope="module")
def honest(rows: pa.Table, plan: Plan) -> Release:
    return measure(rows, plan)


def refused(release: Release, folder: Path, words: str) -> None:
    """Saved as the program would save it: all hashes, the guarantee and the card fit."""
    release.save(folder / "forged")
    with pytest.raises(ArtefactError, match=words):
        verify(folder / "forged")


def test_an_honest_release_passes_and_its_limits_are_said(honest: Release, tmp_path: Path) -> None:
    honest.save(tmp_path / "r")
    checked = verify(tmp_path / "r")
    assert [t.what.split()[0] for t in checked.tests] == ["counts", "every", "tables", "the"]
    assert all(t.plausible and t.numbers > 20 for t in checked.tests)
    assert checked.signed_by is None and any("who made it" in words for words in checked.unknown)
    assert any("no ledger was charged" in words for words in checked.unknown)


# --- noise -----------------------------------------------------------------------------------------------------------


class Claimed(NoiseSource):
    """Passes for the real one. `of` makes noise of scale 1 from the real one's."""

    name = OpenDPGaussian.name

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def add(self, sums: Any, sigma: float, advance: Any = None) -> Any:
        return OpenDPGaussian().add(sums, sigma * self.scale) if self.scale else sums.clone()

    def choose(self, scores: list[int], scale: float) -> int:
        return int(np.argmax(scores))


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_sums_without_noise(rows: pa.Table, preset: str, tmp_path: Path) -> None:
    made = make_plan(SCHEMA, 1, 1e-5, rows=N, preset=preset)
    refused(measure(rows, made, noise=Claimed(0.0)), tmp_path, "it cannot be that counts carry noise")


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_noise_of_another_size(rows: pa.Table, plan: Plan, scale: float, tmp_path: Path) -> None:
    refused(measure(rows, plan, noise=Claimed(scale)), tmp_path, "disagree by as much noise")


def test_noise_that_is_left_out_of_a_few_cells(honest: Release, rows: pa.Table, tmp_path: Path) -> None:
    """Eight exact counts among hundreds of noisy ones: each is a multiple of the weight, which is no accident."""
    phi = honest.embedding(honest.plan.stages[1]).phi
    exact, _ = sum_locally(Frame(rows), honest.plan, phi, honest.embedding(honest.plan.stages[1]).view, SILENT, "")
    sums = honest.sums["tables"].clone()
    sums[-8:] = exact[-8:]
    forged = replace(honest, sums={**honest.sums, "tables": sums})
    assert "counts carry noise" in {test.what for test in check_noise(_tables(forged), N) if not test.plausible}
    refused(forged, tmp_path, r"counts carry noise|do not follow")  # the cells may be those of a pair that was chosen


def test_the_same_noise_in_every_table(rows: pa.Table, plan: Plan, tmp_path: Path) -> None:
    class Shared(Claimed):
        def add(self, sums: Any, sigma: float, advance: Any = None) -> Any:
            short = OpenDPGaussian().add(torch.zeros(16, dtype=torch.int64), sigma)
            return sums + short.repeat(len(sums) // 16 + 1)[: len(sums)]

    refused(measure(rows, plan, noise=Shared(1.0)), tmp_path, "every count has noise of its own|its noise is not")


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_a_smaller_epsilon_written_over(honest: Release, epsilon: float, tmp_path: Path) -> None:
    forged = replace(honest, plan=replace(honest.plan, epsilon=epsilon))
    assert not all(test.plausible for test in check_noise(_tables(forged), N))
    refused(forged, tmp_path, r"disagree by as much noise|do not follow")


def test_other_neighbours_written_over(rows: pa.Table, tmp_path: Path) -> None:
    """Noise for a row that is there or not, sold as noise for a row that is replaced: √2 too little.

    That shows in most releases, not in all: noise is judged by chance.
    """
    plan, seen = make_plan(SCHEMA, 1, 1e-5, rows=N, unit=Unit(neighbours="add-remove")), 0
    for i in range(4):
        added = measure(rows, plan)
        sold = replace(added, plan=replace(added.plan, unit=Unit()), rows=N)
        if not all(test.plausible for test in check_noise(_tables(sold), N)):
            refused(sold, tmp_path / str(i), r"disagree by as much noise|do not follow")
            seen += 1
    assert seen >= 2


@pytest.mark.parametrize("n", [N // 2, N + 1_000])
def test_a_false_number_of_rows(honest: Release, n: int, tmp_path: Path) -> None:
    refused(replace(honest, rows=n), tmp_path, r"number of rows|do not follow")


# --- what follows from sums ------------------------------------------------------------------------------------------


def test_bins_cut_at_raw_quantiles(rows: pa.Table, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything after the bins is honest: noisy tables over bins that exact quantiles cut."""
    real = Tables.derive

    def peeking(self: Tables, known: Known) -> Binning:
        honest = real(self, known)
        cells = honest.grid.encode(plan.codec.encode(rows))["x"].numpy()
        size, bins = len(honest.bin_of["x"]), int(honest.bin_of["x"].max()) + 1
        rank = np.searchsorted(np.sort(cells), np.arange(size), side="right") / (N + 1)
        exact = np.unique((rank * bins).astype(int), return_inverse=True)[1]
        return Binning(honest.grid, {**honest.bin_numbers, "x": exact}, {**honest.part_numbers, "x": exact})

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "derive", peeking)
        forged = measure(rows, plan)
    refused(forged, tmp_path, "bins, scores or picked pairs do not follow")


def test_pairs_picked_by_exact_tables(rows: pa.Table, plan: Plan, tmp_path: Path) -> None:
    """Another pair than the noisy tables name."""
    honest = measure(rows, plan)
    taken = picked_pairs(honest)
    other = next(pair for pair in plan.query(Tables).pairs if pair not in taken)
    swapped = replace(honest, derived={**honest.derived, "pairs again": Picked((other, *taken[1:]))})
    sizes = [swapped.embedding(s).dim for s in plan.stages]
    sums = dict(honest.sums)
    sums["pairs again"] = torch.nn.functional.pad(sums["pairs again"], (0, max(0, sizes[2] - len(sums["pairs again"]))))
    refused(replace(swapped, sums={**sums, "pairs again": sums["pairs again"][: sizes[2]]}), tmp_path, "do not follow")


def test_normal_scores_of_a_wide_table(tmp_path: Path) -> None:
    wide = "".join(f'[columns.v{i}]\nkind = "number"\nmin = 0\nmax = 1\n' for i in range(70))
    made = make_plan(Schema.parse(wide), 1, 1e-5, rows=500)
    assert made.stages[1].name == "directions"
    rng = np.random.default_rng(0)
    honest = measure(pa.table({f"v{i}": rng.random(500) for i in range(70)}), made)
    honest.save(tmp_path / "r")
    verify(tmp_path / "r")
    assert honest.scores is not None
    flat = torch.full_like(honest.scores.mass["v3"], 1 / len(honest.scores.mass["v3"]))
    forged = Scores(honest.scores.grid, {**honest.scores.mass, "v3": flat})
    refused(replace(honest, derived={"directions": forged}), tmp_path, "do not follow")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("(1, 1e-05)-differentially", "(0.1, 1e-06)-differentially"),
        lambda text: text.replace("One row", "One person").replace("one row", "one person"),
        lambda text: text + "\nMrs Miller is ill.\n",
        lambda text: text.replace("sigma", "σ"),
    ],
)
def test_a_card_with_other_words(honest: Release, change: Callable[[str], str], tmp_path: Path) -> None:
    honest.save(tmp_path / "r")
    card = tmp_path / "r" / "CARD.md"
    before = card.read_text(encoding="utf-8")
    card.write_text(change(before), encoding="utf-8")
    assert card.read_text(encoding="utf-8") != before
    with pytest.raises(ArtefactError, match=r"CARD\.md does not say"):
        verify(tmp_path / "r")


# --- what does not belong --------------------------------------------------------------------------------------------


def reseal(folder: Path, change: Callable[[dict[str, Any]], None], tensors: bytes | None = None) -> None:
    """Change release.json, and write it as the program would, with a hash that fits."""
    import hashlib

    place = folder / "release.json"
    document = json.loads(place.read_text(encoding="utf-8"))
    del document["hash"]
    change(document)
    if tensors is not None:
        (folder / "sums.safetensors").write_bytes(tensors)
        document["sums_sha256"] = hashlib.sha256(tensors).hexdigest()
    document["plan_hash"] = digest(document["plan"])
    document["hash"] = digest(document)
    place.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


HIDDEN: dict[str, Callable[[dict[str, Any]], None]] = {
    "a field": lambda d: d.update(rows_of_mrs_miller=[71, "c"]),
    "a field of the plan": lambda d: d["plan"].update(note="Mrs Miller"),
    "a field of a stage": lambda d: d["plan"]["stages"][0].update(note="Mrs Miller"),
    "a field of the unit": lambda d: d["plan"]["unit"].update(note="Mrs Miller"),
    "a field of the guarantee": lambda d: d["guarantee"].update(exact_rows=7),
    "a field of the bins": lambda d: d["derived"]["tables"].update(raw=[0.25, 0.5]),
    "bins of one column more": lambda d: d["derived"]["tables"]["bins"].update(z=[0, 1]),
    "bins of one stage more": lambda d: d["derived"].update(discover={"bins": {}, "parts": {}}),
    "an entry of no ledger": lambda d: d.update(ledger={"ledger": "Mrs", "entry": "Miller"}),
    "a version": lambda d: d.update(made_with="dpmerf 0.1.0, Mrs Miller"),
    "rows as text": lambda d: d["plan"].update(rows="3000"),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_fields_that_do_not_belong(honest: Release, what: str, tmp_path: Path) -> None:
    honest.save(tmp_path / "r")
    reseal(tmp_path / "r", HIDDEN[what])
    with pytest.raises(DpmerfError):
        verify(tmp_path / "r")


def test_tensors_and_notes_that_do_not_belong(honest: Release, tmp_path: Path) -> None:
    tensors = {name: t.contiguous() for name, t in honest.sums.items()}
    more = {**tensors, "rows": torch.arange(50)}
    for name, data, words in (
        ("tensor", save_tensors(more), "sums that its plan does not name"),
        ("note", save_tensors(tensors, metadata={"rows": "71,c"}), "holds more"),
    ):
        honest.save(tmp_path / name)
        reseal(tmp_path / name, lambda d: None, data)
        with pytest.raises(ArtefactError, match=words):
            verify(tmp_path / name)


def test_files_and_blanks_that_do_not_belong(honest: Release, tmp_path: Path) -> None:
    honest.save(tmp_path / "r")
    for name in ("rows.csv", ".hidden", "model"):
        (tmp_path / "r" / name).mkdir() if name == "model" else (tmp_path / "r" / name).write_text("71,c")
        with pytest.raises(ArtefactError, match="no part of a release"):
            verify(tmp_path / "r")
        (tmp_path / "r" / name).rmdir() if name == "model" else (tmp_path / "r" / name).unlink()
    place = tmp_path / "r" / "release.json"
    text = place.read_text(encoding="utf-8")
    for other in (
        text.replace('"rows": 3000', '"rows":   3000'),
        text.replace('{\n "format"', '{\n "kind": "x",\n "format"'),
    ):
        assert other != text
        place.write_text(other, encoding="utf-8")
        with pytest.raises(ArtefactError, match="holds more"):
            verify(tmp_path / "r")
    place.write_text(text, encoding="utf-8")
    verify(tmp_path / "r")


# --- the statistics --------------------------------------------------------------------------------------------------


def test_true_releases_are_not_refused(rows: pa.Table, plan: Plan) -> None:
    """Over many releases the tests' statistics have the law that their p-values assume."""
    found = []
    for _ in range(12):
        square, freedom = disagreement(_tables(measure(rows, plan)))
        found.append((square - freedom) / (2 * freedom) ** 0.5)
    assert freedom > 100 and abs(float(np.mean(found))) < 6 / 12**0.5 and max(map(abs, found)) < 6


def test_tables_that_share_variables_are_compared_in_independent_parts() -> None:
    """χ² with its degrees of freedom, for tables of one, two and three variables and different noise."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 50, (2, 3, 4))
    squares = []
    for _ in range(400):
        tables = []
        for axes, sigma in (((), 3.0), ((0,), 20.0), ((1,), 30.0), ((0, 1), 25.0), ((2, 1), 40.0), ((0, 1, 2), 10.0)):
            exact = truth.sum(axis=tuple(i for i in range(3) if i not in axes))
            if axes == (2, 1):
                exact = exact.T
            noisy = exact * 7 + np.rint(rng.normal(0, sigma, exact.shape)).astype(int)
            tables.append(Table(tuple("abc"[i] for i in axes), np.asarray(noisy), 7, sigma))
        square, freedom = disagreement(tables)
        squares.append(square)
    assert freedom == 5 + 2 * 1 + 3 * 2 + 1 * 2 + 1 * 3 + 1 * 6
    assert np.mean(squares) == pytest.approx(freedom, abs=5 * (2 * freedom / 400) ** 0.5)
    assert np.var(squares) == pytest.approx(2 * freedom, rel=0.35)


def test_remainders_and_tails() -> None:
    rng = np.random.default_rng(0)
    wide = Table(("a",), np.rint(rng.normal(0, 5_000, 4_000)).astype(int) + 1_000 * 70, 1_000, 5_000.0)
    assert uniform(remainders([wide])) > 1e-3
    narrow = replace(wide, sums=wide.sums // 1_000 * 1_000)
    assert uniform(remainders([narrow])) < ALPHA
    assert len(remainders([replace(wide, sigma=10.0)])) == 0  # noise below a count: remainders say nothing
    assert likely(100, 100) and not likely(0.0, 12) and not likely(300, 100) and not likely(20, 100)


# --- signatures ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_keys(tmp_path_factory.mktemp("keys") / "institute.key")


def test_a_signature_catches_what_no_test_can(honest: Release, keys: tuple[Path, Path], tmp_path: Path) -> None:
    from dpmerf.release.signature import Key

    honest.save(tmp_path / "r", Key.load(keys[0]))
    checked = verify(tmp_path / "r", signed_by=keys[1])
    assert checked.signed_by and not any("who made it" in words for words in checked.unknown)
    assert verify(tmp_path / "r").signed_by == checked.signed_by  # checked also if no key is named

    # Another honest-looking release of the same plan: every test passes, but for the signature
    other = replace(honest, sums={k: v.clone() for k, v in honest.sums.items()})
    other.sums["pairs again"][0] += 12_345
    other.save(tmp_path / "other")
    verify(tmp_path / "other")
    shutil.copy(tmp_path / "r" / "SIGNATURE.json", tmp_path / "other")
    with pytest.raises(ArtefactError, match="changed after the release was signed"):
        verify(tmp_path / "other")
    (tmp_path / "other" / "SIGNATURE.json").unlink()
    with pytest.raises(ArtefactError, match="SIGNATURE"):
        verify(tmp_path / "other", signed_by=keys[1])
    mallory = make_keys(tmp_path / "mallory")
    shutil.rmtree(tmp_path / "other")
    other.save(tmp_path / "other", Key.load(mallory[0]))
    verify(tmp_path / "other")
    with pytest.raises(ArtefactError, match="signed by another key"):
        verify(tmp_path / "other", signed_by=keys[1])


@pytest.mark.parametrize("field", ["plan_hash", "ledger", "files", "public_key", "signature", "format", "more"])
def test_a_signature_that_was_changed(honest: Release, keys: tuple[Path, Path], field: str, tmp_path: Path) -> None:
    from dpmerf.release.signature import Key

    honest.save(tmp_path / "r", Key.load(keys[0]))
    place = tmp_path / "r" / "SIGNATURE.json"
    document = json.loads(place.read_text())
    changed = {"files": {}, "ledger": {"ledger": "", "entry": "00"}, "format": 2, "more": 1}.get(field)
    document[field] = changed if changed is not None else document[field][::-1]
    place.write_text(json.dumps(document, indent=1) + "\n")
    with pytest.raises(ArtefactError):
        verify(tmp_path / "r")
