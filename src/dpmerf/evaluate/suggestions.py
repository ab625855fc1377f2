"""Suggestions: relations that a release seems to show, for a person to declare or not. Post-processing: no row is read.

A relation is a public fact that someone vouches for; a table with noise can only raise the question.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from dpmerf.encoding.binning import Binning
from dpmerf.plan.noisy_tables import Noisy, noisy_tables
from dpmerf.release import Release
from dpmerf.schema import Category, Date, Flag, Numeric, Timestamp

STANDS_OUT = 6.0  # times the noise: what independence expects where nothing is found
NOTHING = 2.0  # times the noise: below it a count shows no row
FIXES = 0.97  # of the rows of a value hold one value of the other column
TOGETHER, BESIDE = 0.75, 0.1  # of the rows lie in the same stretch of both columns, or so much of it beside
MOST = 12


@final
@dataclass(frozen=True)
class Suggestion:
    """What the release shows, and what could be declared."""

    columns: tuple[str, str]
    seen: str
    declare: str


def suggestions(release: Release) -> list[Suggestion]:
    """The strongest hints first, at most one per pair of columns."""
    if release.binning is None:
        return []
    noisy = noisy_tables(release)
    if noisy.pairs is None:
        return []
    declared = [set(box.names) for box in release.plan.schema.program.boxes]
    found = [s for pair in _pairs(noisy, declared) if (s := _hint(release, noisy, release.binning, *pair)) is not None]
    return [s for _, s in sorted(found, key=lambda hint: -hint[0])][:MOST]


def _pairs(noisy: Noisy, declared: list[set[str]]) -> Iterator[tuple[int, int]]:
    """Measured pairs of columns that no rule speaks of yet."""
    names = noisy.layout.names
    for i, j in itertools.combinations(range(len(names)), 2):
        if bool(noisy.measured[i, j]) and not any({names[i], names[j]} <= known for known in declared):
            yield i, j


def _hint(release: Release, noisy: Noisy, binning: Binning, i: int, j: int) -> tuple[float, Suggestion] | None:
    assert noisy.pairs is not None
    names = noisy.layout.names[i], noisy.layout.names[j]
    columns = [release.codec.schema.columns[n] for n in names]
    table = noisy.pairs[noisy.layout.span(i), noisy.layout.span(j)].double().numpy()
    sigma = math.sqrt(float(noisy.pair_variance[i, j]))
    if all(isinstance(c, Numeric) for c in columns):
        moments = all(isinstance(c, Date | Timestamp) for c in columns)
        if not moments and type(columns[0]) is not type(columns[1]):
            return None
        return _numbers(binning, names, table, sigma, moments)
    if all(isinstance(c, Category | Flag) for c in columns):
        whole = all(table.shape[k] == len(binning.bin_of[n]) for k, n in enumerate(names))
        return _categories(release, names, table, sigma) if whole else None
    return None


def _numbers(
    binning: Binning, names: tuple[str, str], table: np.ndarray, sigma: float, moments: bool
) -> tuple[float, Suggestion] | None:
    edges = [_edges(binning, n) for n in names]
    a, b = edges
    cells = table[: len(a), : len(b)]
    total = max(float(cells.sum()), 1.0)
    overlap = np.minimum(a[:, None, 1], b[None, :, 1]) - np.maximum(a[:, None, 0], b[None, :, 0])
    width = np.maximum(np.diff(a)[:, 0][:, None], np.diff(b)[:, 0][None, :])
    near = overlap > -BESIDE * width
    share = float(cells[near].sum()) / total
    expected = np.outer(cells.sum(1), cells.sum(0)) / total
    by_chance = float(expected[near].sum()) / total
    unit = "d" if moments else ""
    if share >= TOGETHER and share - by_chance > STANDS_OUT * sigma * math.sqrt(near.sum()) / total and by_chance < 0.5:
        seen = f"`{names[0]}` and `{names[1]}` move together within their bins"
        declare = f'learn = "{_tick(names[1])} - {_tick(names[0])}" with min = "…{unit}" and max = "…{unit}"'
        return share - by_chance, Suggestion(names, seen, declare)
    sides = ((0, 1, a[:, None, 0] >= b[None, :, 1]), (1, 0, b[None, :, 0] >= a[:, None, 1]))
    rows = [float(cells[over].sum()) for _, _, over in sides]
    for (low, high, over), empty, other in zip(sides, rows, reversed(rows), strict=True):
        wanted, noise = float(expected[over].sum()), sigma * math.sqrt(max(over.sum(), 1))
        # values near each other leave few rows on either side: which of them has none must be seen as well
        ordered = other - empty > 2 * NOTHING * noise
        if ordered and wanted > STANDS_OUT * noise and empty < NOTHING * noise and wanted > 0.02 * total:
            seen = f"no row seems to have `{names[low]}` above `{names[high]}`, where chance would put {wanted:,.0f}"
            return wanted / total, Suggestion(names, seen, f'rule = "{_tick(names[low])} <= {_tick(names[high])}"')
    return None


def _categories(
    release: Release, names: tuple[str, str], table: np.ndarray, sigma: float
) -> tuple[float, Suggestion] | None:
    total = max(float(table.sum()), 1.0)
    for key, value, cells in ((0, 1, table), (1, 0, table.T)):
        rows = cells.sum(1)
        seen = rows > STANDS_OUT * sigma * math.sqrt(cells.shape[1])
        largest = cells.max(1)
        several = len(set(cells.argmax(1)[seen].tolist())) > 1
        if several and seen.sum() >= 2 and (largest[seen].sum() / max(rows[seen].sum(), 1.0)) >= FIXES:
            words = f"`{names[key]}` seems to fix `{names[value]}`"
            declare = f'lookup = "{names[value]}", by = "{names[key]}", with a table'
            return 1.0, Suggestion(names, words, declare)
    expected = np.outer(table.sum(1), table.sum(0)) / total
    empty = (table < NOTHING * sigma) & (expected > STANDS_OUT * sigma)
    if not empty.any():
        return None
    i, j = np.unravel_index(np.argmax(np.where(empty, expected, 0)), table.shape)
    cell = [f"{_tick(n)} = {_level(release, n, int(k))}" for n, k in zip(names, (i, j), strict=True)]
    words = f"no row seems to have {cell[0]} and {cell[1]}, where chance would put {expected[i, j]:,.0f}"
    return float(expected[i, j]) / total, Suggestion(names, words, f"rule = 'never {cell[0]} and {cell[1]}'")


def _edges(binning: Binning, name: str) -> np.ndarray:
    """(bins, 2) the first and last value of each bin that holds numbers, in days or the column's own unit."""
    fine, bin_of = binning.grid.numeric[name], binning.bin_of[name].numpy()
    low = fine.axis.low + fine.edges[:-1] * fine.step
    high = fine.axis.low + (fine.edges[1:] - 1) * fine.step
    per = 86_400.0 if isinstance(binning.grid.codec.schema.columns[name], Timestamp) else 1.0
    used = bin_of[: fine.size]
    return np.array([[low[used == b].min(), high[used == b].max()] for b in range(int(used.max()) + 1)]) / per


def _level(release: Release, name: str, code: int) -> str:
    column = release.codec.schema.columns[name]
    if isinstance(column, Category):
        return "null" if code >= len(column.levels) else f'"{column.levels[code]}"'
    return ("false", "true", "null")[code]


def _tick(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"
