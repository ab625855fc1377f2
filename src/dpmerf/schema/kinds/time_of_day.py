"""The kind `time`: a time of day, over midnight where declared. All that the program knows of it is here."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from dpmerf.schema.kinds.column import Cells, Form, Numeric
from dpmerf.schema.kinds.numbers import number_typed
from dpmerf.schema.quantities import Fact

DAY = 86_400  # seconds
_MICRO = 10**6
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_CLOCK = re.compile(r"^([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?$")


def seconds_of(cell: str) -> int | None:
    """Whole seconds after midnight of a time of day; None for any other text. 24:00 is midnight.

    >>> seconds_of("06:30"), seconds_of("24:00:00"), seconds_of("24:01"), seconds_of("9:05:07.5")
    (23400, 0, None, 32707)
    """
    found = _CLOCK.match(cell)
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups())
    at = hour * 3600 + minute * 60 + second
    past = at == DAY and any(digit in "123456789" for digit in cell.partition(".")[2][:9])
    return at % DAY if minute < 60 and second < 60 and at <= DAY and not past else None


def clock_text(microseconds: int) -> str:
    """The one text of a time of day, in microseconds: objects hold no more.

    >>> clock_text(23_400 * 10**6), clock_text(1_500_000)
    ('06:30:00', '00:00:01.5')
    """
    seconds, fraction = divmod(microseconds, _MICRO)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + (f".{fraction:06}".rstrip("0") if fraction else "")


@final
class Clock(Form):
    """Arrow's times and Python's. A damaged time means nothing."""

    def holds(self, stored: pa.DataType) -> bool:
        return pa.types.is_time(stored)

    def texts(self, array: pa.Array) -> list[str | None]:
        whole = array.view(pa.int32() if pa.types.is_time32(array.type) else pa.int64())
        unit = _UNITS[array.type.unit]
        inside = (at if 0 <= at < DAY * 10**9 // unit else None for at in pc.fill_null(whole, -1).to_pylist())
        return [None if at is None else clock_text(at * unit // 1000) for at in inside]

    def of_object(self, cell: Any) -> str | None:
        """As written, with or without a zone."""
        if not isinstance(cell, dt.time):
            return None
        return clock_text((cell.hour * 3600 + cell.minute * 60 + cell.second) * _MICRO + cell.microsecond)


class Time(Numeric):
    """A time of day from `first` to `last`, every `step` seconds (60: minutes). Past midnight if `first` is the later.

    A time outside goes to the nearer end. The day is cut open at `first`: put it where few rows are to be expected.
    """

    kind: Literal["time"] = "time"
    usual = pa.time32("s")
    counted_in, apart_in = "seconds after midnight", ("minutes", 60.0)
    title = "time – a time of day"
    hint = "first, last = 22:00:00 (the whole day if left out); step = 1 (seconds), 60: minutes"
    asks = ("first", "last", "step")
    example = ("00:00:00", "23:59:59")
    notated = "moment"
    form = Clock()
    spans = (900, 1_800, 3_600, 7_200, 10_800, 21_600)
    rounded = (60, 300, 900, 3_600)
    first: dt.time = dt.time(0)
    last: dt.time = dt.time(23, 59, 59)
    step: int = Field(default=1, ge=1, le=43_200)

    @model_validator(mode="after")
    def _plain(self) -> Time:
        if any(t.tzinfo is not None or t.microsecond for t in (self.first, self.last)):
            raise ValueError("write first and last in whole seconds and without a time zone, as in 22:00:00")
        if self.first == self.last:
            raise ValueError(f"write first and last that differ (now both are {self.first})")
        return self

    @property
    def seconds(self) -> tuple[int, int]:
        """First and last in seconds after midnight; the last is past the next midnight where that lies between."""
        low, high = (t.hour * 3600 + t.minute * 60 + t.second for t in (self.first, self.last))
        high += DAY if high < low else 0
        return low, low + (high - low) // self.step * self.step

    @property
    def line(self) -> tuple[float, float, float | None, bool]:
        return *self.seconds, self.step, False

    def read(self, cells: Cells, array: Any) -> np.ndarray:
        """On the line that begins at the column's first; times outside lie beyond the end they are nearer."""
        low, high = self.seconds
        at = low + (cells.each(array, seconds_of) - low) % DAY
        return np.where(at - high > low + DAY - at, at - DAY, at)

    def array(self, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
        return pa.array((values % DAY).astype(np.int32), pa.int32(), mask=absent).cast(pa.time32("s"))

    def back(self, written: pa.Array, stored: pa.DataType) -> pa.Array:
        """Arrow reads no time of day from text."""
        if not (pa.types.is_string(written.type) or pa.types.is_large_string(written.type)):
            return super().back(written, stored)
        return pa.array([seconds_of(cell) for cell in written.to_pylist()], pa.int32()).cast(stored)

    def shown(self, value: float) -> str:
        return f"{int(value) // 3600 % 24:02}:{int(value) // 60 % 60:02}"

    def exact(self, value: float) -> str:
        return self._clock(value).isoformat()

    def at(self, place: float) -> dt.time:
        low, high = self.seconds
        return self._clock(low + place * (high - low))

    def _clock(self, value: float) -> dt.time:
        at = round(value) % DAY
        return dt.time(at // 3600, at // 60 % 60, at % 60)

    def fact(self) -> Fact:
        low, high = self.seconds
        return Fact("number", float(low), float(high), self.nullable, float(self.step))

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        return {} if pa.types.is_time(stored) else None

    def frictionless(self) -> tuple[str, tuple[str, str] | None]:
        return "time", ("first", "last") if self.first < self.last else None  # no table schema is over midnight

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "datetime", "datetime_format": "%H:%M:%S"}

    @classmethod
    def told(cls, low: Any, high: Any, above: Any, below: Any, said: list[str]) -> dict[str, Any]:
        found = {}
        for key, bound in (("first", low if low is not None else above), ("last", high if high is not None else below)):
            clock = cls.typed(key, str(bound).strip()) if bound is not None else None
            if isinstance(clock, dt.time) and clock.tzinfo is None:
                found[key] = clock.replace(microsecond=0)
            elif bound is not None:
                said.append(f"its {key} time is not written as 22:00:00: write it")
        return found

    @classmethod
    def typed(cls, key: str, text: str) -> Any:
        if key == "step":
            return number_typed(text)
        try:
            return dt.time.fromisoformat(text)
        except ValueError:
            return text
