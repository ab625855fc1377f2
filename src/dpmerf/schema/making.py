"""Making: one declared relation -> one step, with every check that needs no other relation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from dpmerf.schema.columns import AnyColumn, Number
from dpmerf.schema.derivations import Bound, Derived, Fixed, Learned, Step, distance_column
from dpmerf.schema.expressions import (
    INEXACT,
    Call,
    ExpressionError,
    Literal,
    Node,
    Ref,
    columns,
    parse_value,
    span_seconds,
    walk,
)
from dpmerf.schema.quantities import Fact, Facts, Range, infer, number, snapped
from dpmerf.schema.relations import Cell, Learn, Lookup

MOST_KEYS = 1_000_000  # combinations of the keys of a lookup
_SLACK = 1e-9  # of the larger bound, for rounding in interval arithmetic
_NUMERIC = ("number", "moment", "span")


@final
@dataclass(frozen=True)
class Order:
    """`low` comes at or before `high`."""

    relation: int
    low: Node
    high: Node
    strict: bool


def exact(node: Node) -> bool:
    """Whether an expression has the same value on every machine: no logarithm, root or broken power."""
    powers = (n for n in walk(node) if isinstance(n, Call) and n.op == "^")
    whole = all(isinstance(n.args[1], Literal) and n.args[1].value in range(17) for n in powers)
    return whole and not any(isinstance(n, Call) and n.op in INEXACT for n in walk(node))


def derived(i: int, target: str, value: Node, facts: Facts) -> Derived:
    """`target = value`: every value must be one that the target may have."""
    fact, found = _fact(target, facts), infer(value, facts)
    if target in columns(value):
        raise ExpressionError(f"column '{target}' cannot follow from itself")
    if (found.null or found.undefined) and not fact.nullable:
        why = (
            "a column in it can be null" if found.null else "it has no value everywhere (a division by 0, a logarithm)"
        )
        raise ExpressionError(f"column '{target}' must be nullable, since {why}: write nullable = true, or use max(…)")
    if fact.kind == "flag" or fact.kind == "category":
        _check_levels(target, fact, found)
        return Derived(target, i, value)
    found = number(found)
    if found.kind != fact.kind:
        hint = ". Write days(…) or hours(…)" if found.kind == "span" else ""
        raise ExpressionError(f"column '{target}' is a {fact.kind}, and the other side is a {found.kind}{hint}")
    low, high = (float(v) for v in _on_grid(fact, np.array([found.low, found.high])))
    slack = _SLACK * max(abs(fact.low), abs(fact.high))
    if not (fact.low - slack <= low and high <= fact.high + slack):
        raise ExpressionError(
            f"the bounds cannot meet: by the bounds of its columns it lies from {show(fact, found.low)} to "
            f"{show(fact, found.high)}, and column '{target}' from {show(fact, fact.low)} to {show(fact, fact.high)}. "
            f"Widen those of '{target}' (it is computed, so that costs nothing), narrow the others, or write "
            + (f"max({show(fact, fact.low)}, …)" if low < fact.low - slack else f"min({show(fact, fact.high)}, …)")
        )
    return Derived(target, i, value)


def _on_grid(fact: Fact, values: np.ndarray) -> np.ndarray:
    """Rounded as the column is, without its bounds."""
    wide = Fact(fact.kind, -math.inf, math.inf, decimals=fact.decimals)
    return snapped(wide, values) if fact.decimals is not None or fact.step is None else np.round(values)


def _check_levels(target: str, fact: Fact, found: Range) -> None:
    if fact.kind == "flag" and found.kind == "flag":
        return
    if fact.kind == "category" and found.kind in ("category", "text"):
        if missing := [v for v in found.levels if v not in fact.levels]:
            raise ExpressionError(f"column '{target}' does not list the value {missing[0]!r}")
        return
    if fact.kind == "category" and found.kind == "flag" and {0, 1} <= set(fact.levels):
        return
    raise ExpressionError(f"column '{target}' is a {fact.kind}, and the other side is a {found.kind}")


def learned(i: int, relation: Learn, facts: Facts) -> tuple[Learned, AnyColumn]:
    """A quantity in place of a column, and its measured column."""
    node = parse_value(relation.learn)
    match node:
        case Call("-" | "/" | "*" as op, (Ref(target), base)) if columns(base):
            pass
        case _:
            raise ExpressionError("write the column to replace first: column - other, column / other or column * other")
    if "#" in relation.measured:
        raise ExpressionError("a name has no # in it")
    fact, whole, under = _fact(target, facts), infer(node, facts), infer(base, facts)
    if fact.kind not in _NUMERIC:
        raise ExpressionError(f"column '{target}' is a {fact.kind}: only numbers and moments can be learned by others")
    if not exact(base):
        raise ExpressionError("logarithms, roots and broken powers serve computed columns only")
    low, high = (_bound(b, whole) for b in (relation.min, relation.max))
    if not low < high:
        raise ExpressionError(f"write min below max (now min = {relation.min}, max = {relation.max})")
    if under.null and not fact.nullable:
        raise ExpressionError(f"column '{target}' must be nullable, since what it is learned by can be null")
    step = Learned(target, i, relation.measured, base, op, low, high)
    _check_reach(step, fact, under)
    nullable = fact.nullable or under.null
    if op == "-":
        return step, distance_column(fact, low, high, nullable, relation.log)
    return step, Number(min=low, max=high, decimals=relation.decimals, nullable=nullable, log=relation.log)


def _check_reach(step: Learned, fact: Fact, base: Range) -> None:
    """For every value of the base some allowed quantity leads into the target's bounds."""
    ends = (base.low, base.high)
    if step.op == "-":
        fits = base.high + step.low <= fact.high and base.low + step.high >= fact.low
    elif step.op == "/":
        spans = [sorted((b * step.low, b * step.high)) for b in ends]
        fits = all(low <= fact.high and high >= fact.low for low, high in spans)
    else:
        if base.low <= 0 <= base.high:
            raise ExpressionError("a product is divided by what it is learned by: its bounds must not hold 0")
        spans = [sorted((step.low / b, step.high / b)) for b in ends]
        fits = all(low <= fact.high and high >= fact.low for low, high in spans)
    if not fits:
        raise ExpressionError(
            f"the bounds cannot meet: for some values of the other columns no quantity from min to max leads to a "
            f"'{step.target}' from {show(fact, fact.low)} to {show(fact, fact.high)}. Widen its bounds, or min and max"
        )


