"""Instants: moments as whole nanoseconds since 1970-01-01 UTC, and their ISO text. Exact integers; nothing raises.

Integers, because a float cannot hold a nanosecond: rounded in one form of a column and cut in another, one moment
would get two places. Moments outside the years 1 to 9999 are the first or the last of them.
"""

from __future__ import annotations

import datetime as dt
import re

import numpy as np

SECOND = 10**9
DAY = 86_400 * SECOND
_EPOCH = dt.datetime(1970, 1, 1)
_DAY_ZERO = _EPOCH.toordinal()
FIRST = (1 - _DAY_ZERO) * DAY
LAST = (dt.date.max.toordinal() + 1 - _DAY_ZERO) * DAY - 1

PATTERN = (  # a moment in text, for Python and for Arrow
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$"
)
_MOMENT = re.compile(PATTERN)
_UNITS = {
    "W": 7 * DAY,
    "D": DAY,
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_PARTS = {"ps": 10**3, "fs": 10**6, "as": 10**9}  # how many make a nanosecond


def clipped(nanoseconds: int) -> int:
    """Within the range of moments that can be written."""
    return min(max(nanoseconds, FIRST), LAST)


def of_text(cell: str) -> int | None:
    """Nanoseconds of an ISO date or moment; None for any other text, 2023-02-31 included.

    >>> of_text("1970-01-01T00:00:00.499999999"), of_text("1970-01-02 01:00+01:00"), of_text("1970-02-31")
    (499999999, 86400000000000, None)
    """
    found = _MOMENT.match(cell)
    if found is None:
        return None
    year, month, day, *clock, fraction, zone = found.groups()
    hour, minute, second = (int(part or 0) for part in clock)
    try:
        moment = dt.datetime(int(year), int(month), int(day), hour, minute, second)
    except ValueError:
        return None
    away = 0
    if zone not in (None, "Z"):
        away = (int(zone[1:3]) * 60 + int(zone[4:6])) * (-60 if zone[0] == "-" else 60)
    return clipped(_naive(moment) + int((fraction or "0")[:9].ljust(9, "0")) - away * SECOND)


def text(nanoseconds: int, zone: str = "") -> str:
    """ISO text: the day alone at midnight, the time of day with as many decimals as it needs otherwise, or a `zone`.

    >>> text(86_400 * 10**9), text(1_500_000_000)
    ('1970-01-02', '1970-01-01T00:00:01.5')
    """
    days, rest = divmod(clipped(nanoseconds), DAY)
    day = dt.date.fromordinal(days + _DAY_ZERO).isoformat()
    if not rest and not zone:
        return day
    seconds, fraction = divmod(rest, SECOND)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{day}T{clock}" + (f".{fraction:09}".rstrip("0") if fraction else "") + zone


def of_datetime(cell: dt.datetime) -> int | None:
    """A datetime, as written without a zone, in UTC with one; None if its zone does not know."""
    try:
        away = cell.utcoffset()
    except Exception:  # zones are other people's code, and the years 1 and 9999 are their edge
        return None
    return clipped(
        _naive(cell.replace(tzinfo=None)) - (0 if away is None else away // dt.timedelta(microseconds=1) * 1000)
    )


def of_numpy(cell: np.datetime64) -> int | None:
    """A NumPy moment of any unit."""
    if np.isnat(cell):
        return None
    unit, count = np.datetime_data(cell.dtype)
    value = int(cell.astype(np.int64)) * count
    if unit in ("Y", "M"):
        months = value * 12 if unit == "Y" else value
        year, month = 1970 + months // 12, months % 12 + 1
        return FIRST if year < 1 else LAST if year > 9999 else _naive(dt.datetime(year, month, 1))
    if unit in _PARTS:
        return clipped(value // _PARTS[unit])
    return clipped(value * _UNITS[unit]) if unit in _UNITS else None


def floors(values: np.ndarray, unit: int, step: int) -> np.ndarray:
    """Whole `step`s of nanoseconds below each moment, for int64 moments counted in `unit`s of nanoseconds."""
    low, high = max(-(-FIRST // unit), -(2**63)), min(LAST // unit, 2**63 - 1)
    inside = np.clip(values, low, high)
    return inside // (step // unit) if step >= unit else inside * (unit // step)


def _naive(moment: dt.datetime) -> int:
    since = moment - _EPOCH
    return since.days * DAY + since.seconds * SECOND + since.microseconds * 1000
