"""The tables model: CPU seconds of training and rows drawn a CPU second, on real tables and as columns grow."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import torch

from benchmarks import speed_data
from benchmarks.data import SETS
from benchmarks.protocols import split
from dpmerf.plan.noisy_tables import noisy_tables
from dpmerf.release import Release
from dpmerf.schema import Schema

REAL = ("adult", "census")
COLUMNS = (25, 50, 100, 200)
ROWS = 50_000


def tables_model(what: str, quick: bool) -> dict[str, Any]:
    """One thread: train once, draw as many rows as there were (at most 100,000). The noise is that of the tests."""
    from dpmerf.methods.presets import make_plan
    from dpmerf.private.measure import measure
    from dpmerf.train import train
    from fixed_noise import SeededNoise  # type: ignore[import-not-found]  # of the tests: no privacy

    torch.set_num_threads(1)
    schema, table = _data(what, quick)
    release = measure(table, make_plan(schema, 1.0, 1e-5, rows=table.num_rows), noise=SeededNoise())
    start = time.process_time()
    model = train(release, seed=0)
    training = time.process_time() - start
    drawn = min(table.num_rows, 100_000)
    model.sample(1_000)
    start = time.process_time()
    model.sample(drawn)
    drawing = time.process_time() - start
    cells = int(release.plan.coordinates)
    history = model.history
    return {
        "what": what,
        "columns": len(schema.columns),
        "cells": cells,
        "pair_cells": _pair_cells(release),
        "training": training,
        "steps": history.steps[-1],
        "stopped": history.stopped,
        "rows_per_cpu_second": drawn / drawing,
    }


def pair_cells(what: str, quick: bool) -> dict[str, Any]:
    """Only how many cells the measured pairs have, each counted once, and how many coordinates the release."""
    from dpmerf.methods.presets import make_plan
    from dpmerf.private.measure import measure
    from fixed_noise import SeededNoise

    schema, table = _data(what, quick)
    release = measure(table, make_plan(schema, 1.0, 1e-5, rows=table.num_rows), noise=SeededNoise())
    return {"what": what, "cells": int(release.plan.coordinates), "pair_cells": _pair_cells(release)}


def _pair_cells(release: Release) -> int:
    noisy = noisy_tables(release)
    seg = noisy.layout.column_of
    return int(noisy.measured[seg][:, seg].triu(1).sum())


def _data(what: str, quick: bool) -> tuple[Schema, pa.Table]:
    if what in REAL:
        rows = split(SETS[what], "honest", 1, None, quick)
        return rows.schema, rows.train
    columns, count = int(what), 3_000 if quick else ROWS
    return speed_data.schema(columns, 2), speed_data.table(count, 0, columns, 2)
