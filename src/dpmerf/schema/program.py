"""Program: the relations of a schema, checked and put in order. It says what is measured and how the rest follows.

Columns that follow from others leave the measured set, or give their place to a quantity that is learned instead. What
cannot be kept (a cycle, two relations for one column, bounds that cannot meet) is refused here, before any row is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dpmerf.schema.boxes import Box, Contradiction, Subset, closed, domain, forbidden
from dpmerf.schema.columns import AnyColumn
from dpmerf.schema.combinations import boxes_of, joined_of
from dpmerf.schema.derivations import (
    Apart,
    Bound,
    Derived,
    Joined,
    Learned,
    Step,
    apart,
    distance_column,
)
from dpmerf.schema.expressions import Call, ExpressionError, Literal, Node, Ref, columns, parse
from dpmerf.schema.making import Order, bounds_of, derived, exact, fixed, learned, order_of, show
from dpmerf.schema.quantities import Fact, Facts, at_or_above, at_or_below, infer
from dpmerf.schema.relations import AnyRelation, Combination, Learn, Lookup, Rule
from dpmerf.schema.translation import Translation


@final
@dataclass(frozen=True)
class Program:
    """What relations make of a schema: the measured columns, the steps back, and the boxes no row may be in."""

    relations: tuple[AnyRelation, ...]
    steps: tuple[Step, ...]  # in the order in which columns are computed back
    joined: tuple[Joined, ...]
    measured: Mapping[str, AnyColumn]
    boxes: tuple[Box, ...]  # over measured columns
    order: tuple[str, ...]  # in which the columns of the boxes are settled
    facts: Facts  # of declared columns
    measured_facts: Facts

    @property
    def computed(self) -> frozenset[str]:
        """Columns of which nothing is measured."""
        return frozenset(s.target for s in self.steps if not s.measured)

    @property
    def spans(self) -> frozenset[str]:
        """Measured columns that are spans of time, in seconds: differences of moments."""
        apart = [s for s in self.steps if isinstance(s, Bound) or (isinstance(s, Learned) and s.op == "-")]
        return frozenset(s.name for s in apart if self.facts[s.target].kind == "moment")

    def title(self, index: int) -> str:
        """A relation as messages and reports name it."""
        return title(self.relations, index)


def title(relations: Sequence[AnyRelation], index: int) -> str:
    """`relation 2 (total = a + b)`, or with its own name."""
    return f"relation {index + 1} ({relations[index].name or relations[index].words})"


def compiled(declared: Mapping[str, AnyColumn], label: str | None, relations: tuple[AnyRelation, ...]) -> Program:
    """Check the relations of a schema and put them in order; every error names its relation."""
    return _Compiler(declared, label, relations).program()


@final
class _Compiler:
    """One pass over the relations, then one over the columns."""

    def __init__(
        self, declared: Mapping[str, AnyColumn], label: str | None, relations: tuple[AnyRelation, ...]
    ) -> None:
        self._declared, self._label, self._relations = declared, label, relations
        facts = {name: column.fact() for name, column in declared.items()}
        self._facts: dict[str, Fact] = {name: fact for name, fact in facts.items() if fact is not None}
        self._steps: dict[str, Step] = {}
        self._orders: list[Order] = []
        self._rules: list[tuple[int, Node]] = []
        self._combinations: list[tuple[int, Combination]] = []
        self._bounds: dict[str, tuple[float, float]] = {}
        self._new: dict[str, AnyColumn] = {}  # measured columns that no declared column is

    def program(self) -> Program:
        for i, relation in enumerate(self._relations):
            self._sort(i, relation)
        for bound in bounds_of(self._orders, self._steps, self._label, self._wrong):
            self._own(bound)
        ordered = self._topological()
        ordered = self._with_clocks(self._with_room(ordered))
        measured, joined = self._measured(ordered)
        facts = {name: fact for name, column in measured.items() if (fact := column.fact()) is not None}
        for step in ordered:
            if isinstance(step, Learned) and step.op == "-" and self._facts[step.target].kind == "moment":
                facts[step.name] = replace(facts[step.name], kind="span")
        boxes, order = self._boxes(ordered, joined, facts)
        return Program(self._relations, ordered, joined, measured, boxes, order, self._facts, facts)

    def _wrong(self, index: int, message: object) -> ExpressionError:
        return ExpressionError(f"{title(self._relations, index)}: {message}")

    def _sort(self, i: int, relation: AnyRelation) -> None:
        """Each relation to its kind."""
        try:
            match relation:
                case Lookup():
                    self._own(fixed(i, relation, self._facts))
                case Learn():
                    step, column = learned(i, relation, self._facts)
                    if step.name in self._declared or step.name in self._new:
                        raise ExpressionError(f"'{step.name}' is the name of a column already: give it another `name`")
                    self._new[step.name] = column
                    self._own(step)
                case Combination():
                    self._combinations.append((i, relation))
                case Rule():
                    self._sort_rule(i, parse(relation.rule))
        except ExpressionError as error:
            raise error if str(error).startswith("relation ") else self._wrong(i, error) from None

    def _with_clocks(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Timestamps that no relation speaks of, beyond a computation, are learned as day and time of day."""
        told = {n for _, node in self._rules for n in columns(node)}
        told |= {name for _, combination in self._combinations for name in combination.columns}
        first: list[Step] = []
        for name, column in self._declared.items():
            if name in told or name in self._steps or name == self._label:
                continue
            split = apart(name, column.narrowed(*self._bounds[name]) if name in self._bounds else column)
            if split is None or any(new in self._declared or new in self._new for new in split[1]):
                continue
            self._steps[name] = split[0]
            self._new |= split[1]
            first.append(split[0])
        return (*first, *steps)

    def _sort_rule(self, i: int, node: Node) -> None:
        match node:
            case Call("=", (Ref(), Literal())):
                raise ExpressionError("it says the same of every row: declare that in the column itself")
            case Call("=", (Ref(name), value)):
                self._own(derived(i, name, value, self._facts))
            case Call("<" | "<=" | ">" | ">=", (a, b)) if columns(a) and columns(b):
                self._orders.append(order_of(i, node, self._facts))
            case _:
                self._rules.append((i, node))

    def _own(self, step: Step) -> None:
        """A column follows from one relation only."""
        if step.target in self._steps:
            first = title(self._relations, self._steps[step.target].relation)
            raise self._wrong(step.relation, f"column '{step.target}' follows already from {first}. Keep one of them")
        if step.target in step.sources:
            raise self._wrong(step.relation, f"column '{step.target}' cannot follow from itself")
        self._steps[step.target] = step

    def _topological(self) -> tuple[Step, ...]:
        done: dict[str, Step] = {}
        path: list[str] = []

        def visit(name: str) -> None:
            if name in done or name not in self._steps:
                return
            if name in path:
                round_trip = " -> ".join([*path[path.index(name) :], name])
                raise self._wrong(
                    self._steps[name].relation, f"columns follow from each other in a circle: {round_trip}"
                )
            path.append(name)
            for source in self._steps[name].sources:
                visit(source)
            path.pop()
            done[name] = self._steps[name]

        for name in self._declared:
            visit(name)
        inexact = {name for name, step in done.items() if isinstance(step, Derived) and not exact(step.value)}
        for name, step in done.items():
            if inexact & set(step.sources):
                if isinstance(step, Learned | Bound):
                    raise self._wrong(
                        step.relation, "a column in it is computed with a logarithm, root or broken power"
                    )
                inexact.add(name)
        return tuple(done.values())

    def _with_room(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Narrow columns so that what must lie beyond them has room, last column first; then fix the distances."""
        for step in reversed(steps):
            if isinstance(step, Bound):
                for base, strict in zip(step.bases, step.strict, strict=True):
                    self._make_room(step, base, strict)
        return tuple(self._reach(s) if isinstance(s, Bound) else s for s in steps)

    def _make_room(self, step: Bound, base: Node, strict: bool) -> None:
        fact, found = self._facts[step.target], infer(base, self._facts)
        end = found.high if step.above else found.low
        nearest = float((at_or_above if step.above else at_or_below)(fact, np.array([end]), strict)[0])
        if (nearest <= fact.high) if step.above else (nearest >= fact.low):
            return
        limit = fact.high if step.above else fact.low
        movable = isinstance(base, Ref) and isinstance(self._steps.get(base.name), Bound | None)
        if isinstance(base, Ref) and movable:
            own = self._facts[base.name]
            last = float((at_or_below if step.above else at_or_above)(own, np.array([limit]), strict)[0])
            if own.low < last < own.high:
                low, high = (own.low, last) if step.above else (last, own.high)
                self._facts[base.name] = replace(own, low=low, high=high)
                self._bounds[base.name] = (low, high)
                return
        side = ("reaches", "at most", "max") if step.above else ("begins at", "at least", "min")
        raise self._wrong(
            step.relation,
            f"the bounds cannot meet: one side {side[0]} {show(fact, end)} and '{step.target}' is {side[1]} "
            f"{show(fact, limit)}. Change the bounds of the columns",
        )

    def _reach(self, step: Bound) -> Bound:
        fact = self._facts[step.target]
        ends = [infer(base, self._facts) for base in step.bases]
        if step.above:
            start = max([fact.low, *(e.low for e in ends if not e.null)])
            reach = fact.high - start
        else:
            reach = min([fact.high, *(e.high for e in ends if not e.null)]) - fact.low
        unit = fact.step or 1e-9 * (fact.high - fact.low)
        reach = max(reach, unit)
        self._new[step.name] = distance_column(fact, 0.0, reach, fact.nullable)
        return replace(step, low=fact.low, high=fact.high, reach=reach)

    def _measured(self, steps: tuple[Step, ...]) -> tuple[dict[str, AnyColumn], tuple[Joined, ...]]:
        taken = {s.target for s in steps}
        joined: list[Joined] = []
        members: dict[str, Joined] = {}
        for i, relation in self._combinations:
            try:
                free = [n for n in self._declared if n not in taken and n not in members and n != self._label]
                found = joined_of(i, relation, self._facts, free)
            except ExpressionError as error:
                raise self._wrong(i, error) from None
            if found is not None:
                joined.append(found)
                members |= dict.fromkeys(found.columns, found)
        measured: dict[str, AnyColumn] = {}
        for name, column in self._declared.items():
            if name in self._steps:
                measured |= {new: self._new[new] for new in self._steps[name].measured}
            elif name in members:
                measured[members[name].name] = members[name].column
            else:
                measured[name] = column.narrowed(*self._bounds[name]) if name in self._bounds else column
        return measured, tuple(joined)

    def _boxes(
        self, steps: tuple[Step, ...], joined: tuple[Joined, ...], facts: Facts
    ) -> tuple[tuple[Box, ...], tuple[str, ...]]:
        translation = Translation(steps, joined, self._facts, facts)
        found: list[Box] = []
        after: dict[str, set[str]] = {}
        kept = {j.relation for j in joined}
        every = {**self._facts, **{name: facts[name] for name in facts if name not in self._facts}}
        for i, source in [*self._rules, *((i, c) for i, c in self._combinations if i not in kept)]:
            try:
                if isinstance(source, Combination):
                    boxes, last = boxes_of(i, source, self._facts), {source.columns[-1]}
                else:
                    boxes, last = forbidden(source, every, i), _consequence(source)
                boxes = [b for box in boxes for b in translation.boxes(box)]
                late = {n for name in last for n in translation.names(name)}
            except ExpressionError as error:
                raise self._wrong(i, error) from None
            if boxes and all(len(box.names) == 1 for box in boxes):
                raise self._wrong(i, "it is about one column: declare it there, by bounds, values or `nullable`")
            found += boxes
            for box in boxes:
                for name in set(box.names) & late:
                    after.setdefault(name, set()).update(set(box.names) - late)
        found += [box for step in steps if isinstance(step, Apart) for box in _null_together(step, facts)]
        order = self._settled(found, after, list(facts))
        try:
            return closed(found, order, facts), order
        except Contradiction as error:
            named = " and ".join(title(self._relations, i) for i in sorted(error.rules))
            raise ExpressionError(
                f"{named} cannot be kept: no row satisfies {'them all' if len(error.rules) > 1 else 'it'}"
            ) from None
        except ExpressionError as error:
            raise ExpressionError(f"relations: {error}") from None

    def _settled(self, boxes: list[Box], after: dict[str, set[str]], names: list[str]) -> tuple[str, ...]:
        """Columns of conditions before those of consequences, the label first; in a circle, in the schema's order."""
        used = {name for box in boxes for name in box.names}
        left = [n for n in names if n in used]
        left.sort(key=lambda n: n != self._label)
        found: list[str] = []
        while left:
            ready = [n for n in left if n == self._label or not (after.get(n, set()) & set(left)) - {n}]
            found.append((ready or left)[0])
            left.remove(found[-1])
        return tuple(found)


def _null_together(step: Apart, facts: Facts) -> list[Box]:
    """The parts of a moment are null in the same rows."""
    whole, *others = step.measured
    if not facts[whole].nullable:
        return []
    null, there = Subset((), True), {name: Subset(domain(facts[name]).spans) for name in step.measured}
    pairs = [((whole, a), (name, b)) for name in others for a, b in ((null, there[name]), (there[whole], null))]
    return [Box(tuple(sorted(pair, key=lambda part: part[0]))) for pair in pairs]


def _consequence(node: Node) -> set[str]:
    """The columns that a rule speaks about, rather than those of its condition."""
    match node:
        case Call("implies", (_, then)):
            return set(columns(then))
        case Call("iff", (a, _)):
            return set(columns(a))
    return set(columns(node)[-1:])
