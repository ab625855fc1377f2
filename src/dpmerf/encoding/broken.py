"""Broken: which rows of a table break which relation. Reads the table as it is; knows nothing of how rows are made.

For synthetic rows (none), for a look at a table (which the guarantee does not cover), and for buying the share.
"""

from __future__ import annotations

import numpy as np

from dpmerf.encoding.arithmetic import codes, evaluate, seconds
from dpmerf.encoding.derived import Values, _looked_up
from dpmerf.schema.derivations import Apart, Bound, Derived, Fixed, Learned
from dpmerf.schema.expressions import Call, parse
from dpmerf.schema.making import level_of
from dpmerf.schema.program import Program
from dpmerf.schema.quantities import Fact, Facts, at_or_below, snapped
from dpmerf.schema.relations import Combination, Rule

_MARK = "#broken "  # of no column: such a count answers no question about one
TOLERANCE = 1e-6  # of a value's size, on lines without steps: files hold them as float32, too


def variable_name(relation: int) -> str:
    """The variable that says whether a row breaks that relation: 0 or 1."""
    return f"{_MARK}{relation}"


def relation_of(variable: str) -> int | None:
    """The way back; None for any other variable.

    >>> relation_of(variable_name(3)), relation_of("age#bin")
    (3, None)
    """
    return int(variable.removeprefix(_MARK)) if variable.startswith(_MARK) else None


def broken(values: Values, program: Program) -> dict[int, np.ndarray]:
    """Relation -> (n,) whether a row breaks it. `values` are declared columns, codes or numbers in their own unit."""
    rows = len(next(iter(values.values())))
    known = _with_learned(values, program)
    facts = {**program.measured_facts, **program.facts}
    found = {i: np.zeros(rows, dtype=bool) for i in range(len(program.relations))}
    owned = {step.relation for step in program.steps}
    ordered = {i for step in program.steps if isinstance(step, Bound) for i in step.relations}
    for step in program.steps:
        match step:
            case Derived():
                found[step.relation] |= _unlike(
                    values[step.target], _computed(step, values, program), program, step.target
                )
            case Fixed():
                found[step.relation] |= _unlike(
                    values[step.target], _looked_up(step, values, program), program, step.target
                )
            case Learned():
                found[step.relation] |= _outside(step, values, program)
            case Bound() | Apart():
                pass
    for i, relation in enumerate(program.relations):
        if isinstance(relation, Combination):
            found[i] |= _unlisted(relation, values, program)
        elif isinstance(relation, Rule):
            node = parse(relation.rule)
            if i in ordered and isinstance(node, Call):
                found[i] |= _disordered(node, values, program.facts)
            elif i not in owned:
                found[i] |= evaluate(node, known, facts) == 0
    return found


def _disordered(node: Call, values: Values, facts: Facts) -> np.ndarray:
    low, high = (evaluate(side, values, facts) for side in node.args)
    if node.op in (">", ">="):
        low, high = high, low
    if node.op in ("<", ">"):
        return low >= high
    return low > high + TOLERANCE * np.fmax(np.abs(low), np.abs(high))


def _with_learned(values: Values, program: Program) -> Values:
    """Rules may speak of what is learned, too."""
    found = dict(values)
    for step in program.steps:
        if isinstance(step, Learned):
            base, target = evaluate(step.base, found, program.facts), seconds(step.target, found, program.facts)
            with np.errstate(all="ignore"):
                match step.op:
                    case "-":
                        found[step.name] = target - at_or_below(program.facts[step.target], base, False)
                    case "/":
                        found[step.name] = target / base
                    case _:
                        found[step.name] = target * base
    return found


def _computed(step: Derived, values: Values, program: Program) -> np.ndarray:
    fact = program.facts[step.target]
    if fact.levels:
        return codes(step.value, values, program.facts, fact)
    return snapped(fact, evaluate(step.value, values, program.facts)) / fact.scale


def _unlike(have: np.ndarray, want: np.ndarray, program: Program, name: str) -> np.ndarray:
    fact = program.facts[name]
    if fact.levels:
        return have != want
    near = np.abs(have - want) <= _slack(fact, want)
    return np.where(np.isnan(want), ~np.isnan(have), ~near)


def _slack(fact: Fact, size: np.ndarray) -> np.ndarray:
    return np.full(len(size), fact.step / fact.scale / 1e3) if fact.step else TOLERANCE * np.maximum(np.abs(size), 1.0)


def _outside(step: Learned, values: Values, program: Program) -> np.ndarray:
    """The quantity is out of its bounds, by more than the target's rounding."""
    fact, facts = program.facts[step.target], program.facts
    base, target = evaluate(step.base, values, facts), seconds(step.target, values, facts)
    with np.errstate(all="ignore"):
        match step.op:
            case "-":
                start = at_or_below(fact, base, False)
                ends = start + step.low, start + step.high
            case "/":
                ends = base * step.low, base * step.high
            case _:
                ends = step.low / base, step.high / base
    low, high = np.fmin(*ends), np.fmax(*ends)
    room = (fact.step or 0.0) * (0.5 if step.op != "-" else 0.0) + _slack(fact, high) * fact.scale
    out = (target < low - room) | (target > high + room)
    return np.where(np.isnan(base), ~np.isnan(target), out & ~np.isnan(target))


def _unlisted(relation: Combination, values: Values, program: Program) -> np.ndarray:
    facts = [program.facts[name] for name in relation.columns]
    place = np.zeros(len(values[relation.columns[0]]), dtype=np.int64)
    absent = np.zeros(len(place), dtype=bool)
    for name, fact in zip(relation.columns, facts, strict=True):
        if fact.levels:
            level = values[name]
        else:
            level = np.rint((np.nan_to_num(values[name], nan=fact.low) - fact.low) / (fact.step or 1.0)).astype(
                np.int64
            )
            absent |= np.isnan(values[name])
        absent |= level >= fact.size
        place = place * (fact.size + 1) + np.clip(level, 0, fact.size)
    listed = []
    for row in relation.allowed or relation.forbidden:
        code = 0
        for fact, cell, name in zip(facts, row, relation.columns, strict=True):
            code = code * (fact.size + 1) + level_of(fact, cell, name)
        listed.append(code)
    inside = np.isin(place, listed)
    return ~absent & (~inside if relation.allowed else inside)
