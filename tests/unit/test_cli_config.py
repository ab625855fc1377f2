"""Options from a file and from the environment, the version, and shell completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpmerf as package
from command import dpmerf
from conftest import MIXED
from dpmerf.errors import EXIT_CODES


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(MIXED)
    return tmp_path


def _epsilon(*words: object, cwd: Path) -> float:
    done = dpmerf("plan", "schema.toml", "--json", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return float(json.loads(done.stdout)["epsilon"])


def test_what_is_typed_comes_first_then_the_environment_then_the_file(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "dpmerf.toml").write_text('[plan]\nepsilon = 2\nrows = 500\n[schema.check]\ndata = "x.csv"\n')
    assert _epsilon(cwd=place) == 2
    monkeypatch.setenv("DPMERF_PLAN_EPSILON", "3")
    assert _epsilon(cwd=place) == 3
    assert _epsilon("--epsilon", 4, cwd=place) == 4
    monkeypatch.delenv("DPMERF_PLAN_EPSILON")
    monkeypatch.setenv("DPMERF_CONFIG", "")
    assert dpmerf("plan", "schema.toml", cwd=place).returncode == EXIT_CODES["usage"]  # no budget is named
    (place / "other.toml").write_text("[plan]\nepsilon = 5\n")
    monkeypatch.setenv("DPMERF_CONFIG", "other.toml")
    assert _epsilon(cwd=place) == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[plan]\nepsilom = 1\n", "does not know 'epsilom' in [plan]"),
        ("[plans]\nepsilon = 1\n", "does not know 'plans'"),
        ("[plan.epsilon]\na = 1\n", "does not know 'epsilon' in [plan]"),
        ("epsilon = \n", "not valid TOML"),
        ('[plan]\nepsilon = "much"\n', "Invalid value for '--epsilon'"),
    ],
)
def test_a_misspelt_word_is_refused(place: Path, text: str, says: str) -> None:
    (place / "dpmerf.toml").write_text(text)
    done = dpmerf("plan", "schema.toml", "--json", cwd=place)
    assert done.returncode == EXIT_CODES["usage"] and says in json.loads(done.stdout)["error"]["message"]


def test_the_version() -> None:
    assert dpmerf("--version").stdout == f"dpmerf {package.__version__}\n"


def test_the_shell_completes_commands_and_options(tmp_path: Path) -> None:
    command = tmp_path / "dpmerf"
    command.write_text("from dpmerf_command import main\nmain()\n")
    for typed, word in (("dpmerf led", "ledger"), ("dpmerf plan --eps", "--epsilon")):
        asked = {"_DPMERF_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        done = subprocess.run(
            [sys.executable, command], env={**os.environ, **asked}, capture_output=True, text=True, check=False
        )
        assert word in done.stdout.split(), done
