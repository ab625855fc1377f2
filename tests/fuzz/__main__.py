"""`python -m fuzz --cases 20000`: the whole campaign; with --kind one kind, with --number one case of it again."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from command import dpmerf
from fuzz import bombs, faults, files, pages, words
from fuzz.campaign import Maker, Tally, error, judged, run_kind, table
from fuzz.ground import Ground, lay

KINDS: dict[str, tuple[Callable[[Ground, Random, Path], list[str]], float]] = {  # maker, share of the cases
    "csv": (files.csv, 0.14),
    "columnar": (files.columnar, 0.14),
    "schema": (files.schema, 0.12),
    "metadata": (files.metadata, 0.08),
    "plan": (files.plan, 0.1),
    "release": (files.release, 0.1),
    "model": (files.model, 0.06),
    "ledger": (files.ledger, 0.06),
    "npz": (files.npz, 0.04),
    "pictures": (files.pictures, 0.03),
    "question": (words.question, 0.04),
    "sql": (words.sql, 0.03),
    "command line": (words.command_line, 0.05),
    "environment": (words.environment, 0.01),
}


def makers(ground: Ground) -> dict[str, tuple[Maker, float]]:
    return {kind: (partial(make, ground), share) for kind, (make, share) in KINDS.items()}


def campaign(
    ground: Ground,
    place: Path,
    cases: int,
    say: Callable[[str], None],
    keep: Callable[[Tally], None] = lambda t: None,
    only: str | None = None,
) -> list[Tally]:
    """All kinds of hostile input, or one; `keep` gets the tally of each kind as soon as it is done."""
    tallies: list[Tally] = []
    for kind, (make, share) in makers(ground).items():
        if only not in (None, kind):
            continue
        kept = dict(os.environ)
        tallies.append(run_kind(kind, make, ground.folder, place, range(max(1, round(cases * share))), say))
        os.environ.clear()
        os.environ.update(kept)
        keep(tallies[-1])
    return tallies


def steps(ground: Ground, box: Path, say: Callable[[str], None]) -> dict[str, Callable[[], Tally]]:
    """Bombs, every fault point of `release` and `synth`, limits, signals and races."""
    injected = {
        f"faults of {words[0]}, {errno.errorcode[error]}": partial(
            faults.every_fault, ground, box, words, (error,), say
        )
        for words in (faults.RELEASE, faults.SYNTH)
        for error in faults.ERRORS
    }
    return {
        "bombs": lambda: bombs.run(ground, box, say),
        **injected,
        "limits of release": lambda: faults.limits(ground, box, faults.RELEASE, say, 14),
        "limits of synth": lambda: faults.limits(ground, box, faults.SYNTH, say, 14),
        "signals to release": lambda: faults.signals(ground, box, faults.RELEASE, say, 60),
        "signals to synth": lambda: faults.signals(ground, box, faults.SYNTH, say, 45),
        "races for a ledger": lambda: faults.races(ground, box, say, 20),
    }


def again(ground: Ground, place: Path, kind: str, number: int) -> None:
    """One case, with what it says."""
    make, _ = makers(ground)[kind]
    found = judged(make, ground.folder, place / kind, Random(f"{kind} {number}"), Tally(kind))
    typed = make(Random(f"{kind} {number}"), _empty(place / "again"))
    ended = dpmerf(*typed, cwd=place / "again")
    print(typed, ended.returncode, ended.stdout, ended.stderr, found, sep="\n")


def _empty(place: Path) -> Path:
    place.mkdir(parents=True)
    return place


def main() -> int:
    said = argparse.ArgumentParser(prog="python -m fuzz")
    said.add_argument("--cases", type=int, default=20_000)
    named = [*KINDS, *steps(Ground(Path()), Path(), error)]
    said.add_argument("--kind", choices=named)
    said.add_argument("--number", type=int)
    said.add_argument("--no-faults", action="store_true")
    said.add_argument("--page", type=Path, help="a page to write, and its figures beside it")
    asked = said.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ground = lay(place / "ground")
        if asked.kind and asked.number is not None:
            again(ground, place, asked.kind, asked.number)
            return 0
        start = time.process_time()
        keep = partial(pages.keep, asked.page) if asked.page else lambda tally: None
        tallies = campaign(ground, place, asked.cases, error, keep, asked.kind) if asked.cases else []
        for kind, step in steps(ground, place / "faults", error).items():
            if asked.kind == kind or (asked.kind is None and not asked.no_faults):
                tallies.append(step())
                keep(tallies[-1])
    print(table(tallies))
    print(f"{sum(t.cases for t in tallies):,} cases, {time.process_time() - start:.0f} CPU seconds")
    return int(any(t.broken for t in tallies))


if __name__ == "__main__":
    sys.exit(main())
