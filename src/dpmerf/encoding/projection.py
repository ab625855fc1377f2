"""Projection: a row moved out of the boxes that rules forbid, by a fixed rule of that row alone.

Columns are settled in the program's order. A value that earlier columns forbid moves to an allowed one: of a category,
the next allowed value in the order of the list, from the last on to the first; of a number, the same place within what
is allowed as it had within the whole range; null to the middle, or a value to null where nothing else is allowed. The
boxes are closed, so there always is an allowed value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpmerf.schema.boxes import Box, Subset, domain
from dpmerf.schema.program import Program
from dpmerf.schema.quantities import Fact

Values = dict[str, np.ndarray]


def settled(measured: Values, program: Program) -> Values:
    """Rows that keep every box; rows that keep them already come back as they are."""
    if not program.boxes:
        return measured
    found = dict(measured)
    place = {name: i for i, name in enumerate(program.order)}
    inside: dict[tuple[str, Subset], np.ndarray] = {}
    for name in program.order:
        bucket = [b for b in program.boxes if max(b.names, key=lambda n: place[n]) == name]
        fact = program.measured_facts[name]
        wrong = np.zeros(len(found[name]), dtype=bool)
        active = []
        for box in bucket:
            hit = np.ones(len(wrong), dtype=bool)
            for other, subset in box.sets:
                if other == name:
                    continue
                if (other, subset) not in inside:
                    inside[other, subset] = member(subset, found[other], program.measured_facts[other])
                hit &= inside[other, subset]
            active.append(hit)
            wrong |= hit & member(box.of(name), found[name], fact)
        if wrong.any():
            found[name] = found[name].copy()
            for rows, left in _groups(bucket, active, np.flatnonzero(wrong), name, domain(fact)):
                found[name][rows] = moved(left, found[name][rows], fact)
    return found


def _groups(
    bucket: list[Box], active: list[np.ndarray], rows: np.ndarray, name: str, whole: Subset
) -> Iterator[tuple[np.ndarray, Subset]]:
    """Rows that the same boxes bind, and what these leave them."""
    pattern = np.stack([hit[rows] for hit in active], axis=1)
    distinct, which = np.unique(pattern, axis=0, return_inverse=True)
    for k, hits in enumerate(distinct):
        left = whole
        for box, hit in zip(bucket, hits, strict=True):
            left = left.without(box.of(name)) if hit else left
        yield rows[which.reshape(-1) == k], left


def member(subset: Subset, values: np.ndarray, fact: Fact) -> np.ndarray:
    """(n,) which values are in a subset."""
    if fact.levels:
        table = np.zeros(fact.size + 1, dtype=bool)
        for (start, _), (stop, _) in subset.spans:
            table[int(start) : int(stop)] = True
        table[fact.size] = subset.null
        return table[values]
    absent = np.isnan(values)
    place = values if fact.step is None else np.rint((values * fact.scale - fact.low) / fact.step)
    found = absent & subset.null
    for (start, after), (stop, until) in subset.spans:
        found |= (place > start if after else place >= start) & (place <= stop if until else place < stop)
    return found


def moved(left: Subset, values: np.ndarray, fact: Fact) -> np.ndarray:
    """(n,) values moved into what is left."""
    if not left.spans:
        return np.full(len(values), fact.size) if fact.levels else np.full(len(values), np.nan)
    if fact.levels:
        allowed = np.concatenate([np.arange(int(a), int(b)) for (a, _), (b, _) in left.spans])
        place = np.searchsorted(allowed, np.where(values >= fact.size, 0, values))
        return allowed[place % len(allowed)]
    share = np.where(np.isnan(values), 0.5, (values * fact.scale - fact.low) / (fact.high - fact.low))
    share = np.clip(share, 0.0, 1.0)
    if fact.step is not None:
        sizes = np.array([b - a for (a, _), (b, _) in left.spans])
        rank = np.minimum(np.floor(share * sizes.sum()), sizes.sum() - 1)
        ends = sizes.cumsum()
        span = np.searchsorted(ends, rank, side="right")
        starts = np.array([a for (a, _), _ in left.spans])
        level = starts[span] + rank - (ends - sizes)[span]
        found = fact.low + level * fact.step
        found = found if fact.decimals is None else np.clip(np.round(found, fact.decimals), fact.low, fact.high)
        return found / fact.scale
    lows = np.array([np.nextafter(a, np.inf) if after else a for (a, after), _ in left.spans])
    highs = np.array([b if until else np.nextafter(b, -np.inf) for _, (b, until) in left.spans])
    widths = np.maximum(highs - lows, 0.0)
    total = widths.sum()
    rank = share * total
    ends = widths.cumsum()
    span = np.minimum(np.searchsorted(ends, rank, side="right"), len(lows) - 1)
    return np.clip(lows[span] + rank - (ends - widths)[span], lows[span], highs[span])