def _bound(bound: float | str, whole: Range) -> float:
    if isinstance(bound, str):
        seconds = span_seconds(bound)
        if seconds is None or whole.kind != "span":
            raise ExpressionError(f"cannot read the bound {bound!r}: write a number, or 90d, 36h, 15min for times")
        return seconds
    if whole.kind == "span":
        raise ExpressionError('bounds of a difference of times have a unit: write for example max = "90d"')
    if not math.isfinite(bound):
        raise ExpressionError("write finite bounds")
    return bound


def fixed(i: int, relation: Lookup, facts: Facts) -> Fixed:
    """A lookup as an array over all keys; every key once."""
    target, keys = _fact(relation.lookup, facts), [_fact(name, facts) for name in relation.by]
    for name, key in zip(relation.by, keys, strict=True):
        if not key.levels and (key.kind != "number" or key.size == 0 or key.decimals is not None):
            raise ExpressionError(f"column '{name}' cannot be a key: a key is a category, a flag or an integer")
    sizes = [k.size for k in keys]
    if math.prod(n + 1 for n in sizes) > MOST_KEYS:
        raise ExpressionError("its keys have too many combinations")
    values: dict[tuple[int, ...], float] = {}
    for row in relation.table:
        place = tuple(_level(k, cell, name) for k, cell, name in zip(keys, row[:-1], relation.by, strict=True))
        if place in values:
            raise ExpressionError(f"the key {_keys(row[:-1])} is listed twice")
        values[place] = _value(target, row[-1], relation.lookup)
    found = []
    for place in itertools.product(*(range(n + k.nullable) for n, k in zip(sizes, keys, strict=True))):
        if place not in values:
            empty = any(p == n for p, n in zip(place, sizes, strict=True))
            if not (empty and target.nullable):
                words = [_word(k, p) for k, p in zip(keys, place, strict=True)]
                hint = f", and column '{relation.lookup}' cannot be null" if empty else ""
                raise ExpressionError(f"the key {_keys(words)} is missing{hint}. Add it to the table")
        found.append(values.get(place, math.nan))
    return Fixed(relation.lookup, i, relation.by, tuple(found))


def level_of(fact: Fact, cell: Cell, name: str) -> int:
    """The position of a written value among those of a column."""
    return _level(fact, cell, name)


