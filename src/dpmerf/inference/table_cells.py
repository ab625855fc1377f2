"""Cells: what is known about the values inside the cells of a table. Where a cell holds several values, they are not.

A cell's numbers are placed by the column's own fine histogram (or evenly inside a fine cell), tilted by how the counts
of the group asked for change from cell to cell. What that may miss is carried along as an error of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpmerf.errors import AnswerError
from dpmerf.inference.blue import Joint, solve
from dpmerf.inference.evidence import Evidence, Level
from dpmerf.inference.questions import Condition, code_of, number_of
from dpmerf.schema import Flag, Numeric
from dpmerf.schema.expressions import span_text

UNEVEN = 4.0  # two cells whose widths differ by more than this factor do not tell a slope
SOLID = 5.0  # standard errors above zero at which a count is a base for a slope


@final
@dataclass(frozen=True)
class Numbers:
    """The numbers of a column, cell by cell of some level; null has a weight of zero."""

    present: np.ndarray  # (k,) 1, or 0 for null
    value: np.ndarray  # (k,) mean of a cell
    spread: np.ndarray  # (k,) variance inside it
    doubt: np.ndarray  # (k,) variance of the error of `value`
    base: np.ndarray  # (k,) mass against which a group's density is compared: rows, or levels
    solid: np.ndarray  # (k,) whether it may tell a slope

    def tilt(self, part: np.ndarray) -> np.ndarray:
        """(k,) weights of counts X whose sum corrects Σ part · X · value for a density that changes across cells.

        In cell b the group's mean departs from `value` by (d log r / dv) · spread, where r = X ÷ base is how dense the
        group is: Σ X · departure = Σ base · spread · dr/dv, which is linear in X. dr/dv is taken from the neighbours.
        """
        weights = np.zeros(len(self.value))
        order = np.flatnonzero(self.present > 0).tolist()
        for i, b in enumerate(order):
            if self.spread[b] <= 0 or not self.solid[b] or part[b] <= 0:
                continue
            near = [c for c in (order[max(i - 1, 0)], order[min(i + 1, len(order) - 1)]) if self._alike(b, c)]
            if len(near) < 2 or near[0] == near[1]:
                continue
            low, high = near
            run = self.value[high] - self.value[low]
            if run <= 0:
                continue
            lean = part[b] * self.base[b] * self.spread[b] / run
            weights[high] += lean / self.base[high]
            weights[low] -= lean / self.base[low]
        return weights

    def _alike(self, b: int, c: int) -> bool:
        if b == c:
            return True
        wide = self.spread[c] > 0 and 1 / UNEVEN**2 <= self.spread[c] / self.spread[b] <= UNEVEN**2
        return bool(wide and self.solid[c])


def fine_numbers(evidence: Evidence, column: str) -> Numbers:
    """Of fine cells: evenly inside each."""
    low, high, widths = edges(evidence, column)
    fine = evidence.fine(column)
    assert fine is not None
    size = evidence.size(column, "fine")
    present = np.r_[np.ones(fine.size), np.zeros(size - fine.size)]
    pad = size - fine.size
    return Numbers(
        present=present,
        value=np.r_[(low + high) / 2, np.zeros(pad)],
        spread=np.r_[(widths.astype(float) ** 2 - 1) / 12 * fine.step**2, np.zeros(pad)],
        doubt=np.zeros(size),
        base=np.r_[widths.astype(float), np.ones(pad)],
        solid=present > 0,
    )


def edges(evidence: Evidence, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(k,) lowest and highest value of each fine cell of numbers, and how many levels it holds."""
    fine = evidence.fine(column)
    assert fine is not None
    low = fine.axis.low + fine.edges[:-1] * fine.step
    high = fine.axis.low + (fine.edges[1:] - 1) * fine.step
    return low, high, fine.widths


def numbers(evidence: Evidence, column: str, level: Level) -> Numbers:
    """Of the cells of a level: means and variances inside them by the column's own counts."""
    fine = fine_numbers(evidence, column)
    if level == "fine":
        return fine
    own, group_of = own_counts(evidence, column), evidence.group_of[column, level]
    size = evidence.size(column, level)
    if own is None:  # no histogram: evenly
        counts, variance = fine.base, np.zeros(len(fine.base))
    else:
        counts, variance = own.counts, np.diag(own.covariance)
    out = {name: np.zeros(size) for name in ("present", "value", "spread", "doubt", "base")}
    for b in range(size):
        members = np.flatnonzero(group_of == b)
        out["present"][b] = fine.present[members[0]]
        mass, noise = counts[members].sum(), variance[members]
        prior, prior_variance = fine.value[members].mean(), fine.value[members].var()
        value, doubt = prior, prior_variance
        if mass > SOLID * np.sqrt(noise.sum()) and prior_variance > 0:
            seen = float(counts[members] @ fine.value[members]) / mass
            error = float(noise @ (fine.value[members] - prior) ** 2) / mass**2
            value = (seen * prior_variance + prior * error) / (prior_variance + error)
            doubt = prior_variance * error / (prior_variance + error)
        weights = np.maximum(counts[members], 0) + 1e-9
        inside = fine.spread[members] + (fine.value[members] - value) ** 2
        out["value"][b] = np.clip(value, fine.value[members].min(), fine.value[members].max())
        out["spread"][b] = float(weights @ inside) / weights.sum()
        out["doubt"][b] = doubt
        out["base"][b] = max(mass, 1.0)
    solid = (out["base"] > SOLID * np.sqrt(np.bincount(group_of, variance, size))) & (out["present"] > 0)
    return Numbers(**out, solid=solid)


