"""Hostile arguments and names: one clear line, an exit code by kind, nothing that a terminal would obey."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from command import dpmerf
from dpmerf.generators.threads import VARIABLE, few_threads
from dpmerf.private.ledger import Ledger
from dpmerf.report.svg import Plot, picture

SCHEMA = '[columns.a]\nkind = "number"\nmin = 0\nmax = 1\n[columns.b]\nkind = "category"\nvalues = ["x", "y"]\n'
ESCAPE = "\x1b[31m"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "data.csv").write_text("a,b\n" + "0.5,x\n0.2,y\n" * 50)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["plan", "schema.toml", "--epsilon", "1e308"], "promises nothing", 2),
        (["plan", "schema.toml", "--epsilon", "1", "--rows", "9" * 400], "too large", 2),
        (["plan", "schema.toml", "--epsilon", "1", "-o", "n" * 300], "cannot write", 4),
        (["sample", "model", "-n", "1", "-o", "n" * 300 + ".csv"], "cannot read", 6),
        (["train", "release", "-o", "model", "--seed", "9" * 40], "cannot read", 6),
        (["release", "data.csv", "--plan", "n" * 300, "-o", "out"], "cannot read", 6),
    ],
)
def test_arguments_out_of_all_bounds(words: list[str], said: str, code: int, place: Path) -> None:
    ended = dpmerf(*words, cwd=place)
    assert ended.returncode == code and said in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["x", "y"]', "[1.0, nan]", "finite"),
        ('["x", "y"]', "[1.0, inf]", "finite"),
        ("max = 1", "max = " + "9" * 5_000, "out of all bounds"),
    ],
)
def test_schemas_with_impossible_values(old: str, new: str, said: str, place: Path) -> None:
    (place / "schema.toml").write_text(SCHEMA.replace(old, new))
    ended = dpmerf("schema", "check", "schema.toml", cwd=place)
    assert ended.returncode == 2 and said in ended.stderr, ended.stderr


def test_no_name_reaches_the_terminal_as_a_command(place: Path) -> None:
    pq.write_table(pa.table({"a": [0.5], "b": ["x"], f"{ESCAPE}c": [1]}), place / "data.parquet")
    told = dpmerf("schema", "check", "schema.toml", "--data", "data.parquet", cwd=place)
    assert told.returncode == 0 and "\\x1b[31mc" in told.stdout and "\x1b" not in told.stdout
    (place / "schema.toml").write_text(SCHEMA.replace("columns.b", 'columns."\\u001b[31mb"'))
    refused = dpmerf("schema", "check", "schema.toml", "--data", "data.csv", cwd=place)
    assert refused.returncode == 4 and "\\x1b[31mb" in refused.stderr and "\x1b" not in refused.stderr
    planned = dpmerf("plan", "schema.toml", "--epsilon", "1", "--rows", "100", cwd=place)
    assert planned.returncode == 0 and "\x1b" not in planned.stdout


def test_brackets_in_names_are_no_markup(place: Path) -> None:
    (place / "a[").mkdir()
    ledger = "[bold]x[/nothing].ledger".replace("/", "∕")
    assert dpmerf("ledger", "init", ledger, "--epsilon", "3", "--delta", "1e-5", cwd=place).returncode == 0
    shown = dpmerf("ledger", "show", f"a[/../{ledger}", cwd=place)  # `[/` closes a style that was never opened
    assert shown.returncode == 0, shown.stderr
    assert "[bold]" in shown.stdout.replace("\n", "").replace(" ", "")


def test_words_in_a_picture_are_words() -> None:
    plot = Plot(200, 100)
    plot.x.label, plot.y.label = "$a_{", "</text><script>"
    plot.x.ticks = [(0, "$x^"), (1, "a < b & c")]
    plot.named('"quoted" <b>', "red")
    drawn = picture(plot, "name", 'words "of" <it>').svg
    assert all(words in drawn for words in ("$a_{", "$x^", "a &lt; b &amp; c", "&quot;of&quot; &lt;it&gt;"))
    assert "<script>" not in drawn and "<b>" not in drawn


def test_files_are_not_written_over_unless_asked(place: Path) -> None:
    asked = ["synth", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "-o", "out", "--steps", "2", "-q"]
    assert dpmerf(*asked, cwd=place).returncode == 0
    for words in (
        ["schema", "draft", "data.csv", "-o", "there.toml"],
        ["sample", "out/model", "-n", "5", "-o", "rows.csv"],
        ["demo-data", "table.parquet"],
    ):
        assert dpmerf(*words, cwd=place).returncode == 0
        before = (place / words[-1]).read_bytes()
        refused = dpmerf(*words, cwd=place)
        assert refused.returncode == 6 and "--force" in refused.stderr
        assert (place / words[-1]).read_bytes() == before
        assert dpmerf(*words, "--force", cwd=place).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "9" * 40], "seed is 9999"),
        (["--seed", "-1"], "seed is -1"),
        (["--steps", "0"], "steps is 0"),
        (["--steps", "9" * 40], "steps is 9999"),
        (["--device", "nonsense"], "device 'nonsense'"),
    ],
)
def test_settings_that_cannot_be_trained_with_are_refused_before_the_charge(
    words: list[str], said: str, place: Path
) -> None:
    asked = ["synth", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--ledger", "l", "-o", "out", *words]
    ended = dpmerf(*asked, cwd=place)
    assert ended.returncode == 2 and said in ended.stderr and not (place / "out").exists(), ended.stderr
    assert Ledger.load(place / "l").entries() == ()


def _run(code: str, place: Path, **more: str) -> subprocess.CompletedProcess[str]:
    known = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=place,
        env={**known, **more},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


COMMAND = (
    "import sys; sys.argv = ['dpmerf', 'plan', 'schema.toml', '--epsilon', '1']; from dpmerf_command import main; "
)


def test_an_alphabet_without_greek_and_a_full_disk_at_the_other_end(place: Path) -> None:
    ended = _run(COMMAND + "main()", place, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ended.returncode == 0 and "\\u03b5" in ended.stdout, ended.stderr
    ended = _run("import sys; sys.stdout = open('/dev/full', 'w')\n" + COMMAND + "main()", place)
    assert ended.returncode == 7 and ended.stderr.startswith("error: the system refused"), ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_signal_during_the_imports(place: Path) -> None:
    code = COMMAND + "print('up', flush=True); main()"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=place, text=True, **pipes)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    time.sleep(0.3)  # the command runs, torch is not there yet
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130 and words.startswith("error: stopped") and words.count("\n") == 1, words


def test_a_forked_process_does_not_hang(place: Path) -> None:
    code = """
        import os, signal, sys
        import pyarrow as pa
        from dpmerf import Schema, synthesize
        schema = Schema.load("schema.toml")
        table = pa.table({"a": [0.1, 0.5, 0.9] * 1000, "b": ["x", "y", "x"] * 1000})
        synthesize(table, schema, epsilon=1.0)
        child = os.fork()
        signal.alarm(120)
        if child == 0:
            synthesize(table, schema, epsilon=1.0)
            os._exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert _run(code, place).returncode == 0


def test_the_mathematics_runs_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    for said, used in (("", 1), ("2", 2), ("many", 1), ("0", 1)):
        monkeypatch.setenv(VARIABLE, said)
        with few_threads():
            assert torch.get_num_threads() == used
    assert torch.get_num_threads() == before
