"""Kinds on a line of numbers: real and whole ones."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from dpmerf.schema.kinds.column import Cells, Numeric
from dpmerf.schema.quantities import Fact

MAX_BINS = 4096


class Number(Numeric):
    """A real number in [min, max]; outside is clipped. `log` spreads small values apart; `bins` only for a label."""

    kind: Literal["number"] = "number"
    usual = pa.float64()
    title = "number – with decimals"
    hint = "min, max; decimals = 2, log = true"
    needs = ("min", "max")
    asks = ("min", "max", "decimals", "log")
    notated = "number"
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

    @property
    def line(self) -> tuple[float, float, float | None, bool]:
        return self.min, self.max, None if self.decimals is None else 10.0**-self.decimals, self.log

    def read(self, cells: Cells, array: Any) -> np.ndarray:
        return cells.numbers(array)

    def array(self, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
        return pa.array(values, pa.float64(), mask=absent)

    def shown(self, value: float) -> str:
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"

    def exact(self, value: float) -> float:
        return float(f"{value:.6g}")

    def at(self, place: float) -> float:
        return self.min + place * (self.max - self.min)

    def fact(self) -> Fact:
        step = None if self.decimals is None else 10.0**-self.decimals
        return Fact("number", self.min, self.max, self.nullable, step, self.decimals)

    def narrowed(self, low: float, high: float) -> Number:
        return self.model_copy(update={"min": max(low, self.min), "max": min(high, self.max)})

    def gap(self) -> Number:
        return Number(min=0.0, max=self.max - self.min, decimals=self.decimals, nullable=True, log=True)

    def frictionless(self) -> tuple[str, tuple[str, str]]:
        return "number", ("min", "max")

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "numerical"}

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        if pa.types.is_decimal(stored):
            return {"decimals": max(stored.scale, 0)}
        return {} if pa.types.is_floating(stored) else None

    @classmethod
    def told(cls, low: Any, high: Any, above: Any, below: Any, said: list[str]) -> dict[str, Any]:
        return bounds(False, low, high, above, below, said)

    @classmethod
    def typed(cls, key: str, text: str) -> Any:
        return number_typed(text)


class Integer(Numeric):
    """A whole number min, min + step, …, max."""

    kind: Literal["integer"] = "integer"
    usual = pa.int64()
    title = "integer – whole number"
    hint = "min, max; step = 1, log = true"
    needs = ("min", "max")
    asks = ("min", "max", "step", "log")
    notated = "number"
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

    @property
    def line(self) -> tuple[float, float, float | None, bool]:
        levels = (self.max - self.min) // self.step
        return self.min, self.min + levels * self.step, self.step, self.log

    def read(self, cells: Cells, array: Any) -> np.ndarray:
        return cells.numbers(array)

    def array(self, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
        return pa.array(values.astype(np.int64), pa.int64(), mask=absent)

    def shown(self, value: float) -> str:
        return f"{value:,.0f}"

    def exact(self, value: float) -> int:
        return round(value)

    def at(self, place: float) -> int:
        return self.min + round(place * (self.max - self.min))

    def fact(self) -> Fact:
        high = self.min + (self.max - self.min) // self.step * self.step
        return Fact("number", float(self.min), float(high), self.nullable, float(self.step))

    def narrowed(self, low: float, high: float) -> Integer:
        return self.model_copy(update={"min": max(round(low), self.min), "max": min(round(high), self.max)})

    def gap(self) -> Integer:
        return Integer(min=0, max=self.max - self.min, step=self.step, nullable=True, log=True)

    def frictionless(self) -> tuple[str, tuple[str, str]]:
        return "integer", ("min", "max")

    def sdv(self) -> dict[str, Any]:
        return {"sdtype": "numerical", "computer_representation": "Int64"}

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        return {} if pa.types.is_integer(stored) else None

    @classmethod
    def told(cls, low: Any, high: Any, above: Any, below: Any, said: list[str]) -> dict[str, Any]:
        return bounds(True, low, high, above, below, said)

    @classmethod
    def typed(cls, key: str, text: str) -> Any:
        return number_typed(text)


def number_typed(text: str) -> Any:
    """A number as typed into a form; other text stays."""
    plain = text.replace(" ", "").replace("\u202f", "")
    if re.fullmatch(r"[+-]?\d{1,30}", plain):
        return int(plain)
    try:
        return float(plain)
    except ValueError:
        return text


def bounds(whole: bool, low: Any, high: Any, above: Any, below: Any, said: list[str]) -> dict[str, Any]:
    """`min` and `max` from metadata; open ends of whole numbers are moved inward."""
    found: dict[str, Any] = {}
    for key, closed, opened, inward in (("min", low, above, 1), ("max", high, below, -1)):
        value, strict = (closed, False) if closed is not None else (opened, True)
        number = number_of(value)
        if number is None:
            if value is not None:
                said.append(f"its {key} is not a finite number in the metadata: write it")
            continue
        if whole:
            nearest = math.ceil(number) if key == "min" else math.floor(number)
            found[key] = nearest + inward if strict and nearest == number else nearest
        else:
            found[key] = number
    if len(found) == 2 and not found["min"] < found["max"]:
        said.append("its bounds hold no two values: write them")
        return {}
    return found


def number_of(value: Any) -> int | float | None:
    """A finite number from metadata, whole where it is; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not abs(number) < 1e300:
        return None
    return int(value) if isinstance(value, int) else int(number) if number.is_integer() else number
