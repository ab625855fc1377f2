"""Sizes: very wide, very many categories, classes, persons, pixels and rows. Each runs in bounded memory or is refused.

Every step is the command itself in a process of its own: CPU seconds and peak memory are those of the whole process.
A step that is refused says so in the cell; a release that was refused was refused before the charge.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.registry import Experiment, Run
from benchmarks.speed_data import folder
from benchmarks.store import Store

LARGE = 10**6  # rows of a file that folders hold many times over
# A process counts the memory of the one that started it as its own peak until it is replaced: so a small one starts it.
LAUNCHER = """
import json, os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, used = os.wait4(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss // 1024]))
"""
NUMBER = 'kind = "number"\nmin = 0\nmax = 1\n'
LABEL = 'label = "y"\n[columns.y]\nkind = "flag"\n'
Made = tuple[Path, list[str], list[str]]  # data, more words for `plan`, more words for `train`


def _wide(place: Path, quick: bool) -> Made:
    q, n = (200, 500) if quick else (2_000, 5_000)
    (place / "schema.toml").write_text(LABEL + "".join(f"[columns.c{i}]\n{NUMBER}" for i in range(q - 1)))
    rng = np.random.default_rng(0)
    common = rng.random(n)
    numbers = {f"c{i}": (common + rng.random(n)) / 2 for i in range(q - 1)}
    return _written(place, {"y": common > 0.5, **numbers}), ["--rows", str(n)], []


def _wide_categories(place: Path, quick: bool) -> Made:
    q, n = (100, 500) if quick else (2_000, 5_000)
    column = 'kind = "category"\nvalues = ["a", "b", "c", "d"]\n'
    (place / "schema.toml").write_text(LABEL + "".join(f"[columns.c{i}]\n{column}" for i in range(q - 1)))
    rng = np.random.default_rng(0)
    values = {f"c{i}": rng.choice(list("abcd"), n) for i in range(q - 1)}
    return _written(place, {"y": rng.random(n) > 0.5, **values}), ["--rows", str(n)], []


def _category(place: Path, quick: bool) -> Made:
    size, n = (2_000, 5_000) if quick else (50_000, 200_000)
    names = [f"v{i}" for i in range(size)]
    listed = ", ".join(f'"{name}"' for name in names)
    text = LABEL + f"[columns.a]\n{NUMBER}[columns.b]\n{NUMBER}"
    (place / "schema.toml").write_text(text + f'[columns.c]\nkind = "category"\nvalues = [{listed}]\n')
    rng = np.random.default_rng(0)
    code = np.minimum(rng.geometric(5 / size, n), size) - 1
    values = {
        "y": rng.random(n) > 0.5,
        "a": rng.random(n),
        "b": rng.random(n),
        "c": pa.array(names).take(pa.array(code)),
    }
    return _written(place, values), ["--rows", str(n)], []


def _classes(place: Path, quick: bool) -> Made:
    size, n = (50, 5_000) if quick else (500, 100_000)
    names = [f"k{i}" for i in range(size)]
    listed = ", ".join(f'"{name}"' for name in names)
    text = f'label = "y"\n[columns.y]\nkind = "category"\nvalues = [{listed}]\n'
    (place / "schema.toml").write_text(text + "".join(f"[columns.c{i}]\n{NUMBER}" for i in range(10)))
    rng = np.random.default_rng(0)
    code = rng.integers(0, size, n)
    numbers = {f"c{i}": (code / size + rng.random(n)) / 2 for i in range(10)}
    return _written(place, {"y": pa.array(names).take(pa.array(code)), **numbers}), ["--rows", str(n)], []


def _persons(place: Path, quick: bool) -> Made:
    persons = 10_000 if quick else 10**6
    text = LABEL + '[columns.p]\nkind = "id"\n' + "".join(f"[columns.c{i}]\n{NUMBER}" for i in range(4))
    (place / "schema.toml").write_text(text)
    rng = np.random.default_rng(0)
    n = 3 * persons
    values = {"y": rng.random(n) > 0.5, "p": rng.integers(0, persons, n), **{f"c{i}": rng.random(n) for i in range(4)}}
    return _written(place, values), ["--rows", str(n), "--unit", "person:p,5"], []


def _pictures(place: Path, quick: bool) -> Made:
    n, side = (60, 32) if quick else (2_000, 128)
    text = f'label = "label"\n[columns.image]\nkind = "image"\nheight = {side}\nwidth = {side}\nchannels = 3\n'
    (place / "schema.toml").write_text(text + '[columns.label]\nkind = "category"\nvalues = [0, 1]\n')
    rng = np.random.default_rng(0)
    np.savez_compressed(place / "x.npz", x=rng.integers(0, 256, (n, side, side, 3), np.uint8), y=np.arange(n) % 2)
    return place / "x.npz", ["--rows", str(n)], ["--steps", "20"]


def many_rows(count: int, columns: int) -> Callable[[Path, bool], Made]:
    """So many rows: one file of a million, many times over in a folder."""

    def make(place: Path, quick: bool) -> Made:
        n = 10**5 if quick else LARGE
        text = LABEL + "".join(f"[columns.c{i}]\n{NUMBER}" for i in range(columns - 1))
        (place / "schema.toml").write_text(text)
        rng = np.random.default_rng(0)
        values = {"y": rng.random(n) > 0.5, **{f"c{i}": rng.random(n) for i in range(columns - 1)}}
        times = 3 if quick else count // LARGE
        return folder(place / "parts", _written(place, values), times), ["--rows", str(n * times)], []

    return make


CELLS: dict[str, tuple[str, Callable[[Path, bool], Made], tuple[str, ...]]] = {
    "wide": ("2,000 numbers × 5,000 rows", _wide, ("release", "train", "sample", "report")),
    "wide categories": ("2,000 categories × 5,000 rows", _wide_categories, ("release", "train", "sample", "report")),
    "category": ("a category of 50,000 values, 200,000 rows", _category, ("release", "train", "sample", "report")),
    "classes": ("a label of 500 classes, 100,000 rows", _classes, ("release", "train", "sample", "report")),
    "persons": ("1 million persons, 3 million rows", _persons, ("release", "train", "sample")),
    "pictures": ("2,000 pictures of 128 × 128 × 3 (20 steps)", _pictures, ("release", "train", "sample")),
    "100 million": ("100 million rows × 10 columns", many_rows(10**8, 10), ("release",)),
    "billion": ("1 billion rows × 6 columns", many_rows(10**9, 6), ("release",)),
}


def _written(place: Path, values: dict[str, Any]) -> Path:
    pq.write_table(pa.table(values), place / "data.parquet")
    return place / "data.parquet"


def measured(words: list[str], place: Path) -> dict[str, Any]:
    """One command: CPU seconds, peak memory, and what it said if it was refused."""
    command = [sys.executable, "-S", "-c", LAUNCHER, sys.executable, "-m", "dpmerf.cli", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
    code, cpu, peak = json.loads(done.stdout)
    found: dict[str, Any] = {
        "cpu_seconds": round(cpu, 1),
        "seconds": round(time.monotonic() - began, 1),
        "peak_mb": peak,
    }
    said = done.stderr.strip()
    if code:
        found["refused"] = said.splitlines()[-1][-300:] if said else f"ended with {code}"
    return found


def cell(name: str, quick: bool) -> dict[str, Any]:
    """Plan, release and what follows; the first step that is refused ends it."""
    what, make, steps = CELLS[name]
    with tempfile.TemporaryDirectory() as box:
        place = Path(box)
        data, planned, trained = make(place, quick)
        ending = "npz" if data.suffix == ".npz" else "parquet"
        words = {
            "plan": ["plan", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "-o", "plan.json", *planned, "-q"],
            "release": ["release", str(data), "--plan", "plan.json", "-o", "release", "--ledger", "l", "-q"],
            "train": ["train", "release", "-o", "model", *trained, "-q"],
            "sample": ["sample", "model", "-n", "10000" if ending == "parquet" else "100", "-o", f"s.{ending}", "-q"],
            "report": ["report", "release", "model", "--synthetic", "s.parquet", "-o", "r.html", "-q"],
        }
        found: dict[str, Any] = {"what": what}
        for step in ("plan", *steps):
            found[step] = measured(words[step], place)
            if "refused" in found[step]:
                break
        return found


def run(this: Run) -> None:
    for name in CELLS:
        key = f"sizes/{name}"
        if this.wants(key):
            this.store.cell(key, lambda name=name: cell(name, this.quick))  # type: ignore[misc]


def page(store: Store) -> str:
    """Markdown."""
    steps = ("plan", "release", "train", "sample", "report")
    lines = ["| size | " + " | ".join(f"{s}, CPU s / MB" for s in steps) + " |", "|---" * (len(steps) + 1) + "|"]
    for name, (what, _, _) in CELLS.items():
        found = store.read(f"sizes/{name}")
        if found is None or "error" in found:
            continue
        lines.append(f"| {what} | " + " | ".join(_shown(found.get(s)) for s in steps) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


def _shown(step: dict[str, Any] | None) -> str:
    if step is None:
        return "–"
    numbers = f"{step['cpu_seconds']:,.1f} / {step['peak_mb']:,}"
    return f"refused ({numbers}): {step['refused']}" if "refused" in step else numbers


EXPERIMENT = Experiment(
    "sizes",
    "very wide tables, 50,000 categories, 500 classes, a million persons, large pictures, 10⁸ and 10⁹ rows",
    "about half an hour without the billion rows, an hour more with them",
    run,
    page,
)
