"""Derived: rows as declared <-> rows as measured. The two ways of a schema's relations, row by row.

Forward, a row's columns are taken in the order of the program: what follows from others is computed anew; what is
learned in place of a column is its distance, ratio or product, held within its bounds. So a real row that breaks a
relation has a place like any other, and the place is a function of that row. Backward, the same steps give a row in
which every relation holds. `settled` keeps the boxes, in both directions.
"""

from __future__ import annotations

from typing import final

import numpy as np

from dpmerf.encoding.arithmetic import codes, evaluate, seconds
from dpmerf.encoding.projection import settled
from dpmerf.schema.derivations import Apart, Bound, Derived, Fixed, Joined, Learned, Step
from dpmerf.schema.program import Program
from dpmerf.schema.quantities import DAY, Fact, at_or_above, at_or_below, snapped

Values = dict[str, np.ndarray]


@final
class Relations:
    """A program, ready to run on values."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def forward(self, declared: Values) -> Values:
        """Declared columns -> measured columns."""
        values = dict(declared)
        found: Values = {}
        for joined in self.program.joined:
            found[joined.name] = np.array(joined.nearest)[_joint(joined, values, self.program)]
            values |= _apart(joined, found[joined.name])
        for step in self.program.steps:
            found |= self._measure(step, values)
            values[step.target] = self._compute(step, values, found)
        measured = {name: found[name] if name in found else values[name] for name in self.program.measured_facts}
        return settled(measured, self.program)

    def backward(self, measured: Values) -> Values:
        """Measured columns -> declared columns."""
        found = settled(measured, self.program)
        values = {name: found[name] for name in found if name in self.program.facts}
        for joined in self.program.joined:
            values |= _apart(joined, found[joined.name])
        for step in self.program.steps:
            values[step.target] = self._compute(step, values, found)
        return values

    def _measure(self, step: Step, values: Values) -> Values:
        """What is learned in place of a step's target."""
        facts = self.program.facts
        if isinstance(step, Learned):
            fact, base = facts[step.target], evaluate(step.base, values, facts)
            target = seconds(step.target, values, facts)
            with np.errstate(all="ignore"):
                match step.op:
                    case "-":
                        quantity = target - at_or_below(fact, base, False)
                    case "/":
                        quantity = target / base
                    case _:
                        quantity = target * base
            quantity = np.where(np.isnan(quantity), step.low, quantity)  # 0 / 0
            return {step.name: np.where(np.isnan(target) | np.isnan(base), np.nan, self._held(step.name, quantity))}
        if isinstance(step, Apart):
            target = seconds(step.target, values, facts)
            days = np.floor(target / DAY)
            monday = self.program.measured_facts[step.day].low / DAY  # where weeks are learned
            first = monday + np.floor((days - monday) / 7) * 7 if step.weekday else days
            found = {step.day: first, step.time: target - days * DAY}
            return found | ({step.weekday: days - first} if step.weekday else {})
        if isinstance(step, Bound):
            target = seconds(step.target, values, facts)
            start = self._start(step, values)
            distance = target - start if step.above else start - target
            return {step.name: np.where(np.isnan(target), np.nan, self._held(step.name, distance))}
        return {}

    def _held(self, name: str, values: np.ndarray) -> np.ndarray:
        return snapped(self.program.measured_facts[name], values)

    def _start(self, step: Bound, values: Values) -> np.ndarray:
        """Where the target may begin (or must end), on its own grid; a base that is null does not count."""
        fact = self.program.facts[step.target]
        edge = np.full(len(values[step.sources[0]]), step.low if step.above else step.high)
        for base, strict in zip(step.bases, step.strict, strict=True):
            value = evaluate(base, values, self.program.facts)
            if step.above:
                edge = np.fmax(edge, at_or_above(fact, value, strict))
            else:
                edge = np.fmin(edge, at_or_below(fact, value, strict))
        return edge

    def _compute(self, step: Step, values: Values, measured: Values) -> np.ndarray:
        """The target of a step, as declared."""
        facts = self.program.facts
        fact = facts[step.target]
        if isinstance(step, Fixed):
            return _looked_up(step, values, self.program)
        if isinstance(step, Derived):
            if fact.levels:
                return codes(step.value, values, facts, fact)
            return _native(fact, snapped(fact, evaluate(step.value, values, facts)))
        if isinstance(step, Apart):
            days = measured[step.day] + (measured[step.weekday] if step.weekday else 0.0)
            return _native(fact, snapped(fact, days * DAY + measured[step.time]))
        if isinstance(step, Bound):
            start, distance = self._start(step, values), measured[step.name]
            found = start + distance if step.above else start - distance
            return _native(fact, np.clip(_rounded(fact, found), step.low, step.high))
        base, quantity = evaluate(step.base, values, facts), measured[step.name]
        with np.errstate(all="ignore"):
            match step.op:
                case "-":
                    found = _rounded(fact, at_or_below(fact, base, False) + quantity)
                    return _native(fact, np.clip(found, fact.low, fact.high))
                case "/":
                    found = base * quantity
                case _:
                    found = quantity / base
        return _native(fact, snapped(fact, found))


def _rounded(fact: Fact, values: np.ndarray) -> np.ndarray:
    """Sums of decimals as decimals."""
    return values if fact.decimals is None else np.round(values, fact.decimals)


def _native(fact: Fact, values: np.ndarray) -> np.ndarray:
    """Seconds in the unit that the column counts in. What must have a value and has none is the lowest."""
    found = values / fact.scale if fact.scale != 1.0 else values
    return found if fact.nullable else np.where(np.isnan(found), fact.low / fact.scale, found)


def _looked_up(step: Fixed, values: Values, program: Program) -> np.ndarray:
    fact = program.facts[step.target]
    place = np.zeros(len(values[step.sources[0]]), dtype=np.int64)
    for name in step.sources:
        key = program.facts[name]
        if key.levels:
            level = values[name]
        else:
            number = values[name]
            absent = np.isnan(number)
            steps = np.rint((np.where(absent, key.low, number) - key.low) / (key.step or 1.0)).astype(np.int64)
            level = np.where(absent, key.size, steps)
        place = place * (key.size + key.nullable) + level
    found = np.array(step.values)[place]
    return np.where(np.isnan(found), fact.size, found).astype(np.int64) if fact.levels else found


def _joint(joined: Joined, values: Values, program: Program) -> np.ndarray:
    place = np.zeros(len(values[joined.columns[0]]), dtype=np.int64)
    for name in joined.columns:
        place = place * program.facts[name].size + values[name]
    return place


def _apart(joined: Joined, code: np.ndarray) -> Values:
    table = np.array(joined.combinations)
    return {name: table[:, i][code] for i, name in enumerate(joined.columns)}
