"""Kinds on the calendar: days and moments."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from dpmerf.schema.kinds.column import Cells, Numeric
from dpmerf.schema.kinds.numbers import Integer, number_typed
from dpmerf.schema.quantities import DAY, Fact

_EPOCH = dt.datetime(1970, 1, 1)


class Date(Numeric):
    """A calendar day from `first` to `last`, every `step` days."""

    kind: Literal["date"] = "date"
    usual = pa.date32()
    counted_in, apart_in = "days since 1970-01-01", ("days", 1.0)
    title = "date – a day"
    hint = "first, last = 2024-12-31; step = 1 (days)"
    needs = ("first", "last")
    asks = ("first", "last", "step")
    example = ("2020-01-01", "2024-12-31")
    notated = "moment"
    first: dt.date
    last: dt.date
    step: int = Field(default=1, ge=1, le=2**53)

    @model_validator(mode="after")
    def _ordered(self) -> Date:
        if not self.first < self.last:
            raise ValueError(f"write first before last (now first = {self.first}, last = {self.last})")
        return self

    @property
    def line(self) -> tuple[float, float, float | None, bool]:
        low, high = (float((day - _EPOCH.date()).days) for day in (self.first, self.last))
        return low, low + (high - low) // self.step * self.step, self.step, False

    def read(self, cells: Cells, array: Any) -> np.ndarray:
        return cells.days(array)

    def array(self, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
        return pa.array(values.astype(np.int32), pa.int32(), mask=absent).cast(pa.date32())

    def shown(self, value: float) -> str:
        return str(np.datetime64(int(value), "D"))

    def exact(self, value: float) -> str:
        return str(np.datetime64("1970-01-01") + np.timedelta64(round(value), "D"))

    def at(self, place: float) -> dt.date:
        return self.first + dt.timedelta(days=round(place * (self.last - self.first).days))

    def fact(self) -> Fact:
        low, last = ((d - _EPOCH.date()).days * DAY for d in (self.first, self.last))
        days = self.step * DAY
        return Fact("moment", low, low + (last - low) // days * days, self.nullable, days, scale=DAY)

    def narrowed(self, low: float, high: float) -> Date:
        first, last = ((_EPOCH + dt.timedelta(seconds=s)).date() for s in (low, high))
        return self.model_copy(update={"first": max(first, self.first), "last": min(last, self.last)})

    def gap(self) -> Integer:
        return Integer(min=0, max=(self.last - self.first).days, step=self.step, nullable=True, log=True)

    def frictionless(self) -> tuple[str, tuple[str, str]]:
        return "date", ("first", "last")

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        return {} if pa.types.is_date(stored) else None

    @classmethod
    def told(cls, low: Any, high: Any, above: Any, below: Any, said: list[str]) -> dict[str, Any]:
        return moments(True, low if low is not None else above, high if high is not None else below, said)

    @classmethod
    def typed(cls, key: str, text: str) -> Any:
        return number_typed(text) if key == "step" else moment_typed(text)


class Timestamp(Numeric):
    """A moment from `first` to `last`, every `step` seconds, as written.

    Moments of a time zone are UTC, or with reading = { zone = "Europe/Berlin" } that zone's local time: a midnight
    there stays one. Its day, weekday and time of day are learned as columns of their own, unless `clock` is false.
    """

    kind: Literal["timestamp"] = "timestamp"
    usual = pa.timestamp("us")
    counted_in, apart_in = "seconds since 1970-01-01", ("hours", 3_600.0)
    title = "timestamp – a moment"
    hint = "first, last = 2024-12-31T23:59:59; step = 1 (seconds)"
    needs = ("first", "last")
    asks = ("first", "last", "step")
    example = ("2020-01-01T00:00", "2024-12-31T23:59")
    notated = "moment"
    first: dt.datetime
    last: dt.datetime
    step: int = Field(default=1, ge=1, le=2**53)
    clock: bool = True

    @model_validator(mode="after")
    def _ordered(self) -> Timestamp:
        if self.first.tzinfo is not None or self.last.tzinfo is not None:
            raise ValueError("write first and last without a time zone; they are read as UTC")
        if not self.first < self.last:
            raise ValueError(f"write first before last (now first = {self.first}, last = {self.last})")
        return self

    @property
    def line(self) -> tuple[float, float, float | None, bool]:
        low, high = ((t - _EPOCH).total_seconds() for t in (self.first, self.last))
        return low, low + (high - low) // self.step * self.step, self.step, False

    def read(self, cells: Cells, array: Any) -> np.ndarray:
        return cells.seconds(array)

    def array(self, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
        return pa.array(values.astype(np.int64), pa.int64(), mask=absent).cast(pa.timestamp("s"))

    def shown(self, value: float) -> str:
        return str(np.datetime64(int(value), "s").astype("datetime64[D]"))

    def exact(self, value: float) -> str:
        return str(np.datetime64("1970-01-01T00:00:00") + np.timedelta64(round(value), "s"))

    def at(self, place: float) -> dt.datetime:
        return self.first + dt.timedelta(seconds=round(place * (self.last - self.first).total_seconds()))

    def fact(self) -> Fact:
        low, end, _, _ = self.line
        return Fact("moment", low, end, self.nullable, float(self.step))

    def narrowed(self, low: float, high: float) -> Timestamp:
        first, last = (_EPOCH + dt.timedelta(seconds=s) for s in (low, high))
        return self.model_copy(update={"first": max(first, self.first), "last": min(last, self.last)})

    def gap(self) -> Integer:
        seconds = (self.last - self.first) // dt.timedelta(seconds=1)
        return Integer(min=0, max=seconds, step=self.step, nullable=True, log=True)

    def frictionless(self) -> tuple[str, tuple[str, str]]:
        return "datetime", ("first", "last")

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"}

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        if not pa.types.is_timestamp(stored):
            return None
        return {} if stored.tz in (None, "UTC") else {"reading": {"zone": stored.tz}}  # a midnight there stays one

    @classmethod
    def told(cls, low: Any, high: Any, above: Any, below: Any, said: list[str]) -> dict[str, Any]:
        return moments(False, low if low is not None else above, high if high is not None else below, said)

    @classmethod
    def typed(cls, key: str, text: str) -> Any:
        return number_typed(text) if key == "step" else moment_typed(text)


def moment_typed(text: str) -> Any:
    """A date or moment as typed into a form; other text stays."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment if len(text) > 10 else moment.date()


def moments(day: bool, low: Any, high: Any, said: list[str]) -> dict[str, Any]:
    """`first` and `last` from metadata."""
    found: dict[str, Any] = {}
    for key, value in (("first", low), ("last", high)):
        moment = _moment(day, value)
        if moment is not None:
            found[key] = moment
        elif value is not None:
            said.append(f"its {key} moment is not written as year-month-day: write it")
    if len(found) == 2 and not found["first"] < found["last"]:
        said.append("its first moment is not before its last: write them")
        return {}
    return found


def _moment(day: bool, value: Any) -> dt.date | dt.datetime | None:
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        plain = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        return plain.date() if day else plain.replace(microsecond=0)
    if isinstance(value, dt.date):
        return value if day else dt.datetime(value.year, value.month, value.day)
    return None
