"""Whole commands: start-up, the report, default threads on a busy machine, many rows drawn, and a run against MST.

Every figure is of the command itself in a process of its own. Python's byte code is kept, as where a package is
installed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import child
from benchmarks.data import SETS
from benchmarks.methods import Task
from benchmarks.protocols import split
from benchmarks.sizes import LAUNCHER, many_rows

SCHEMA = Path(__file__).parent / "schemas" / "adult.toml"
WHOLE = ("adult", "census", "covtype", "credit", "intrusion")
BUSY = "while True: pass"
# Whatever a command leaves behind (Spark's Java, its workers) is waited for, and its CPU time counts.
ALL_OF_IT = """
import ctypes, json, os, resource, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to this process
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, done.stdout + done.stderr]))
"""
# What `report` loads before it begins; PyArrow imports pandas with the first array that is made.
LOADED = "import dpmerf.cli, dpmerf.model, dpmerf.pipeline, pandas"
PLAN = ["plan", "schema.toml", "--epsilon", "1", "--delta", "1e-5", "--rows", "32561", "-o", "plan.json", "-q"]
SYNTH = [
    "synth",
    "adult.parquet",
    "--schema",
    "schema.toml",
    "--epsilon",
    "1",
    "--delta",
    "1e-5",
    "--ledger",
    "l",
    "-q",
]
STARTS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "plan": PLAN,
    "schema check": ["schema", "check", "schema.toml", "--data", "adult.parquet"],
    "ledger show": ["ledger", "show", "l"],
    "verify": ["verify", "out/release", "-q"],
}
Json = dict[str, Any]


def command(words: list[str], place: Path, threads: str | None = "1", path: str | None = None) -> Json:
    """CPU and wall seconds and peak memory of a Python command line (`-m dpmerf.cli` unless it begins with -c).

    `path`: where the package's code lies, if it is not the present one.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS")}
    environment |= {"PYTHONPYCACHEPREFIX": str(place / "bytecode")} | ({"OMP_NUM_THREADS": threads} if threads else {})
    environment |= {"PYTHONPATH": path} if path else {}
    line = words if words[0] == "-c" else ["-m", "dpmerf.cli", *words]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCHER, sys.executable, *line],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    code, cpu, peak = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{' '.join(words)} ended with {code}: {done.stderr[-800:]}")
    return {"cpu": cpu, "wall": time.monotonic() - began, "peak_mb": peak}


def _adult(place: Path, quick: bool) -> None:
    (place / "schema.toml").write_text(SCHEMA.read_text(encoding="utf-8"), encoding="utf-8")
    pq.write_table(split(SETS["adult"], "honest", 1, None, quick).train, place / "adult.parquet")


def startup(quick: bool) -> Json:
    """CPU seconds of commands that compute nothing, the least of three after one that writes byte code; the report."""
    with tempfile.TemporaryDirectory() as box:
        place = Path(box)
        _adult(place, quick)
        command([*SYNTH, "-o", "out"], place)
        words = {
            **STARTS,
            "report": ["report", "out/release", "out/model", "-o", "r.html", "-q"],
            "loaded": ["-c", LOADED],
        }
        found: Json = {}
        for name, line in words.items():
            command(line, place)
            found[name] = min(command(line, place)["cpu"] for _ in range(3))
        found["report alone"] = found["report"] - found.pop("loaded")
        return found


def threads(quick: bool) -> Json:
    """`synth` on adult beside a process that never rests: threads as the program likes, and one by decree, by turns."""
    with tempfile.TemporaryDirectory() as box:
        place = Path(box)
        _adult(place, quick)
        command([*SYNTH, "-o", "first"], place)
        found: dict[str, list[Json]] = {"default": [], "one": []}
        busy = subprocess.Popen([sys.executable, "-c", BUSY])
        try:
            for turn in range(1 if quick else 3):
                for name, number in (("default", None), ("one", "1")):
                    out = ["-o", f"{name}{turn}", "--ledger", f"{name}{turn}.ledger"]
                    found[name].append(command([*SYNTH, *out], place, number))
        finally:
            busy.kill()
            busy.wait()
    middle = {n: {k: statistics.median(run[k] for run in runs) for k in ("cpu", "wall")} for n, runs in found.items()}
    ratio = {k: middle["default"][k] / middle["one"][k] for k in ("cpu", "wall")}
    return {**middle, "ratio": ratio, "load": os.getloadavg()[0]}


def drawn(rows: int, quick: bool) -> Json:
    """`sample`: so many rows of adult to Parquet, by a model trained as usual. The start of the program is counted."""
    with tempfile.TemporaryDirectory() as box:
        place = Path(box)
        _adult(place, quick)
        command([*SYNTH, "-o", "out"], place)
        cost = command(["sample", "out/model", "-n", str(rows), "-o", "rows.parquet", "-q"], place)
        size = (place / "rows.parquet").stat().st_size
    print(f"{rows:,} rows, {rows / cost['cpu']:,.0f} rows a CPU second", file=sys.stderr)
    return {"rows": rows, "rows_per_cpu_second": rows / cost["cpu"], "bytes": size, **cost}


def whole(name: str, quick: bool) -> Json:
    """Release, train and draw as many rows as there were: what `peers` measures for MST."""
    rows = split(SETS[name], "honest", 1, None, quick)
    return child.run("default", Task(rows.train, rows.schema, 1.0, 1e-5, 1, quick)).cost()


def spark(rows: int, quick: bool) -> Json:
    """`release --quiet` of 6 columns from Parquet, here and on Spark `local[2]`: all CPU seconds, Java's included."""
    found: Json = {}
    with tempfile.TemporaryDirectory() as box:
        place = Path(box)
        data, planned, _ = many_rows(rows, 6)(place, quick)
        command(["plan", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "-o", "plan.json", *planned, "-q"], place)
        for name, engine in {"local": [], "spark": ["--engine", "spark", "--master", "local[2]"]}.items():
            words = ["release", str(data), "--plan", "plan.json", "-o", name, "--ledger", f"{name}.l", *engine, "-q"]
            line = [sys.executable, "-c", ALL_OF_IT, sys.executable, "-m", "dpmerf.cli", *words]
            began = time.monotonic()
            done = subprocess.run(line, cwd=place, capture_output=True, text=True, check=True)
            code, cpu, said = json.loads(done.stdout.splitlines()[-1])
            if code:
                raise RuntimeError(said[-800:])
            found[name] = {"cpu": cpu, "wall": time.monotonic() - began, "said": said[-300:]}
    return {"rows": int(planned[1]), **found, "ratio": found["spark"]["cpu"] / found["local"]["cpu"]}
