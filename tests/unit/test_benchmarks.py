"""The benchmarks: the list works, pages say what the stored results say, loaders and schemas fit, ε = ∞ is refused."""

import shutil
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not beside the package")

from benchmarks import data, envs, origins, pages, paper, peers, protocols
from benchmarks.__main__ import main
from benchmarks.methods import METHODS, Task
from benchmarks.noiseless import Noiseless
from benchmarks.registry import FOLDER, Run, experiments
from benchmarks.store import Store

from dpmerf.errors import ArtefactError
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.release.verify import verify
from dpmerf.schema import Schema

HAVE_DATA = data.folder(None).exists()
TOY = Schema.parse('label = "y"\n[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n[columns.y]\nkind = "flag"')


def toy(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"x": rng.random(rows), "y": rng.random(rows) > 0.5})


def test_list_names_every_experiment_with_its_cost(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    for experiment in experiments().values():
        assert experiment.name in said and experiment.cost in said
    assert {"table1", "peers", "mixture", "proposition1", "epsilon-curve", "privbayes", "balog"} <= set(experiments())


def test_an_unknown_experiment_is_refused(capsys):
    assert main(["run", "nothing"]) == 2
    assert "table1" in capsys.readouterr().err


@pytest.mark.slow
def test_pages_agree_with_the_stored_results(tmp_path):
    shutil.copytree(FOLDER / "results", tmp_path / "results")  # figures are drawn again, there
    for path, text in pages.pages(experiments(), Store(tmp_path / "results")).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `python -m benchmarks table`"


def test_every_experiment_has_its_place_on_the_page():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in experiments():
        assert f"<!-- {name} -->" in text and f"<!-- /{name} -->" in text


def test_only_chooses_cells(tmp_path):
    this = Run(Store(tmp_path), None, only=("/honest/", "/paper/,/real/"))
    assert this.wants("/table1/honest/adult/real/1/") and this.wants("/table1/honest/adult/paper/1/")
    assert not this.wants("/table1/honest/adult/default/1/") and not this.wants("/table1/paper/adult/real/1/")


def test_a_peer_that_fails_or_takes_too_long_says_so():
    assert envs.run([sys.executable, "-c", "print('done')"], 60) == "done\n"
    with pytest.raises(envs.PeerFailed, match="no such peer"):
        envs.run([sys.executable, "-c", "raise SystemExit('no such peer')"])
    with pytest.raises(envs.PeerFailed, match="not finished after 1 s of CPU time"):
        envs.run([sys.executable, "-c", "while True: pass"], 1)


def test_a_peers_answer_is_kept_and_a_failure_is_not(tmp_path, monkeypatch):
    script = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
rows = (folder / "rows.csv").read_text()
if "bad" in rows:
    raise SystemExit("bad rows")
(folder / "synthetic.csv").write_text(rows)
(folder / "cost.json").write_text((folder / "task.json").read_text())
"""
    (tmp_path / "tool_peer.py").write_text(script)
    monkeypatch.setenv("DPMERF_BENCH_ENVS", str(tmp_path / "envs"))
    monkeypatch.setattr(peers, "SCRIPTS", tmp_path)
    asked = []
    monkeypatch.setattr(envs, "python", lambda *what: asked.append(what) or sys.executable)
    peer = peers.Peer("tool", "method", ("a==1",))
    place = peers.answer(peer, "{}", "x\n1\n", 60)
    assert (place / "synthetic.csv").read_text() == "x\n1\n" and (place / "cost.json").read_text() == "{}"
    assert peers.answer(peer, "{}", "x\n1\n", 60) == place and len(asked) == 1
    assert peers.answer(peer, "{}", "x\n2\n", 60) != place and len(asked) == 2
    for _ in range(2):
        with pytest.raises(envs.PeerFailed, match="bad rows"):
            peers.answer(peer, "{}", "bad", 60)
    assert len(asked) == 4


def test_only_that_names_no_cell_is_an_error_that_shows_names(capsys):
    assert main(["run", "speed", "--quick", "--only", "/no-such-cell/"]) == 2
    said = capsys.readouterr().err
    assert "no cell of 'speed' is named /no-such-cell/" in said and "/speed/" in said


def test_missing_data_says_where_to_get_it(tmp_path):
    for name, one in data.SETS.items():
        with pytest.raises(data.MissingData) as problem:
            one.frame(0, tmp_path)
        assert one.origin in str(problem.value) and origins.FILES[one.files[0]][0] in str(problem.value), name


def test_a_publishers_file_is_read(tmp_path):
    line = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    (tmp_path / "adult.data").write_text(line + "United-States, <=50K\n")
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + line + "?, >50K.\n")
    train, test = (data.SETS["adult"].frame(i, tmp_path) for i in (0, 1))
    assert train["income"].tolist() == ["<=50K"] and test["income"].tolist() == [">50K"]
    assert train["workclass"].tolist() == ["State-gov"] and test["native_country"].tolist() == ["?"]


@pytest.mark.data
@pytest.mark.skipif(not HAVE_DATA, reason="the data sets are not here")
@pytest.mark.parametrize("name", ["census", "cervical", "covtype", "credit", "epileptic", "intrusion", "isolet"])
def test_publishers_files_give_the_same_rows(name, tmp_path):
    """A few rows, written as their publisher does, are read back the same."""
    one = data.SETS[name]
    raw = data.read(one.files[0], one.origin, None).head(50)
    headed = name in ("cervical", "credit", "epileptic")
    if name == "isolet":
        raw = raw.drop(columns="speaker_group").assign(letter=raw["letter"].map(lambda c: f"{ord(c) - 64}."))
    if name == "intrusion":
        raw = raw.assign(label=raw["label"] + ".")
    raw.to_csv(tmp_path / origins.FILES[one.files[0]][0], header=headed, index=False, na_rep="?")
    read, stored = one.frame(0, tmp_path), one.frame(0, None).head(50)
    pd.testing.assert_frame_equal(read, stored, check_dtype=False, rtol=1e-4)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(not HAVE_DATA, reason="the data sets are not here")
@pytest.mark.parametrize("name", data.SETS)
def test_schema_fits_its_file(name):
    """Columns are there, categories are declared, bounds hold all but a few values (credit is clipped on purpose)."""
    one = data.SETS[name]
    for part in range(len(one.files)):
        frame = one.frame(part, None)
        for column, declared in one.schema.columns.items():
            values = frame[column].dropna()
            assert declared.nullable or len(values) == len(frame), column
            if declared.kind == "category":
                assert declared.other is not None or set(values.unique()) <= set(declared.levels), column
            else:
                assert ((values < declared.min) | (values > declared.max)).mean() < 0.01, column


@pytest.mark.data
@pytest.mark.skipif(not HAVE_DATA, reason="the data sets are not here")
def test_paper_protocol_has_the_papers_rows():
    adult, cervical = (protocols.split(data.SETS[n], "paper", 1) for n in ("adult", "cervical"))
    assert adult.train.num_rows == pytest.approx(11_077, rel=0.01)
    assert cervical.train.num_rows + cervical.test.num_rows == 753


@pytest.mark.data
@pytest.mark.skipif(not HAVE_DATA, reason="the data sets are not here")
def test_honest_protocol_takes_all_rows_and_never_changes():
    one, two = (protocols.split(data.SETS["cervical"], "honest", run) for run in (1, 2))
    assert one.train.num_rows + one.test.num_rows == 858
    assert one.train.equals(two.train)


def test_no_noise_is_stamped_and_refused(tmp_path):
    release = measure(toy(), make_plan(TOY, 10.0, 1e-5, rows=300), noise=Noiseless())
    assert "NOT PRIVATE" in release.noise and "NOT PRIVATE" in release.card()
    release.save(tmp_path / "release")
    with pytest.raises(ArtefactError):
        verify(tmp_path / "release")


def test_methods_give_as_many_rows_as_they_got():
    for name in ("real", "default"):
        rows = METHODS[name](Task(toy(), TOY, 1.0, 1e-5, seed=1, quick=True))
        assert rows.num_rows == 300 and set(rows.column_names) == {"x", "y"}


def test_the_papers_numbers_have_the_right_shape():
    for name, columns in paper.TABLE1.items():
        size = 1 if name in paper.MULTICLASS else 2
        assert all(len(values) == size for values in columns.values())
    assert set(paper.TABLE1) == set(data.SETS) == set(protocols.PAPER)


def test_intrusion_groups_cover_every_known_attack():
    attacks = [a for group in data.GROUPS.values() for a in group.split()]
    assert len(attacks) == len(set(attacks)) == 40
    frame = pd.DataFrame({"label": ["smurf.", "normal", "rootkit"]})
    assert data.SETS["intrusion"].prepare(frame)["attack"].tolist() == ["dos", "normal", "u2r"]


@pytest.mark.data
@pytest.mark.skipif(not HAVE_DATA, reason="the data sets are not here")
@pytest.mark.parametrize("name", ["adult", "credit"])
def test_the_stated_shares_of_positives_are_those_of_the_rows(name):
    for protocol, stated in zip(("honest", "paper"), paper.SHARES[name], strict=True):
        rows = protocols.split(data.SETS[name], protocol, 1)
        _, counts = np.unique(np.array(rows.test[rows.schema.label]).astype(str), return_counts=True)
        assert counts.min() / counts.sum() == pytest.approx(stated, rel=0.001 if protocol == "honest" else 0.15)
