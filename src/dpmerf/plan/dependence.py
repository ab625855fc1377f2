"""Dependence: which pairs of columns depend most on each other, by the noisy tables. No row is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmerf.plan.queries.tables import Tables, bins_of

if TYPE_CHECKING:
    from dpmerf.plan.known import Known


def most_dependent(known: Known, count: int) -> list[tuple[str, str]]:
    """The pairs whose tables lie farthest, beyond their noise, from independence within the classes."""
    tables, binning = known.plan.query(Tables), bins_of(known)
    names, label = tables.columns(known.codec), tables.label(known.codec)
    measured = {m.columns: m for m in known.answers(known.plan.stage(Tables))}
    classes = binning.variables[label].size if label else 1
    single = {}
    for name in names:  # (C, bins) each
        counts = np.zeros((classes, binning.variables[name].size))
        if found := measured.get((label, name) if label else (name,)):
            np.add.at(counts.T, binning.bin_of_part(name), found.numbers.reshape(classes, -1).T)
        single[name] = np.maximum(counts, 1.0)
    rows = np.mean([counts.sum(1) for counts in single.values()], axis=0)  # (C,)
    place = {name: i for i, name in enumerate(names)}
    excess = {}
    for i, j in sorted(sorted((place[a], place[b])) for a, b in tables.pairs):
        a, b = names[i], names[j]
        m = measured.get((a, b)) or measured.get((b, a))
        if m is None:
            return []
        gap = m.along((a, b)).numbers - (single[a] / rows[:, None]).T @ single[b]
        gap = gap - gap.mean(axis=1, keepdims=True)  # what margins say is known better from other tables
        gap = gap - gap.mean(axis=0, keepdims=True)
        excess[a, b] = float((gap**2).sum()) - m.sigma**2 * (gap.shape[0] - 1) * (gap.shape[1] - 1)
    return sorted(excess, key=lambda pair: -excess[pair])[:count]
