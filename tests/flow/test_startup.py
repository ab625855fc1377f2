"""Commands that compute nothing start without the libraries that compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "matplotlib", "pandas", "opendp", "sklearn")
SCHEMA = (
    'label = "b"\n[columns.a]\nkind = "number"\nmin = 0\nmax = 1\n[columns.b]\nkind = "category"\nvalues = ["x", "y"]\n'
)
CODE = f"""
import atexit, sys
atexit.register(lambda: print("imported:", *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr))
from dpmerf_command import main
main()
"""


@pytest.mark.parametrize(
    "words",
    [
        "--version",
        "--help",
        "plan --help",
        "plan schema.toml --epsilon 1 --rows 1000 -o plan.json",
        "schema check schema.toml --data data.csv",
        "schema draft data.csv -o draft.toml",
        "schema export schema.toml --format frictionless",
        "ledger init study.ledger --epsilon 1 --delta 1e-5",
    ],
)
def test_what_computes_nothing_imports_nothing_that_computes(words: str, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "data.csv").write_text("a,b\n0.5,x\n")
    ended = subprocess.run(
        [sys.executable, "-c", CODE, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines()[-1] == "imported:"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, its ledger and a signature's key, of a table with numbers, categories and pairs measured again."""
    place = tmp_path_factory.mktemp("released")
    kinds = ['number"\nmin = 0\nmax = 1', 'category"\nvalues = ["x", "y"]', 'integer"\nmin = 0\nmax = 90']
    columns = [f'[columns.c{i}]\nkind = "{kinds[i % 3]}\n' for i in range(6)]
    (place / "schema.toml").write_text('label = "c1"\n' + "".join(columns))
    rows = "".join(
        f"{i % 97 / 97},{'xy'[i % 2]},{i % 91},{i % 89 / 89},{'xy'[i // 7 % 2]},{i % 13}\n" for i in range(3_000)
    )
    (place / "rows.csv").write_text("c0,c1,c2,c3,c4,c5\n" + rows)
    for words in (
        "plan schema.toml --epsilon 1 --rows 3000 -o plan.json",
        "keys new key",
        "release rows.csv --plan plan.json --ledger study.ledger --sign key -o release -q",
    ):
        subprocess.run([sys.executable, "-c", CODE, *words.split()], cwd=place, check=True, capture_output=True)
    return place


@pytest.mark.parametrize(
    "words", ["verify release --signed-by key.pub", "verify release --json", "ledger show study.ledger"]
)
def test_checking_a_release_imports_nothing_that_computes(words: str, released: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CODE, *words.split()], cwd=released, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines()[-1] == "imported:"


@pytest.mark.parametrize(
    ("said", "threads"), [({}, 1), ({"OMP_NUM_THREADS": "2"}, 2), ({"OPENBLAS_NUM_THREADS": "2"}, 2)]
)
def test_a_command_leaves_linear_algebra_in_one_thread(said: dict[str, str], threads: int) -> None:
    """Whatever the machine; and as many as the user says."""
    code = (
        "import dpmerf.cli, numpy, threadpoolctl\n"
        "print({found['num_threads'] for found in threadpoolctl.threadpool_info() if found['user_api'] == 'blas'})"
    )
    unsaid = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    found = subprocess.run([sys.executable, "-c", code], env=unsaid | said, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == f"{{{min(threads, os.cpu_count() or 1)}}}"


def test_the_package_offers_its_names_without_importing_them() -> None:
    code = (
        "import sys, dpmerf; assert 'torch' not in sys.modules; import dpmerf.release, dpmerf.train; "
        "assert callable(dpmerf.release) and callable(dpmerf.train); "
        "assert all(hasattr(dpmerf, name) for name in dpmerf.__all__); assert not hasattr(dpmerf, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_report_needs_no_plotting_library() -> None:
    code = "import sys, dpmerf.report.page, dpmerf.report.make; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