def _level(fact: Fact, cell: Cell, name: str) -> int:
    if cell is None:
        if fact.nullable:
            return fact.size
        raise ExpressionError(f"column '{name}' cannot be null")
    for k, level in enumerate(fact.levels):
        if str(level).lower() == str(cell).lower() if isinstance(level, bool) else _same(level, cell):
            return k
    if not fact.levels:
        x = _float(cell)
        place = (x - fact.low) / (fact.step or 1.0)
        if x == x and 0 <= place < fact.size and place == int(place):
            return int(place)
    raise ExpressionError(f"column '{name}' does not declare the value {cell!r}")


def _value(fact: Fact, cell: Cell, name: str) -> float:
    """A code, a number in the column's own unit, or NaN for null."""
    if cell is None or fact.levels:
        level = _level(fact, cell, name)
        return math.nan if level == fact.size and cell is None else float(level)
    if fact.kind == "moment":
        raise ExpressionError(f"column '{name}' is a {fact.kind}: look up a number or a category")
    x = _float(cell)
    if not (x == x and fact.low <= x <= fact.high and abs(float(snapped(fact, np.array([x]))[0]) - x) < 1e-9):
        raise ExpressionError(f"column '{name}' does not declare the value {cell!r}")
    return x


def _same(level: str | int | float, cell: Cell) -> bool:
    if isinstance(level, str):
        return level == cell
    return _float(cell) == float(level)


def _float(cell: Cell) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def _keys(cells: Iterable[Cell]) -> str:
    return ", ".join("null" if c is None else repr(c) for c in cells)


def _word(fact: Fact, place: int) -> Cell:
    if place == fact.size:
        return None
    return fact.levels[place] if fact.levels else fact.low + place * (fact.step or 1.0)


def order_of(i: int, node: Call, facts: Facts) -> Order:
    """`a <= b` in one direction."""
    infer(node, facts)
    a, b = node.args
    if any(infer(side, facts).kind not in _NUMERIC for side in (a, b)):
        raise ExpressionError("only numbers and moments have an order")
    if not (exact(a) and exact(b)):
        raise ExpressionError("logarithms, roots and broken powers serve computed columns only")
    if set(columns(a)) & set(columns(b)):
        raise ExpressionError("a column stands on both sides: learn the difference instead")
    low, high = (a, b) if node.op in ("<", "<=") else (b, a)
    return Order(i, low, high, node.op in ("<", ">"))


def bounds_of(
    orders: list[Order],
    steps: Mapping[str, Step],
    label: str | None,
    wrong: Callable[[int, object], ExpressionError],
) -> list[Bound]:
    """One step per column that lies beyond others: the later one, unless another relation owns it."""
    free = lambda node: isinstance(node, Ref) and node.name not in steps and node.name != label  # noqa: E731
    below: set[str] = set()
    turned: set[int] = set()
    changed = True
    while changed:
        changed = False
        for k, o in enumerate(orders):
            stuck = not free(o.high) or (isinstance(o.high, Ref) and o.high.name in below)
            if k not in turned and stuck and isinstance(o.low, Ref):
                turned.add(k)
                below.add(o.low.name)
                changed = True
    found: dict[tuple[str, bool], list[Order]] = {}
    for k, o in enumerate(orders):
        target = o.low if k in turned else o.high
        if not isinstance(target, Ref) or not (free(target) or target.name == label):
            raise wrong(o.relation, "both sides follow from other relations already: it cannot be kept beside them")
        found.setdefault((target.name, k not in turned), []).append(o)
    made = []
    for (target_name, above), group in found.items():
        if (target_name, not above) in found:
            raise wrong(
                group[0].relation,
                f"'{target_name}' is bounded from both sides by other columns: learn a difference with min and max",
            )
        bases = tuple(o.low if above else o.high for o in group)
        words = " and ".join(dict.fromkeys(name for base in bases for name in columns(base)))
        name = f"{target_name} {'after' if above else 'before'} {words}"
        strict = tuple(o.strict for o in group)
        made.append(Bound(target_name, tuple(o.relation for o in group), name, bases, strict, above, 0.0, 0.0, 0.0))
    return made


def show(fact: Fact, value: float) -> str:
    """A bound in the words of the schema."""
    if fact.kind == "moment" and math.isfinite(value):
        return str(np.datetime64(int(value), "s")).replace("T00:00:00", "")
    return {math.inf: "without end", -math.inf: "without beginning"}.get(value, f"{value:g}")


def _fact(name: str, facts: Facts) -> Fact:
    infer(Ref(name), facts)
    return facts[name]
