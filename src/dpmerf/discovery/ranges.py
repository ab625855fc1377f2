"""Ranges: bounds of numbers and moments from noisy looks. First powers of two, then those of the rows outside of them,
then the last ones in parts. Post-processing: the same numbers give the same bounds on any machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dpmerf.discovery import looks
from dpmerf.discovery.purchase import FLAG, MOMENT, NUMBER, TEXT, Purchase

Edges = tuple[tuple[float, ...], ...]  # of the parts of one interval or two, ascending


@final
@dataclass(frozen=True)
class Noisy:
    """Noisy counts of one look at one column, in rows, and the noise of each."""

    counts: np.ndarray
    sigma: float

    def occupied(self, first: int, size: int, sure: float, near: float, gap: int = 1) -> list[int]:
        """Places of a line that stand out, alone or two or four in a row, and lesser ones at most `gap` from such."""
        part = self.counts[first : first + size]
        found: set[int] = set()
        for length in (1, 2, 4):
            run = np.convolve(part, np.ones(length), "valid")
            for start in np.flatnonzero(run > sure * self.sigma * math.sqrt(length)).tolist():
                places = range(start, start + length)
                if found.isdisjoint(places):
                    found |= {p for p in places if part[p] > near * self.sigma}
        waiting = list(found)
        while waiting:
            place = waiting.pop()
            for other in range(max(0, place - gap), min(size, place + gap + 1)):
                if other not in found and part[other] > near * self.sigma:
                    found.add(other)
                    waiting.append(other)
        return sorted(found)


@final
@dataclass(frozen=True)
class Coarse:
    """A column after the first look. `up` and `down` are the first and last power of two on either side of zero (of a
    moment, in days: of 2000), or None."""

    kind: str
    null: bool
    unlike: float = 0.0  # share of cells that are not of its kind: noisy
    zero: bool = False
    up: tuple[int, int] | None = None
    down: tuple[int, int] | None = None
    most: tuple[float, float] = (0.0, 0.0)  # noisy shares of the rows in the last power of two of `down` and `up`

    @property
    def lines(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(first place, number of places) of the lines of `down` and `up` among SCALES."""
        if self.kind == MOMENT:
            return (looks.BEFORE, looks.DAYS), (looks.AFTER, looks.DAYS)
        return (looks.NEGATIVE, looks.OCTAVES), (looks.POSITIVE, looks.OCTAVES)

    @property
    def octaves(self) -> int:
        """That its numbers span."""
        line = self.up or self.down
        return 0 if line is None else line[1] - line[0] + 1

    @property
    def across(self) -> bool:
        """Does it hold zero, or numbers on both sides of it?"""
        return self.zero or (self.up is not None and self.down is not None)


def coarse(purchase: Purchase, name: str, seen: Noisy, rows: float) -> Coarse:
    """Kind, nulls and powers of two by the first look."""
    told, stored = purchase.settings, purchase.columns[name]

    def line(first: int, size: int) -> list[int]:
        return seen.occupied(first, size, told.sure, told.near)

    up, down = line(looks.POSITIVE, looks.OCTAVES), line(looks.NEGATIVE, looks.OCTAVES)
    after, before = line(looks.AFTER, looks.DAYS), line(looks.BEFORE, looks.DAYS)
    zero = bool(seen.counts[looks.ZERO] > told.sure * seen.sigma)
    mass = {
        NUMBER: _sum(seen, looks.POSITIVE, up) + _sum(seen, looks.NEGATIVE, down) + seen.counts[looks.ZERO] * zero,
        MOMENT: _sum(seen, looks.AFTER, after) + _sum(seen, looks.BEFORE, before),
        FLAG: float(seen.counts[looks.FLAG]),
        TEXT: float(seen.counts[looks.TEXT]),
    }
    kind = stored if stored in (NUMBER, MOMENT) else max(mass, key=lambda k: mass[k])
    null = bool(seen.counts[looks.NULL] > told.null * seen.sigma)
    text = float(seen.counts[looks.TEXT]) if kind != TEXT else 0.0
    unlike = text / rows if text > told.sure * seen.sigma else 0.0
    found = Coarse(kind, null or unlike > 0, unlike, zero and kind == NUMBER)
    if kind == MOMENT:
        up, down = after, before
    elif kind != NUMBER:
        return replace(found, null=null)
    least, most = (
        float(seen.counts[first + places[-1]] / rows) if places else 0.0
        for (first, _), places in zip(found.lines, (down, up), strict=True)
    )
    return replace(found, up=_ends(up), down=_ends(down), most=(least, most))


