"""Derivations: how one column of a row follows from others. Carried out by `encoding/derived.py`.

Each step owns one declared column, its target. A step that leaves something to learn names the measured column that
takes the target's place; the others leave nothing to measure.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import final

from dpmerf.schema.columns import AnyColumn, Category, Date, Integer, Number, Time, Timestamp
from dpmerf.schema.expressions import Node, columns
from dpmerf.schema.quantities import DAY, Fact

LEAST_WEEKS = 4  # of a timestamp whose weekdays are learned


@final
@dataclass(frozen=True)
class Derived:
    """The target is the value of an expression, on the target's own grid."""

    target: str
    relation: int
    value: Node

    @property
    def sources(self) -> tuple[str, ...]:
        return columns(self.value)

    @property
    def measured(self) -> tuple[str, ...]:
        return ()


@final
@dataclass(frozen=True)
class Learned:
    """The target is `base` with a learned quantity added (`-`), multiplied (`/`) or divided by it (`*`)."""

    target: str
    relation: int
    name: str
    base: Node
    op: str
    low: float
    high: float

    @property
    def sources(self) -> tuple[str, ...]:
        return columns(self.base)

    @property
    def measured(self) -> tuple[str, ...]:
        return (self.name,)


@final
@dataclass(frozen=True)
class Bound:
    """The target lies at or beyond all of its bases: what is learned is how far, in the target's steps."""

    target: str
    relations: tuple[int, ...]
    name: str
    bases: tuple[Node, ...]
    strict: tuple[bool, ...]
    above: bool
    low: float  # the target's own range, narrowed so that columns bound by it have room
    high: float
    reach: float  # the largest distance

    @property
    def relation(self) -> int:
        return self.relations[0]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for base in self.bases for name in columns(base)))

    @property
    def measured(self) -> tuple[str, ...]:
        return (self.name,)


@final
@dataclass(frozen=True)
class Fixed:
    """The target is looked up: `values` (code or number, NaN for null) by the joint code of the keys."""

    target: str
    relation: int
    sources: tuple[str, ...]
    values: tuple[float, ...]

    @property
    def measured(self) -> tuple[str, ...]:
        return ()


@final
@dataclass(frozen=True)
class Joined:
    """Columns that are learned as one: which of the allowed combinations. `nearest` places every other combination."""

    columns: tuple[str, ...]
    relation: int
    name: str
    combinations: tuple[tuple[int, ...], ...]  # codes of the columns
    nearest: tuple[int, ...]  # by the joint code of the columns
    words: tuple[str, ...]  # one per combination

    @property
    def column(self) -> Category:
        """The measured column."""
        return Category(values=self.words)


@final
@dataclass(frozen=True)
class Apart:
    """The target is a moment: what is learned are its day (or week and weekday) and its time of day."""

    target: str
    day: str  # or its week, by the first day
    weekday: str | None  # days after that, where weeks are learned
    time: str
    relation: int = -1  # of no relation: it follows from the column's kind

    @property
    def sources(self) -> tuple[str, ...]:
        return ()

    @property
    def measured(self) -> tuple[str, ...]:
        return (self.day, *((self.weekday,) if self.weekday else ()), self.time)


Step = Derived | Learned | Bound | Fixed | Apart


def apart(target: str, column: AnyColumn) -> tuple[Apart, dict[str, AnyColumn]] | None:
    """The day, weekday and time of day of a moment, as measured columns; None where it has no clock to learn apart.

    Weeks are learned, rather than days, where a column has at least four of them: then weekdays go with other columns.
    """
    if not isinstance(column, Timestamp) or not column.clock or DAY % column.step or column.step > DAY / 2:
        return None
    first, last, nullable = column.first.date(), column.last.date(), column.nullable
    if (last - first).days < 1:
        return None
    weeks = (last - first).days >= LEAST_WEEKS * 7
    step = Apart(
        target, f"{target} ({'week' if weeks else 'day'})", f"{target} (weekday)" if weeks else None, f"{target} (time)"
    )
    first -= dt.timedelta(days=first.weekday() if weeks else 0)
    found: dict[str, AnyColumn] = {step.day: Date(first=first, last=last, step=7 if weeks else 1, nullable=nullable)}
    if step.weekday:
        found[step.weekday] = Integer(min=0, max=6, nullable=nullable)
    midnight = dt.datetime.combine(column.first.date(), dt.time())
    found[step.time] = Time(step=math.gcd(column.step, (column.first - midnight).seconds), nullable=nullable)
    return step, found


def distance_column(fact: Fact, low: float, high: float, nullable: bool, log: bool = False) -> AnyColumn:
    """A measured column for a difference between values of a column: on the same grid, moments in seconds."""
    if fact.decimals is not None:
        return Number(min=low, max=high, decimals=fact.decimals, nullable=nullable, log=log)
    if fact.step is not None:
        step = int(fact.step)
        least = math.ceil(low / step) * step
        return Integer(min=least, max=least + int((high - least) // step) * step, step=step, nullable=nullable, log=log)
    return Number(min=low, max=high, nullable=nullable, log=log)
