"""By model: questions about columns that no table holds together, answered by copies of a trained model.

Each copy is asked as if its rows were real, and what they say is pooled (`combine`). Such an answer rests on the model:
an interaction that nobody measured is not in it. It is about the population.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import final

import numpy as np
import pyarrow as pa

from dpmerf.errors import AnswerError
from dpmerf.inference.answers import Answer, Line
from dpmerf.inference.ask import TOO_FEW
from dpmerf.inference.blue import holds
from dpmerf.inference.combine import combine
from dpmerf.inference.evidence import Evidence
from dpmerf.inference.questions import Condition, Question
from dpmerf.inference.table_cells import cell_names, selected
from dpmerf.inference.units import unit_of

COPIES = 20  # that are made for a question
MOST_GROUPS = 2_000
RESTS = "the model"
NOTE = (
    "no measured table holds these columns together: an interaction that the model does not know is not in the answer"
)


def needs_model(known: Evidence, asked: Question) -> bool:
    """Is there no table that holds all of the columns?"""
    return bool(asked.columns) and not holds(known, asked.columns)


def respond_by_model(
    known: Evidence, copies: Sequence[pa.Table], asked: Question, *, confidence: float = 0.95
) -> Answer:
    """The answer by copies (`Model.copies`); its one error holds privacy noise and sampling together."""
    inner = (asked.column,) if asked.what == "share" and asked.column and asked.values is None else ()
    grouped = (*asked.by, *inner)
    names = [cell_names(known, c, _level(known, c)) for c in grouped]
    groups = [dict(zip(grouped, found, strict=True)) for found in product(*names)]
    if len(groups) > MOST_GROUPS:
        raise AnswerError(f"{len(groups):,} groups are more than copies can tell apart: ask for fewer columns")
    found = [_Copy(known, table, asked, grouped).asked(len(groups)) for table in copies]
    lines = []
    for g, group in enumerate(groups):
        pairs = [(q[g], v[g]) for q, v in found]
        if not all(math.isfinite(q) for q, _ in pairs):
            lines.append(Line(group, None, math.inf, 0.0, None, None, None, TOO_FEW))
            continue
        unknown = any(math.isnan(v) for _, v in pairs)
        one = combine([(q, None if unknown else v) for q, v in pairs], confidence=confidence).coefficients[0]
        lines.append(Line(group, one.estimate, one.error, 0.0, 0.0, one.low, one.high))
    note = "± privacy holds the sampling of the rows, too"
    return Answer(
        asked,
        "the population",
        tuple(lines),
        (),
        0,
        RESTS,
        confidence,
        None,
        (NOTE, note),
        unit_of(known.codec.declared, asked),
    )


def _level(known: Evidence, column: str) -> str:
    return "bin" if (column, "bin") in known.group_of else "fine"


@final
class _Copy:
    """One copy's rows as cells, with how far each row meets the conditions."""

    def __init__(self, known: Evidence, table: pa.Table, asked: Question, grouped: tuple[str, ...]) -> None:
        self.known, self.asked_for = known, asked
        batch = known.codec.encode(table)
        self.cells = {name: codes.numpy() for name, codes in known.grid.encode(batch).items()}
        self.weight = np.ones(table.num_rows)
        for condition in asked.where:
            self.weight = self.weight * self._part(condition)
        self.groups = [
            (known.group_of[c, _level(known, c)][self.cells[c]], known.size(c, _level(known, c))) for c in grouped
        ]
        self.values = np.zeros(table.num_rows)
        if asked.column is not None and asked.what in ("mean", "sum", "variance", "quantile"):
            axis, at = known.codec.axes[asked.column], known.codec.numeric.index(asked.column)
            self.values = axis.value(batch.numbers[:, at].numpy())
            fine = known.fine(asked.column)
            assert fine is not None
            self.weight = self.weight * (self.cells[asked.column] < fine.size)  # null is no number

    def _part(self, condition: Condition) -> np.ndarray:
        return selected(self.known, condition.column, "fine", condition)[0][self.cells[condition.column]]

    def asked(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """(groups,) estimates and variances as if the rows were real; NaN where there is none."""
        asked, rows = self.asked_for, float(len(self.weight))
        code = np.zeros(len(self.weight), np.int64)
        for codes, k in self.groups:
            code = code * k + codes
        count = np.bincount(code, self.weight, size)
        if asked.what in ("count", "crosstab"):
            return count, count * (1 - count / rows)
        if asked.what == "share":
            return self._shares(code, count)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.bincount(code, self.weight * self.values, size)
            square = np.bincount(code, self.weight * self.values**2, size)
            mean = total / count
            variance = np.maximum(square / count - mean**2, 0)
            if asked.what == "mean":
                return mean, variance / count
            if asked.what == "sum":
                return total, square - total**2 / rows
            if asked.what == "variance":
                fourth = np.bincount(code, self.weight * (self.values - mean[code]) ** 4, size) / count
                return variance, np.maximum(fourth - variance**2, 0) / count
        own = [self.values[(code == g) & (self.weight > 0.5)] for g in range(size)]
        found = np.array([np.quantile(v, asked.q) if len(v) else math.nan for v in own])
        return found, np.full(size, math.nan)

    def _shares(self, code: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        asked, size = self.asked_for, len(count)
        if asked.column is None:
            top, bottom = count, np.full(size, count.sum())
        elif asked.values is not None:
            held = self.weight * self._part(Condition(asked.column, asked.values))
            top, bottom = np.bincount(code, held, size), count
        else:
            last = self.groups[-1][1]
            top, bottom = count, np.repeat(count.reshape(-1, last).sum(1), last)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = top / bottom
            return share, share * (1 - share) / bottom
