"""Boxes: what rules forbid, as products of subsets of columns, closed so that one pass over the columns keeps them.

A rule is broken where it is definitely false: a comparison with null is neither true nor false, as in SQL's CHECK. The
rows that break it are a union of boxes: "ward is maternity and sex is male". `closed` adds what the boxes imply
together (Davis and Putnam's resolution, column by column): after it, whatever the earlier columns of a row are, as long
as they keep the boxes among themselves, every later column has an allowed value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from dpmerf.schema.expressions import Call, ExpressionError, Literal, Node, Ref
from dpmerf.schema.quantities import Fact, Facts, infer, number

Cut = tuple[float, int]  # (value, 0) lies just before the value, (value, 1) just after it
MOST_BOXES = 4_096
MOST_STEPS = 200_000


class Contradiction(ExpressionError):
    """No row can keep these rules; `rules` are the positions of those that meet."""

    def __init__(self, rules: frozenset[int]) -> None:
        super().__init__("no row can keep them together")
        self.rules = rules


@final
@dataclass(frozen=True)
class Subset:
    """Some of a column's values: stretches between cuts, and null or not. Codes and steps are counted 0, 1, 2, …"""

    spans: tuple[tuple[Cut, Cut], ...] = ()
    null: bool = False

    def __bool__(self) -> bool:
        return bool(self.spans) or self.null

    def __and__(self, other: Subset) -> Subset:
        found = [
            (max(a, c), min(b, d)) for a, b in self.spans for c, d in other.spans if max(a, c) < min(b, d)
        ]  # fmt: skip
        return Subset(tuple(sorted(found)), self.null and other.null)

    def __or__(self, other: Subset) -> Subset:
        merged: list[tuple[Cut, Cut]] = []
        for start, stop in sorted(self.spans + other.spans):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
            else:
                merged.append((start, stop))
        return Subset(tuple(merged), self.null or other.null)

    def without(self, other: Subset) -> Subset:
        """What is in this and not in the other."""
        left = list(self.spans)
        for c, d in other.spans:
            left = [part for a, b in left for part in ((a, min(b, c)), (max(a, d), b)) if part[0] < part[1]]
        return Subset(tuple(sorted(left)), self.null and not other.null)


def domain(fact: Fact) -> Subset:
    """All values of a column."""
    span = ((0.0, 0), (float(fact.size), 0)) if fact.size else ((fact.low, 0), (fact.high, 1))
    return Subset((span,), fact.nullable)


def of_codes(codes: Sequence[int], null: bool = False) -> Subset:
    """The levels with these positions."""
    found = Subset((), null)
    for code in sorted(codes):
        found = found | Subset((((float(code), 0), (float(code + 1), 0)),))
    return found


@final
@dataclass(frozen=True)
class Box:
    """Forbidden: all of these columns in these subsets at once."""

    sets: tuple[tuple[str, Subset], ...]
    rules: frozenset[int] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.sets)

    def of(self, name: str) -> Subset:
        return next(s for n, s in self.sets if n == name)

    def covers(self, other: Box) -> bool:
        """Whatever the other forbids, this forbids too."""
        mine = dict(other.sets)
        return all(n in mine and not mine[n].without(s) for n, s in self.sets)


Boxes = list[dict[str, Subset]]


def forbidden(rule: Node, facts: Facts, index: int) -> list[Box]:
    """The boxes of rows that break a rule."""
    found = []
    for sets in _where(rule, False, facts):
        if all(sets.values()):
            found.append(Box(tuple(sorted(sets.items())), frozenset({index})))
    return found


def _where(node: Node, truth: bool, facts: Facts) -> Boxes:
    """Boxes where a condition is definitely true, or definitely false."""
    match node:
        case Call("not", (a,)):
            return _where(a, not truth, facts)
        case Call("and" | "or" as op, (a, b)):
            parts = _where(a, truth, facts), _where(b, truth, facts)
            return _both(*parts) if (op == "and") == truth else _limited(parts[0] + parts[1])
        case Call("implies", (a, b)):
            return _where(Call("or", (Call("not", (a,)), b)), truth, facts)
        case Call("iff", (a, b)):
            forward, backward = Call("implies", (a, b)), Call("implies", (b, a))
            return _where(Call("and", (forward, backward)), truth, facts)
        case _:
            name, yes, no = atom(node, facts)
            return [{name: yes if truth else no}]


def _both(left: Boxes, right: Boxes) -> Boxes:
    found: Boxes = []
    for a in left:
        for b in right:
            joined = dict(a)
            for name, s in b.items():
                joined[name] = joined[name] & s if name in joined else s
            if all(joined.values()):
                found.append(joined)
    return _limited(found)


def _limited(found: Boxes) -> Boxes:
    if len(found) > MOST_BOXES:
        raise ExpressionError("it is too long: write several smaller rules")
    return found


