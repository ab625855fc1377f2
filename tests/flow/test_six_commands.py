"""From `pip install` to synthetic rows of an own CSV, as a new user would go: at most six commands, timed."""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
FILLED = {  # what the person at the keyboard knows of the table, in the order of the draft's gaps
    "columns.sex": 'values = ["f", "m"]',
    "columns.age": "min = 0\nmax = 120",
    "columns.smoker": 'values = ["no", "yes"]',
    "columns.cost": "min = 0\nmax = 10000",
}


def fill(draft: str) -> str:
    """The draft as a person leaves it: gaps replaced by what can occur, and nothing else touched."""
    parts = draft.split("\n[")
    for i, part in enumerate(parts):
        name = part.partition("]")[0]
        if name in FILLED:
            kept = [line for line in part.splitlines() if '"?"' not in line or line.startswith("kind")]
            kind = {"columns.sex": "category", "columns.smoker": "category", "columns.cost": "number"}.get(name)
            lines = [f'kind = "{kind}"' if kind and line.startswith("kind") else line for line in kept]
            parts[i] = "\n".join([*lines, FILLED[name]])
    return "\n[".join(parts) + "\n"


def test_six_commands(tmp_path: Path) -> None:
    draw = random.Random(1)
    with open(tmp_path / "clinic.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sex", "age", "smoker", "cost"])
        for _ in range(1_500):
            out.writerow([draw.choice("fm"), draw.randint(18, 90), draw.choice(["no", "yes"]), draw.randint(10, 900)])
    # A new environment; what dpmerf depends on is taken from the one that runs the tests, so that no network is needed.
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "here.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"PATH": f"{home / 'bin'}:{environment['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    steps: list[tuple[str, float]] = []
    start = time.monotonic()

    def run(*words: object) -> str:
        done = subprocess.run(list(map(str, words)), cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout[-1000:], done.stderr[-2000:])
        steps.append((" ".join(map(str, words)), time.monotonic() - start))
        return done.stdout

    offline = ("--no-deps", "--no-build-isolation", "--ignore-installed", "-q")
    run(home / "bin" / "python", "-m", "pip", "install", *offline, ROOT)
    run("dpmerf", "schema", "draft", "clinic.csv", "-o", "clinic.toml")
    draft = (tmp_path / "clinic.toml").read_text()
    (tmp_path / "clinic.toml").write_text(fill(draft))  # the one thing that a person types
    run("dpmerf", "schema", "check", "clinic.toml", "--data", "clinic.csv")
    run("dpmerf", "plan", "clinic.toml", "--epsilon", 1, "--rows", 1_500)
    run(
        "dpmerf",
        "synth",
        "clinic.csv",
        "--schema",
        "clinic.toml",
        "--epsilon",
        1,
        "--ledger",
        "clinic.ledger",
        "-o",
        "out",
    )
    print("\n".join(f"{at:6.1f} s  {words}" for words, at in steps))
    assert len(steps) <= 6 and steps[-1][1] < 300
    with open(tmp_path / "out" / "synthetic.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1_500 and {row["sex"] for row in rows} == {"f", "m"}
    assert run("python", "-c", "import dpmerf; print(dpmerf.__file__)").startswith(str(home))  # what was installed ran