def _ends(places: list[int]) -> tuple[int, int] | None:
    return (places[0], places[-1]) if places else None


def _sum(seen: Noisy, first: int, places: list[int]) -> float:
    return float(seen.counts[[first + p for p in places]].sum()) if places else 0.0


# --- tails: rows outside of what was seen ----------------------------------------------------------------------------


def outside(found: Coarse, place: np.ndarray) -> np.ndarray:
    """(n,) places among SCALES of the cells that lie beyond what the first look saw of a column; −1: not beyond."""
    beyond = np.zeros(looks.SCALES, bool)
    for (first, size), seen in zip(found.lines, (found.down, found.up), strict=True):
        beyond[first : first + size] = True
        if seen is not None:
            beyond[first + (0 if found.across else seen[0]) : first + seen[1] + 1] = False
    if found.kind == NUMBER:
        beyond[looks.ZERO] = not found.across
    return np.where(beyond[place], place, -1)


def widened(purchase: Purchase, found: Coarse, seen: Noisy, rows: float) -> Coarse:
    """With the powers of two that the tails show: far ones if they stand out by themselves, near ones if likely."""
    told = purchase.settings
    times = min(told.beyond_most, max(told.beyond, told.enough * rows / seen.sigma))
    lines, shares = [], []
    for (first, size), line, most in zip(found.lines, (found.down, found.up), found.most, strict=True):
        alone = seen.occupied(first, size, told.sure, told.near)
        low, high = line if line is not None else (_ends(alone) or (size, -1))
        low, high = min([low, *alone]), max([high, *alone])
        if high >= 0:
            high = _reach(seen, first, size, high, 1, times, told.reach)
            low = _reach(seen, first, size, low, -1, times, told.reach)
            if line is None or high != line[1]:
                most = float(seen.counts[first + high] / rows)
        lines.append((low, high) if high >= 0 else None)
        shares.append(most)
    zero = found.zero or (found.kind == NUMBER and bool(seen.counts[looks.ZERO] > told.sure * seen.sigma))
    return replace(found, zero=zero, down=lines[0], up=lines[1], most=(shares[0], shares[1]))


def _reach(seen: Noisy, first: int, size: int, last: int, way: int, times: float, reach: int) -> int:
    """The farthest place that is reached in steps of at most `reach` to places that stand out."""
    while True:
        near = [last + way * away for away in range(1, reach + 1) if 0 <= last + way * away < size]
        found = [place for place in near if seen.counts[first + place] > times * seen.sigma]
        if not found:
            return last
        last = found[-1]


# --- ends: the last powers of two in parts ----------------------------------------------------------------------------


def edges(purchase: Purchase, found: Coarse) -> Edges:
    """What is looked at more closely: both ends, or all of a range that lies far from zero."""
    told = purchase.settings
    low, high = _whole(purchase, found)
    if found.up is None and found.down is None:
        return ()
    if found.kind == MOMENT or (not found.across and found.octaves <= told.narrow):
        return (tuple(np.linspace(low, high, looks.PARTS + 1).tolist()),)
    blind = 3 * purchase.shared_sigma("tails") > told.blind * purchase.rows
    found_edges = []
    for line, most in zip((found.down, found.up), found.most, strict=True):
        if line is not None:
            start = _power(line[1])
            more = blind and most > told.more and line[1] + 1 < looks.OCTAVES
            part, count = (start / 4, 12) if more else (start / 8, 8)
            found_edges.append(tuple(start + part * i for i in range(count + 1)))
    if found.down is not None:
        found_edges[0] = tuple(-e for e in reversed(found_edges[0]))
    return tuple(found_edges)


