"""Quantities: what an expression of a relation is (a number, a moment, a span, text) and the range it can take.

Interval arithmetic over declared bounds: a relation that no row could satisfy is refused before any row is read.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dpmerf.schema.expressions import COMPARED, Call, ExpressionError, Literal, Node, Ref

DAY = 86_400.0
_NEAR = 1e-6  # of a step: what is nearer to a grid point than this is on it
_EPOCH = dt.datetime(1970, 1, 1)
_CALENDAR = {"month": (1.0, 12.0), "weekday": (0.0, 6.0), "hour": (0.0, 23.0)}


@final
@dataclass(frozen=True)
class Fact:
    """A column as relations see it. Moments and spans are in seconds, whatever the column counts in."""

    kind: str  # number, moment, span, flag or category
    low: float = 0.0
    high: float = 1.0
    nullable: bool = False
    step: float | None = None  # between values, from `low` on; None on a continuous line
    decimals: int | None = None  # of numbers that are rounded in decimal
    levels: tuple[str | int | float | bool, ...] = ()  # of a category or flag
    scale: float = 1.0  # seconds per unit in which the column counts

    @property
    def size(self) -> int:
        """How many values it can take, without null; 0 on a continuous line."""
        if self.levels:
            return len(self.levels)
        return 0 if self.step is None else round((self.high - self.low) / self.step) + 1


@final
@dataclass(frozen=True)
class Range:
    """The kind of an expression, where its values lie, and whether it can be without one."""

    kind: str
    low: float = 0.0
    high: float = 1.0
    null: bool = False  # a column in it can be null
    undefined: bool = False  # it has no value for some values: a logarithm of 0
    levels: tuple[str | int | float | bool, ...] = ()


Facts = Mapping[str, Fact]


def infer(node: Node, facts: Facts) -> Range:
    """The kind and range of an expression; refuses what makes no sense."""
    match node:
        case Ref(name):
            if name not in facts:
                near = ", ".join(list(facts)[:12])
                raise ExpressionError(f"there is no column '{name}'. The columns: {near}")
            f = facts[name]
            return Range(f.kind, f.low, f.high, f.nullable, levels=f.levels)
        case Literal(None):
            raise ExpressionError("write `is null` or `is not null`: nothing equals null")
        case Literal(bool() as value):
            return Range("flag", float(value), float(value))
        case Literal(str() as value):
            return Range("text", levels=(value,))
        case Literal(float() as value, unit):
            return Range(unit or "number", value, value)
        case Call(op, args) if op in COMPARED:
            return _compared(op, infer(args[0], facts), infer(args[1], facts))
        case Call("in", args):
            found = [_compared("=", infer(args[0], facts), infer(v, facts)) for v in args[1:]]
            return replace(found[0], null=any(f.null for f in found))
        case Call("null", (arg,)):
            infer(arg, facts)
            return Range("flag")
        case Call("and" | "or" | "not" | "implies" | "iff", args):
            parts = [infer(a, facts) for a in args]
            if any(p.kind != "flag" for p in parts):
                raise ExpressionError("`and`, `or` and `not` join conditions, such as age > 17")
            return Range("flag", null=any(p.null for p in parts), undefined=any(p.undefined for p in parts))
        case Call("when", (Call("null", (Ref(name),)) as condition, then, other)) if name in facts:
            known = {**facts, name: replace(facts[name], nullable=False)}  # in the other branch it has a value
            return _when(infer(condition, facts), infer(then, facts), infer(other, known))
        case Call("when", (condition, then, other)):
            return _when(infer(condition, facts), infer(then, facts), infer(other, facts))
        case Call("log" | "log10" as op, (Ref(name),)) if name in facts and facts[name].step is not None:
            part = infer(Ref(name), facts)
            least = max(_least_positive(facts[name]), part.low)  # what has steps does not come near to 0
            return replace(_arithmetic(op, [replace(part, low=least)]), undefined=part.low <= 0)
        case Call(op, args):
            return _arithmetic(op, [infer(a, facts) for a in args])
    raise ExpressionError("it cannot be read")


def number(part: Range) -> Range:
    """Flags count 0 and 1 in arithmetic, categories of numbers what they say."""
    if part.kind == "flag":
        return replace(part, kind="number", levels=())
    if part.kind == "category" and all(isinstance(v, int | float) for v in part.levels):
        values = [float(v) for v in part.levels]
        return replace(part, kind="number", low=min(values), high=max(values), levels=())
    return part


def whole_years(start: float, stop: float) -> float:
    """Birthdays between two moments (seconds since 1970)."""
    a, b = (_EPOCH + dt.timedelta(seconds=s) for s in (start, stop))
    return float(b.year - a.year - ((b.month, b.day) < (a.month, a.day)))


def _compared(op: str, a: Range, b: Range) -> Range:
    if (a.kind == "category" and b.kind == "text") or (a.kind == "text" and b.kind == "category"):
        column, text = (a, b) if a.kind == "category" else (b, a)
        if text.levels[0] not in column.levels:
            raise ExpressionError(f"{text.levels[0]!r} is not among the values: {_some(column.levels)}")
        if op not in ("=", "!="):
            raise ExpressionError("text has no order here: compare with = or !=, or list values with `in`")
        return Range("flag", null=a.null or b.null)
    if a.kind == b.kind == "category" and op in ("=", "!="):
        if not set(a.levels) & set(b.levels):
            raise ExpressionError("the two columns have no value in common")
        return Range("flag", null=a.null or b.null)
    a, b = number(a), number(b)
    if a.kind != b.kind or a.kind in ("category", "text"):
        raise ExpressionError(f"a {a.kind} cannot be compared with a {b.kind}")
    return Range("flag", null=a.null or b.null, undefined=a.undefined or b.undefined)


def _least_positive(fact: Fact) -> float:
    if fact.decimals is not None or fact.step is None:
        return fact.step or 0.0
    return fact.low + max(math.floor(-fact.low / fact.step) + 1, 0) * fact.step


def _when(condition: Range, then: Range, other: Range) -> Range:
    if condition.kind != "flag":
        raise ExpressionError("the first argument of `when` is a condition, such as age > 17")
    texts = {"text", "category"}
    if then.kind in texts and other.kind in texts:
        kind, levels = "category", tuple(dict.fromkeys(then.levels + other.levels))
    elif then.kind == other.kind:
        kind, levels = then.kind, ()
    else:
        raise ExpressionError(f"`when` gives a {then.kind} or a {other.kind}: both must be of one kind")
    return Range(
        kind,
        min(then.low, other.low),
        max(then.high, other.high),
        condition.null or then.null or other.null,
        condition.undefined or then.undefined or other.undefined,
        levels,
    )


def _arithmetic(op: str, parts: list[Range]) -> Range:
    parts = [number(p) for p in parts]
    for p in parts:
        if p.kind in ("category", "text"):
            raise ExpressionError("text cannot be computed with")
    kind = _kind(op, [p.kind for p in parts])
    low, high, undefined = _bounds(op, parts)
    return Range(kind, low, high, any(p.null for p in parts), undefined or any(p.undefined for p in parts))


def _kind(op: str, kinds: list[str]) -> str:
    match op, kinds:
        case ("+" | "-" | "*" | "/" | "^", ["number", "number"]):
            return "number"
        case ("+", ["moment", "span"] | ["span", "moment"]) | ("-", ["moment", "span"]):
            return "moment"
        case ("-", ["moment", "moment"]) | ("+" | "-", ["span", "span"]) | ("*" | "/", ["span", "number"]):
            return "span"
        case ("*", ["number", "span"]) | ("neg" | "abs", ["span"]):
            return "span"
        case ("/", ["span", "span"]) | ("days" | "hours", ["span"]) | ("years", ["moment", "moment"]):
            return "number"
        case ("year" | "month" | "weekday" | "hour", ["moment"]):
            return "number"
        case ("date", ["moment"]):
            return "moment"
        case ("min" | "max", [first, *rest]) if all(k == first for k in rest):
            return first
        case ("neg" | "abs" | "log" | "log10" | "log1p" | "exp" | "sqrt" | "floor" | "ceil", ["number"]):
            return "number"
        case ("round", ["number"] | ["number", "number"]):
            return "number"
    hint = ". Add a span, such as 3d or days * 1d" if "moment" in kinds and op in "+-" else ""
    raise ExpressionError(f"`{op}` does not take a {' and a '.join(kinds)}{hint}")


def _bounds(op: str, parts: list[Range]) -> tuple[float, float, bool]:
    """Lowest and highest value, and whether some values have none."""
    a = parts[0]
    match op, parts:
        case "+", [_, b]:
            return a.low + b.low, a.high + b.high, False
        case "-", [_, b]:
            return a.low - b.high, a.high - b.low, False
        case "*", [_, b]:
            return *_corners([_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]), False
        case "/", [_, b]:
            if b.low > 0 or b.high < 0:
                return *_corners([x / y for x in (a.low, a.high) for y in (b.low, b.high)]), False
            if a.low >= 0 and b.low == 0 < b.high:
                return a.low / b.high, math.inf, True
            return -math.inf, math.inf, True
        case "^", [_, b]:
            return _power(a, b)
        case "neg", _:
            return -a.high, -a.low, False
        case "abs", _:
            return max(0.0, a.low, -a.high), max(abs(a.low), abs(a.high)), False
        case "log" | "log10", _:
            log = math.log if op == "log" else math.log10
            return (log(a.low) if a.low > 0 else -math.inf), (log(a.high) if a.high > 0 else -math.inf), a.low <= 0
        case "log1p", _:
            return (math.log1p(a.low) if a.low > -1 else -math.inf), math.log1p(max(a.high, -1 + 1e-300)), a.low <= -1
        case "exp", _:
            return (
                (math.exp(a.low) if a.low < 700 else math.inf),
                (math.exp(a.high) if a.high < 700 else math.inf),
                False,
            )
        case "sqrt", _:
            return math.sqrt(max(a.low, 0.0)), math.sqrt(max(a.high, 0.0)), a.low < 0
        case "floor" | "ceil" | "round", _:
            digits = int(parts[1].low) if len(parts) > 1 else 0
            return _outward(a.low, digits, math.floor), _outward(a.high, digits, math.ceil), False
        case "min", _:
            return min(p.low for p in parts), min(p.high for p in parts), False
        case "max", _:
            return max(p.low for p in parts), max(p.high for p in parts), False
        case "days" | "hours", _:
            per = DAY if op == "days" else 3_600.0
            return a.low / per, a.high / per, False
        case "date", _:
            return math.floor(a.low / DAY) * DAY, a.high, False
        case "years", [_, b]:
            return whole_years(a.high, b.low), whole_years(a.low, b.high), False
        case "year", _:
            first, last = (float((_EPOCH + dt.timedelta(seconds=s)).year) for s in (a.low, a.high))
            return first, last, False
    return *_CALENDAR[op], False


def _power(a: Range, b: Range) -> tuple[float, float, bool]:
    if b.low != b.high:
        raise ExpressionError("write a constant after ^")
    k = b.low
    whole = k == int(k) and 0 <= k <= 16
    if not whole and a.low < 0:
        raise ExpressionError("a negative number has no such power")
    try:
        ends = [x**k if x or k >= 0 else math.inf for x in (a.low, a.high)]
    except OverflowError:
        ends = [-math.inf, math.inf]
    low, high = _corners(ends + ([0.0] if a.low < 0 < a.high else []))
    return low, high, k < 0 and a.low <= 0


def _outward(value: float, digits: int, to_whole: Callable[[float], int]) -> float:
    """A bound of a rounded number."""
    return value if not math.isfinite(value) else to_whole(round(value * 10.0**digits, 6)) / 10.0**digits


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _corners(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _some(values: tuple[object, ...]) -> str:
    shown = ", ".join(str(v) for v in values[:12])
    return shown + (", …" if len(values) > 12 else "")


def at_or_above(fact: Fact, values: np.ndarray, strict: bool) -> np.ndarray:
    """The least value on the column's grid that is at least (or above) each of these; bounds are not looked at.

    >>> at_or_above(Fact("number", 0.0, 9.0, step=3.0), np.array([3.0, 4.0]), strict=True).tolist()
    [6.0, 6.0]
    """
    if fact.step is None:
        return np.nextafter(values, np.inf) if strict else values
    per, low = (10.0**fact.decimals, 0.0) if fact.decimals is not None else (1 / fact.step, fact.low)
    place = (values - low) * per if fact.decimals is not None else (values - low) / fact.step
    level = np.floor(place + _NEAR) + 1 if strict else np.ceil(place - _NEAR)
    return level / per if fact.decimals is not None else low + level * fact.step


def at_or_below(fact: Fact, values: np.ndarray, strict: bool) -> np.ndarray:
    """The same from the other side."""
    if fact.step is None:
        return np.nextafter(values, -np.inf) if strict else values
    if fact.decimals is not None:
        return -at_or_above(fact, -values, strict)
    place = (values - fact.low) / fact.step
    level = np.ceil(place - _NEAR) - 1 if strict else np.floor(place + _NEAR)
    return fact.low + level * fact.step


def snapped(fact: Fact, values: np.ndarray) -> np.ndarray:
    """Each value moved to the nearest of the column's grid and bounds; NaN stays."""
    if fact.decimals is not None:
        found = np.round(values, fact.decimals)
    elif fact.step is not None:
        found = fact.low + np.floor((values - fact.low) / fact.step + 0.5) * fact.step
    else:
        found = values
    return np.clip(found, fact.low, fact.high)
