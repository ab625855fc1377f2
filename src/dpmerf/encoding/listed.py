"""Listed: the place of each cell among the values that a category lists, by text or by what the text reads as.

A listed text is found by its very text or else by its reading: the number 1234 is "01234" if "1234" is not listed, and
midnight is its day. So it does not matter in which type a column arrives, as long as no two values read alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.encoding import cells, instants
from dpmerf.encoding.cells import Column, Floats

Codes: TypeAlias = np.ndarray  # (n,) int64, -1 where the cell is none of the values


def codes(column: Column, values: tuple[str | int | float, ...]) -> Codes:
    """The position of each cell in `values`, or -1."""
    array = cells.read(column)
    listed = _listed(values)
    if cells.is_number(array.type) or listed.text is None:
        return listed.of_numbers(cells.floats_of(array))
    text = cells.text_of(array)
    found = pc.fill_null(pc.index_in(text, listed.text, skip_nulls=True), -1)
    place: Codes = found.to_numpy(zero_copy_only=False).astype(np.int64)
    rest = np.flatnonzero((place < 0) & cells.mask_of(text.is_valid())) if listed.has_readings else ()
    if len(rest):
        unlisted = text.take(pa.array(rest)).dictionary_encode()
        place[rest] = listed.of_readings(unlisted.dictionary)[np.asarray(unlisted.indices)]
    return place


def clash(values: tuple[str | int | float, ...]) -> tuple[str, str] | None:
    """Two listed texts that are the same number or moment, if there are: a typed cell cannot say which it means.

    >>> clash(("1", "2", "01")), clash(("01", "2", "2020-01-01")), clash(("2020-01-01", "2020-01-01 00:00"))
    (('1', '01'), None, ('2020-01-01', '2020-01-01 00:00'))
    """
    if not isinstance(values[0], str):
        return None
    text = pa.array(values, pa.large_string())
    seen: dict[tuple[str, float], str] = {}
    for value, number, moment in zip(values, cells.floats_of(text).tolist(), cells.moments_of(text), strict=True):
        reading = ("number", number) if number == number else ("moment", moment) if moment is not None else None
        if reading is not None and seen.setdefault(reading, str(value)) != value:
            return seen[reading], str(value)
    return None


@final
@dataclass(frozen=True)
class _Listed:
    """The values of a category, by text and by what they read as."""

    text: pa.Array | None  # None: the values are numbers
    sorted_numbers: Floats
    number_codes: Codes
    moments: dict[int, int]

    @property
    def has_readings(self) -> bool:
        return bool(len(self.sorted_numbers) or self.moments)

    def of_numbers(self, cells: Floats) -> Codes:
        if not len(self.sorted_numbers):
            return np.full(len(cells), -1)
        place = np.clip(np.searchsorted(self.sorted_numbers, cells), 0, len(self.sorted_numbers) - 1)
        return np.where(self.sorted_numbers[place] == cells, self.number_codes[place], -1).astype(np.int64)

    def of_readings(self, text: pa.Array) -> Codes:
        place = self.of_numbers(cells.floats_of(text))
        if self.moments:
            found = [-1 if ns is None else self.moments.get(ns, -1) for ns in cells.moments_of(text)]
            place = np.where(place < 0, np.array(found, np.int64), place)
        return place


@lru_cache(maxsize=1024)
def _listed(values: tuple[str | int | float, ...]) -> _Listed:
    if not isinstance(values[0], str):
        order = np.argsort(np.asarray(values, np.float64))
        return _Listed(None, np.asarray(values, np.float64)[order], order, {})
    text = pa.array(values, pa.large_string())
    by_number: dict[float, int] = {}
    moments: dict[int, int] = {}
    for code, number in enumerate(cells.floats_of(text).tolist()):
        if number == number and (number not in by_number or values[code] == cells.as_number(number)):
            by_number[number] = code
    for code, moment in enumerate(cells.moments_of(text)):
        if moment is not None and (moment not in moments or values[code] == instants.text(moment)):
            moments[moment] = code
    sorted_numbers = sorted(by_number)
    numbered = np.array([by_number[number] for number in sorted_numbers], np.int64)
    return _Listed(text, np.array(sorted_numbers, np.float64), numbered, moments)
