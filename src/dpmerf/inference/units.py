"""Units: what the numbers of a column count (spans, days, moments, times of day), and how people write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from dpmerf.errors import AnswerError
from dpmerf.inference.questions import NoColumn, Question
from dpmerf.schema import Numeric, Schema
from dpmerf.schema.derivations import Apart

SPANS = {"days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0}


def unit_of(declared: Schema, asked: Question) -> str:
    """What an answer counts in, for machines; empty for plain numbers and counts."""
    if asked.column is None or asked.what in ("count", "share", "crosstab"):
        return ""
    if asked.column in declared.program.spans:
        return "seconds"
    column = declared.measured.columns[asked.column]
    return column.counted_in if isinstance(column, Numeric) else ""


def explained(declared: Schema, problem: NoColumn) -> AnswerError:
    """The same problem, with what is measured in place of a column that relations decide."""
    name, program = problem.column, declared.program
    for step in program.steps:
        learned = ", ".join(f"'{one}'" for one in step.measured)
        if step.target != name:
            continue
        if isinstance(step, Apart):
            return AnswerError(f"'{name}' is not measured by itself but as {learned}: ask for those")
        title = program.title(step.relation)
        if not learned:
            return AnswerError(f"'{name}' is not measured: it follows from other columns by {title}. Ask for those")
        return AnswerError(
            f"'{name}' is not measured by itself: {learned} is learned instead, by {title}. Ask for that"
        )
    for joint in program.joined:
        if name in joint.columns:
            return AnswerError(f"'{name}' is measured as part of '{joint.name}': ask for that")
    return problem


@final
@dataclass(frozen=True)
class Writing:
    """How an answer's numbers are shown: the unit of estimates and that of errors, both for a table's head."""

    unit: str
    error_unit: str
    value: Callable[[float], str]
    error: Callable[[float], str]


def writing(unit: str, what: str, declared: Numeric | None, largest: float) -> Writing:
    """For an answer in `unit` whose largest estimate is this; `declared` writes moments."""
    plain = Writing("", "", short, short)
    if unit == "seconds":
        square = what == "variance"
        sure = math.sqrt(largest) if square else largest
        name = next((name for name, size in SPANS.items() if sure >= 2 * size), "seconds")
        size = SPANS[name] ** (2 if square else 1)
        return Writing(name + "²" * square, name + "²" * square, *[lambda v: short(v / size)] * 2)
    if not unit or declared is None or what not in ("mean", "quantile"):
        return plain
    name, size = declared.apart_in
    return Writing("", name, lambda v: str(declared.exact(v)), lambda v: short(v / size))


def short(number: float) -> str:
    """Four digits.

    >>> short(3.14159), short(1234567.8)
    ('3.142', '1,234,568')
    """
    return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:,.4g}"
