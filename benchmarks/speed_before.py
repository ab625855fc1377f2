"""Before and after: the same commands by an old commit's code and by the present code, by turns in one run.

The old code is unpacked beside the new one and runs in the same environment. Every figure is CPU seconds of a process
of its own with one thread, byte code kept, so a ratio says what changed in the program and not in the machine.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import speed_data
from benchmarks.data import SETS
from benchmarks.pages import table
from benchmarks.protocols import split
from benchmarks.speed_whole import BUSY, SYNTH, command
from benchmarks.store import Store

ROOT = Path(__file__).parents[1]
BEFORE = "e23433d"  # the last commit before ADR 11: what the default is compared with
SCHEMAS = Path(__file__).parent / "schemas"
ROWS = 50_000  # simulated, and drawn
COLUMNS = (10, 25, 50)
STARTS = ("--version", "plan", "verify", "ledger show", "schema check")
# Sweeps of one thread: positions like those of adult, chains as many as are moved at a time.
SWEEP = """
import json, sys, time, torch
torch.set_num_threads(1)
q, size, n = {columns}, {size}, 4096
rng = torch.Generator().manual_seed(0)
try:
    from dpmerf.generators.maxent.gibbs import Chains
    from dpmerf.generators.maxent.blocks import Block, moves
    from dpmerf.plan.noisy_tables import Layout
    new = True
except ImportError:
    from dpmerf.generators.gibbs import Chains
    from dpmerf.counts import Layout
    new = False
layout = Layout(tuple(f"c{{i}}" for i in range(q)), (size,) * q)
h, J = torch.zeros(1, q * size), torch.randn(1, q * size, q * size, generator=rng) / 10
chains = Chains(layout, torch.randint(size, (1, n, q), generator=rng))
if new:
    prepared = moves(tuple(Block.single(layout, j) for j in range(q)), h, J)
def sweep():
    chains.sweep(prepared, rng) if new else chains.sweep(h, J, rng)
sweep()
start = time.process_time()
for _ in range(10):
    sweep()
