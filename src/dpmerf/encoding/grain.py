"""Grain: which single values, round numbers and hours a column of numbers prefers. Public ways to look at one cell.

A fine cell of a wide column holds thousands of values. Remainders of a value's number by two primes tell a value that
many rows share from all others in its cell, wherever it lies; divisors tell how many rows are rounded, and how far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dpmerf.encoding.fine_cells import Fine
from dpmerf.schema import AnyColumn, Date, Integer, Number, Numeric, Timestamp

PRIMES = (509, 521)
SLOTS = 24  # of a day
DAY = 86_400


@final
@dataclass(frozen=True)
class Grain:
    """One column: its fine cells and what else can be said about each of its values."""

    column: AnyColumn
    fine: Fine

    @cached_property
    def zero(self) -> int:
        """The level at which the value 0 is, or would be."""
        return -round(self.fine.axis.low / self.fine.step)

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """Numbers of levels, each a divisor of the next, of which a rounded value is a multiple: 1, 5, 10, 50, …

        Times are rounded to minutes, to five, fifteen and sixty of them. Empty where values are not rounded in decimal.
        """
        top = int(self.fine.edges[-1])
        if isinstance(self.column, Numeric) and self.column.rounded:
            step = round(self.fine.step)
            return tuple(dict.fromkeys([1, *(g // step for g in self.column.rounded if g % step == 0)]))
        if (isinstance(self.column, Integer) and self.column.step == 1) or self._decimals:
            return tuple(g for k in range(16) for g in (10**k, 5 * 10**k) if g <= top)
        return ()

    @property
    def _decimals(self) -> bool:
        return isinstance(self.column, Number) and self.column.decimals is not None

    @property
    def clock(self) -> bool:
        """Whether moments are told by hour and weekday: cells are far longer than hours."""
        seconds = isinstance(self.column, Timestamp) and self.column.step <= DAY // SLOTS
        return seconds and float(np.median(self.fine.widths)) * self.fine.step >= DAY / 2

    @property
    def days(self) -> bool:
        """Whether dates are told by weekday."""
        return isinstance(self.column, Date) and self.column.step == 1

    @property
    def single(self) -> bool:
        """Whether single values can stand out of their cell."""
        return not isinstance(self.column, Date | Timestamp)

    @property
    def sizes(self) -> dict[str, int]:
        """What is counted -> into how many groups values fall, without null."""
        found: dict[str, int] = {}
        if self.single:
            found |= {f"remainder by {p}": p for p in PRIMES}
        if len(self.ladder) > 1:
            found["divisor"] = len(self.ladder)
        if self.clock:
            found["hour"] = SLOTS
        if self.clock or self.days:
            found["weekday"] = 7
        return found

    def groups(self, levels: np.ndarray) -> dict[str, np.ndarray]:
        """The group of each level, by what is counted: a function of that level alone."""
        found: dict[str, np.ndarray] = {}
        if self.single:
            found |= {f"remainder by {p}": levels % p for p in PRIMES}
        if len(self.ladder) > 1:
            number = levels - self.zero
            found["divisor"] = sum((number % g == 0).astype(np.int64) for g in self.ladder[1:])
        if self.clock:
            found["hour"] = self.slots(levels)
        if self.clock or self.days:
            found["weekday"] = self.weekdays(levels)
        return found

    def slots(self, levels: np.ndarray) -> np.ndarray:
        """Which of the day's slots a moment lies in."""
        return self._seconds(levels) % DAY * SLOTS // DAY

    def weekdays(self, levels: np.ndarray) -> np.ndarray:
        """From Thursday, the first day of 1970, on."""
        return self._seconds(levels) // DAY % 7

    def _seconds(self, levels: np.ndarray) -> np.ndarray:
        at = np.rint(self.fine.axis.low + levels * self.fine.step).astype(np.int64)
        return at * DAY if isinstance(self.column, Date) else at

    def multiples(self, divisor: int) -> tuple[np.ndarray, np.ndarray]:
        """(cells,) the first multiple in each cell, as a number of divisors, and how many there are."""
        edges = self.fine.edges - self.zero
        first = -(-edges // divisor)
        return first[:-1], np.diff(first)
