"""A run that was stopped after its release was paid for is finished without a row and without a cost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from command import dpmerf
from conftest import mixed_rows
from dpmerf import Ledger, Schema, make_plan, pipeline
from dpmerf.model import Model
from dpmerf.pipeline import Asked
from dpmerf.report.make import make_report
from dpmerf.sources.rows import open_rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, mixed_schema: Schema) -> Path:
    place = tmp_path_factory.mktemp("run")
    pq.write_table(mixed_rows(400), place / "data.parquet")
    ledger = Ledger.open(place / "study.ledger", 1.0, 1e-5)
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=400)
    pipeline.run(open_rows(place / "data.parquet"), plan, place / "out", Asked(n=60, seed=3), ledger=ledger)
    return place


@pytest.mark.parametrize("lost", [("model", "synthetic.parquet", "report.html"), ("synthetic.parquet",), ()])
def test_resume_makes_the_same_rows(whole: Path, tmp_path: Path, lost: tuple[str, ...]) -> None:
    shutil.copytree(whole / "out", tmp_path / "out")
    for name in lost:
        path = tmp_path / "out" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = dpmerf("resume", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert pq.read_table(tmp_path / made["synthetic"]).equals(pq.read_table(whole / "out" / "synthetic.parquet"))
    assert (tmp_path / "out" / "report.html").exists()
    assert len(Ledger.load(whole / "study.ledger").entries()) == 1  # nothing was spent


def test_resume_after_the_very_first_step(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "out" / "release", tmp_path / "out" / "release")
    made = pipeline.resume(tmp_path / "out")
    assert pq.read_table(made["synthetic"]).num_rows == 400


def test_what_cannot_be_resumed_says_so(whole: Path, tmp_path: Path) -> None:
    done = dpmerf("resume", tmp_path / "nothing")
    assert done.returncode != 0 and "holds no release" in done.stderr
    shutil.copytree(whole / "out", tmp_path / "out")
    for damage in ('{"format": 2}', "{", '{"format": 1, "n": "many"}', "[]"):
        (tmp_path / "out" / "run.json").write_text(damage)
        done = dpmerf("resume", tmp_path / "out")
        assert done.returncode != 0 and done.stderr.count("\n") == 1 and "internal" not in done.stderr


def test_a_csv_stays_a_csv(tmp_path: Path, mixed_schema: Schema) -> None:
    pa_csv.write_csv(mixed_rows(200), tmp_path / "data.csv")
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=200)
    made = pipeline.run(open_rows(tmp_path / "data.csv"), plan, tmp_path / "out", Asked())
    assert made["synthetic"].name == "synthetic.csv" and Asked.load(tmp_path / "out").csv


def test_the_report_shows_the_rows_of_the_file(whole: Path) -> None:
    """Whatever the seed: the page drawn from the file's rows is the page that was written."""
    model = Model.load(whole / "out" / "model")
    page = (whole / "out" / "report.html").read_text(encoding="utf-8")
    rows = pq.read_table(whole / "out" / "synthetic.parquet")
    assert make_report(model.release, model, synthetic=rows).html() == page
    assert make_report(model.release, model, synthetic=model.sample(60, seed=0)).html() != page


def test_a_report_made_later_shows_the_rows_that_were_written(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "out", tmp_path / "out")
    assert dpmerf("report", "out/release", "out/model", "-o", "again.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "out" / "report.html").read_bytes()
    (tmp_path / "out" / "synthetic.parquet").unlink()
    assert dpmerf("report", "out/release", "out/model", "-o", "drawn.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "drawn.html").read_bytes() != (tmp_path / "again.html").read_bytes()
