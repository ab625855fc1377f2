"""Persons by the command line and in one call: one table and several, resumed, verified, drawn again, scored."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import dpmerf
from dpmerf.demo.patients import SCHEMA, patients
from unit.test_person_release import SCHEMA as SEVERAL
from unit.test_person_release import tables

COMMAND = [sys.executable, "-m", "dpmerf.cli"]


def command(*arguments: object, code: int = 0) -> str:
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_one_table_with_a_person_section(tmp_path: Path) -> None:
    table = patients(1_500, seed=3)
    pq.write_table(table, tmp_path / "visits.parquet")
    (tmp_path / "s.toml").write_text(SCHEMA.read_text())
    common = ("--schema", tmp_path / "s.toml", "--epsilon", 3, "--delta", 1e-5, "--rows", 800, "--steps", 30)
    said = command("synth", tmp_path / "visits.parquet", *common, "-o", tmp_path / "out", "--ledger", tmp_path / "l")
    assert "for a person with all their rows" in said
    made = pd.read_parquet(tmp_path / "out" / "synthetic.parquet")
    assert list(made.columns) == table.column_names and made.visit_id.is_unique
    assert made.patient_id.str.fullmatch("P[0-9]{7}").all()
    theirs = made.groupby("patient_id")
    assert (theirs[["sex", "born", "insurance"]].nunique() == 1).all().all()
    assert (theirs.cumcount() == made.visits_before).all()
    assert all(
        (days.diff().dropna() >= pd.Timedelta(0)).all()
        for _, days in theirs.admitted.apply(pd.to_datetime).groupby(made.patient_id)
    )
    assert (theirs.age.diff().dropna() >= 0).all()
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<svg") == 3 and "Synthetic histories" in page
    assert "is whole" in command("verify", tmp_path / "out" / "release", "--ledger", tmp_path / "l")
    again = command("sample", tmp_path / "out" / "model", "-n", 50, "-o", tmp_path / "more.parquet", "--json")
    assert json.loads(again)["rows"]["rows"] == pq.read_table(tmp_path / "more.parquet").num_rows
    (tmp_path / "out" / "synthetic.parquet").unlink()
    command("resume", tmp_path / "out", "-q")
    assert pd.read_parquet(tmp_path / "out" / "synthetic.parquet").equals(made)
    scored = command(
        "evaluate",
        tmp_path / "out" / "synthetic.parquet",
        "--real",
        tmp_path / "visits.parquet",
        "--schema",
        tmp_path / "s.toml",
    )
    found = json.loads(scored)["rows"]
    assert found["constant"] == found["ordered"] == 1.0 and found["orphans"] == 0 and "NOT COVERED" in found
    assert "overspend" in command(
        "synth", tmp_path / "visits.parquet", *common, "-o", tmp_path / "two", "--ledger", tmp_path / "l", code=5
    ).replace("spent", "overspend")


def test_step_by_step(tmp_path: Path) -> None:
    pq.write_table(patients(1_500, seed=3), tmp_path / "visits.parquet")
    (tmp_path / "s.toml").write_text(SCHEMA.read_text())
    plan, release, model = tmp_path / "plan.json", tmp_path / "release", tmp_path / "model"
    command("plan", tmp_path / "s.toml", "--epsilon", 3, "--delta", 1e-5, "--rows", 800, "-o", plan)
    assert "one table" in command("release", "--plan", plan, "-o", release, code=4)
    ledger = tmp_path / "study.ledger"
    said = command("release", tmp_path / "visits.parquet", "--plan", plan, "--ledger", ledger, "-o", release, "--json")
    assert json.loads(said.splitlines()[0])["epsilon"] == 3
    assert "is whole" in command("verify", release, "--ledger", ledger)
    command("train", release, "-o", model, "--seed", 7, "--steps", 20)
    command("sample", model, "-n", 60, "-o", tmp_path / "made.parquet")
    assert pd.read_parquet(tmp_path / "made.parquet").patient_id.nunique() == 60
    command("report", release, model, "-o", tmp_path / "report.html")
    assert "Synthetic histories" in (tmp_path / "report.html").read_text()
    assert "Nothing contradicts the claim" in command("audit", "--plan", plan, "--minutes", 0.05)
    changed = plan.read_text().replace('"epsilon": 3', '"epsilon": 4', 1)
    plan.write_text(changed)
    command("release", tmp_path / "visits.parquet", "--plan", plan, "-o", tmp_path / "other", code=6)
    assert not (tmp_path / "other").exists()


def test_step_by_step_with_several_tables(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SEVERAL)
    given: list[object] = []
    for name, frame in tables(300).items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        given += ["--table", f"{name}={tmp_path / name}.csv"]
    plan, release, model = tmp_path / "plan.json", tmp_path / "release", tmp_path / "model"
    command("plan", tmp_path / "s.toml", "--epsilon", 3, "--delta", 1e-5, "--rows", 300, "-o", plan)
    assert "--table notes=FILE" in command("release", tmp_path / "people.csv", "--plan", plan, "-o", release, code=4)
    command("release", *given, "--plan", plan, "-o", release)
    command("train", release, "-o", model, "--steps", 20)
    command("sample", model, "-n", 40, "-o", tmp_path / "made")
    people, visits = (pd.read_parquet(tmp_path / "made" / f"{name}.parquet") for name in ("people", "visits"))
    assert len(people) == 40 and set(visits.id) <= set(people.id)


def test_several_tables(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SEVERAL)
    given = []
    for name, frame in tables(400).items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        given += ["--table", f"{name}={tmp_path / name}.csv"]
    common = ("--schema", tmp_path / "s.toml", "--epsilon", 3, "--delta", 1e-5, "--rows", 400, "--steps", 20)
    command("synth", *given, *common, "-o", tmp_path / "out")
    people, visits = (pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("people", "visits"))
    assert people.id.is_unique and set(visits.id) <= set(people.id)
    assert "--table notes=FILE" in command("synth", tmp_path / "people.csv", *common, "-o", tmp_path / "x", code=4)
    assert "missing" in command("synth", *given[:4], *common, "-o", tmp_path / "x", code=4)
    assert "there is no file no.csv" in command(
        "synth", "--table", "people=no.csv", *given[2:], *common, "-o", tmp_path / "x", code=4
    )
    assert "persons" in command("plan", tmp_path / "s.toml", "--epsilon", 1, "--rows", 400)


def test_one_call_gives_back_what_came_in(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SEVERAL)
    with pytest.warns(UserWarning, match="no ledger"):
        made = dpmerf.synthesize(tables(200), tmp_path / "s.toml", epsilon=3, delta=1e-5, n=100, rows=200)
    assert set(made) == {"people", "visits", "notes"} and all(isinstance(t, pd.DataFrame) for t in made.values())
    assert len(made["people"]) == 100
