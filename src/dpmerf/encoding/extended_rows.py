"""Extended rows: a person's rows, in order, each beside the row before it. A pure function of one person's rows.

Values are columns of numbers (NaN is null) and codes, as everywhere before they become tensors.
"""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
import pyarrow as pa

from dpmerf.encoding.codec import Batch, Codec, placed
from dpmerf.encoding.derived import Relations
from dpmerf.encoding.reading import read
from dpmerf.schema import Category, Flag, Integer, Numeric, Schema
from dpmerf.schema.extended_schema import GAP, STEP, before, count_of, extended, person_table
from dpmerf.schema.person_schema import History, Persons

Values = dict[str, np.ndarray]


def declared(table: pa.RecordBatch, schema: Schema, names: tuple[str, ...]) -> np.ndarray:
    """(n, columns) float64: each of the named columns on its grid and within its bounds. Codes are whole numbers."""
    values = placed(read(table, schema, names), schema)
    found = np.empty((table.num_rows, len(names)))
    for i, name in enumerate(names):
        found[:, i] = values[name]
    return found


def as_values(matrix: np.ndarray, names: tuple[str, ...], schema: Schema) -> Values:
    """The way back to columns."""
    numeric = {name: isinstance(schema.columns[name], Numeric) for name in names}
    return {name: matrix[:, i] if numeric[name] else matrix[:, i].astype(np.int64) for i, name in enumerate(names)}


@final
class ExtendedRows:
    """The extended rows of one history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.declared = Codec(history.schema)
        self.codec = Codec(extended(history))

    @cached_property
    def persons(self) -> tuple[str, ...]:
        """The declared columns of the person that a release reads."""
        return tuple(name for name in self.history.schema.needed if name in self.history.persons)

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The declared columns of the row that a release reads."""
        return tuple(name for name in self.history.schema.needed if name not in self.history.persons)

    def extend(self, values: Values, first: np.ndarray, count: np.ndarray) -> Values:
        """Declared rows, sorted by person and order -> extended rows.

        `first` (n,) is where each row's person begins, `count` (n,) how many rows that person has.
        """
        measured = self._measured(values)
        n, facts = len(first), self.history.facts
        place = np.arange(n) - first
        found = {name: measured[name] for name in self.history.measured_persons}
        found[count_of(self.history)] = count.astype(np.float64)
        if facts.counter is not None:
            found[facts.counter] = counter_values(self.history, place)
        if facts.order is not None:
            later, last = place > 0, np.maximum(np.arange(n) - 1, 0)  # the row before, where there is one
            when = measured[facts.order]
            found[STEP] = later.astype(np.int64)
            found[facts.order] = np.where(later, np.nan, when)
            found[before(facts.order)] = np.where(later, when[last], np.nan)
            found[GAP] = np.where(later, when - when[last], np.nan)
            for name in self.history.measured_rows:
                value = measured[name][last]
                column = self.codec.schema.columns[before(name)]
                null = len(column.levels) if isinstance(column, Category | Flag) else np.nan
                found[before(name)] = np.where(later, value, null)
        return found | {name: measured[name] for name in self.history.measured_rows}

    def encode(self, values: Values, index: np.ndarray) -> Batch:
        """Some of the extended rows as tensors."""
        return self.codec.batch({name: column[index] for name, column in values.items()}, len(index))

    def _measured(self, values: Values) -> Values:
        relations = self.declared.relations
        return values if relations is None else relations.forward(values)


def counter_values(history: History, place: np.ndarray) -> np.ndarray:
    """(n,) what the counter says of the rows at these places in their history."""
    assert history.facts.counter is not None
    column = history.schema.columns[history.facts.counter]
    assert isinstance(column, Integer)
    return np.minimum(column.min + place * column.step, column.max).astype(np.float64)


@final
class PersonRows:
    """One row a person: the columns of the parent table and the numbers of rows elsewhere."""

    def __init__(self, persons: Persons) -> None:
        assert persons.parent is not None
        self.persons = persons
        self.schema = persons.parent[1]
        self.codec = Codec(person_table(persons))
        self._relations = Relations(self.schema.program) if self.schema.rewrites else None

    @property
    def needed(self) -> tuple[str, ...]:
        return self.schema.needed

    def encode(self, values: Values, counts: Values) -> Batch:
        """Declared columns of the parent, and (n,) numbers of rows by the names of their columns."""
        measured = values if self._relations is None else self._relations.forward(values)
        return self.codec.batch({**measured, **counts}, len(next(iter(counts.values()))))
