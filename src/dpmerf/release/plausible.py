"""Plausible: does the noise in a release look like the noise that its plan claims? Tests that need no rows.

Tables of counts overlap: several of them show how many rows each class has, or one pair of columns, and differ by noise
alone. And a count without noise is a multiple of its table's weight. So sums without noise, with too little of it (a
plan whose ε was written over), with the same noise twice or a false number of rows can be told, if there are enough
of them. A test refuses a true release with a probability of ALPHA.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from dpmerf.release.gamma import lower_gamma, upper_gamma

ALPHA = 1e-9
FEW = 12  # counts below which remainders say too little

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True)
class Table:
    """Noisy sums over the cells of some variables; without noise each would be a multiple of `weight`."""

    variables: tuple[str, ...]
    sums: npt.NDArray[np.int64]  # an axis for each variable
    weight: int
    sigma: float  # claimed, of every sum
    picked: bool = False  # because an earlier table of the same variables stood out: that one's noise helped it

    @property
    def counts(self) -> Floats:
        return np.asarray(self.sums / self.weight, dtype=np.float64)

    @property
    def variance(self) -> float:
        return (self.sigma / self.weight) ** 2


@final
@dataclass(frozen=True)
class Finding:
    """A test that was made: how many numbers it rests on, and whether the claim can stand."""

    what: str
    numbers: int
    plausible: bool


def check_noise(tables: Sequence[Table], rows: int | None) -> tuple[Finding, ...]:
    """All tests for which the release has enough numbers. `rows` is None where their number is protected."""
    found = []
    left = remainders(tables)
    if len(left) >= FEW:
        exact = sum(int((t.sums % t.weight == 0).sum()) for t in tables if _spread(t))
        expected = sum(t.sums.size / t.weight for t in tables if _spread(t))
        good = uniform(left) > ALPHA and poisson_tail(exact, expected) > ALPHA
        found.append(Finding("counts carry noise", len(left), good))
        again, chance = repeats(tables)
        fresh = again < chance + 1 or poisson_tail(again, chance) > ALPHA
        found.append(Finding("every count has noise of its own", len(left), fresh))
    square, freedom = disagreement(tables)
    if freedom > 0:
        found.append(Finding("tables disagree by as much noise as is claimed", freedom, likely(square, freedom)))
    if rows is not None and tables:
        found.append(Finding("the number of rows fits the tables", len(tables), _rows_fit(tables, rows)))
    return tuple(found)


def _spread(table: Table) -> bool:
    """Is the noise as wide as the weight, so that remainders are uniform (up to e^-19)?"""
    return table.sigma >= table.weight > 1


def remainders(tables: Sequence[Table]) -> Floats:
    """What is left of every sum when multiples of its weight are taken off, from 0 to 1: uniform under wide noise."""
    parts = [(t.sums % t.weight / t.weight).ravel() for t in tables if _spread(t)]
    return np.concatenate(parts) if parts else np.zeros(0)


def repeats(tables: Sequence[Table]) -> tuple[int, float]:
    """How many sums leave a remainder that another one of the same weight left before, and how many may by chance.

    The i-th of them meets one of i - 1 remainders with a probability of at most (i - 1) / weight, so their number is
    at most Poisson in the tail.
    """
    by_weight: dict[int, list[npt.NDArray[np.int64]]] = {}
    for table in tables:
        if _spread(table):
            by_weight.setdefault(table.weight, []).append((table.sums % table.weight).ravel())
    count, chance = 0, 0.0
    for weight, parts in by_weight.items():
        left = np.concatenate(parts)
        count += len(left) - len(np.unique(left))
        chance += len(left) * (len(left) - 1) / 2 / weight
    return count, chance


def uniform(values: Floats) -> float:
    """p-value of Kolmogorov's test against the uniform distribution, from below.

    >>> uniform(np.linspace(0, 1, 1000)) > 0.9, uniform(np.zeros(50)) < 1e-20
    (True, True)
    """
    ordered, n = np.sort(values), len(values)
    steps = np.arange(1, n + 1)
    distance = float(np.maximum(steps / n - ordered, ordered - (steps - 1) / n).max())
    return min(1.0, 2 * math.exp(-2 * n * distance**2))  # Massart 1990: holds for every n


def poisson_tail(count: int, mean: float) -> float:
    """How likely `count` or more are where `mean` are expected."""
    return 1.0 if count == 0 else lower_gamma(count, mean)


def likely(square: float, freedom: int) -> bool:
    """Can a sum of squares be χ² with so many degrees of freedom? Too small is as suspicious as too large."""
    half = freedom / 2, square / 2
    return min(lower_gamma(*half), upper_gamma(*half)) > ALPHA / 2


def disagreement(tables: Sequence[Table]) -> tuple[float, int]:
    """χ² and its degrees of freedom: by how much tables that show the same thing differ.

    The noise of a table splits into independent parts: its total, what each variable adds (centred along its axis),
    what each pair adds beyond that, and so on, as in an analysis of variance. Each part is compared over all tables
    that have those variables, and no table with one by whose noise it was picked.
    """
    parts: dict[frozenset[str], list[tuple[Floats, float]]] = {}
    for table in tables:
        names = sorted(table.variables)
        counts = table.counts.transpose([table.variables.index(name) for name in names])
        axes = range(len(names))
        most = 1 if table.picked else len(names)
        for kept in itertools.chain.from_iterable(itertools.combinations(axes, k) for k in range(most + 1)):
            away = tuple(i for i in axes if i not in kept)
            margin = counts.sum(axis=away) if away else counts
            cells = math.prod(counts.shape[i] for i in away)
            key = frozenset(names[i] for i in kept)
            parts.setdefault(key, []).append((_centred(np.asarray(margin)), cells * table.variance))
    square, freedom = 0.0, 0
    for found in parts.values():
        precision = sum(1 / v for _, v in found)
        mean = sum(m / v for m, v in found) / precision
        square += sum(float(((m - mean) ** 2).sum()) / v for m, v in found)
        freedom += (len(found) - 1) * math.prod(size - 1 for size in found[0][0].shape)
    return square, freedom


def _centred(margin: Floats) -> Floats:
    for axis in range(margin.ndim):
        margin = margin - margin.mean(axis=axis, keepdims=True)
    return margin


def _rows_fit(tables: Sequence[Table], rows: int) -> bool:
    precision = [1 / (t.sums.size * t.variance) for t in tables]
    estimate = sum(p * float(t.counts.sum()) for p, t in zip(precision, tables, strict=True)) / sum(precision)
    return likely_one((estimate - rows) * math.sqrt(sum(precision)))


def likely_one(z: float) -> bool:
    """Can one standard normal number be as large as this?"""
    return math.erfc(abs(z) / math.sqrt(2)) > ALPHA
