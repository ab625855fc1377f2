"""Bought: what noisy looks say about a column. Post-processing: the same numbers give the same facts on any machine."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpmerf.discovery import looks
from dpmerf.discovery.purchase import FLAG, LEFT_OUT, MOMENT, NUMBER, TEXT, Purchase
from dpmerf.discovery.ranges import Coarse, Noisy, bounds
from dpmerf.schema.facts import Facts

OTHER = "other"
WORDS = {NUMBER: "numbers", MOMENT: "dates", TEXT: "texts", FLAG: "yes or no"}
_FIRST_DAY, _LAST_DAY = dt.date(1, 1, 1), dt.date(9999, 12, 31)


@final
@dataclass(frozen=True)
class Values:
    """Frequent values of a text column, and noisy counts of its nulls and of rows without a named value."""

    named: tuple[str, ...]
    null: float
    left: float
    sigma: float  # of both
    threshold: float


def rows_of(purchase: Purchase, scales: dict[str, Noisy]) -> float:
    """How many rows there are: public, or by what stands out in the first look."""
    if purchase.unit.rows_public or not scales:
        return float(purchase.rows)
    sums = [float(n.counts[n.counts > 2 * n.sigma].sum()) for n in scales.values()]
    return max(1.0, float(np.median(sums)))


def facts(
    purchase: Purchase,
    name: str,
    first: Coarse | None,
    ends: Noisy | None,
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
    low, high = bounds(purchase, first, ends, rows)
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
        unit = 10 ** (place - 5)
        low, high = math.floor(low * unit) / unit, math.ceil(high * unit) / unit
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
    left, null = max(values.left, 0.0), max(values.null, 0.0)
    if not values.named or rows - left - null < told.key_share * rows:
        return Facts("id", {"bought": ["kind"]}, ("no value is frequent: a key or a free text, never learned",))
    known: dict[str, Any] = {"values": list(values.named)}
    if left > told.other * values.sigma:
        known["other"] = next(w for w in (OTHER, "(other)", "(any other)") if w not in known["values"])
    known["nullable"] = null > told.null * values.sigma
    note = (
        f"{max(0.0, 1 - (left + null) / rows):.0%} of the rows have one of these, about. Values of fewer than "
        f"{values.threshold:,.0f} rows are not named"
    )
    return Facts("category", {**known, "bought": ["values", "nullable"]}, (note,))


def _dtype(dtype: str) -> dict[str, Any]:
    return {"dtype": dtype} if dtype not in ("", "int64", "double", "float64") else {}
