"""Faults: every write, sync, rename and lock of `release` and `synth` refused in turn; memory, signals, races.

A clean run counts the calls; then every one of them fails, once or for good, with every error. Whatever fails: the
ledger counts what may have been looked at, a release that was made can be loaded from somewhere, and nothing half-made
stays behind.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import io
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final
from unittest import mock

import pyarrow.parquet as pq

from command import dpmerf
from dpmerf.errors import DpmerfError
from dpmerf.private import measure as room
from dpmerf.private.ledger import Ledger
from dpmerf.release.verify import verify
from fuzz.campaign import CODES, Tally
from fuzz.ground import LEDGER, MARKER, Ground, rows

WAIT = 120  # seconds of the clock for one run in a process of its own
ERRORS = (errno.ENOSPC, errno.EIO, errno.EINTR, errno.EROFS)
RELEASE = ["release", "t.parquet", "--plan", "plan.json", "--ledger", LEDGER, "-o", "disk/out", "-q"]
SYNTH = [
    "synth", "t.parquet", "--schema", "schema.toml", "--epsilon", "1", "--rows", "40", "--ledger", LEDGER,
    "-o", "disk/out", "--steps", "2", "-n", "5", "-q",
]  # fmt: skip
_PLAIN = ("write", "fsync", "replace", "link", "mkdir", "open", "posix_fallocate")


@final
@dataclass
class Injector:
    """Counts calls that change the disk, and lets the `at`-th fail; with `for_good` all later ones on that disk."""

    at: int = -1
    error: int = 0
    for_good: Path | None = None
    calls: list[str] = field(default_factory=list)

    def meet(self, name: str, path: object) -> None:
        self.calls.append(name)
        number = len(self.calls) - 1
        broken = number == self.at or (self.for_good and self.at >= 0 and number > self.at and self._on_disk(path))
        if broken:
            raise OSError(self.error, os.strerror(self.error))

    def _on_disk(self, path: object) -> bool:
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        return self.for_good is not None and str(self.for_good) in os.path.abspath(os.fspath(path))  # type: ignore[call-overload]


class _File:
    """A file whose writing can fail."""

    def __init__(self, file: Any, injector: Injector) -> None:
        self._file, self._injector = file, injector

    def write(self, data: Any) -> Any:
        self._injector.meet("file.write", self._file.name)
        return self._file.write(data)

    def __enter__(self) -> _File:
        self._file.__enter__()
        return self

    def __exit__(self, *problem: Any) -> Any:
        return self._file.__exit__(*problem)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextlib.contextmanager
def injected(injector: Injector) -> Iterator[None]:
    """Within, every call that changes the disk goes through the injector."""
    real_open = io.open

    def opened(file: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        if not isinstance(file, int) and set(mode) & set("wax+"):
            injector.meet("open to write", file)
            return _File(real_open(file, mode, *more, **named), injector)
        return real_open(file, mode, *more, **named)

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(first: Any, *more: Any, **named: Any) -> Any:
            if not (name == "open" and more and not more[0] & (os.O_WRONLY | os.O_RDWR)):
                injector.meet(name, first)
            return real(first, *more, **named)

        return call

    with contextlib.ExitStack() as stack:
        for name in _PLAIN:
            stack.enter_context(mock.patch.object(os, name, wrapped(name, getattr(os, name))))
        stack.enter_context(mock.patch.object(fcntl, "flock", wrapped("flock", fcntl.flock)))
        stack.enter_context(mock.patch.object(io, "open", opened))
        stack.enter_context(mock.patch.object(builtins, "open", opened))
        yield


@final
@dataclass
class Seen:
    """What the locked room did: what the ledger held at each reading of the rows, and whether a release came of it."""

    readings: list[list[str]] = field(default_factory=list)
    made: bool = False


@contextlib.contextmanager
def watched(ledger: Path) -> Iterator[Seen]:
    seen = Seen()
    real_sum, real_private = room.sum_locally, room.Release

    def summed(*words: Any, **named: Any) -> Any:
        seen.readings.append(_purposes(ledger))
        return real_sum(*words, **named)

    def released(*words: Any, **named: Any) -> Any:
        seen.made = True
        return real_private(*words, **named)

    with mock.patch.object(room, "sum_locally", summed), mock.patch.object(room, "Release", released):
        yield seen


def _purposes(ledger: Path) -> list[str]:
    """Of the entries on the disk, read without locks: a fault may be in the way of those."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    entries = [json.loads(line) for line in lines]
    return [entry["purpose"].partition(" ")[0] for entry in entries if entry["kind"] == "spend"]


