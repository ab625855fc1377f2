"""Answers: an estimate for each group, with its errors one by one, an interval, and what it all rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pyarrow as pa

from dpmerf.errors import AnswerError
from dpmerf.inference.questions import Question
from dpmerf.shown import Shown

MOST_SHOWN = 50  # groups in a notebook
NORMAL = {0.9: 1.6448536269514722, 0.95: 1.959963984540054, 0.99: 2.5758293035489004}


@final
@dataclass(frozen=True)
class Line:
    """One group's answer. Errors are standard errors; without an estimate, `note` says why it cannot be given."""

    group: dict[str, Any]
    estimate: float | None
    privacy_error: float  # from the noise: exact for counts and sums
    inside_error: float  # from not knowing where in a cell values lie
    sampling_error: float | None  # if the question is about the population the rows were drawn from
    low: float | None
    high: float | None
    note: str = ""

    @property
    def error(self) -> float:
        """All standard errors together."""
        return math.hypot(self.privacy_error, self.inside_error, self.sampling_error or 0.0)


@final
@dataclass(frozen=True, repr=False)
class Answer(Shown):
    """Every group's line. `covariance` (of all errors together) serves sums and differences of lines."""

    question: Question
    about: str  # "this table" or "the population"
    lines: tuple[Line, ...]
    tables: tuple[str, ...]  # that hold the whole question
    margins: int  # further tables that sharpened it
    rests_on: str  # "measured tables" or "the model"
    confidence: float = 0.95
    covariance: np.ndarray | None = field(default=None, compare=False, repr=False)
    notes: tuple[str, ...] = ()
    unit: str = ""  # of estimates and errors: seconds of a span, days or seconds since 1970 of a moment

    def line(self, **group: Any) -> Line:
        """The line of one group."""
        return self.lines[self._index(group)]

    def difference(self, one: dict[str, Any], other: dict[str, Any]) -> Line:
        """The first group's estimate less the second's; errors they share cancel."""
        if self.covariance is None:
            raise AnswerError("quantiles have no covariance: a difference of two cannot be given")
        i, j = self._index(one), self._index(other)
        a, b = self.lines[i], self.lines[j]
        words = {key: f"{one[key]} − {other[key]}" for key in one}
        if a.estimate is None or b.estimate is None:
            return Line(words, None, math.inf, math.inf, None, None, None, a.note or b.note)
        variance = float(self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j])
        error, gap = math.sqrt(max(variance, 0.0)), a.estimate - b.estimate
        inside = math.hypot(a.inside_error, b.inside_error)
        sampling = None if a.sampling_error is None else math.hypot(a.sampling_error, b.sampling_error or 0.0)
        privacy = math.sqrt(max(variance - inside**2 - (sampling or 0.0) ** 2, 0.0))
        half = critical(self.confidence) * error
        return Line(words, gap, privacy, inside, sampling, gap - half, gap + half)

    def to_arrow(self) -> pa.Table:
        """A row a group: its labels, the estimate, its interval and where the error comes from."""
        names = list(self.lines[0].group) if self.lines else []
        columns = {name: _labels([x.group[name] for x in self.lines]) for name in names}
        for key in ("estimate", "low", "high", "privacy_error", "inside_error", "sampling_error"):
            columns[key] = pa.array([_finite(getattr(x, key)) for x in self.lines], pa.float64())
        return pa.table(columns)

    def facts(self) -> dict[str, Any]:
        """At a glance."""
        told = {"question": self.question, "about": self.about, "groups": len(self.lines), "rests on": self.rests_on}
        return {**told, "unit": self.unit} if self.unit else told

    def details(self) -> dict[str, Any]:
        """Group by group, for a notebook."""
        level = f"{self.confidence:.0%} interval"
        return {**self.facts(), **{_called(x.group): _told(x, level) for x in self.lines[:MOST_SHOWN]}}

    def _index(self, group: dict[str, Any]) -> int:
        for i, line in enumerate(self.lines):
            if line.group == group or {k: str(v) for k, v in line.group.items()} == {
                k: str(v) for k, v in group.items()
            }:
                return i
        raise AnswerError(f"the answer has no group {group}. Its groups: {[x.group for x in self.lines[:8]]}")

    def to_json(self) -> dict[str, Any]:
        return {
            "question": str(self.question),
            "about": self.about,
            "confidence": self.confidence,
            **({"unit": self.unit} if self.unit else {}),
            "rests_on": self.rests_on,
            "tables": list(self.tables),
            "further_tables": self.margins,
            "notes": list(self.notes),
            "answers": [
                {
                    "group": {k: v for k, v in x.group.items()},
                    "estimate": x.estimate,
                    "low": _finite(x.low),
                    "high": _finite(x.high),
                    "privacy_error": _finite(x.privacy_error),
                    "inside_error": _finite(x.inside_error),
                    "sampling_error": _finite(x.sampling_error),
                    **({"note": x.note} if x.note else {}),
                }
                for x in self.lines
            ],
        }


def _called(group: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in group.items()) or "all rows"


def _told(line: Line, level: str) -> str:
    if line.estimate is None or line.low is None or line.high is None:
        return line.note
    return f"{line.estimate:,.4g} ({level} {line.low:,.4g} to {line.high:,.4g})"


def _labels(found: list[Any]) -> pa.Array:
    """Labels of one type as they are, others as text."""
    try:
        return pa.array(found)
    except (pa.ArrowException, TypeError):
        return pa.array([None if label is None else str(label) for label in found], pa.string())


def critical(confidence: float) -> float:
    """The normal distribution's two-sided point."""
    if confidence not in NORMAL:
        raise AnswerError(f"confidence is {confidence}: choose one of {', '.join(map(str, NORMAL))}")
    return NORMAL[confidence]


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
