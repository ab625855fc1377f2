"""Registry: an experiment is a module of this folder with a value EXPERIMENT. Nothing else has to be told about it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import benchmarks
from benchmarks.store import Store

FOLDER = Path(__file__).parent


@final
@dataclass(frozen=True)
class Run:
    """What an experiment is told: where its data and its results are, and how much to do."""

    store: Store  # one line of JSON per cell; `store.cell(key, make)` skips what is done
    data_dir: Path | None  # what --data-dir said; `benchmarks.data` looks further
    quick: bool = False
    runs: int = 1  # repetitions, each with its own seed
    only: tuple[str, ...] = ()  # keep the cells whose key contains all of these; "a,b" means a or b
    against: str | None = None  # the commit that `speed` compares with; its own choice if left out
    asked: dict[str, bool] = field(default_factory=dict)  # every key that `wants` was asked about, with its answer

    def wants(self, key: str) -> bool:
        self.asked[key] = all(any(part in key for part in parts.split(",")) for parts in self.only)
        return self.asked[key]


@final
@dataclass(frozen=True)
class Experiment:
    """One command: `python -m benchmarks run NAME`."""

    name: str
    what: str  # one line
    cost: str  # for the whole, on one core
    run: Callable[[Run], None]
    page: Callable[[Store], str]  # Markdown (and figures written beside the JSON) from the stored cells; "" if none
    runs: int = 1  # repetitions that the page should rest on; what `run all` asks for


def experiments() -> dict[str, Experiment]:
    """Every experiment of this folder, by name. A module that cannot be imported is an error, not a silence."""
    found = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__)):
        if not module.startswith("__"):
            experiment = getattr(importlib.import_module(f"benchmarks.{module}"), "EXPERIMENT", None)
            if experiment is not None:
                found[experiment.name] = experiment
    return found
