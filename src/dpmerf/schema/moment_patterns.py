"""Moment patterns: dates and times as people write them, such as `%d.%m.%Y %H:%M`, turned into ISO text.

The directives are those of strptime: %Y %y %m %d %H %I %p %M %S %f %z, and %b or %B for a month's name (English,
German, French, Spanish). Everything else stands for itself. A text is read by the pattern as a whole or not at all.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import final

_NAMES = (
    "jan january januar jänner janvier janv enero ene",
    "feb february februar février févr fév febrero",
    "mar march märz mrz mär mars marzo",
    "apr april avril avr abril abr",
    "may mai mayo",
    "jun june juni juin junio",
    "jul july juli juillet juil julio",
    "aug august août aoû agosto ago",
    "sep sept september septembre septiembre",
    "oct okt october oktober octobre octubre",
    "nov november novembre noviembre",
    "dec dez dic december dezember décembre déc diciembre",
)
MONTHS = {name: month for month, names in enumerate(_NAMES, 1) for name in names.split()}
_PARTS = {
    "Y": r"(?P<Y>[0-9]{4})",
    "y": r"(?P<y>[0-9]{2})",
    "m": r"(?P<m>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})",
    "H": r"(?P<H>[0-9]{1,2})",
    "I": r"(?P<I>[0-9]{1,2})",
    "M": r"(?P<M>[0-9]{1,2})",
    "S": r"(?P<S>[0-9]{1,2})",
    "f": r"(?P<f>[0-9]{1,9})",
    "p": r"(?P<p>[aApP]\.?[mM]\.?)",
    "z": r"(?P<z>Z|[+-][0-9]{2}:?[0-9]{2})",
    "b": rf"(?P<b>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?",
}
_CENTURY = 69  # two digits of a year: 69 to 99 are 1969 to 1999, as strptime has it


@final
@dataclass(frozen=True)
class MomentPattern:
    """One way to write a date, or a date with a time of day.

    >>> MomentPattern("%d.%m.%Y").iso("31.12.2023"), MomentPattern("%m/%d/%y %I:%M %p").iso("1/2/24 12:05 AM")
    ('2023-12-31', '2024-01-02T00:05:00')
    >>> MomentPattern("%d.%m.%Y").iso("2023-12-31") is None
    True
    """

    text: str

    def __post_init__(self) -> None:
        _compiled(self.text)

    def iso(self, cell: str) -> str | None:
        """The cell as ISO text; None if it is not written like this. Whether the day exists is not asked."""
        found = _compiled(self.text).fullmatch(cell)
        if found is None:
            return None
        part = {key: value for key, value in found.groupdict().items() if value is not None}
        year = int(part["Y"]) if "Y" in part else int(part["y"]) + (1900 if int(part["y"]) >= _CENTURY else 2000)
        month = MONTHS[part["b"].lower()] if "b" in part else int(part["m"])
        day = f"{year:04}-{month:02}-{int(part['d']):02}"
        if not set(part) & {"H", "I"}:
            return day
        hour = int(part["H"]) if "H" in part else _of_twelve(int(part["I"]), part.get("p", "am"))
        if hour is None:
            return None
        clock = f"{hour:02}:{int(part.get('M', 0)):02}:{int(part.get('S', 0)):02}"
        fraction = f".{part['f']}" if "f" in part else ""
        zone = part.get("z", "")
        return f"{day}T{clock}{fraction}{zone if ':' in zone or zone in ('', 'Z') else zone[:3] + ':' + zone[3:]}"

    def write(self, moment: dt.datetime) -> str:
        """A moment written like this, with the month's name in English."""
        return moment.strftime(self.text.replace("%B", "%b"))


def check_patterns(patterns: tuple[str, ...]) -> None:
    """ValueError if a pattern is none, or if two of them (or one and ISO) read some text as different moments."""
    every = [*(MomentPattern(p) for p in patterns), MomentPattern("%Y-%m-%d"), MomentPattern("%Y-%m-%dT%H:%M:%S")]
    moments = [dt.datetime(2001, 2, 3, 4, 5, 6), dt.datetime(2012, 11, 10, 9, 8, 7)]
    for one, other in permutations(every, 2):
        for moment in moments:
            text = one.write(moment)
            first, second = one.iso(text), other.iso(text)
            if first is not None and second is not None and first[:10] != second[:10]:
                raise ValueError(
                    f"'{one.text}' and '{other.text}' read the same text as different days: keep one of them "
                    "(ISO dates, year-month-day, are always read)"
                )


def _of_twelve(hour: int, half: str) -> int | None:
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half[0] in "pP" else 0)


@lru_cache(maxsize=256)
def _compiled(text: str) -> re.Pattern[str]:
    """The pattern as a regular expression; ValueError says what is wrong with it."""
    pieces = re.split(r"(%.?)", text)
    found: list[str] = []
    used: list[str] = []
    for at, piece in enumerate(pieces):
        if not piece.startswith("%"):
            found.append(re.escape(piece))
            continue
        letter = {"B": "b"}.get(piece[1:], piece[1:])
        if letter == "%":
            found.append("%")
            continue
        if letter not in _PARTS:
            raise ValueError(f"'{piece}' in '{text}' is not known. Write %d %m %Y %y %b %H %I %p %M %S %f or %z")
        if letter in used:
            raise ValueError(f"'{piece}' stands twice in '{text}': write each part once")
        used.append(letter)
        alone = not any(pieces[i] == "" for i in (at - 1, at + 1) if 0 < i < len(pieces) - 1)
        found.append(_PARTS[letter] if alone else _PARTS[letter].replace("{1,2}", "{2}"))
    if not ({"Y", "y"} & set(used) and {"m", "b"} & set(used) and "d" in used):
        raise ValueError(f"'{text}' names no whole date: write a year (%Y), a month (%m or %b) and a day (%d)")
    if len({"Y", "y"} & set(used)) + len({"m", "b"} & set(used)) + len({"H", "I"} & set(used)) > 3 - (
        not {"H", "I"} & set(used)
    ):
        raise ValueError(f"'{text}' names a year, a month or an hour twice: write each part once")
    if "I" in used and "p" not in used:
        raise ValueError(f"'{text}' has %I, an hour of twelve, without %p (AM or PM): add %p, or write %H")
    return re.compile("".join(found), re.IGNORECASE)


def iso_of(patterns: tuple[str, ...], cell: str) -> str | None:
    """ISO text by the first pattern that reads the whole cell."""
    for text in patterns:
        found = MomentPattern(text).iso(cell)
        if found is not None:
            return found
    return None
