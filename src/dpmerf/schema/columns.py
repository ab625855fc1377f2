"""Columns: the kinds a column can have, and the public facts that each declares.

Nothing here is ever computed from rows. A bound, a list of categories or a null that is not declared does not exist
for the rest of the program.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dpmerf.schema.notation import Notation
from dpmerf.schema.patterns import Pattern

MAX_BINS = 4096
DAY = 86_400  # seconds

Value = str | int | float


class Column(BaseModel):
    """What every column has. `dtype` is the Arrow type to restore on output; empty means the kind's natural one.

    `reading` says how its cells are written, where that is not as in the rest of the table; `bought` names the facts
    that nobody declared: they were bought with a budget (`dpmerf discover`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    nullable: bool = False
    dtype: str = ""
    reading: Notation | None = None
    bought: tuple[str, ...] = ()

    @field_validator("bought", mode="before")
    @classmethod
    def _list(cls, told: Any) -> Any:
        return tuple(told) if isinstance(told, list) else told


class Category(Column):
    """One of the listed values. Anything else becomes `other`, or null, or (neither declared) the first value.

    `synonyms` are other ways to write a value: { W = "female" }.
    """

    kind: Literal["category"] = "category"
    values: tuple[Value, ...]
    other: Value | None = None
    synonyms: dict[str, Value] = Field(default_factory=dict)

    @field_validator("values", mode="before")
    @classmethod
    def _tuple(cls, values: Any) -> Any:
        if isinstance(values, list | tuple):
            if not values:
                raise ValueError('list the values that can occur, for example values = ["yes", "no"]')
            if len({type(v) for v in values}) > 1 or not isinstance(values[0], str | int | float):
                raise ValueError("list values of one type: all text, or all whole numbers")
            if any(isinstance(v, float) and not math.isfinite(v) for v in values):
                raise ValueError("list finite numbers: a value that is missing is `nullable = true`")
            if len(set(values)) < len(values):
                raise ValueError("list every value once")
        return tuple(values) if isinstance(values, list) else values

    @model_validator(mode="after")
    def _one_type(self) -> Category:
        if self.other is not None and type(self.other) is not type(self.values[0]):
            raise ValueError("write `other` as the same type as the values")
        for word, value in self.synonyms.items():
            if value not in self.levels or type(value) is not type(self.values[0]):
                raise ValueError(f"the synonym '{word}' stands for {value!r}, which is not among the values")
            if word in self.levels:
                raise ValueError(f"'{word}' is a value and a synonym: keep one")
        return self

    @property
    def levels(self) -> tuple[Value, ...]:
        """All values that can be produced, the catch-all last."""
        extra = () if self.other is None or self.other in self.values else (self.other,)
        return self.values + extra


class Flag(Column):
    """True or false. `synonyms` are other ways to write them: { ja = true, nein = false }."""

    kind: Literal["flag"] = "flag"
    synonyms: dict[str, bool] = Field(default_factory=dict)


class Id(Column):
    """A key: generated on output, each once; never read into the release, never learned.

    `pattern` says what it looks like, as in "P[0-9]{7}"; without one, ids are the numbers from 1 on.
    """

    kind: Literal["id"] = "id"
    pattern: str = ""

    @field_validator("pattern")
    @classmethod
    def _readable(cls, pattern: str) -> str:
        if pattern:
            Pattern.parse(pattern)
        return pattern


class Number(Column):
    """A real number in [min, max]; outside is clipped. `log` spreads small values apart; `bins` only for a label."""

    kind: Literal["number"] = "number"
    min: float
    max: float
    log: bool = False
    decimals: int | None = Field(default=None, ge=0, le=12)
    bins: int | None = Field(default=None, ge=2, le=MAX_BINS)

    @field_validator("min", "max", mode="before")
    @classmethod
    def _as_float(cls, bound: Any) -> Any:
        if isinstance(bound, int) and not isinstance(bound, bool):
            return float(bound) if abs(bound) < 10**300 else math.inf  # refused below, as any bound without end
        return bound

    @model_validator(mode="after")
    def _ordered(self) -> Number:
        if not (-1e300 < self.min < self.max < 1e300 and self.max - self.min > 1e-290):
            raise ValueError(f"write min below max, both finite (now min = {self.min}, max = {self.max})")
        return self


class Integer(Column):
    """A whole number min, min + step, …, max."""

    kind: Literal["integer"] = "integer"
    min: int
    max: int
    step: int = Field(default=1, ge=1, le=2**53)
    log: bool = False
    bins: int | None = Field(default=None, ge=2, le=MAX_BINS)

    @model_validator(mode="after")
    def _ordered(self) -> Integer:
        if not (-(2**53) <= self.min < self.max <= 2**53):
            raise ValueError(f"write min below max, within ±2^53 (now min = {self.min}, max = {self.max})")
        return self


class Date(Column):
    """A calendar day from `first` to `last`, every `step` days."""

    kind: Literal["date"] = "date"
    first: dt.date
    last: dt.date
    step: int = Field(default=1, ge=1, le=2**53)

    @model_validator(mode="after")
    def _ordered(self) -> Date:
        if not self.first < self.last:
            raise ValueError(f"write first before last (now first = {self.first}, last = {self.last})")
        return self


class Timestamp(Column):
    """A moment from `first` to `last`, every `step` seconds. Times of day are taken as written (UTC if zoned)."""

    kind: Literal["timestamp"] = "timestamp"
    first: dt.datetime
    last: dt.datetime
    step: int = Field(default=1, ge=1, le=2**53)

    @model_validator(mode="after")
    def _ordered(self) -> Timestamp:
        if self.first.tzinfo is not None or self.last.tzinfo is not None:
            raise ValueError("write first and last without a time zone; they are read as UTC")
        if not self.first < self.last:
            raise ValueError(f"write first before last (now first = {self.first}, last = {self.last})")
        return self


class Time(Column):
    """A time of day from `first` to `last`, every `step` seconds (60: minutes). Past midnight if `first` is the later.

    A time outside goes to the nearer end. The day is cut open at `first`: put it where few rows are to be expected.
    """

    kind: Literal["time"] = "time"
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


class Image(Column):
    """A picture of `height` × `width` pixels, grey or RGB, with pixel values from `low` to `high`; outside is clipped.

    Tables hold it as `height · width · channels` bytes, rows of pixels first. A cell that is no such picture is black.
    """

    kind: Literal["image"] = "image"
    height: int = Field(ge=4, le=128)
    width: int = Field(ge=4, le=128)
    channels: Literal[1, 3] = 1
    low: float = 0.0
    high: float = 255.0

    @model_validator(mode="after")
    def _plain(self) -> Image:
        if not (-1e30 < self.low < self.high < 1e30):
            raise ValueError(f"write low below high, both finite (now low = {self.low}, high = {self.high})")
        if self.nullable or self.dtype:
            raise ValueError("an image is never null and has no dtype: remove `nullable` and `dtype`")
        return self

    @property
    def pixels(self) -> int:
        """How many numbers a picture has, all channels together."""
        return self.height * self.width * self.channels


Numeric = Number | Integer | Date | Timestamp | Time
AnyColumn = Annotated[
    Category | Flag | Id | Number | Integer | Date | Timestamp | Time | Image, Field(discriminator="kind")
]
KINDS = tuple(get_args(c.model_fields["kind"].annotation)[0] for c in get_args(get_args(AnyColumn)[0]))
