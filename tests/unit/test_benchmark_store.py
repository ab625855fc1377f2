"""The benchmarks' store: lines are appended whole, come from other folders in either form, and say what is left."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not beside the package")

from benchmarks import everything
from benchmarks.bring import bring
from benchmarks.registry import FOLDER, Experiment, Run, experiments
from benchmarks.store import Store


def test_stored_cells_say_what_made_them():
    store = Store()
    assert {"table1", "images", "peers"} <= set(store.experiments())
    for name in store.experiments():
        text = store.path(name).read_text(encoding="utf-8").splitlines()
        assert len(store.lines(name)) == len(text), f"{name}: a torn or double line: `benchmarks table` tidies"
        for key, line in store.lines(name).items():
            assert key.startswith(f"{name}/") and line["made_with"].startswith("dpmerf"), key


def test_no_file_of_results_has_a_blank_in_its_name():
    assert not [p for p in (FOLDER / "results").rglob("*") if " " in p.name and "quick" not in p.parts]
    assert not list((FOLDER / "results").glob("[!q]*/**/*.json"))  # one file an experiment


def test_a_stored_cell_is_not_computed_again_but_a_failed_one_is(tmp_path):
    store = Store(tmp_path)
    assert "error" in store.cell("a/b", lambda: 1 / 0)
    assert store.cell("a/b", lambda: {"x": 1}) == {"x": 1}
    assert store.cell("a/b", lambda: {"x": 2}) == {"x": 1}
    assert Store(tmp_path, redo=True).cell("a/b", lambda: {"x": 2}) == {"x": 2}
    assert list(store.cells("a")) == [(("b",), {"x": 2})]
    assert len(store.path("a").read_text().splitlines()) == 3  # appended, never rewritten
    store.tidy("a")
    assert len(store.path("a").read_text().splitlines()) == 1 and store.read("a/b") == {"x": 2}


def test_a_torn_line_is_passed_over_and_the_next_one_is_whole(tmp_path):
    store = Store(tmp_path)
    store.write("a/1", {"x": 1})
    whole = store.path("a").read_bytes()
    store.path("a").write_bytes(whole + whole[:20])  # a process died while it wrote
    assert store.read("a/1") == {"x": 1}
    store.write("a/2", {"x": 2})
    assert [parts for parts, _ in store.cells("a")] == [("1",), ("2",)]


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    script = """
import sys
from benchmarks.store import Store
for i in range(8):
    Store(__import__("pathlib").Path(sys.argv[1])).write(f"a/{sys.argv[2]}/{i}", {"x": "y" * 20_000})
"""
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), str(k)], cwd=FOLDER.parent) for k in range(3)
    ]
    assert all(child.wait() == 0 for child in children)
    assert len(list(Store(tmp_path).cells("a"))) == 24


def test_results_of_another_folder_come_in_either_form(tmp_path):
    here, there = Store(tmp_path / "here"), tmp_path / "there"
    here.write("t/a/1", {"x": 1})
    here.write("t/b/1", {"error": "no"})
    for key, result in {"t/a/1": {"x": 5}, "t/b/1": {"x": 2}, "t/c d/1": {"x": 3}, "quick/t/e/1": {"x": 4}}.items():
        path = there / f"{key}.json"  # one file a cell, as before
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cell": key, "made_with": "dpmerf 1", "seconds": 1.0, "result": result}))
    assert bring(there, here, lambda key: True) == ["t/b/1", "t/c d/1"]
    assert here.read("t/a/1") == {"x": 1} and here.line("t/b/1")["made_with"] == "dpmerf 1"
    assert bring(there, here, lambda key: "/a/" in key, replace=True) == ["t/a/1"] and here.read("t/a/1") == {"x": 5}
    third = Store(tmp_path / "third")
    third.write("t/z/1", {"error": "a failure takes no result's place"})
    third.write("t/a/1", {"error": "no"})
    assert bring(third.folder, here, lambda key: True, replace=True) == ["t/z/1"]


def test_all_says_what_is_left_and_runs_only_that(tmp_path, capsys):
    store, ran = Store(tmp_path), []

    def run(this):
        for key in ("one/a/1", "one/a/2", "one/b/1"):
            if this.wants(f"/{key}/"):
                this.store.cell(key, lambda key=key: ran.append(key) or {"x": 1})

    store.write("one/a/1", {"x": 1}, seconds=7200.0)
    known = {"one": Experiment("one", "", "", run, lambda store: "", runs=2)}
    everything.run_all(known, lambda experiment: Run(store, None, runs=experiment.runs), dry=True)
    assert not ran and "1 of    3 cells done, about 4.0 hours left" in capsys.readouterr().err
    everything.run_all(known, lambda experiment: Run(store, None, runs=experiment.runs))
    assert ran == ["one/a/2", "one/b/1"]
    everything.run_all(known, lambda experiment: Run(store, None, runs=experiment.runs))
    assert ran == ["one/a/2", "one/b/1"] and "nothing left" in capsys.readouterr().err


def test_every_experiment_can_be_asked_what_it_would_run(tmp_path):
    for experiment in experiments().values():
        assert everything.keys(experiment, Run(Store(tmp_path), tmp_path)), experiment.name
    assert not list(tmp_path.rglob("*.jsonl"))
