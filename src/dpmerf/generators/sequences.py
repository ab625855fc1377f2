"""Sequences: persons drawn with their rows, one row after the other, each given the row before it and the person.

All persons take their k-th row together: conditions differ from row to row, and one model answers them all. The order
holds by construction: a later row lies its gap after the row before it. A history that ends after the last moment is
drawn anew as a whole, so that those that remain are what the model says of histories that end in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from dpmerf.encoding.codec import Batch
from dpmerf.encoding.extended_rows import ExtendedRows, Values, counter_values
from dpmerf.generators.base import Given
from dpmerf.generators.maxent.conditional import draw_each
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.schema import Numeric
from dpmerf.schema.extended_schema import GAP, STEP, before, count_of


@final
@dataclass(frozen=True)
class Drawn:
    """Rows of persons, person by person in order: measured columns, and whose they are."""

    person: np.ndarray  # (n,) number of the person
    values: Values  # measured columns of the rows

    def of(self, rows: np.ndarray) -> Drawn:
        return Drawn(self.person[rows], {name: column[rows] for name, column in self.values.items()})


def draw_rows(model: MaxEnt, of: ExtendedRows, persons: Values, counts: np.ndarray, rng: torch.Generator) -> Drawn:
    """So many rows of each person, given the person's measured columns (persons,).

    Histories that end too late are drawn anew, in `late_rounds`; those of the last round are squeezed to fit.
    """
    if of.history.facts.order is None:
        return _draw_set(model, of, persons, counts, rng)
    rounds, done = model.settings.late_rounds, list[Drawn]()
    left = np.flatnonzero(counts > 0)
    for turn in range(rounds):
        if not len(left):
            break
        told = {name: values[left] for name, values in persons.items()}
        drawn, late = _draw_ordered(model, of, told, counts[left], rng, whole=turn == rounds - 1)
        drawn = Drawn(left[drawn.person], drawn.values)
        done.append(drawn.of(np.flatnonzero(~np.isin(drawn.person, left[late]))) if turn < rounds - 1 else drawn)
        left = left[late]
    return _joined(of, done)


def declared_rows(of: ExtendedRows, drawn: Drawn) -> Batch:
    """The rows as the codec of the declared table decodes them."""
    return of.declared.batch({n: drawn.values[n] for n in of.declared.schema.learned}, len(drawn.person))


def _draw_set(model: MaxEnt, of: ExtendedRows, persons: Values, counts: np.ndarray, rng: torch.Generator) -> Drawn:
    """Rows without an order: each given the person alone."""
    person = np.repeat(np.arange(len(counts)), counts)
    if not len(person):
        return _joined(of, [])
    told = _told(of, {name: values[person] for name, values in persons.items()}, counts[person])
    names = frozenset({*of.history.measured_persons, count_of(of.history)})
    return Drawn(person, of.codec.values(draw_each(model, Given(names, of.codec.batch(told, len(person))), rng)))


def _draw_ordered(
    model: MaxEnt, of: ExtendedRows, persons: Values, counts: np.ndarray, rng: torch.Generator, whole: bool
) -> tuple[Drawn, np.ndarray]:
    """Histories of all these persons, and which of them (positions) end too late; `whole`: squeezed, none does."""
    history, order = of.history, of.history.facts.order
    assert order is not None
    axis, late = of.codec.axes[order], np.zeros(len(counts), dtype=bool)
    found: list[Values] = []
    people: list[np.ndarray] = []
    for place in range(int(counts.max())):
        here = np.flatnonzero((counts > place) & (whole | ~late))
        if not len(here):
            break
        told = _told(of, {name: values[here] for name, values in persons.items()}, counts[here])
        told[STEP] = np.full(len(here), int(place > 0))
        names = {*history.measured_persons, count_of(history), STEP}
        if history.facts.counter is not None:
            told[history.facts.counter] = counter_values(history, np.full(len(here), place))
            names.add(history.facts.counter)
        if place:
            known, still = (order, *history.measured_rows), np.searchsorted(people[-1], here)
            told |= {before(name): found[-1][name][still] for name in known}
            names |= set(map(before, known))
        batch = draw_each(model, Given(frozenset(names), of.codec.batch(told, len(here))), rng)
        values = told | {name: column for name, column in of.codec.values(batch).items() if name not in names}
        if place:
            values[order] = told[before(order)] + np.nan_to_num(values[GAP])
            late[here] |= values[order] > axis.high
        found.append({name: values[name] for name in of.declared.schema.learned})
        people.append(here)
    drawn = _joined(of, [Drawn(here, values) for here, values in zip(people, found, strict=True)])
    if whole:
        drawn.values[order] = _squeezed(drawn, order, axis.high, len(counts))
    drawn.values[order] = axis.value(axis.unit(drawn.values[order]))
    return drawn, np.flatnonzero(late)


def _squeezed(drawn: Drawn, order: str, high: float, persons: int) -> np.ndarray:
    """Moments of histories that end too late, drawn together between their first row and the last moment."""
    when = drawn.values[order]
    first, last = np.full(persons, np.inf), np.full(persons, -np.inf)
    np.minimum.at(first, drawn.person, when)
    np.maximum.at(last, drawn.person, when)
    start, stop = first[drawn.person], last[drawn.person]
    scale = np.where(stop > high, (high - start) / np.maximum(stop - start, 1e-9), 1.0)
    return start + (when - start) * scale


def _told(of: ExtendedRows, persons: Values, counts: np.ndarray) -> Values:
    """Extended rows of which only the person is known; what other columns hold here is not looked at."""
    told: Values = {}
    for name, column in of.codec.schema.learned.items():
        if isinstance(column, Numeric):
            told[name] = np.full(len(counts), of.codec.axes[name].low)
        else:
            told[name] = np.zeros(len(counts), np.int64)
    return told | persons | {count_of(of.history): counts.astype(np.float64)}


def _joined(of: ExtendedRows, parts: list[Drawn]) -> Drawn:
    """Person by person; of one person, rows in the order of the parts."""
    names = of.declared.schema.learned
    if not parts:
        empty = {n: np.empty(0, np.float64 if isinstance(c, Numeric) else np.int64) for n, c in names.items()}
        return Drawn(np.empty(0, np.int64), empty)
    person = np.concatenate([part.person for part in parts])
    sequence = np.argsort(person, kind="stable")
    return Drawn(person[sequence], {n: np.concatenate([p.values[n] for p in parts])[sequence] for n in names})
