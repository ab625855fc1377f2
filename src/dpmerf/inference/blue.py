"""Blue: the best linear unbiased estimate of a table of counts, from every released table that says something about it.

Let X be the exact counts of the columns S asked for. A released table U, summed over its columns outside S, is the
margin of X on U ∩ S plus noise of exactly known variance; the tables' noises are independent. Generalised least squares
on these margins gives X̂ and its exact covariance. Nothing is lost by summing first where columns are cut alike in all
tables: what a table says beyond that margin has noise orthogonal to it and concerns other columns (the residual spaces
of ResidualPlanner and GReM). Where the number of rows is public, X̂ is conditioned on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from dpmerf.errors import AnswerError
from dpmerf.inference.evidence import Counted, Evidence, Level

MOST_CELLS = 4_000  # unknowns of one least-squares problem


@final
@dataclass(frozen=True)
class Joint:
    """Estimated counts of the cells of some columns together (row-major), with the covariance of their noise."""

    columns: tuple[str, ...]
    levels: tuple[Level, ...]
    shape: tuple[int, ...]
    counts: np.ndarray  # (N,)
    covariance: np.ndarray  # (N, N)
    rows: float  # all rows: exact, or estimated
    tables: tuple[str, ...]  # that hold all of these columns
    margins: int  # further tables that sharpen the estimate


@final
@dataclass(frozen=True)
class _Margin:
    """What a table says about the margin of X on some of its axes, at its own levels there."""

    axes: tuple[int, ...]
    levels: tuple[Level, ...]
    values: np.ndarray
    variance: np.ndarray  # of each cell


def holds(evidence: Evidence, columns: tuple[str, ...]) -> bool:
    """Is there a table with all of these columns?"""
    return any(set(columns) <= set(t.columns) for t in evidence.tables)


def solve(evidence: Evidence, columns: tuple[str, ...]) -> Joint | None:
    """None if no table holds all of the columns."""
    if columns not in evidence.solved:
        evidence.solved[columns] = _solve(evidence, columns)
    found = evidence.solved[columns]
    assert found is None or isinstance(found, Joint)
    return found


def _solve(evidence: Evidence, columns: tuple[str, ...]) -> Joint | None:
    covering = [t for t in evidence.tables if set(columns) <= set(t.columns)]
    if not covering:
        return None
    levels = max((_levels_in(t, columns) for t in covering), key=lambda found: _cells(evidence, columns, found))
    shape = tuple(evidence.size(c, level) for c, level in zip(columns, levels, strict=True))
    if math.prod(shape) > MOST_CELLS:
        raise AnswerError(
            f"{' × '.join(columns)} has {math.prod(shape):,} cells, more than can be weighed together "
            f"({MOST_CELLS:,}): ask for fewer columns"
        )
    near = [t for t in evidence.tables if not set(columns).isdisjoint(t.columns)]
    margins = [m for t in near if (m := _margin(evidence, t, columns, levels)) is not None]
    if evidence.rows is None:
        margins.append(_total(evidence, columns))
    precision, weighted = _normal_equations(evidence, columns, levels, shape, margins)
    covariance = np.linalg.inv(precision)
    counts = covariance @ weighted
    rows = float(evidence.rows) if evidence.rows is not None else float(counts.sum())
    if evidence.rows is not None:
        along = covariance.sum(1)
        counts = counts + along * (rows - counts.sum()) / along.sum()
        covariance = covariance - np.outer(along, along) / along.sum()
    names = tuple(t.name for t in covering)
    return Joint(columns, levels, shape, counts, covariance, rows, names, len(near) - len(covering))


def _levels_in(table: Counted, columns: tuple[str, ...]) -> tuple[Level, ...]:
    return tuple(table.levels[table.columns.index(c)] for c in columns)


def _cells(evidence: Evidence, columns: tuple[str, ...], levels: tuple[Level, ...]) -> int:
    return math.prod(evidence.size(c, level) for c, level in zip(columns, levels, strict=True))


def coarser(evidence: Evidence, column: str, fine: Level, coarse: Level) -> np.ndarray | None:
    """(cells of `fine`,) the cell of `coarse` that holds each; None if one lies in several."""
    of_fine, of_coarse = evidence.group_of[column, fine], evidence.group_of[column, coarse]
    found = np.zeros(evidence.size(column, fine), np.int64)
    found[of_fine] = of_coarse
    return found if bool((found[of_fine] == of_coarse).all()) else None


def _margin(evidence: Evidence, table: Counted, columns: tuple[str, ...], levels: tuple[Level, ...]) -> _Margin | None:
    """The table summed over the other columns, and over cells that X does not tell apart."""
    inside = [c for c in columns if c in table.columns]
    axes = tuple(table.columns.index(c) for c in inside)
    others = tuple(i for i in range(len(table.columns)) if i not in axes)
    summed = math.prod(table.values.shape[i] for i in others)
    values = table.values.sum(axis=others)
    values = values.transpose(np.argsort(np.argsort(axes)))  # in the order of `columns`
    variance = np.full(values.shape, table.variance * summed)
    kept = []
    for place, (column, axis) in enumerate(zip(inside, axes, strict=True)):
        own, wanted = table.levels[axis], levels[columns.index(column)]
        if own == wanted:
            kept.append(own)
            continue
        into = coarser(evidence, column, own, wanted)
        if into is not None:
            values, variance = (_grouped(v, place, into, evidence.size(column, wanted)) for v in (values, variance))
            own = wanted
        elif coarser(evidence, column, wanted, own) is None:
            return None
        kept.append(own)
    return _Margin(tuple(columns.index(c) for c in inside), tuple(kept), values, variance)


def _total(evidence: Evidence, columns: tuple[str, ...]) -> _Margin:
    """What the other tables say about the number of rows."""
    weighted, precision = 0.0, 1e-30
    for table, (total, variance) in zip(evidence.tables, evidence.totals, strict=True):
        if set(columns).isdisjoint(table.columns):
            weighted, precision = weighted + total / variance, precision + 1 / variance
    return _Margin((), (), np.array(weighted / precision), np.array(1 / precision))


def _grouped(values: np.ndarray, axis: int, into: np.ndarray, size: int) -> np.ndarray:
    moved = np.moveaxis(values, axis, 0)
    out = np.zeros((size, *moved.shape[1:]))
    np.add.at(out, into, moved)
    return np.moveaxis(out, 0, axis)


def _normal_equations(
    evidence: Evidence,
    columns: tuple[str, ...],
    levels: tuple[Level, ...],
    shape: tuple[int, ...],
    margins: list[_Margin],
) -> tuple[np.ndarray, np.ndarray]:
    """(N, N) precision of X̂ and (N,) precision × X̂. Margins of one kind are first weighed into one."""
    merged: dict[tuple[tuple[int, ...], tuple[Level, ...]], tuple[np.ndarray, np.ndarray]] = {}
    for m in margins:
        before = merged.get((m.axes, m.levels), (0.0, 0.0))
        merged[m.axes, m.levels] = (before[0] + 1 / m.variance, before[1] + m.values / m.variance)
    size = math.prod(shape)
    precision, weighted = np.zeros((size, size)), np.zeros(size)
    places = np.indices(shape).reshape(len(shape), size)
    for (axes, cut), (weight, value) in merged.items():
        code = np.zeros(size, np.int64)
        for axis, level in zip(axes, cut, strict=True):
            into = coarser(evidence, columns[axis], levels[axis], level)
            assert into is not None
            code = code * (int(into.max()) + 1) + into[places[axis]]
        w, v = np.ravel(weight)[code], np.ravel(value)[code]
        weighted += v
        if len(axes) == len(shape) and cut == levels:
            precision[np.arange(size), np.arange(size)] += w
        else:
            precision += np.where(code[:, None] == code[None], w[:, None], 0.0)
    return precision, weighted
