"""Bought: what noisy looks say about a column. Post-processing: the same numbers give the same facts on any machine."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpmerf.discovery import looks
from dpmerf.discovery.purchase import FLAG, LEFT_OUT, MOMENT, NUMBER, TEXT, Purchase
from dpmerf.schema.facts import Facts

OTHER = "other"
WORDS = {NUMBER: "numbers", MOMENT: "dates", TEXT: "texts", FLAG: "yes or no"}
_FIRST_DAY, _LAST_DAY = dt.date(1, 1, 1), dt.date(9999, 12, 31)


@final
@dataclass(frozen=True)
class Noisy:
    """Noisy counts of one look at one column, in rows, and the noise of each. The first place holds absent cells."""

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
class Values:
    """Frequent values of a text column with noisy counts, most frequent first, and the noisy count of nulls."""

    named: tuple[tuple[str, float], ...]
    null: float
    sigma: float
    threshold: float


@final
@dataclass(frozen=True)
class Coarse:
    """A column after the first look."""

    kind: str
    null: bool
    unlike: float  # share of cells that are not of its kind: noisy
    low: float
    high: float
    octaves: int  # that the numbers span
    narrow: bool
    inner: tuple[float, float]  # where the lowest and the highest occupied power of two end toward the middle


def rows_of(purchase: Purchase, scales: dict[str, Noisy]) -> float:
    """How many rows there are: public, or by what stands out in the first look."""
    if purchase.unit.rows_public or not scales:
        return float(purchase.rows)
    sums = [float(n.counts[n.counts > 2 * n.sigma].sum()) for n in scales.values()]
    return max(1.0, float(np.median(sums)))


def coarse(purchase: Purchase, name: str, seen: Noisy, rows: float) -> Coarse:
    """Kind, nulls and bounds by powers of two."""
    told = purchase.settings
    stored = purchase.columns[name]

    def line(first: int, size: int) -> list[int]:
        return seen.occupied(first, size, told.sure, told.near)

    up, down = line(looks.POSITIVE, looks.OCTAVES), line(looks.NEGATIVE, looks.OCTAVES)
    after, before = line(looks.AFTER, looks.DAYS), line(looks.BEFORE, looks.DAYS)
    zero = seen.counts[looks.ZERO] > told.sure * seen.sigma
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
    if kind == MOMENT:
        return Coarse(kind, null or unlike > 0, unlike, *_days(after, before), 0, True, (math.inf, -math.inf))
    if kind != NUMBER:
        return Coarse(kind, null, unlike, 0.0, 0.0, 0, False, (0.0, 0.0))
    return Coarse(kind, null or unlike > 0, unlike, *_powers(purchase, seen, up, down, bool(zero), rows))


def _sum(seen: Noisy, first: int, places: list[int]) -> float:
    return float(seen.counts[[first + p for p in places]].sum()) if places else 0.0


def _powers(
    purchase: Purchase, seen: Noisy, up: list[int], down: list[int], zero: bool, rows: float
) -> tuple[float, float, int, bool, tuple[float, float]]:
    """(low, high, octaves, narrow, inner) of numbers. A well filled last power hides a tail: then one more."""
    told = purchase.settings

    def end(first: int, places: list[int]) -> int:
        last = places[-1]
        more = bool(seen.counts[first + last] > told.more * rows) and last + 1 < looks.OCTAVES
        return last + 1 + more + looks.LEAST

    if not up and not down:
        return 0.0, 1.0, 0, False, (0.0, 0.0)
    high = 2.0 ** end(looks.POSITIVE, up) if up else 0.0
    low = -(2.0 ** end(looks.NEGATIVE, down)) if down else 0.0
    places = up or down
    octaves = places[-1] - places[0] + 1
    least, most = (-_power(down[-1]) if down else 0.0), (_power(up[-1]) if up else 0.0)
    if (up and down) or zero or octaves > told.narrow:
        return low, high, octaves, False, (least, most)
    near, high, low = _power(places[0]), min(high, 2 * most), max(low, 2 * least)
    return (near, high, octaves, True, (2 * near, most)) if up else (low, -near, octaves, True, (least, -2 * near))


def _power(octave: int) -> float:
    return 2.0 ** (octave + looks.LEAST)


def _days(after: list[int], before: list[int]) -> tuple[float, float]:
    """(low, high) of moments, in seconds."""
    first = -(2 ** (before[-1] + 1)) if before else 2 ** after[0] - 1 if after else 0
    last = 2 ** (after[-1] + 1) if after else -(2 ** before[0]) + 1 if before else 1
    return looks.YEAR_2000 + first * float(looks.DAY), looks.YEAR_2000 + last * float(looks.DAY)


def windows(found: dict[str, Coarse]) -> dict[str, tuple[float, float]]:
    """The interval of each column of numbers or moments, which is looked at more closely."""
    return {name: (c.low, c.high) for name, c in found.items() if c.kind in (NUMBER, MOMENT)}


def range_of(purchase: Purchase, found: Coarse, seen: Noisy, rows: float) -> tuple[float, float]:
    """Bounds: those of the powers of two, drawn in to the occupied parts of the window and a margin around them.

    Not where a part that seems empty could hold many rows and the powers of two are good bounds by themselves.
    """
    told = purchase.settings
    parts = seen.occupied(2, looks.PARTS, told.sure, told.beside, gap=2)
    doubt = told.near * seen.sigma / (told.tail * rows)
    if not parts or (doubt > 1 and not found.narrow):
        return found.low, found.high
    width = (found.high - found.low) / looks.PARTS
    first, last = found.low + parts[0] * width, found.low + (parts[-1] + 1) * width
    around = told.margin * min(1.0, max(doubt, 0.5)) * (last - first)
    low, high = max(found.low, first - around), min(found.high, last + around)
    if first > found.inner[0]:  # the window does not see what the powers of two saw
        low = 2 * found.inner[0] if found.inner[0] <= 0 else found.low
    if last < found.inner[1]:
        high = 2 * found.inner[1] if found.inner[1] >= 0 else found.high
    return float(low), float(high)


def facts(
    purchase: Purchase,
    name: str,
    first: Coarse | None,
    window: Noisy | None,
    digits: Noisy | None,
    values: Values | None,
    rows: float,
) -> Facts:
    """The column as a schema declares it; `bought` names what was paid for."""
    stored = purchase.columns[name]
    if stored == LEFT_OUT:
        return Facts("id", notes=("never learned; made up on output",))
    if values is not None:
        return _text(purchase, values, rows)
    if first is None or first.kind == FLAG:  # by its stored type, or by the first look
        known: dict[str, Any] = {"nullable": first is None or first.null}
        return Facts("flag", {**known, **_bought(first, "kind", "nullable")})
    if first.kind == TEXT:
        return Facts("id", notes=("texts, and nothing more was bought about them",))
    low, high = (first.low, first.high) if window is None else range_of(purchase, first, window, rows)
    if first.kind == MOMENT:
        known, kind = _moments(low, high, digits, purchase.settings.sure)
    else:
        known, kind = _numbers(purchase, first, low, high, digits, purchase.dtypes.get(name, ""))
    known["nullable"] = first.null
    notes: tuple[str, ...] = ()
    if first.unlike:
        notes = (f"about {first.unlike:.0%} of its cells are not {WORDS[first.kind]}: they count as null",)
    told = [key for key in ("min", "max", "first", "last", "step", "decimals", "log") if key in known]
    return Facts(kind, {**known, **_bought(first, *told, "nullable")}, notes)


def _bought(first: Coarse | None, *keys: str) -> dict[str, Any]:
    return {} if first is None else {"bought": list(keys)}


def _grain(digits: Noisy | None, sure: float, rows: float) -> int:
    """The finest place of DIGITS that is surely used; 1 where none is."""
    if digits is None:
        return 1
    order = [*range(looks.DIGITS - 1, 5, -1), 2, 3, 4, 5]  # from the finest to the coarsest
    used = [place for place in order if digits.counts[place] > max(sure * digits.sigma, 0.005 * rows)]
    return used[0] if used else 1


def _numbers(
    purchase: Purchase, first: Coarse, low: float, high: float, digits: Noisy | None, dtype: str
) -> tuple[dict[str, Any], str]:
    place = _grain(digits, purchase.settings.sure, purchase.rows)
    log = first.octaves >= purchase.settings.logarithmic and low == 0
    more = {"log": True} if log else {}
    if place == looks.DIGITS - 1 or (digits is None and "float" in dtype):
        return {"min": low, "max": high, **more, **_dtype(dtype)}, "number"
    if place > 5:
        return {"min": low, "max": high, **more, "decimals": place - 5, **_dtype(dtype)}, "number"
    step = 10 ** max(place - 2, 0)
    least, most = math.ceil(low), math.ceil(high) - 1 if high > 1 else math.floor(high)
    most = max(most, least + 1)
    if abs(least) > 2**53 or abs(most) > 2**53:
        return {"min": low, "max": high, "decimals": 0, **more, **_dtype(dtype)}, "number"
    found = {"min": least // step * step, "max": -(-most // step) * step, **more}
    return {**found, **({"step": step} if step > 1 else {}), **_dtype(dtype)}, "integer"


def _moments(low: float, high: float, digits: Noisy | None, sure: float) -> tuple[dict[str, Any], str]:
    days = [min(max(math.floor(second / looks.DAY), -719_162), 2_932_896) for second in (low, high)]
    first, last = (dt.date(1970, 1, 1) + dt.timedelta(days=d) for d in days)
    last = max(last, first + dt.timedelta(days=1)) if last < _LAST_DAY else last
    place = _grain(digits, sure, 1.0)
    if place in (1, 5):
        return {"first": first, "last": last}, "date"
    ends = {
        "first": dt.datetime(first.year, first.month, first.day),
        "last": dt.datetime(last.year, last.month, last.day),
    }
    step = {2: 1, 3: 60, 4: 3600}.get(place, 1)
    return {**ends, **({"step": step} if step > 1 else {})}, "timestamp"


def _text(purchase: Purchase, values: Values, rows: float) -> Facts:
    told = purchase.settings
    named = sum(count for _, count in values.named)
    if not values.named or named < told.key_share * rows:
        return Facts("id", {"bought": ["kind"]}, ("no value is frequent: a key or a free text, never learned",))
    known: dict[str, Any] = {"values": [value for value, _ in values.named]}
    null = values.null > told.null * values.sigma
    left = rows - named - max(values.null, 0.0)
    if left > max(told.named * rows, 2 * values.sigma * math.sqrt(len(values.named) + 1)):
        known["other"] = next(w for w in (OTHER, "(other)", "(any other)") if w not in known["values"])
    known["nullable"] = null
    note = (
        f"{min(1.0, named / rows):.0%} of the rows have one of these, about. Values of fewer than "
        f"{values.threshold:,.0f} rows are not named"
    )
    return Facts("category", {**known, "bought": ["values", "nullable"]}, (note,))


def _dtype(dtype: str) -> dict[str, Any]:
    return {"dtype": dtype} if dtype not in ("", "int64", "double", "float64") else {}