def bounds(purchase: Purchase, found: Coarse, seen: Noisy | None, rows: float) -> tuple[float, float]:
    """The range of a column of numbers or moments."""
    looked_at = edges(purchase, found)
    low, high = _whole(purchase, found)
    if seen is None or not looked_at:
        return low, high
    if len(looked_at) == 1 and len(looked_at[0]) == looks.PARTS + 1:
        return _drawn_in(purchase, seen, low, high, rows)
    start = 0
    for line in looked_at:
        counts = seen.counts[start : start + len(line) - 1]
        if line[0] < 0:
            low = -_end(purchase, counts[::-1], seen.sigma, tuple(-e for e in reversed(line)), rows)
        else:
            high = _end(purchase, counts, seen.sigma, line, rows)
        start += len(line) - 1
    return low, high


def _end(purchase: Purchase, counts: np.ndarray, sigma: float, line: tuple[float, ...], rows: float) -> float:
    """The last part that stands out, and as many more as a tail that goes on falling as it fell needs.

    Where noise may hide more rows in a part than may be lost, the end is `wider` times as far as the last part starts:
    a number that was seen lies there or above, so a range from zero stays within twice the real one.
    """
    told = purchase.settings
    found = np.flatnonzero(counts > told.part * sigma)
    last = int(found[-1]) if len(found) else 0
    if not len(found) or told.part * sigma > told.lost * rows:
        return min(told.wider * line[last], max(told.widest * line[0], line[-1]))
    here = float(counts[last])
    after = float(counts[last + 1]) if last + 1 < len(counts) else 0.0
    fall = min(0.9, (max(after, 0.0) + sigma) / here)
    left = max(1.0, told.rest * rows)
    parts = max(1.0, math.log(max(here / (left * (1 - fall)), 1.0)) / -math.log(fall))
    return min(line[-1], line[last + 1] + parts * (line[1] - line[0]))


def _drawn_in(purchase: Purchase, seen: Noisy, low: float, high: float, rows: float) -> tuple[float, float]:
    told = purchase.settings
    parts = seen.occupied(0, looks.PARTS, told.sure, told.near, gap=2)
    if not parts:
        return low, high
    width = (high - low) / looks.PARTS
    first, last = low + parts[0] * width, low + (parts[-1] + 1) * width
    doubt = told.near * seen.sigma / (told.tail * rows)
    around = told.margin * min(1.0, max(doubt, 0.5)) * (last - first)
    least, most = max(low, first - around), min(high, last + around)
    if low > 0 and most <= told.wider * (last - first - 2 * width):
        least = 0.0  # zero is near: with it the range stays within twice what was seen
    return least, most


def _whole(purchase: Purchase, found: Coarse) -> tuple[float, float]:
    """Bounds by powers of two alone."""
    up, down = found.up, found.down
    if found.kind == MOMENT:
        first = -(2 ** (down[1] + 1)) if down else 2 ** up[0] - 1 if up else 0
        last = 2 ** (up[1] + 1) if up else -(2 ** down[0]) + 1 if down else 1
        return looks.YEAR_2000 + first * float(looks.DAY), looks.YEAR_2000 + last * float(looks.DAY)
    if up is None and down is None:
        return 0.0, 1.0
    high = _power(up[1] + 1) if up else 0.0
    low = -_power(down[1] + 1) if down else 0.0
    if not found.across and found.octaves <= purchase.settings.narrow:
        return (_power(up[0]), high) if up else (low, -_power(down[0]) if down else 0.0)
    return low, high


def _power(octave: int) -> float:
    return 2.0 ** (octave + looks.LEAST)