open("said.json", "w").write(json.dumps(10 * n / (time.process_time() - start)))
"""
NOISE = """
import json, time, torch
from dpmerf.private.noise import OpenDPGaussian
sums = torch.zeros(50_000, dtype=torch.int64)
start = time.process_time()
OpenDPGaussian().add(sums, 1e6)
open("said.json", "w").write(json.dumps(1e6 * (time.process_time() - start) / len(sums)))
"""
Json = dict[str, Any]


def cells(against: str, quick: bool) -> dict[str, Callable[[], Json]]:
    """What is compared with that commit."""
    tables = ("adult",) if quick else ("adult", "census", *map(str, COLUMNS))
    found: dict[str, Callable[[], Json]] = {f"before/{what}": partial(steps, what, against, quick) for what in tables}
    found["before/startup"] = partial(startup, against, quick)
    found["before/parts"] = partial(parts, against)
    if not quick:
        found["before/threads"] = partial(threads, against)
    return found


@contextmanager
def _both(against: str) -> Iterator[dict[str, str]]:
    """Where the code of "old" and of "new" lies."""
    with tempfile.TemporaryDirectory() as place:
        files = subprocess.run(["git", "archive", against, "src"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", place], input=files.stdout, check=True)
        yield {"old": f"{place}/src", "new": str(ROOT / "src")}


def _written(what: str, place: Path, quick: bool) -> tuple[int, list[str]]:
    """A table and its schema; its rows, and what `plan` is told besides."""
    if what.isdecimal():
        schema = speed_data.schema_text(int(what), 2)
        rows = speed_data.table(ROWS, 0, int(what), 2)
    else:
        schema = (SCHEMAS / f"{what}.toml").read_text(encoding="utf-8")
        rows = split(SETS[what], "honest", 1, None, quick).train
    (place / "schema.toml").write_text(schema, encoding="utf-8")
    pq.write_table(rows, place / "data.parquet")
    return rows.num_rows, ["--epsilon", "1", "--delta", "1e-5", "--rows", str(rows.num_rows)]


def steps(what: str, against: str, quick: bool) -> Json:
    """Plan, release, train, sample and report: CPU seconds of each; rows drawn a CPU second beyond the first row."""
    found: Json = {"what": what, "against": against}
    with _both(against) as code, tempfile.TemporaryDirectory() as box:
        place = Path(box)
        rows, planned = _written(what, place, quick)
        drawn = min(rows, ROWS)
        for name, path in code.items():
            words = {
                "plan": ["plan", "schema.toml", *planned, "-o", f"{name}.json"],
                "release": ["release", "data.parquet", "--plan", f"{name}.json", "-o", f"{name}-r", "--ledger", name],
                "train": ["train", f"{name}-r", "-o", f"{name}-m"],
                "one row": ["sample", f"{name}-m", "-n", "1", "-o", f"{name}-1.parquet"],
                "rows": ["sample", f"{name}-m", "-n", str(drawn), "-o", f"{name}.parquet"],
                "report": ["report", f"{name}-r", f"{name}-m", "-o", f"{name}.html"],
            }
            found[name] = {step: command([*line, "-q"], place, path=path)["cpu"] for step, line in words.items()}
            found[name]["rows a CPU second"] = drawn / (found[name]["rows"] - found[name]["one row"])
    return found


def startup(against: str, quick: bool) -> Json:
    """Commands that compute nothing: the least of three, after one that writes byte code."""
    found: Json = {"against": against}
    with _both(against) as code, tempfile.TemporaryDirectory() as box:
        place = Path(box)
        _, planned = _written("adult", place, quick)
        for name, path in code.items():
            (place / name).mkdir()
            here = place / name
            for file in ("schema.toml", "data.parquet"):
                (here / file).symlink_to(place / file)
            plan = ["plan", "schema.toml", *planned, "-o", "plan.json", "-q"]
            command(plan, here, path=path)
            command(
                ["release", "data.parquet", "--plan", "plan.json", "-o", "r", "--ledger", "l", "-q"], here, path=path
            )
            lines = {
                "--version": ["--version"],
                "plan": plan,
                "verify": ["verify", "r", "-q"],
                "ledger show": ["ledger", "show", "l"],
                "schema check": ["schema", "check", "schema.toml", "--data", "data.parquet"],
            }
            found[name] = {what: min(command(lines[what], here, path=path)["cpu"] for _ in range(4)) for what in STARTS}
    return found


def parts(against: str) -> Json:
    """One Gibbs sweep, rows a CPU second, at the shapes of adult and census; noise, CPU µs a coordinate."""
    programs = {
        "sweep, 14 columns × 10": SWEEP.format(columns=14, size=10),
        "sweep, 40 columns × 12": SWEEP.format(columns=40, size=12),
        "noise": NOISE,
    }
    found: Json = {"against": against, "old": {}, "new": {}}
    with _both(against) as code, tempfile.TemporaryDirectory() as box:
        for name, path in code.items():
            for what, program in programs.items():
                command(["-c", program], Path(box), path=path)
                found[name][what] = json.loads((Path(box) / "said.json").read_text(encoding="utf-8"))
    return found


def threads(against: str) -> Json:
    """`synth` on adult with threads as the program likes, beside a process that never rests, by turns."""
    found: Json = {"against": against}
    with _both(against) as code, tempfile.TemporaryDirectory() as box:
        place = Path(box)
        _written("adult", place, False)
        (place / "adult.parquet").symlink_to(place / "data.parquet")
        busy = subprocess.Popen([sys.executable, "-c", BUSY])
        try:
            runs: dict[str, list[Json]] = {name: [] for name in code}
            for turn in range(2):
                for name, path in code.items():
                    out = ["-o", f"{name}{turn}", "--ledger", f"{name}{turn}.ledger"]
                    runs[name].append(command([*SYNTH, *out], place, None, path))
        finally:
            busy.kill()
            busy.wait()
    for name, of_code in runs.items():
        found[name] = {k: statistics.median(run[k] for run in of_code) for k in ("cpu", "wall")}
    return found


def page(store: Store) -> str:
    """One table: what, before, after, ratio."""
    found = {"/".join(key): cell for key, cell in store.cells("speed/before") if "error" not in cell}
    if not found:
        return ""
    rows = []
    for what, cell in sorted(found.items(), key=lambda item: (item[0].isdecimal(), item[0].zfill(9))):
        named = f"{what} simulated columns" if what.isdecimal() else what
        if what in ("startup", "parts"):
            for name, before in cell["old"].items():
                unit = "rows a CPU second" if "sweep" in name else "CPU µs a coordinate" if name == "noise" else "CPU s"
                rows.append([f"{name}, {unit}", *_compared(before, cell["new"][name])])
        elif what == "threads":
            for kind in ("cpu", "wall"):
                name = f"`synth` on adult, its own threads, beside a busy process: {kind}, s"
                rows.append([name, *_compared(cell["old"][kind], cell["new"][kind])])
        else:
            for step in ("release", "train", "report", "rows a CPU second"):
                name = f"{named}: {step}" + ("" if "rows" in step else ", CPU s")
                rows.append([name, *_compared(cell["old"][step], cell["new"][step])])
    commits = ", ".join(sorted({cell["against"] for cell in found.values()}))
    words = (
        f"Before ({commits}) and after, by turns in one run, one thread; a command's start is part of its figure.\n\n"
    )
    return words + table(["what", "before", "after", "after ÷ before"], rows)


def _compared(before: float, after: float) -> list[str]:
    def said(x: float) -> str:
        return f"{x:,.0f}" if x >= 100 else f"{x:.2f}"

    return [said(before), said(after), f"**{after / before:.2f}**"]
