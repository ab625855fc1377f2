"""Store: results as one JSON-lines file an experiment, a line a cell, so that a run that was stopped goes on where it
was.

Lines are only ever appended, whole, under a lock: several processes may write at once, and a line that a crash tore is
passed over. The last line of a cell counts; `tidy` drops the others.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, final

RESULTS = Path(__file__).parent / "results"
Json = dict[str, Any]


@final
@dataclass(frozen=True)
class Store:
    """A folder of experiments. The first part of a key such as `table1/honest/adult/default/1` names the file."""

    folder: Path = RESULTS
    redo: bool = False
    _known: dict[Path, tuple[tuple[int, int], dict[str, Json]]] = field(default_factory=dict, repr=False, compare=False)

    def path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}.jsonl"

    def experiments(self) -> list[str]:
        """The experiments that have results."""
        return sorted(path.stem for path in self.folder.glob("*.jsonl"))

    def lines(self, experiment: str) -> dict[str, Json]:
        """Every cell's last whole line, by key: {"cell", "made_with", "seconds", "result"}."""
        path = self.path(experiment)
        try:
            said = path.stat()
        except FileNotFoundError:
            return {}
        stamp = (said.st_mtime_ns, said.st_size)
        if path not in self._known or self._known[path][0] != stamp:
            found = (_parsed(line) for line in path.read_text(encoding="utf-8").splitlines())
            self._known[path] = stamp, {line["cell"]: line for line in found if line}
        return self._known[path][1]

    def line(self, key: str) -> Json | None:
        return self.lines(key.split("/")[0]).get(key)

    def read(self, key: str) -> Json | None:
        """A cell's result, or None if it is not there."""
        line = self.line(key)
        return line["result"] if line else None

    def cell(self, key: str, make: Callable[[], Json]) -> Json:
        """The stored result, or a new one. A failure is stored too, as {"error": …}, and tried again next time."""
        known = self.read(key)
        if known is not None and not self.redo and "error" not in known:
            return known
        print(f"{datetime.now(UTC):%H:%M:%S} {key} …", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            result = make()
        except Exception as problem:
            result = {"error": f"{type(problem).__name__}: {str(problem)[-2000:]}"}
        self.write(key, result, time.monotonic() - start)
        note = f"failed: {result['error'][-300:]}" if "error" in result else f"{time.monotonic() - start:.0f} s"
        print(f"{datetime.now(UTC):%H:%M:%S} {key}: {note}", file=sys.stderr, flush=True)
        return result

    def write(self, key: str, result: Json, seconds: float = 0.0) -> None:
        self.append({"cell": key, "made_with": version(), "seconds": round(seconds, 1), "result": result})

    def append(self, line: Json) -> None:
        """One line at the end of its experiment's file, whole or not at all."""
        path = self.path(line["cell"].split("/")[0])
        with _locked(path), path.open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            torn = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
            file.write(b"\n" * torn + _text(line).encode())
            file.flush()
            os.fsync(file.fileno())

    def tidy(self, experiment: str) -> None:
        """One line a cell, in the order of the keys; a file that is so already is not touched."""
        path = self.path(experiment)
        with _locked(path):
            lines = self.lines(experiment)
            text = "".join(_text(lines[key]) for key in sorted(lines, key=_parts))
            if path.read_text(encoding="utf-8") != text:
                temporary = path.with_suffix(".part")
                temporary.write_text(text, encoding="utf-8")
                os.replace(temporary, path)

    def cells(self, prefix: str) -> Iterator[tuple[tuple[str, ...], Json]]:
        """(parts of the key after the prefix, result) of every finished cell below the prefix."""
        start = _parts(prefix)
        lines = self.lines(start[0])
        for key in sorted(lines, key=_parts):
            if _parts(key)[: len(start)] == start:
                yield _parts(key)[len(start) :], lines[key]["result"]


def _parts(key: str) -> tuple[str, ...]:
    return tuple(key.split("/"))


def _text(line: Json) -> str:
    return json.dumps(line, ensure_ascii=False) + "\n"


def _parsed(text: str) -> Json | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "cell" in line and "result" in line else None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """No other process appends to or rewrites this file meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.stem}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@cache
def version() -> str:
    """The package's version and the commit that it was run from; dirty if code, not only results, differs from it."""
    import dpmerf

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=RESULTS.parents[1], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results", ":!*.md")
        return f"dpmerf {dpmerf.__version__} ({git('describe', '--always')}{'-dirty' if changed else ''})"
    except (OSError, subprocess.CalledProcessError):
        return f"dpmerf {dpmerf.__version__}"
