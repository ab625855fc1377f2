"""Looks: what a cell is and how large, before anything is declared. Each look is a function of that cell alone.

Three of them, each a discrete variable with a fixed number of places, so that one row fills one place a column:
`scale` (null, text, flag, and the power of two of a number or of the distance of a moment from the year 2000), `parts`
(one of the parts of an interval, or none) and `digits` (decimals, trailing zeros, whole days or minutes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.encoding import cells, notations
from dpmerf.encoding.cells import Column
from dpmerf.schema.notation import Notation

LEAST, MOST = -20, 60  # powers of two of a number
DAYS = 22  # powers of two of a number of days: beyond the calendar's end
OCTAVES = MOST - LEAST
NULL, TEXT, FLAG, ZERO = range(4)
POSITIVE = ZERO + 1
NEGATIVE = POSITIVE + OCTAVES
AFTER = NEGATIVE + OCTAVES
BEFORE = AFTER + DAYS
SCALES = BEFORE + DAYS
PARTS = 64  # at most, of the ends of a range
DIGITS = 13  # absent, zero, whole numbers by trailing zeros (0 to 3), decimals (1 to 6), more
YEAR_2000 = 946_684_800  # seconds since 1970
DAY = 86_400
_CODE = re.compile(r"^[+-]?0[0-9]").pattern  # 01234: a code, not a number


@final
@dataclass(frozen=True)
class Cells:
    """A column as it looks: numbers, moments in seconds (NaN where a cell is none), and which cells are the rest."""

    number: np.ndarray  # (n,)
    moment: np.ndarray  # (n,)
    flag: np.ndarray  # (n,) bool
    null: np.ndarray  # (n,) bool

    @property
    def value(self) -> np.ndarray:
        """(n,) the number, or else the moment in seconds; NaN for other cells."""
        return np.where(np.isnan(self.number), self.moment, self.number)


def look(column: Column, notation: Notation) -> Cells:
    """Read each cell as whatever it can be: a flag, a number, a moment, or text."""
    array = notations.without_missing(cells.read(column), notation)
    null = cells.absent(array)
    is_text = array.type == pa.large_string()
    number = cells.numbers(notations.numbers_as_declared(array, notation))
    number = np.where(np.isfinite(number), number, np.nan)
    flag = np.zeros(len(array), bool)
    if pa.types.is_boolean(array.type):
        flag = ~null
    elif is_text:
        text = pc.ascii_trim_whitespace(array)
        digit = cells.mask_of(pc.match_substring_regex(text, "[0-9]"))
        flag = ~np.isnan(cells.flags(array)) & ~digit
        number[cells.mask_of(pc.match_substring_regex(text, _CODE))] = np.nan
        null |= cells.mask_of(pc.equal(text, ""))
    number[flag | null] = np.nan
    if is_text or cells.is_moment(array.type):
        moment = cells.seconds(notations.moments_as_declared(array, notation))
        moment = np.where(flag | null | ~np.isnan(number), np.nan, moment)
    else:
        moment = np.full(len(array), np.nan)
    return Cells(number, moment, flag, null)


def scale(seen: Cells) -> np.ndarray:
    """(n,) places among SCALES.

    >>> from dpmerf.schema.notation import Notation
    >>> found = scale(look(pa.array(["3", "-0.25", "x", "", "yes", "0", "007"]), Notation()))
    >>> found.tolist() == [POSITIVE + 21, NEGATIVE + 18, TEXT, NULL, FLAG, ZERO, TEXT]
    True
    """
    code = np.full(len(seen.null), TEXT)
    code[seen.null] = NULL
    code[seen.flag] = FLAG
    number = np.nan_to_num(seen.number)
    octave = np.clip(_floor_log2(np.abs(number)) - LEAST, 0, OCTAVES - 1)
    code = np.where(~np.isnan(seen.number), np.where(number > 0, POSITIVE, NEGATIVE) + octave, code)
    code[(number == 0) & ~np.isnan(seen.number)] = ZERO
    days = np.floor((np.nan_to_num(seen.moment) - YEAR_2000) / DAY)
    power = np.clip(_floor_log2(np.where(days >= 0, days + 1, -days)), 0, DAYS - 1)
    return np.where(~np.isnan(seen.moment), np.where(days >= 0, AFTER, BEFORE) + power, code).astype(np.int64)


def parts(seen: Cells, edges: tuple[tuple[float, ...], ...]) -> np.ndarray:
    """(n,) the part of one of the intervals in which each value lies, counted through; −1: in none."""
    value = seen.value
    found, before = np.full(len(value), -1), 0
    for line in edges:
        place = np.searchsorted(np.array(line), value, side="right") - 1
        inside = (place >= 0) & (place < len(line) - 1) & ~np.isnan(value)
        found[inside] = place[inside] + before
        before += len(line) - 1
    return found.astype(np.int64)


def digits(seen: Cells) -> np.ndarray:
    """(n,) places among DIGITS. Of a moment: 2 to 5 are whole seconds, minutes, hours and days."""
    number = np.nan_to_num(seen.number)
    found = np.full(len(number), DIGITS - 1)
    for decimals in range(6, 0, -1):
        found[np.round(number, decimals) == number] = 5 + decimals
    whole = np.abs(number) < 2**53
    for zeros, unit in enumerate((1.0, 10.0, 100.0, 1000.0)):
        found[whole & (np.floor(number / unit) * unit == number)] = 2 + zeros
    found[number == 0] = 1
    found[np.isnan(seen.number)] = 0
    moment = np.nan_to_num(seen.moment)
    for place, step in enumerate((1, 60, 3600, DAY)):
        found[~np.isnan(seen.moment) & (moment % step == 0)] = 2 + place
    return found.astype(np.int64)


def _floor_log2(values: np.ndarray) -> np.ndarray:
    """Whole powers of two, exactly: by the exponent of the float, not by a rounded logarithm."""
    return (np.frexp(values)[1] - 1).astype(np.int64)
