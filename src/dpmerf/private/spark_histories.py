"""Spark histories: the same integer sums of persons past one machine. Bit for bit what one process gives.

Rows are encoded where they lie and shuffled by the person's keyed digest, so that every person, with the rows of all
tables, is in one task. A task does what one process does with its share of persons, and sends integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from dpmerf.encoding.extended_rows import declared
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import View
from dpmerf.private.histories import Histories, PersonSums, names_and_digests
from dpmerf.private.spark import PARTIAL, binary, packed, quoted, reduced, words_of
from dpmerf.schema.person_schema import Persons
from dpmerf.sources.spark_table import SparkTable, quiet

ENCODED = "person binary, source int, encoded binary"
Batches = Iterator[pa.RecordBatch]


def totals_on_spark(
    tables: dict[str, SparkTable], persons: Persons, key: bytes
) -> Callable[[str, FeatureMap, View], Tensor]:
    """The sums of a part's map over all persons of Spark tables."""
    with Histories({}, persons) as of:
        columns = {table: [*of.names_of(table), persons.key] for table in tables}
    encoded: Any = None
    for table, rows in tables.items():
        names = columns[table]
        frame = rows.frame.select(*map(quoted, names)).toDF(*(f"c{i}" for i in range(len(names))))
        found = frame.mapInArrow(_Encode(names, persons, table, key), ENCODED)
        encoded = found if encoded is None else encoded.unionAll(found)
    shuffled = encoded.repartition("person")

    def total(part: str, phi: FeatureMap, view: View) -> Tensor:
        with quiet():
            return reduced(shuffled.mapInArrow(_Sum(persons, part, phi, view), PARTIAL), phi)[0]

    return total


@final
class _Encode:
    """One task: its rows -> whose they are, of which table, and their declared columns as numbers."""

    def __init__(self, names: list[str], persons: Persons, table: str, key: bytes) -> None:
        self._names, self._persons, self._table, self._key = names, persons, table, key

    def __call__(self, batches: Batches) -> Batches:
        schema, own = self._persons.schema_of(self._table), tuple(self._names[:-1])
        place = self._persons.tables.index(self._table)
        for batch in batches:
            named = batch.rename_columns(self._names)
            high, low, mine = names_and_digests(named.column(self._persons.key), self._key)
            numbers = declared(named, schema, own)[mine]
            yield pa.RecordBatch.from_arrays(
                [
                    binary(np.stack([high[mine], low[mine]], axis=1).astype(">u8")),
                    pa.array(np.full(len(numbers), place), pa.int32()),
                    binary(np.ascontiguousarray(numbers).view(np.int64)),
                ],
                names=["person", "source", "encoded"],
            )


@final
class _Sum:
    """One task: all rows of some persons -> one partial sum over these persons."""

    def __init__(self, persons: Persons, part: str, phi: FeatureMap, view: View) -> None:
        self._persons, self._part, self._phi, self._view = persons, part, phi, view

    def __call__(self, batches: Batches) -> Batches:
        torch.set_num_threads(1)
        sums = PersonSums(self._phi)
        with Histories({}, self._persons) as histories:
            parted = {table: histories.part_of(table) for table in self._persons.tables}
            for batch in batches:
                source = np.asarray(batch.column("source"))
                for place, table in enumerate(self._persons.tables):
                    own = pa.array(np.flatnonzero(source == place))
                    if len(own):
                        high, low = words_of(batch.column("person").take(own), 2, ">u8").astype(np.uint64).T
                        width = parted[table].width
                        numbers = words_of(batch.column("encoded").take(own), width, "=i8")
                        parted[table].add(high, low, np.ascontiguousarray(numbers).view(np.float64))
            for extended, sizes in histories.batches(self._part):
                sums.add(self._view(extended), sizes)
        yield from packed(sums.total(), sums.persons)
