"""Kinds without a line of numbers: categories, flags, ids and pictures."""

from __future__ import annotations

import math
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from dpmerf.schema.kinds.column import Column, Value
from dpmerf.schema.patterns import Pattern
from dpmerf.schema.quantities import Fact

PATTERN = "pattern:"  # begins an `other_from` that is no list


class Category(Column):
    """One of the listed values. Anything else becomes `other`, or null, or (neither declared) the first value.

    `synonyms` are other ways to write a value: { W = "female" }. `other_from` says what is written for `other`: values
    drawn from a public list that are not among `values`, or a pattern, as in "pattern:[A-Z][0-9]{2}".
    """

    kind: Literal["category"] = "category"
    title = "category – one of a list"
    hint = 'values = ["a", "b"], or a file: values = "codes.csv"; other = "catch-all"'
    needs = ("values",)
    asks = ("values", "other")
    values: tuple[Value, ...]
    other: Value | None = None
    synonyms: dict[str, Value] = Field(default_factory=dict)
    other_from: tuple[Value, ...] | str = ()

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

    @field_validator("other_from", mode="before")
    @classmethod
    def _listed(cls, values: Any) -> Any:
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
        if self.other_from:
            self._check_other_from()
        return self

    def _check_other_from(self) -> None:
        if self.other is None or self.other in self.values:
            raise ValueError('`other_from` says what is written for `other`: declare other = "other", not among values')
        if isinstance(self.other_from, str):
            if not self.other_from.startswith(PATTERN) or not isinstance(self.other, str):
                raise ValueError('write `other_from` as a list of values, or as "pattern:[A-Z][0-9]{2}"')
            Pattern.parse(self.other_from.removeprefix(PATTERN))
        elif any(type(v) is not type(self.values[0]) for v in self.other_from):
            raise ValueError("write `other_from` as the same type as the values")
        elif not set(self.other_from) - {*self.levels, *self.synonyms}:
            raise ValueError("`other_from` holds no value beside those of `values`")

    @property
    def levels(self) -> tuple[Value, ...]:
        """All values that can be produced, the catch-all last."""
        extra = () if self.other is None or self.other in self.values else (self.other,)
        return self.values + extra

    @property
    def natural(self) -> pa.DataType:
        return {str: pa.string(), int: pa.int64(), float: pa.float64()}[type(self.values[0])]

    @property
    def audited(self) -> pa.DataType:
        return pa.large_string()

    def at(self, place: float) -> str:
        return str(self.levels[min(int(place * len(self.levels)), len(self.levels) - 1)])

    def fact(self) -> Fact:
        return Fact("category", nullable=self.nullable, levels=self.levels)

    def frictionless(self) -> tuple[str, None]:
        return {str: "string", int: "integer", float: "number"}[type(self.values[0])], None

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "categorical"}

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        if pa.types.is_dictionary(stored):
            return {"dtype": "dictionary"}
        text = pa.types.is_string(stored) or pa.types.is_large_string(stored) or pa.types.is_string_view(stored)
        return {} if text else None


class Flag(Column):
    """True or false. `synonyms` are other ways to write them: { ja = true, nein = false }."""

    kind: Literal["flag"] = "flag"
    usual = pa.bool_()
    title = "flag – true or false"
    hint = "true or false"
    synonyms: dict[str, bool] = Field(default_factory=dict)

    @property
    def levels(self) -> tuple[bool, bool]:
        """Both values, in order of their codes."""
        return (False, True)

    def at(self, place: float) -> bool:
        return place >= 0.5

    def fact(self) -> Fact:
        return Fact("flag", nullable=self.nullable, levels=self.levels)

    def frictionless(self) -> tuple[str, None]:
        return "boolean", None

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "boolean"}

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        return {} if pa.types.is_boolean(stored) else None


class Id(Column):
    """A key: generated on output, each once; never read into the release, never learned.

    `pattern` says what it looks like, as in "P[0-9]{7}"; without one, ids are the numbers from 1 on.
    """

    kind: Literal["id"] = "id"
    title = "id – a key, never learned"
    asks = ("pattern",)
    hint = "a key or a text: never learned, made up on output"
    pattern: str = ""

    @field_validator("pattern")
    @classmethod
    def _readable(cls, pattern: str) -> str:
        if pattern:
            Pattern.parse(pattern)
        return pattern

    @property
    def natural(self) -> pa.DataType:
        return pa.string() if self.pattern else pa.int64()

    @property
    def audited(self) -> pa.DataType:
        return pa.large_string()

    def at(self, place: float) -> str:
        return "0"

    def frictionless(self) -> tuple[str, None]:
        return "string", None

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "id"}


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

    @property
    def natural(self) -> pa.DataType:
        return pa.binary(self.pixels)

    @property
    def audited(self) -> pa.DataType:
        return pa.large_string()

    def at(self, place: float) -> str:
        return "0"