def atom(node: Node, facts: Facts) -> tuple[str, Subset, Subset]:
    """A comparison of one column with constants: where it is true and where it is false."""
    infer(node, facts)
    match node:
        case Ref(name) if facts[name].kind == "flag":
            return name, of_codes([1]), of_codes([0])
        case Call("null", (Ref(name),)):
            values = domain(facts[name])
            return name, Subset((), values.null), Subset(values.spans)
        case Call("in", (Ref(name), *constants)):
            yes = Subset()
            for c in constants:
                yes = yes | _compared("=", facts[name], c)
            return name, yes, Subset(domain(facts[name]).spans).without(yes)
        case Call(op, (Ref(name), Literal() as constant)):
            yes = _compared(op, facts[name], constant)
            return name, yes, Subset(domain(facts[name]).spans).without(yes)
        case Call(op, (Literal() as constant, Ref(name))):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
            return atom(Call(turned, (Ref(name), constant)), facts)
    raise ExpressionError('a condition compares one column with constants, such as age > 17 or ward = "surgery"')


def _compared(op: str, fact: Fact, constant: Node) -> Subset:
    infer_kind(fact, constant)
    assert isinstance(constant, Literal)
    value = constant.value
    whole = Subset(domain(fact).spans)
    if op == "!=":
        return whole.without(_compared("=", fact, constant))
    if fact.levels:
        return of_codes([k for k, level in enumerate(fact.levels) if _holds(op, level, value)])
    x = float(value)  # type: ignore[arg-type]
    below, above = _cut(fact, x, 0), _cut(fact, x, 1)
    start, stop = whole.spans[0]
    found = {"<": (start, below), "<=": (start, above), ">": (above, stop), ">=": (below, stop), "=": (below, above)}[
        op
    ]
    return whole & Subset((found,) if found[0] < found[1] else ())


def infer_kind(fact: Fact, constant: Node) -> None:
    """Refuse a constant of another kind than the column."""
    a, b = infer(Ref("x"), {"x": fact}), infer(constant, {})
    if "text" not in (a.kind, b.kind) and number(a).kind != number(b).kind:
        raise ExpressionError(f"a {a.kind} cannot be compared with a {b.kind}")


def _holds(op: str, level: str | int | float | bool, value: float | str | bool | None) -> bool:
    if isinstance(level, str) or isinstance(value, str) or value is None:
        return level == value
    a, b = float(level), float(value)
    return {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _cut(fact: Fact, x: float, side: int) -> Cut:
    """Where a constant cuts the column: between two of its steps, or before or after a point of the line."""
    if fact.step is None:
        return x, side
    place = round((x - fact.low) / fact.step, 9)
    level = place.__floor__() + 1 if side else place.__ceil__()
    return float(min(max(level, 0), fact.size)), 0


def closed(boxes: Sequence[Box], order: Sequence[str], facts: Facts) -> tuple[Box, ...]:
    """The boxes and what they imply together, so that columns can be settled one by one in this order."""
    place = {name: i for i, name in enumerate(order)}
    held: list[Box] = []
    for box in boxes:
        _add(held, box)
    for name in reversed(order):
        bucket = [b for b in held if max(b.names, key=lambda n: place[n]) == name]
        for implied in _covers(bucket, name, domain(facts[name])):
            if not implied.sets:
                raise Contradiction(implied.rules)
            _add(held, implied)
    return tuple(held)


def _add(held: list[Box], box: Box) -> None:
    if not any(b.covers(box) for b in held):
        held[:] = [b for b in held if not box.covers(b)] + [box]
    if len(held) > MOST_BOXES:
        raise ExpressionError("the rules are too many to be kept together: write fewer, or an `allowed` list")


def _covers(bucket: list[Box], name: str, whole: Subset) -> list[Box]:
    """What boxes of one column imply for the others: where together they leave it no value."""
    found: list[Box] = []
    steps = 0

    def search(left: Subset, sets: Mapping[str, Subset], rules: frozenset[int], start: tuple[Box, ...]) -> None:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            raise ExpressionError(f"too many rules meet at column '{name}': write an `allowed` list instead")
        if not left:
            _add(found, Box(tuple(sorted(sets.items())), rules))
            return
        point = Subset((), True) if left.null else Subset((_point(left, bucket, name),))
        for box in start:
            own = box.of(name)
            if not point & own:
                continue
            joined = dict(sets)
            for other, s in box.sets:
                if other != name:
                    joined[other] = joined[other] & s if other in joined else s
            if all(joined.values()):
                search(left.without(own), joined, rules | box.rules, start)

    search(whole, {}, frozenset(), tuple(bucket))
    return found


def _point(left: Subset, bucket: list[Box], name: str) -> tuple[Cut, Cut]:
    """The first stretch that no box of the bucket divides."""
    start, stop = left.spans[0]
    cuts = [c for box in bucket for span in box.of(name).spans for c in span if start < c < stop]
    return start, min(cuts, default=stop)
