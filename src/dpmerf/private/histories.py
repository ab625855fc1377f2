"""Histories: what one person adds to the sums, whatever the number of rows: the mean of the person's extended rows.

A person's rows are sorted, a window of at most K consecutive ones is kept, and each kept row of m adds ⌊weight / m⌋ to
its cell of every table, in integers of the grid. So what a person adds to a table is not negative and sums to at most
the table's weight: its norm is at most that of one row, and two persons are at most √2 times as far apart, as two rows
in different cells are. A person without rows adds nothing. Which rows are kept depends on that person's rows and on
the person's name under a secret key; a row without a key is nobody's and is left out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import final

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from dpmerf.encoding.codec import Batch
from dpmerf.encoding.extended_rows import ExtendedRows, PersonRows, Values, as_values, declared
from dpmerf.errors import PlanError
from dpmerf.features.algebra import BITS, FeatureMap
from dpmerf.private.persons import KEY_BYTES, digests, find
from dpmerf.private.spill import PARTS, Parted
from dpmerf.progress import Bars
from dpmerf.schema import Schema
from dpmerf.schema.extended_schema import count_of
from dpmerf.schema.person_schema import History, Persons
from dpmerf.sources.rows import Rows

CHUNK = 65_536  # rows that are extended at a time, where no part has more


@final
class PersonSums:
    """Σ over persons of the mean of φ over a person's rows, in integers of the grid 2⁻²⁴."""

    def __init__(self, phi: FeatureMap) -> None:
        if any(b.dense is not None or not b.cells for b in phi.blocks):
            raise PlanError("histories are measured by tables alone: make the plan with `dpmerf plan`")
        self._phi = phi
        self._tables = [torch.zeros(b.dim, dtype=torch.int64) for b in phi.blocks]
        self.persons = 0

    def add(self, batch: Batch, sizes: np.ndarray) -> None:
        """Add persons: rows lie person by person, `sizes` (persons,) of them. No person may come in two batches."""
        if sizes.sum() != len(batch):
            raise ValueError("rows and persons do not fit")
        per_row = torch.from_numpy(np.repeat(sizes, sizes).astype(np.int64))
        shares: dict[int, Tensor] = {}
        for block, table in zip(self._phi.blocks, self._tables, strict=True):
            weight = math.floor(block.weight * 2**BITS)
            if weight not in shares:
                shares[weight] = weight // per_row
            cell = block.cell(batch.codes)
            assert cell is not None
            table.scatter_add_(0, cell, shares[weight])
        self.persons += len(sizes)

    def total(self) -> Tensor:
        """(dim,) int64."""
        return torch.cat([torch.zeros(0, dtype=torch.int64), *self._tables])


@final
@dataclass(frozen=True)
class Kept:
    """Rows of whole persons, sorted: of each person where they begin, how many there are, and which are kept."""

    order: np.ndarray  # (n,) positions of the rows, sorted by person and order
    starts: np.ndarray  # (persons,) into `order`
    counts: np.ndarray  # (persons,) rows of the person
    windows: np.ndarray  # (persons,) first kept row, into `order`
    sizes: np.ndarray  # (persons,) kept rows

    def index(self) -> np.ndarray:
        """(kept,) into `order`, person by person."""
        within = np.arange(int(self.sizes.sum())) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        return np.repeat(self.windows, self.sizes) + within


def keep(high: np.ndarray, low: np.ndarray, numbers: np.ndarray, when: int | None, most: int) -> Kept:
    """Sort rows by person, then by column `when`, then by all columns; keep a window of each person.

    Equal rows are interchangeable, so the result depends on the set of rows alone. The window begins at a place that
    the person's name, a keyed digest, picks among all: as good as random, and the same whoever else is in the table.
    """
    keys = [numbers[:, j] for j in range(numbers.shape[1] - 1, -1, -1)]
    if when is not None:
        keys.append(numbers[:, when])
    order = np.lexsort((*keys, low, high))
    high, low = high[order], low[order]
    new = np.r_[True, (high[1:] != high[:-1]) | (low[1:] != low[:-1])][: len(high)]
    starts = np.flatnonzero(new)
    counts = np.diff(np.r_[starts, len(high)])
    spare = np.maximum(counts - most, 0)
    windows = starts + (low[starts] % (spare + 1).astype(np.uint64)).astype(np.int64)
    return Kept(order, starts, counts, windows, np.minimum(counts, most))


