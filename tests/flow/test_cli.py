"""The command line as a user meets it: the good way through, and every wrong turn with one clear line."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from command import dpmerf
from conftest import MIXED, mixed_rows


def good(*arguments: object, cwd: Path | None = None) -> str:
    done = dpmerf(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "schema.toml").write_text(MIXED)
    table = mixed_rows(2_000)
    pq.write_table(table, folder / "data.parquet")
    pyarrow.csv.write_csv(table, folder / "data.csv")
    return folder


def test_step_by_step(place: Path) -> None:
    assert 'kind = "integer"' in good("schema", "draft", "data.parquet", cwd=place)
    good("schema", "draft", "data.csv", "-o", "draft.toml", cwd=place)
    assert dpmerf("schema", "check", "draft.toml", cwd=place).returncode == 2
    assert json.loads(good("schema", "check", "schema.toml", "--data", "data.csv", "--json", cwd=place))["columns"] == 6
    price = json.loads(
        good("plan", "schema.toml", "--epsilon", 1, "--rows", 2000, "-o", "plan.json", "--json", cwd=place)
    )
    assert {"epsilon", "delta", "mu", "noise_multiplier", "diameter", "coordinates", "bytes", "shares"} <= price.keys()
    assert sum(price["shares"].values()) == pytest.approx(1)
    once = ("release", "data.csv", "--plan", "plan.json", "--ledger", "study.ledger")
    good(*once, "-o", "release", "--quiet", cwd=place)
    assert json.loads(good("verify", "release", "--json", cwd=place))["valid"] is True
    assert "whole" in good("verify", "release", cwd=place)
    spent = json.loads(good("ledger", "show", "study.ledger", "--json", cwd=place))
    assert [e["purpose"] for e in spent["entries"]] == ["readability", "release (tables)"]
    assert spent["remaining_epsilon"] < 1e-3
    refused = dpmerf(*once, "-o", "again", cwd=place)
    assert refused.returncode == 5 and not (place / "again").exists()
    good("train", "release", "-o", "model", "--seed", 7, "--steps", 30, cwd=place)
    good("sample", "model", "-n", 100, "--given", "ill=yes", "--seed", 1, "-o", "a.csv", cwd=place)
    good("sample", "model", "-n", 100, "--given", "ill=yes", "--seed", 1, "-o", "a.parquet", cwd=place)
    rows = pq.read_table(place / "a.parquet")
    assert rows.num_rows == 100 and rows["ill"].to_pylist() == [True] * 100
    assert json.loads(rows.schema.metadata[b"dpmerf"])["synthetic"] is True
    assert pyarrow.csv.read_csv(place / "a.csv").num_rows == 100


def test_in_one_line(place: Path) -> None:
    out = good(
        "synth", "data.csv", "--schema", "schema.toml", "--epsilon", 1, "--label", "ill", "--steps", 30,
        "--unit", "person:key,2", "--neighbours", "add-remove", "-o", "out", "--json", cwd=place,
    )  # fmt: skip
    made = json.loads(out)
    assert (place / made["synthetic"]).suffix == ".csv"
    good("verify", made["release"], "--quiet", cwd=place)


def test_help_has_examples() -> None:
    for command in ("plan", "release", "train", "sample", "verify", "synth", "demo", "schema draft", "ledger show"):
        assert "Example" in good(*command.split(), "--help")


def test_a_ledger_counts_for_one_data_set(place: Path) -> None:
    release = ("release", "data.csv", "--plan", "small.json", "--ledger", "bound.ledger", "--json")
    good("plan", "schema.toml", "--epsilon", 0.5, "--rows", 2000, "-o", "small.json", cwd=place)
    good("ledger", "init", "bound.ledger", "--epsilon", 3, "--delta", 1e-5, "--dataset", "visits", cwd=place)
    refused = dpmerf(*release, "-o", "bound", cwd=place)
    assert refused.returncode == 5 and "counts for the data set 'visits', not for 'data'" in refused.stderr
    good(*release, "-o", "bound", "--dataset", "visits", cwd=place)
    shown = good("ledger", "show", "bound.ledger", cwd=place)
    assert "for the data set 'visits'" in shown and "who" in shown
    told = dpmerf(*release, "-o", "anew", "--ledger", "anew.ledger", cwd=place)
    assert "anew.ledger is a new ledger of 'data' that allows epsilon = 0.5" in told.stderr


def test_rows_and_plans_to_standard_output_and_a_given_null(place: Path) -> None:
    plan = good("plan", "schema.toml", "--epsilon", 1, "--rows", 2000, "-o", "-", cwd=place)
    assert json.loads(plan)["plan"]["epsilon"] == 1
    (place / "streamed.json").write_text(plan)
    good("release", "data.csv", "--plan", "streamed.json", "-o", "streamed", "-q", cwd=place)
    good("train", "streamed", "-o", "drawn", "-q", cwd=place)
    rows = list(
        csv.DictReader(io.StringIO(good("sample", "drawn", "-n", 40, "--given", "dose=null", "-o", "-", cwd=place)))
    )
    assert len(rows) == 40 and {row["dose"] for row in rows} == {""}
    wrong = dpmerf("sample", "drawn", "-n", 4, "--given", "age=null", "-o", "-", cwd=place)
    assert wrong.returncode == 2 and "column 'age' cannot be null" in wrong.stderr and wrong.stdout == ""
    assert dpmerf("sample", "drawn", "-n", 4, "-o", "-", "--json", cwd=place).returncode == 2


def test_two_plans_side_by_side(place: Path) -> None:
    for name, more in (("one", ()), ("two", ("--unit", "person:key,2")), ("same", ())):
        good("plan", "schema.toml", "--epsilon", 1, "--rows", 2000, *more, "-o", f"{name}.json", cwd=place)
    shown = good("plan", "diff", "one.json", "two.json", cwd=place)
    assert "one person" in shown and "noise of" in shown and "two.json: Answers (95 %)" in shown
    found = json.loads(good("plan", "diff", "one.json", "two.json", "--json", cwd=place))
    assert {"protected", "attacker is right at most"} & {c["what"] for c in found["changes"]} == {"protected"}
    assert good("plan", "diff", "one.json", "same.json", cwd=place) == "The plans are the same.\n"


def _wrong_inputs(place: Path) -> dict[str, tuple[tuple[object, ...], str, int]]:
    synth = ("synth", "data.parquet", "--schema", "schema.toml", "--epsilon", 1, "-o", "wrong")
    swap = lambda old, new: tuple(new if a == old else a for a in synth)  # noqa: E731
    (place / "empty.csv").write_bytes(b"")
    (place / "cut.parquet").write_bytes((place / "data.parquet").read_bytes()[:5_000])
    (place / "garbage.csv").write_bytes(bytes(range(256)) * 100)
    (place / "half.toml").write_text(MIXED.replace("max = 100", 'max = "?"'))
    pq.write_table(pq.read_table(place / "data.parquet").drop(["age"]), place / "short.parquet")
    (place / "bad-plan.json").write_text("{}")
    return {
        "missing column": (swap("data.parquet", "short.parquet"), "the schema names 'age'", 4),
        "missing file": (swap("data.parquet", "nowhere.parquet"), "no file", 4),
        "empty file": (swap("data.parquet", "empty.csv"), "is empty", 4),
        "truncated Parquet": (swap("data.parquet", "cut.parquet"), "damaged", 4),
        "binary garbage": (swap("data.parquet", "garbage.csv"), "zero bytes", 4),
        "half-filled schema": (swap("schema.toml", "half.toml"), 'still "?"', 2),
        "zero epsilon": (swap(1, 0), "epsilon is 0", 2),
        "negative epsilon": (swap(1, -1), "epsilon is -1", 2),
        "epsilon NaN": (swap(1, "nan"), "epsilon is nan", 2),
        "delta one": ((*synth, "--delta", 1), "delta is 1", 2),
        "label not in schema": ((*synth, "--label", "outcome"), "not a column of the schema", 2),
        "unwritable output": (swap("wrong", "/proc/nothing/here"), "cannot write", 6),
        "output exists": (swap("wrong", "."), "exists already", 6),
        "unknown preset": ((*synth, "--preset", "best"), "no method", 2),
        "wrong unit": ((*synth, "--unit", "patient"), "person:COLUMN,ROWS", 2),
        "corrupted plan": (("release", "data.csv", "--plan", "bad-plan.json", "-o", "wrong"), "is not a plan", 6),
        "not a release": (("train", ".", "-o", "wrong"), "cannot read", 6),
        "not a model": (("sample", ".", "-n", 5, "-o", "x.csv"), "cannot read", 6),
        "unknown ending": (swap("data.parquet", "schema.toml"), "unknown kind of file", 4),
        "no such ledger": (("ledger", "show", "nowhere.ledger"), "nowhere.ledger", 5),
    }


def test_every_wrong_turn_has_one_clear_line(place: Path) -> None:
    for name, (arguments, words, code) in _wrong_inputs(place).items():
        done = dpmerf(*arguments, cwd=place)
        assert done.returncode == code, (name, done.returncode, done.stderr)
        assert words in done.stderr, (name, done.stderr)
        assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr, (name, done.stderr)
        assert not (place / "wrong").exists(), name


def test_machines_get_the_same_error_as_a_document(place: Path) -> None:
    for name, (arguments, words, code) in _wrong_inputs(place).items():
        done = dpmerf(*arguments, "--json", cwd=place)
        found = json.loads(done.stdout)["error"]
        assert done.returncode == found["exit_code"] == code and words in found["message"], name
        assert found["kind"] == {2: "usage", 4: "data", 5: "budget", 6: "artefact"}[code]
    done = dpmerf("plan", "schema.toml", "--epsilom", 1, "--json", cwd=place)
    found = json.loads(done.stdout)["error"]
    assert done.returncode == 2 and found["kind"] == "usage" and "--epsilom" in found["message"]
    (place / "gaps.toml").write_text(MIXED.replace("max = 100", 'max = "?"').replace("min = 0\n", 'min = "?"\n'))
    found = json.loads(dpmerf("schema", "check", "gaps.toml", "--json", cwd=place).stdout)["error"]
    assert {(p["column"], p["key"]) for p in found["problems"]} == {("age", "min"), ("age", "max"), ("dose", "min")}


def test_any_cell_is_taken_and_none_is_told(place: Path) -> None:
    secret = "SECRET-7f3a"
    odd = ["NaN", "inf", "-inf", "😀", secret * 900_000, "", "1e999", "'; DROP TABLE", "\x00", f"99{secret}"]
    cells = {name: odd for name in ("age", "dose", "ward", "seen", "ill")}
    pq.write_table(pa.table(cells), place / "odd.parquet")
    pyarrow.csv.write_csv(
        pa.table({n: [c.replace("\x00", "") for c in v] for n, v in cells.items()}), place / "odd.csv"
    )
    for file in ("odd.parquet", "odd.csv"):
        done = dpmerf(
            "synth", file, "--schema", "schema.toml", "--epsilon", 1, "--steps", 5, "-o", f"out-{file}", cwd=place
        )
        assert done.returncode == 0, done.stderr
        assert secret not in done.stdout + done.stderr
        for made in (place / f"out-{file}").rglob("*"):
            assert made.is_dir() or secret.encode() not in made.read_bytes(), made


def test_the_installed_command_answers_too() -> None:
    done = subprocess.run([sys.executable, "-m", "dpmerf.cli", "verify", "nowhere"], capture_output=True, text=True)
    assert done.returncode == 6 and done.stderr.startswith("error: cannot read") and done.stderr.count("\n") == 1