def _counted(readings: list[list[str]]) -> bool:
    """Whether the first reading was paid for, as a look or as the whole, and every later one as the whole."""
    whole = (["release"], ["readability", "release"])
    return all(found in whole or (i == 0 and found == ["readability"]) for i, found in enumerate(readings))


def lay(ground: Ground, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    (place / "disk").mkdir(parents=True)
    for name in ("schema.toml", "plan.json"):
        (place / name).write_bytes(ground.read(name))
    pq.write_table(rows(), place / "t.parquet")


def one(ground: Ground, place: Path, words: list[str], injector: Injector, tally: Tally) -> list[str]:
    """Run with a fault; what was broken."""
    lay(ground, place)
    began = time.process_time()
    with (
        mock.patch.dict(os.environ, {"HOME": str(place / "home")}),
        watched(place / LEDGER) as seen,
        injected(injector),
    ):
        ended = dpmerf(*words, cwd=place)
    tally.cases += 1
    tally.slowest = max(tally.slowest, time.process_time() - began)
    tally.accepted += ended.returncode == 0
    tally.refused += ended.returncode != 0
    wrong = []
    if ended.returncode not in CODES:
        wrong.append(f"exit {ended.returncode}: {ended.stderr.strip()[:100]}")
    if "Traceback" in ended.stderr or MARKER in ended.stdout + ended.stderr:
        wrong.append("traceback or marker")
    return wrong + judged(place, words, seen, ended.returncode, tally)


def judged(place: Path, words: list[str], seen: Seen, code: int, tally: Tally) -> list[str]:
    """The ledger and the disk afterwards."""
    wrong = []
    try:
        entries = len(Ledger.load(place / LEDGER).entries()) if (place / LEDGER).exists() else 0
    except DpmerfError:
        return ["ledger unreadable"]
    if not _counted(seen.readings):
        wrong.append(f"read with {min(map(len, seen.readings))} entries")
    purposes = _purposes(place / LEDGER)
    if len(purposes) != entries or len(set(purposes)) != entries or (seen.made and purposes[-1:] != ["release"]):
        wrong.append(f"ends with {entries} entries")
    tally.paid += code != 0 and entries > 0
    whole = [p.parent for p in place.rglob("release.json") if _loads(p.parent)]
    if seen.made and not whole:
        wrong.append("paid for and lost")
    hidden = [p for p in place.rglob("*") if p.name.startswith(".") or p.name.endswith(".part")]
    hidden = [p for p in hidden if place / "home" not in p.parents]  # caches of matplotlib
    if hidden:
        wrong.append(
            "left " + "a ledger's draft" * (LEDGER in hidden[0].name) + "a part" * (LEDGER not in hidden[0].name)
        )
    if code != 0 and words[0] == "synth" and (place / "disk" / "out" / "release").is_dir():
        again = dpmerf("resume", "disk/out", "-q", cwd=place)
        if again.returncode != 0 or not (place / "disk" / "out" / "report.html").exists():
            wrong.append(f"cannot be resumed: {again.stderr.strip()[:80]}")
    return wrong


def _loads(folder: Path) -> bool:
    try:
        verify(folder)
    except DpmerfError:
        return False
    return True


def points(ground: Ground, place: Path, words: list[str]) -> list[str]:
    """The calls of a clean run; of the second one, for the first may fill caches of fonts."""
    for _ in range(2):
        counting = Injector()
        problems = one(ground, place, words, counting, Tally("clean"))
        assert not problems, problems
    return counting.calls


def every_fault(
    ground: Ground,
    place: Path,
    words: list[str],
    errors: tuple[int, ...],
    say: Callable[[str], None],
    most: int = 10**9,
) -> Tally:
    """Every call of a run fails, with every error, once and for good."""
    tally = Tally(f"faults of {words[0]}, " + ", ".join(errno.errorcode[e] for e in errors))
    start = time.process_time()
    calls = points(ground, place, words)
    chosen = range(0, len(calls), -(-len(calls) // most)) if most < len(calls) else range(len(calls))
    for at in chosen:
        for error in errors:
            for for_good in (None, place / "disk"):
                for wrong in one(ground, place, words, Injector(at, error, for_good), tally):
                    tally.broken[wrong] += 1
                    what = "for good" if for_good else "once"
                    say(f"{tally.kind}: call {at} ({calls[at]}), {errno.errorcode[error]}, {what}: {wrong}")
    return _done(tally, start)


def in_child(action: Callable[[], int], after: Callable[[int], None] = lambda pid: None) -> int:
    """Run in a forked process; its exit code, negative for a signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 99
        signal.alarm(WAIT)  # ends a child that hangs, by its default
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            code = action()
        finally:
            os._exit(code)
    after(pid)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def limits(ground: Ground, place: Path, words: list[str], say: Callable[[str], None], count: int) -> Tally:
    """Files that may not grow beyond a size, memory and files that run out: in a process of its own.

    With less than 4 MB above what is in use native libraries wait for threads that never start; with fewer than eight
    files Python cannot remove a folder. Neither is tried.
    """
    tally = Tally(f"limits of {words[0]}")
    start = time.process_time()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    cases = [(resource.RLIMIT_FSIZE, size) for size in (0, 1, 100, 512, 2_000, 4_096, 10_000, 50_000)[:count]]
    cases += [(resource.RLIMIT_AS, used + i * 2**20) for i in (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)[:count]]
    cases += [(resource.RLIMIT_NOFILE, n) for n in (3, 8, 12, 20)[:count]]
    for kind, limit in cases:
        lay(ground, place)

        def run(kind: int = kind, limit: int = limit) -> int:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(kind, (limit, limit))
            return dpmerf(*words, cwd=place).returncode

        code = in_child(run)
        tally.cases += 1
        tally.accepted += code == 0
        tally.refused += code != 0
        made = code == 0
        wrong = [f"exit {code}"] if code not in CODES else []
        for problem in wrong + judged(place, words, Seen([], made), code, tally):
            tally.broken[problem] += 1
            say(f"{tally.kind}: limit {kind} at {limit:,}: {problem}")
    return _done(tally, start)


def signals(ground: Ground, place: Path, words: list[str], say: Callable[[str], None], count: int) -> Tally:
    """Stopped and killed at every moment of a run."""
    tally = Tally(f"signals to {words[0]}")
    start = time.process_time()
    lay(ground, place)
    began = time.monotonic()
    in_child(lambda: dpmerf(*words, cwd=place).returncode)
    length = (time.monotonic() - began) * 1.05
    for i in range(count):
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[i % 3]
        lay(ground, place)

        def stop(pid: int, i: int = i, number: int = number) -> None:
            time.sleep(length * (i + 1) / (count + 1))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

        code = in_child(lambda: dpmerf(*words, cwd=place).returncode, stop)
        tally.cases += 1
        tally.accepted += code == 0
        tally.refused += code != 0
        killed = code in (-signal.SIGKILL, -signal.SIGINT, -signal.SIGTERM)  # before its own handlers were there
        wrong = [] if code in CODES | {130, 143} or killed else [f"exit {code}"]
        made = code == 0
        found = judged(place, words, Seen([], made), code, tally)
        if killed:  # a killed process cannot take back its drafts; the next one does, or they are named by its id
            found = [w for w in found if not w.startswith("left ")]
        for problem in wrong + found:
            tally.broken[problem] += 1
            say(f"{tally.kind}: {signal.Signals(number).name} at {(i + 1) / (count + 1):.0%}: {problem}")
    return _done(tally, start)


def races(ground: Ground, place: Path, say: Callable[[str], None], count: int) -> Tally:
    """Two and five processes with one ledger that pays for one release: one is made, and one is counted."""
    tally = Tally("races for a ledger")
    start = time.process_time()
    for i in range(count):
        lay(ground, place)
        together = 2 if i % 2 == 0 else 5
        Ledger.open(place / LEDGER, 1.0, 1e-5)
        pids = []
        for j in range(together):
            words = [*RELEASE[:-2], f"disk/out{j}", "-q"]
            pid = os.fork()
            if pid == 0:
                code = 99
                try:
                    code = dpmerf(*words, cwd=place).returncode
                finally:
                    os._exit(code)
            pids.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        entries = len(Ledger.load(place / LEDGER).entries())
        made = len(list((place / "disk").glob("out*")))
        tally.cases += 1
        tally.accepted += codes.count(0)
        tally.refused += together - codes.count(0)
        if (codes.count(0), entries, made) != (1, 1, 1) or set(codes) != {0, 5}:
            tally.broken[f"codes {sorted(set(codes))}, {entries} entries, {made} releases"] += 1
            say(f"{tally.kind}: {codes}, {entries} entries, {made} releases")
    return _done(tally, start)


def _done(tally: Tally, start: float) -> Tally:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    tally.seconds = time.process_time() - start
    tally.peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, used.ru_maxrss)
    return tally