def own_counts(evidence: Evidence, column: str) -> Joint | None:
    """The column alone, if fine cells of it were measured."""
    own = solve(evidence, (column,))
    return own if own is not None and own.levels == ("fine",) else None


def selected(evidence: Evidence, column: str, level: Level, condition: Condition) -> tuple[np.ndarray, np.ndarray]:
    """(k,) which part of each cell meets the condition: 0, 1, or in between where it cuts through a cell.

    And (k,) the variance of that part by the noise of the column's own counts, which say how a cell divides.
    """
    fine = _selected_fine(evidence, column, condition)
    if level == "fine":
        return fine, np.zeros(len(fine))
    own, group_of = own_counts(evidence, column), evidence.group_of[column, level]
    size = evidence.size(column, level)

    def summed(of_fine: np.ndarray) -> np.ndarray:
        return np.bincount(group_of, of_fine, size)

    mass = (np.maximum(own.counts, 0) if own is not None else np.ones(len(fine))) + 1e-9
    noise = np.diag(own.covariance) if own is not None else np.zeros(len(fine))
    part = summed(mass * fine) / summed(mass)
    part = np.where(summed(fine >= 1) == summed(fine >= 0), 1.0, np.where(summed(fine > 0) == 0, 0.0, part))
    doubt = summed(noise * (fine - part[group_of]) ** 2) / summed(mass) ** 2
    return part, np.where((part > 0) & (part < 1), np.minimum(doubt, 0.25), 0.0)


def _selected_fine(evidence: Evidence, column: str, condition: Condition) -> np.ndarray:
    size = evidence.size(column, "fine")
    found = np.zeros(size)
    if condition.values is not None:
        for value in condition.values:
            code = code_of(evidence, column, value)
            fine = evidence.fine(column)
            levels = fine.widths[code] if fine is not None and code < fine.size else 1
            found[code] = min(1.0, found[code] + 1 / levels)
        return found
    if evidence.fine(column) is None:
        raise AnswerError(f"'{column}' has categories: name the values you want, not a range")
    low, high, widths = edges(evidence, column)
    fine = evidence.fine(column)
    assert fine is not None
    first = fine.axis.low if condition.low is None else number_of(evidence, column, condition.low)
    last = fine.axis.high if condition.high is None else number_of(evidence, column, condition.high)
    if first > last:
        raise AnswerError(f"the condition on '{column}' asks for numbers from {first:g} to {last:g}: none")
    inside = np.minimum(high, last) - np.maximum(low, first)
    held = np.floor(inside / fine.step + 1e-6) + 1  # levels of the cell that lie within
    found[: len(low)] = np.clip(held, 0, widths) / widths
    return found


def cell_names(evidence: Evidence, column: str, level: Level) -> list[Any]:
    """What each cell of a level is called: a value, a range 'low – high', several values, or None for null."""
    declared, group_of = evidence.codec.schema.columns[column], evidence.group_of[column, level]
    size = evidence.size(column, level)
    if isinstance(declared, Numeric):
        low, high, _ = edges(evidence, column)
        names: list[Any] = []
        for b in range(size):
            members = np.flatnonzero(group_of == b)
            if members[0] >= len(low):
                names.append(None)
                continue
            first, last = (written(evidence, column, v) for v in (low[members[0]], high[members[-1]]))
            names.append(first if first == last else f"{first} – {last}")
        return names
    levels: list[Any] = [False, True] if isinstance(declared, Flag) else list(getattr(declared, "levels", ()))
    levels += [None] if declared.nullable else []
    found: list[Any] = []
    for b in range(size):
        held = [levels[i] for i in np.flatnonzero(group_of == b)]
        found.append(held[0] if len(held) == 1 else " or ".join(map(str, held)))
    return found


def written(evidence: Evidence, column: str, number: float) -> Any:
    """A number of a column as people write it: dates as dates, spans with their unit."""
    declared = evidence.codec.schema.columns[column]
    if column in evidence.codec.declared.program.spans:
        return span_text(number)
    return declared.exact(number) if isinstance(declared, Numeric) else number
