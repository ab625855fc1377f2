"""Arithmetic: an expression's value for every row. Element by element, in float64: it depends on that row alone.

Columns come as numbers in their own unit (NaN is null) or as codes (the code after the last level is null). Moments and
spans are computed in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dpmerf.schema.expressions import Call, Literal, Node, Ref
from dpmerf.schema.quantities import DAY, Fact, Facts

Values = Mapping[str, np.ndarray]

_COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "neg": np.negative, "abs": np.abs, "log": np.log, "log10": np.log10, "log1p": np.log1p, "exp": np.exp,
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "days": lambda x: x / DAY, "hours": lambda x: x / 3_600.0,
    "date": lambda x: np.floor(x / DAY) * DAY,
}  # fmt: skip
_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
}  # fmt: skip


def evaluate(node: Node, values: Values, facts: Facts) -> np.ndarray:
    """(n,) float64; NaN where a part is null or the expression has no value. Conditions are 1 and 0."""
    with np.errstate(all="ignore"):
        found = _value(node, values, facts)
        return np.where(np.isfinite(found), found, np.nan)


def codes(node: Node, values: Values, facts: Facts, target: Fact) -> np.ndarray:
    """(n,) codes of a category or flag that an expression gives."""
    found = _codes(node, values, facts, target)
    return np.where(np.isnan(found), target.size, found).astype(np.int64)


def seconds(name: str, values: Values, facts: Facts) -> np.ndarray:
    """(n,) a column's numbers; moments and spans in seconds."""
    fact, column = facts[name], values[name]
    if not fact.levels:
        return column * fact.scale if fact.scale != 1.0 else column
    known = [float(v) if isinstance(v, int | float) else np.nan for v in fact.levels]
    return np.array([*known, np.nan])[column]


def _codes(node: Node, values: Values, facts: Facts, target: Fact) -> np.ndarray:
    match node:
        case Literal(str() as text):
            return np.full(_rows(values), float(target.levels.index(text)))
        case Ref(name) if facts[name].kind == "category":
            place = {level: float(k) for k, level in enumerate(target.levels)}
            return np.array([*(place.get(level, np.nan) for level in facts[name].levels), np.nan])[values[name]]
        case Call("when", (condition, then, other)) if target.kind == "category":
            truth = evaluate(condition, values, facts)
            either = np.where(truth == 1, _codes(then, values, facts, target), _codes(other, values, facts, target))
            return np.where(np.isnan(truth), np.nan, either)
    found = evaluate(node, values, facts)
    place = {float(level): float(k) for k, level in enumerate(target.levels) if isinstance(level, int | float)}
    answer = np.full(len(found), np.nan)
    for level, k in place.items():
        answer[found == level] = k
    return answer


def _value(node: Node, values: Values, facts: Facts) -> np.ndarray:
    match node:
        case Ref(name):
            return seconds(name, values, facts)
        case Literal(value):
            return np.full(_rows(values), float(value))  # type: ignore[arg-type]
        case Call("null", (Ref(name),)):
            fact = facts[name]
            absent = values[name] == fact.size if fact.levels else np.isnan(values[name])
            return absent.astype(np.float64)
        case Call("null", (arg,)):
            return np.isnan(evaluate(arg, values, facts)).astype(np.float64)
        case Call("in", (column, *listed)):
            equal = [_value(Call("=", (column, v)), values, facts) for v in listed]
            return np.max(equal, axis=0)
        case Call(op, (a, b)) if op in _COMPARE:
            return _compared(op, a, b, values, facts)
        case Call("^", (a, Literal(float() as power))):
            return _power(_value(a, values, facts), power)
        case Call("when", (condition, then, other)):
            truth = evaluate(condition, values, facts)
            either = np.where(truth == 1, _value(then, values, facts), _value(other, values, facts))
            return np.where(np.isnan(truth), np.nan, either)
        case Call(op, args):
            return _called(op, [_value(a, values, facts) for a in args])
    raise TypeError("not an expression")


def _called(op: str, args: list[np.ndarray]) -> np.ndarray:
    if op in _UNARY:
        return _UNARY[op](args[0])
    if op in _BINARY:
        return _BINARY[op](*args)
    match op:
        case "min":
            return np.minimum.reduce(args)
        case "max":
            return np.maximum.reduce(args)
        case "and":  # false as soon as one part is, whatever the null beside it
            return np.where(np.fmin(*args) == 0, 0.0, np.minimum(*args))
        case "or":
            return np.where(np.fmax(*args) == 1, 1.0, np.maximum(*args))
        case "not":
            return 1.0 - args[0]
        case "implies":
            return _called("or", [1.0 - args[0], args[1]])
        case "iff":
            return np.where(np.isnan(args[0] + args[1]), np.nan, args[0] == args[1])
        case "round":
            return np.round(args[0], int(args[1][0]) if len(args) > 1 and len(args[1]) else 0)
        case "years":
            return _years(*args)
    return _calendar(op, args[0])


def _compared(op: str, a: Node, b: Node, values: Values, facts: Facts) -> np.ndarray:
    if isinstance(a, Literal) and isinstance(a.value, str):
        a, b = b, a
    if isinstance(a, Ref) and facts[a.name].kind == "category" and (isinstance(b, Ref) or _is_text(b)):
        left = np.where(values[a.name] == facts[a.name].size, np.nan, values[a.name])
        right = _codes(b, values, facts, facts[a.name])
        unlike = np.isnan(right) & ~(values[b.name] == facts[b.name].size) if isinstance(b, Ref) else np.isnan(right)
        known = ~np.isnan(left) & (~np.isnan(right) | unlike)
        return np.where(known, _COMPARE[op](left, right), np.nan)
    left, right = _value(a, values, facts), _value(b, values, facts)
    return np.where(np.isnan(left) | np.isnan(right), np.nan, _COMPARE[op](left, right))


def _is_text(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)


def _power(base: np.ndarray, power: float) -> np.ndarray:
    """Whole powers by multiplication, which rounds the same way everywhere."""
    if power != int(power) or not 0 <= power <= 16:
        found: np.ndarray = np.power(base, power)
        return found
    found = np.ones_like(base)
    for _ in range(int(power)):
        found = found * base
    return np.where(np.isnan(base), np.nan, found)


def _days_of(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Days since 1970 as dates, and where there are none."""
    absent = np.isnan(moments)
    return np.floor(np.where(absent, 0.0, moments) / DAY).astype("datetime64[D]"), absent


def _years(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Birthdays between two moments."""
    (a, no_a), (b, no_b) = _days_of(start), _days_of(stop)
    months_a, months_b = a.astype("datetime64[M]"), b.astype("datetime64[M]")
    months = (months_b - months_a).astype(np.int64)
    day_a, day_b = ((d - m.astype("datetime64[D]")).astype(np.int64) for d, m in ((a, months_a), (b, months_b)))
    found = np.floor((months - (day_b < day_a)) / 12.0)
    return np.where(no_a | no_b, np.nan, found)


def _calendar(op: str, moments: np.ndarray) -> np.ndarray:
    days, absent = _days_of(moments)
    match op:
        case "year":
            found = days.astype("datetime64[Y]").astype(np.int64) + 1970
        case "month":
            found = days.astype("datetime64[M]").astype(np.int64) % 12 + 1
        case "weekday":
            found = (days.astype(np.int64) + 3) % 7
        case _:
            found = np.floor(np.where(absent, 0.0, moments) % DAY / 3_600.0).astype(np.int64)
    return np.where(absent, np.nan, found.astype(np.float64))


def _rows(values: Values) -> int:
    return len(next(iter(values.values())))
