"""Linear: weights on the cells of a table, one row of them per group asked for, and what is not known inside cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, final

import numpy as np

from dpmerf.inference.blue import Joint
from dpmerf.inference.evidence import Evidence
from dpmerf.inference.questions import Condition, Question
from dpmerf.inference.table_cells import cell_names, numbers, selected

MISSED = 0.5  # of the correction for slopes inside cells: what it may be wrong by, as a standard error
UNKNOWN = 0.5  # relative difference between categories that share a cell, as a standard error
LEAST_UNEVEN = 0.1  # the same between the two sides of a cut through a cell of numbers, at least


@final
@dataclass(frozen=True)
class Axes:
    """A question laid over a joint table: per column, which part of each cell is asked for, and which are groups."""

    evidence: Evidence
    joint: Joint
    grouped: tuple[str, ...]  # columns whose cells are groups, in the order of the answer
    part: dict[str, np.ndarray]  # column -> (k,) what `where` leaves of its cells
    doubt: dict[str, np.ndarray]  # column -> (k,) variance of that part

    @staticmethod
    def of(evidence: Evidence, joint: Joint, asked: Question, grouped: tuple[str, ...]) -> Axes:
        part = {c: np.ones(k) for c, k in zip(joint.columns, joint.shape, strict=True)}
        doubt = {c: np.zeros(k) for c, k in zip(joint.columns, joint.shape, strict=True)}
        level = dict(zip(joint.columns, joint.levels, strict=True))
        for condition in asked.where:
            name = condition.column
            held, unsure = selected(evidence, name, level[name], condition)
            part[name], doubt[name] = part[name] * held, np.maximum(doubt[name], unsure)
        return Axes(evidence, joint, grouped, part, doubt)

    def by(self, grouped: tuple[str, ...]) -> Axes:
        """The same in other groups."""
        return Axes(self.evidence, self.joint, grouped, self.part, self.doubt)

    def level(self, column: str) -> str:
        return self.joint.levels[self.joint.columns.index(column)]

    def groups(self) -> list[dict[str, Any]]:
        """One per row of `weights`."""
        names = [cell_names(self.evidence, c, self.level(c)) for c in self.grouped]
        return [dict(zip(self.grouped, found, strict=True)) for found in product(*names)]

    def weights(self, inner: dict[str, np.ndarray] | None = None) -> np.ndarray:
        """(groups, N): each row picks the cells of its group; `inner` (k,) weighs the cells of a column beside it."""
        rows = [self._axis(c, (inner or {}).get(c)) for c in self.joint.columns]
        order = [self.joint.columns.index(c) for c in self.grouped]
        sizes = [len(r) for r in rows]
        found = reduce(np.kron, rows).reshape(*sizes, -1)
        others = [i for i in range(len(sizes)) if i not in order]
        return found.transpose(*order, *others, len(sizes)).reshape(-1, found.shape[-1])

    def along(self, column: str, part: np.ndarray | None = None) -> np.ndarray:
        """(groups, k) each group's estimated counts in the cells of one column that is not a group."""
        rows = [np.eye(k) if c == column else self._axis(c, None) for c, k in self._sizes()]
        table = self.joint.counts.reshape(self.joint.shape)
        for axis, r in enumerate(rows):
            table = np.moveaxis(np.tensordot(r, table, axes=(1, axis)), 0, axis)
        order = [self.joint.columns.index(c) for c in self.grouped]
        at = self.joint.columns.index(column)
        others = [i for i in range(table.ndim) if i not in order and i != at]
        found = table.transpose(*order, *others, at).reshape(-1, table.shape[at])
        return found * (self.part[column] if part is None else part)

    def _sizes(self) -> list[tuple[str, int]]:
        return list(zip(self.joint.columns, self.joint.shape, strict=True))

    def _axis(self, column: str, inner: np.ndarray | None) -> np.ndarray:
        """(groups of this column, k)."""
        if column in self.grouped:
            return np.diag(self.part[column])
        return (self.part[column] if inner is None else inner)[None]

    def cut_error(self) -> np.ndarray:
        """(groups,) variance from conditions that cut through cells: how a cell's rows divide is known by rule only."""
        found = np.zeros(len(self.groups()) if self.grouped else 1)
        for column, part in self.part.items():
            cut = part * (1 - part)
            if column not in self.grouped and bool((cut > 0).any()):
                counts = np.maximum(self.along(column, np.ones(len(part))), 0)
                lean = cut * self._uneven(column, counts)
                found += (counts**2 * (lean**2 + self.doubt[column])).sum(1) + counts @ cut
        return found

    def _uneven(self, column: str, counts: np.ndarray) -> np.ndarray:
        """(groups, k) by how much, relatively, a group may differ between the two sides of a cut through a cell.

        For numbers, by how its density beside that of all rows changes to the neighbouring cells; for categories that
        share a cell, nothing is known.
        """
        if self.evidence.fine(column) is None:
            return np.full(counts.shape, UNKNOWN)
        base = numbers(self.evidence, column, self.level(column)).base
        ratio = counts / base
        near = np.pad(ratio, ((0, 0), (1, 1)), mode="edge")
        change = np.abs(near[:, 2:] - near[:, :-2]) / np.maximum(2 * ratio, 1e-12)
        return np.clip(LEAST_UNEVEN + change, 0, 1)


@final
@dataclass(frozen=True)
class Summed:
    """Σ of f(number) over groups, as weights, with what is not known inside cells."""

    weights: np.ndarray  # (G, N)
    present: np.ndarray  # (G, N) of the rows that have a number
    inside: np.ndarray  # (G, G) covariance of the error of the sums
    placed: np.ndarray  # (G,) variance of the sums by where inside its cell each row lies


def sum_of_numbers(axes: Axes, column: str) -> Summed:
    """Σ number."""
    n = numbers(axes.evidence, column, axes.level(column))
    part = axes.part[column] * n.present
    tilt = axes.weights({column: n.tilt(part)})
    weights = axes.weights({column: part * n.value}) + tilt
    counts = np.maximum(axes.along(column, part), 0)
    lean = MISSED * (tilt @ axes.joint.counts)
    inside = (counts * n.doubt) @ counts.T + np.diag(lean**2)
    return Summed(weights, axes.weights({column: part}), inside, counts @ n.spread)


def sum_of_squares(axes: Axes, column: str, centres: np.ndarray) -> Summed:
    """Σ (number − centre)², each group about its own centre."""
    n = numbers(axes.evidence, column, axes.level(column))
    part = axes.part[column] * n.present
    counts = np.maximum(axes.along(column, part), 0)
    present = axes.weights({column: part})
    rows, inside, placed = [], [], []
    for g, centre in enumerate(centres):
        away = n.value - centre
        rows.append(axes.weights({column: part * (away**2 + n.spread)})[g])
        inside.append(float((counts[g] ** 2) @ (4 * away**2 * n.doubt)))
        placed.append(float(counts[g] @ (4 * away**2 * n.spread + 0.8 * n.spread**2)))
    return Summed(np.array(rows), present, np.diag(inside), np.array(placed))


def value_part(axes: Axes, column: str, values: tuple[Any, ...]) -> np.ndarray:
    """(k,) which part of each cell has one of the values, beside what `where` leaves."""
    wanted, _ = selected(axes.evidence, column, axes.level(column), Condition(column, values))
    return axes.part[column] * wanted
