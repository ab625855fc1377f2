"""Campaign: runs cases, judges what came of them, and counts. A case is a kind and a number: it can be run again alone.

What every case must keep, whatever it is: an exit code of a known kind and never an internal fault; one line of error
and no traceback; no planted cell in what is said; no file but those that were there or were asked for; an end within 60
CPU seconds; and a ledger that counts whatever may have been looked at.
"""

from __future__ import annotations

import contextlib
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, final

from command import dpmerf
from dpmerf.errors import LedgerError
from dpmerf.private.ledger import Ledger
from fuzz.ground import LEDGER, MARKER

CODES = {0, 1, 2, 4, 5, 6, 7, 141}  # 3 is an internal fault
LONGEST = 60  # CPU seconds
MADE = {  # what a command writes beside what it is told to
    "pack": {"dossier.html", "dossier.pdf"},
    "resume": {"model", "synthetic.parquet", "report.html"},
}
Words = list[str]
Maker = Callable[[Random, Path], Words]


class Hang(BaseException):
    """A case took too long."""


@final
@dataclass
class Tally:
    """What came of the cases of one kind."""

    kind: str
    cases: int = 0
    accepted: int = 0
    refused: int = 0
    paid: int = 0  # refused after the ledger was charged: rows had been looked at
    seconds: float = 0.0
    slowest: float = 0.0
    peak: int = 0  # kB
    broken: Counter[str] = field(default_factory=Counter)

    def line(self) -> list[str]:
        bad = ", ".join(f"{n}× {what}" for what, n in self.broken.most_common(4)) or "none"
        numbers = [self.cases, self.accepted, self.refused, self.paid]
        return [
            self.kind,
            *(f"{n:,}" for n in numbers),
            f"{self.slowest:.1f}",
            f"{self.seconds:.0f}",
            f"{self.peak / 1000:.0f}",
            bad,
        ]


HEADER = ["kind", "cases", "accepted", "refused", "refused when paid", "slowest, s", "CPU s", "peak, MB", "broken"]


def table(tallies: list[Tally]) -> str:
    """Markdown."""
    total = Tally("together")
    for t in tallies:
        total.cases, total.accepted, total.refused = (
            total.cases + t.cases,
            total.accepted + t.accepted,
            total.refused + t.refused,
        )
        total.paid, total.seconds = total.paid + t.paid, total.seconds + t.seconds
        total.slowest, total.peak = max(total.slowest, t.slowest), max(total.peak, t.peak)
        total.broken += t.broken
    lines = [HEADER, ["---"] * len(HEADER), *(t.line() for t in [*tallies, total])]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


@contextlib.contextmanager
def limited(seconds: int = LONGEST) -> Iterator[None]:
    """Hang after so many CPU seconds."""

    def stop(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run_kind(kind: str, make: Maker, ground: Path, place: Path, numbers: range, say: Callable[[str], None]) -> Tally:
    """Run the cases of one kind, each in an empty folder beside the common ground."""
    tally = Tally(kind)
    start = time.process_time()
    for number in numbers:
        found = judged(make, ground, place / kind, Random(f"{kind} {number}"), tally)
        for wrong in found:
            tally.broken[wrong] += 1
            say(f"{kind} {number}: {wrong}")
        if found:  # releases of the ground have true noise: the files of a case do not come twice
            kept = Path(tempfile.gettempdir()) / "dpmerf-fuzz" / f"{kind} {number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(place / kind, kept, symlinks=True)
            say(f"{kind} {number}: its files are in {kept}")
    tally.seconds = time.process_time() - start
    tally.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return tally


def judged(make: Maker, ground: Path, place: Path, rng: Random, tally: Tally) -> list[str]:
    """Run one case; what it broke."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    words = make(rng, place)
    before = {p.name for p in place.iterdir()}
    wrong: list[str] = []
    began = time.process_time()
    try:
        with limited():
            ended = dpmerf(*words, cwd=place)
    except Hang:
        tally.cases += 1
        return ["hang"]
    except BaseException as problem:
        tally.cases += 1
        return [f"escaped {type(problem).__name__}"]
    tally.cases += 1
    tally.slowest = max(tally.slowest, time.process_time() - began)
    code, said = ended.returncode, ended.stdout + ended.stderr
    tally.accepted += code == 0
    tally.refused += code != 0
    if code not in CODES:
        wrong.append(f"exit {code}: {ended.stderr.strip()[:120]}")
    if "Traceback" in said:
        wrong.append("traceback")
    if MARKER in said and not any(MARKER in word for word in words):
        wrong.append("marker said")
    if code not in (0, 1) and ended.stderr.count("error:") > 1:
        wrong.append("more than one error")
    wrong += _left(place, before, words, code)
    wrong += _ledger(place, words, code, tally)
    return wrong


def _left(place: Path, before: set[str], words: Words, code: int) -> list[str]:
    """Files that nobody asked for; a result that is there although the command failed."""
    asked = {Path(w).parts[0] for w in words if w and "\0" not in w and Path(w).parts and len(w) < 200}
    left = {p.name for p in place.iterdir()} - before
    hidden = [name for name in left if name.startswith(".") or name.endswith(".part")]
    strange = left - asked - {LEDGER} - set(hidden) - MADE.get(words[0], set())
    found = [f"left {Path(name).suffix or 'a file'}" for name in sorted(strange)] + ["left a part"] * bool(hidden)
    if code != 0 and "-o" in words and words[0] == "release":
        out = place / words[words.index("-o") + 1]
        with contextlib.suppress(OSError, ValueError):
            if out.exists() and out.name not in before:
                found.append("half-made")
    return found


def _ledger(place: Path, words: Words, code: int, tally: Tally) -> list[str]:
    """A release is paid for, exactly once; a ledger is never left unreadable."""
    if words[0] != "release" or "--ledger" not in words or not (place / LEDGER).exists() or (place / "old").exists():
        return []
    try:
        entries = len(Ledger.load(place / LEDGER).entries())
    except LedgerError:
        return ["ledger damaged"]
    tally.paid += code != 0 and entries > 0
    if code == 0 and entries != 1:
        return [f"released with {entries} entries"]
    return []


def error(words: Any) -> None:
    print(words, file=sys.stderr, flush=True)
