"""Few rows: no farther from the real rows than independent noisy columns, whatever the table."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import scoring
from benchmarks.methods import METHODS, Task
from benchmarks.protocols import Split
from benchmarks.suite_simulated import Maker, constants, few_strong_pairs, near_functions, round_numbers
from benchmarks.suite_targets import alone

CASES = [(few_strong_pairs, 2_500), (constants, 1_500), (near_functions, 1_500), (round_numbers, 1_000)]
RUNS = 3
ROOM = np.array([1.25, 1.10])  # one- and two-way, of the mean over the runs: pairs cost columns a part of the budget


@pytest.mark.parametrize(("make", "rows"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_never_above_independent_noisy_columns(make: Maker, rows: int) -> None:
    far: dict[str, list[list[float]]] = {"default": [], "alone": []}
    for seed in range(1, RUNS + 1):
        schema, table = make(rows + 5_000, seed)
        split = Split(schema, table.slice(0, rows), table.slice(rows), 1_000)
        for name, method in (("default", METHODS["default"]), ("alone", alone)):
            found = scoring.distances(method(Task(split.train, schema, 1.0, 1e-5, seed)), split, seed)
            far[name].append([found["tv1"], found["tv2"]])
    ours, theirs = (np.mean(far[name], axis=0) for name in ("default", "alone"))
    assert (ours <= ROOM * theirs).all(), (ours, theirs)