@final
class Histories:
    """The tables of one reading, parted by person. The first sum reads them; the key is forgotten with it."""

    def __init__(self, tables: dict[str, Rows], persons: Persons, key: bytes | None = None) -> None:
        self._tables, self.persons = tables, persons
        self._key = os.urandom(KEY_BYTES) if key is None else key
        self._stack = ExitStack()
        self._parted: dict[str, Parted] = {}
        self.extended = {h.name: ExtendedRows(h) for h in persons.histories}
        self.parent = PersonRows(persons) if persons.parent else None

    def __enter__(self) -> Histories:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def names_of(self, table: str) -> tuple[str, ...]:
        """The columns of one table that are read, beside the key."""
        if self.parent is not None and table == self.persons.tables[0]:
            return self.parent.needed
        of = self.extended[table]
        return (*of.persons, *of.own) if self.parent is None else of.own

    def read(self, bars: Bars) -> None:
        """One pass over every table; done once, by the first stage."""
        if self._parted:
            return
        for table, rows in self._tables.items():
            names, schema = self.names_of(table), self.persons.schema_of(table)
            parted = self.part_of(table)
            with bars.task(f"reading {table}"):
                for batch in rows.batches([*names, self.persons.key]):
                    _add(parted, batch, schema, names, self.persons.key, self._key)

    def part_of(self, table: str) -> Parted:
        """An empty place for the rows of one table."""
        self._parted[table] = self._stack.enter_context(Parted(len(self.names_of(table))))
        return self._parted[table]

    def batches(self, part: str) -> Iterator[tuple[Batch, np.ndarray]]:
        """Extended rows of whole persons, and how many rows each person has among them."""
        for parts in self._chunks():
            if self.parent is not None and part == self.persons.tables[0]:
                yield self._parents(parts)
            else:
                yield self._rows(part, parts)

    def _chunks(self) -> Iterator[range]:
        """Runs of parts that hold about as many rows as are worked on at a time."""
        rows = np.sum([parted.rows for parted in self._parted.values()], axis=0)
        start, held = 0, 0
        for i in range(PARTS):
            held += int(rows[i])
            if held >= CHUNK or i == PARTS - 1:
                yield range(start, i + 1)
                start, held = i + 1, 0

    def _load(self, table: str, parts: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        high, low, numbers = zip(*(self._parted[table].part(i) for i in parts), strict=True)
        return np.concatenate(high), np.concatenate(low), np.concatenate(numbers)

    def _rows(self, table: str, parts: range) -> tuple[Batch, np.ndarray]:
        of, history = self.extended[table], _history(self.persons, table)
        names = self.names_of(table)
        high, low, numbers = self._load(table, parts)
        parents: np.ndarray | None = None
        if self.parent is not None:
            parents, known = self._found(parts, high, low)
            high, low, numbers, parents = high[known], low[known], numbers[known], parents[known]
        when = names.index(history.facts.order) if history.facts.order is not None else None
        kept = keep(high, low, numbers, when, history.facts.most)
        values = as_values(numbers[kept.order], names, history.schema)
        first = np.repeat(kept.starts, kept.counts)
        if parents is not None and self.parent is not None:
            values |= as_values(parents[kept.order], self.parent.needed, self.parent.schema)
        values |= {name: values[name][first] for name in of.persons}  # as in the person's first row
        found = of.extend(values, first, np.repeat(kept.counts, kept.counts))
        return of.encode(found, kept.index()), kept.sizes

    def _parents(self, parts: range) -> tuple[Batch, np.ndarray]:
        assert self.parent is not None
        high, low, numbers = self._one_each(parts)
        values = as_values(numbers, self.parent.needed, self.parent.schema)
        counts: Values = {}
        for history in self.persons.histories:
            their_high, their_low, _ = self._load(history.name, parts)
            at = find(high, low, their_high, their_low)
            counts[count_of(history)] = np.bincount(at[at >= 0], minlength=len(high)).astype(np.float64)
        return self.parent.encode(values, counts), np.ones(len(high), np.int64)

    def _one_each(self, parts: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The parent's rows, sorted by person; of a person with several rows, the first by its cells."""
        high, low, numbers = self._load(self.persons.tables[0], parts)
        kept = keep(high, low, numbers, None, 1)
        one = kept.order[kept.starts]
        return high[one], low[one], numbers[one]

    def _found(self, parts: range, high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parent's row of each of these persons, and which of them have one: rows of nobody are left out."""
        one_high, one_low, numbers = self._one_each(parts)
        at = find(one_high, one_low, high, low)
        known = at >= 0
        if not len(numbers):
            return np.zeros((len(high), numbers.shape[1])), known
        return numbers[np.maximum(at, 0)], known


def names_and_digests(column: pa.Array, secret: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The persons of rows, 64 and 64 bits, and which rows have one at all."""
    high, low = digests(column, secret)
    nobody_high, nobody_low = digests(pa.array([None], pa.string()), secret)
    return high, low, (high != nobody_high) | (low != nobody_low)


def _add(
    parted: Parted, batch: pa.RecordBatch, schema: Schema, names: tuple[str, ...], key: str, secret: bytes
) -> None:
    high, low, mine = names_and_digests(batch.column(key), secret)
    parted.add(high[mine], low[mine], declared(batch, schema, names)[mine])


def _history(persons: Persons, table: str) -> History:
    return next(h for h in persons.histories if h.name == table)
