"""Strength: how strongly two columns go together, from their released tables alone, with an error bar.

For counts X̂ with covariance C and D = X̂ − what independence expects, Q = Σ D² / E is n times the squared association;
noise alone adds tr(WC) to it (W = 1 / E), which is taken away. Its variance is 2 tr((WC)²) + 4 DᵀWCWD. The association
is √(Q / (n (k − 1))), Cramér's V, with k the smaller number of cells. Margins are taken for exact: they are known far
better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np

from dpmerf.inference.answers import NORMAL
from dpmerf.inference.blue import solve
from dpmerf.inference.evidence import Evidence

MOST_PAIRS = 200  # that are looked at
MOST_CELLS = 1_000  # of a pair


@final
@dataclass(frozen=True)
class Strength:
    """Cramér's V of a measured pair; `drowned`: its table holds more noise than signal."""

    columns: tuple[str, str]
    estimate: float
    low: float
    high: float
    drowned: bool


def strengths(known: Evidence) -> list[Strength]:
    """Of measured pairs, the strongest first."""
    names = [n for n in known.codec.schema.learned if (n, "fine") in known.group_of]
    held = {pair for t in known.tables for pair in combinations(sorted(t.columns, key=names.index), 2)}
    pairs = [pair for pair in combinations(names, 2) if pair in held][:MOST_PAIRS]
    found = [s for pair in pairs if (s := strength(known, pair)) is not None]
    return sorted(found, key=lambda s: -s.estimate)


def strength(known: Evidence, pair: tuple[str, str]) -> Strength | None:
    """Of one pair; None if it was not measured, is too large to weigh or has a single row or column."""
    covering = [t for t in known.tables if set(pair) <= set(t.columns)]
    if not covering or min(t.values.size for t in covering) > MOST_CELLS:
        return None
    joint = solve(known, pair)
    if joint is None or min(joint.shape) < 2 or math.prod(joint.shape) > MOST_CELLS:
        return None
    table = joint.counts.reshape(joint.shape)
    first, second = (np.maximum(table.sum(axis), 0.0) for axis in (1, 0))
    expected = np.outer(first, second).ravel() / max(joint.rows, 1.0)
    weight = 1 / np.maximum(expected, np.sqrt(np.maximum(joint.covariance.diagonal(), 1e-9)))
    apart = joint.counts - expected
    noise = weight[:, None] * joint.covariance
    total = float(apart**2 @ weight)
    of_noise = float(np.trace(noise))
    signal = total - of_noise
    tilted = weight * apart
    error = math.sqrt(max(2 * float((noise * noise.T).sum()) + 4 * float(tilted @ joint.covariance @ tilted), 0.0))
    scale = joint.rows * (min(joint.shape) - 1)
    z = NORMAL[0.95]
    ends = (signal, signal - z * error, signal + z * error)
    value, low, high = (math.sqrt(min(max(q, 0.0) / scale, 1.0)) for q in ends)
    return Strength(pair, value, low, high, signal < of_noise)
