"""dpmerf answer, as a user meets it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from command import dpmerf
from conftest import mixed_rows
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.release.release import TRUSTED_NOISE
from dpmerf.schema import Schema
from fixed_noise import SeededNoise


@pytest.fixture(scope="module")
def release(tmp_path_factory, mixed_schema: Schema) -> Path:
    folder = tmp_path_factory.mktemp("answers") / "release"
    made = measure(mixed_rows(4_000), make_plan(mixed_schema, 1.0, 1e-5, rows=4_000), noise=SeededNoise())
    replace(made, noise=TRUSTED_NOISE).save(folder)  # forged: the command refuses noise from a seed
    return folder


def test_in_words_and_sql(release: Path) -> None:
    done = dpmerf("answer", release, "share of ill by ward", "SELECT AVG(age) FROM release WHERE ward = 'a'")
    assert done.returncode == 0, done.stderr
    assert "share of ill = True by ward (about this table)" in done.stdout and "± privacy" in done.stdout
    assert "Rests on measured tables: ill × ward (tables)" in done.stdout
    found = json.loads(dpmerf("answer", release, "mean of dose by ward", "--population", "--json").stdout)
    first = found[0]["answers"][0]
    assert found[0]["about"] == "the population" and first["low"] < first["estimate"] < first["high"]
    assert first["sampling_error"] > 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mean of weight", "no column 'weight'"),
        ("median of ward", "needs numbers"),
        ("count where ward = moon", "does not declare"),
        ("crosstab by age, ward, dose, seen", "rests on the model"),
        ("what is the mean", "not understood"),
    ],
)
def test_a_bad_question_is_one_line_and_exit_code_2(release: Path, text: str, says: str) -> None:
    done = dpmerf("answer", release, text)
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.strip().splitlines()) == 1
