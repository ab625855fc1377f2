"""Intervals held: do the release's 95 % intervals hold what the real rows say? From real rows: NOT COVERED."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from dpmerf.encoding.codec import Batch, null_name
from dpmerf.evaluate.results import IntervalsHeld
from dpmerf.inference.answers import Line, critical
from dpmerf.inference.ask import answer
from dpmerf.inference.blue import solve
from dpmerf.inference.evidence import Evidence, evidence
from dpmerf.release import Release

MOST_COLUMNS = 60


def intervals_held(release: Release, real: pa.Table, same_rows: bool) -> IntervalsHeld:
    """Shares of every value of every category, and means, beside those of real rows.

    If these are the rows that the release was made from, intervals are about that table. Else both are samples of one
    population, and the sampling error of the real rows is added to the interval's.
    """
    known = evidence(release)
    batch = known.codec.encode(real)
    cells = {name: codes.numpy() for name, codes in known.grid.encode(batch).items()}
    found: dict[str, list[bool]] = {"share": [], "mean": []}
    for name in list(known.codec.schema.learned)[:MOST_COLUMNS]:
        joint = solve(known, (name,)) if (name, "fine") in known.group_of else None
        if joint is None:
            continue
        if name in known.codec.axes:
            values = _numbers(known, batch, name)
            if len(values) > 1:
                line = answer(known, "mean", name, population=not same_rows).lines[0]
                sampling = 0.0 if same_rows else float(values.var()) / len(values)
                found["mean"] += _held(line, float(values.mean()), sampling)
            continue
        code = known.group_of[name, joint.levels[0]][cells[name]]
        shares = np.bincount(code, minlength=joint.shape[0]) / max(len(code), 1)
        lines = answer(known, "share", by=name, population=not same_rows).lines
        for line, share in zip(lines, shares, strict=True):
            sampling = 0.0 if same_rows else float(share * (1 - share)) / max(len(code), 1)
            found["share"] += _held(line, float(share), sampling)
    return IntervalsHeld(
        about="the rows of the release" if same_rows else "the population",
        shares=len(found["share"]),
        shares_held=_part(found["share"]),
        means=len(found["mean"]),
        means_held=_part(found["mean"]),
    )


def _held(line: Line, truth: float, sampling: float) -> list[bool]:
    """Nothing for an answer that cannot be given."""
    if line.estimate is None or line.low is None or line.high is None:
        return []
    if sampling == 0:
        slack = 1e-9 * max(1.0, abs(truth))
        return [line.low - slack <= truth <= line.high + slack]
    return [abs(line.estimate - truth) <= critical(0.95) * math.sqrt(line.error**2 + sampling)]


def _numbers(known: Evidence, batch: Batch, name: str) -> np.ndarray:
    values = known.codec.axes[name].value(batch.numbers[:, known.codec.numeric.index(name)].numpy())
    null = batch.codes.get(null_name(name))
    return values if null is None else values[null.numpy() == 0]


def _part(held: list[bool]) -> float | None:
    return float(np.mean(held)) if held else None
