"""Everything: all experiments, those that are nearly done first, with an estimate of the hours that are left."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from benchmarks.registry import Experiment, Run
from benchmarks.store import Store

UNKNOWN = 300.0  # seconds of a cell where nothing like it was ever run
NOTHING = "\0"  # no cell is named so: every cell is asked for, none is run


def keys(experiment: Experiment, this: Run) -> list[str]:
    """Every cell that a run would ask for, without running one."""
    dry = replace(this, only=(NOTHING,), asked={})
    experiment.run(dry)
    return [key.strip("/") for key in dry.asked if this.wants(key)]


def missing(asked: Iterable[str], store: Store) -> list[str]:
    """The cells that a run would compute: those without a result, or all of them with --redo."""
    return [key for key in asked if store.redo or "error" in (store.read(key) or {"error": ""})]


def estimate(key: str, seconds: Mapping[str, float]) -> float:
    """Seconds of a cell: the median of those stored cells whose names have most parts in common with its own.

    A last part that is the number of a run tells nothing; one that names what is run (a classifier) does.

    >>> estimate("t/adult/b/2", {"t/adult/a/1": 5.0, "t/adult/b/1": 7.0, "t/census/b/1": 90.0})
    7.0
    """
    parts = key.split("/")
    parts = parts[:-1] if parts[-1].isdigit() else parts

    def alike(other: str) -> int:
        return sum(a == b for a, b in zip(parts, other.split("/"), strict=False))

    most = max((alike(other) for other in seconds), default=0)
    return statistics.median(s for other, s in seconds.items() if alike(other) == most) if seconds else UNKNOWN


def seconds_left(asked: Iterable[str], store: Store) -> float:
    known: dict[str, dict[str, float]] = {}
    total = 0.0
    for key in missing(asked, store):
        name = key.split("/")[0]
        if name not in known:  # cells that were copied from another experiment took no time
            known[name] = {k: line["seconds"] for k, line in store.lines(name).items() if line["seconds"] > 0}
        total += estimate(key, known[name])
    return total


def not_run(wanted: Mapping[str, Sequence[str]], store: Store) -> str:
    """Sentences for a page: what (title -> keys) has no result, each with the time it would take, and what failed."""
    absent = {title: gone for title, keys in wanted.items() if (gone := missing(keys, store))}
    if not absent:
        return ""
    if not any(store.lines(key.split("/")[0]) for gone in absent.values() for key in gone):
        return f"Not run yet, nor anything like it: {', '.join(absent)}."
    all_of = duration(seconds_left([key for gone in absent.values() for key in gone], store))
    shown = [_part(title, absent[title], wanted[title], store) for title in absent]
    results = [(t, store.read(k) or {}) for t, gone in absent.items() for k in gone]
    failed = [f"{t}: {result['error'][:120]}" for t, result in results if "error" in result]
    said = f"Not run yet, about {all_of} of one core by the time that cells like them took: {', '.join(shown)}."
    return said + (f" Failed: {'; '.join(failed)}." if failed else "")


def _part(title: str, gone: Sequence[str], keys: Sequence[str], store: Store) -> str:
    some = f"{len(gone)} of {len(keys)} cells, " if len(gone) < len(keys) else ""
    return f"{title} ({some}{duration(seconds_left(gone, store))})"


def duration(seconds: float) -> str:
    """As words.

    >>> duration(40), duration(60), duration(600), duration(9000)
    ('1 minute', '1 minute', '10 minutes', '2.5 hours')
    """
    minutes = max(1, round(seconds / 60))
    if minutes >= 90:
        return f"{seconds / 3600:.1f} hours"
    return f"{minutes} minute{'s' * (minutes > 1)}"


def made_with(keys: Mapping[str, Sequence[str]], store: Store) -> str:
    """By which commits each title's stored cells were computed, and which of them from uncommitted code."""
    said = []
    for title, of in keys.items():
        found = [line["made_with"].partition("(")[2].rstrip(")") for key in of if (line := store.line(key))]
        commits = [one.replace("-dirty", "†") for one in dict.fromkeys(found)]
        said += [f"{title} {', '.join(commits)}"] if commits else []
    return "; ".join(said)


def run_all(known: Mapping[str, Experiment], prepare: Callable[[Experiment], Run], dry: bool = False) -> None:
    """Run what is missing, the least work first, and say before each experiment what is left in all.

    `prepare` gives an experiment the number of runs that its page is made of, unless --runs says another.
    """
    work = []
    for experiment in known.values():
        this = prepare(experiment)
        asked = keys(experiment, this)
        left = missing(asked, this.store)
        work.append((seconds_left(asked, this.store), len(left), len(asked), experiment, this))
    work.sort(key=lambda item: item[0])
    total = sum(item[0] for item in work)
    for seconds, cells, asked_cells, experiment, this in work:
        if not asked_cells:
            continue
        done, rest = asked_cells - cells, f"about {duration(seconds)} left" if cells else "nothing left"
        said = f"{experiment.name:14} {done:4} of {asked_cells:4} cells done, {rest}; all: {duration(total)}"
        print(said, file=sys.stderr, flush=True)
        if cells and not dry:
            experiment.run(this)
        total -= seconds
