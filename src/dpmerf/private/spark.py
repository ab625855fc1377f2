"""Spark: the same integer sums past one machine. Executors send partial sums; noise is added once, on the driver.

A task turns its rows into one vector of integers, and integers add up to the same total in any order. A task that
fails and is run again gives the same integers, and Spark keeps one attempt of each, so retries change nothing. Rows
leave an executor only where persons are capped: then encoded rows are shuffled so that each person is in one place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from dpmerf.encoding import broken, readable
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Plan, View
from dpmerf.plan.embedding import codec_of
from dpmerf.private.contribute import Sums
from dpmerf.private.local import columns_of
from dpmerf.private.persons import KEY_BYTES, Tags, tags
from dpmerf.progress import Bars
from dpmerf.sources.rows import Rows
from dpmerf.sources.spark_table import SparkTable, quiet

ADDERS = 4  # tasks that add partial sums up
SLICE = 8 * 1024  # bytes of a partial sum that travel together
PARTIAL = "slice int, rows bigint, sums binary"
_TAGGED = "person binary, ranked binary, encoded binary"
Batches = Iterator[pa.RecordBatch]


def sum_on_spark(rows: Rows, plan: Plan, phi: FeatureMap, view: View, bars: Bars, what: str) -> tuple[Tensor, int]:
    """Σφ over all rows of a SparkTable, and their number: bit for bit what `sum_locally` gives."""
    assert isinstance(rows, SparkTable)
    names, codec = columns_of(plan), codec_of(plan, phi)
    # mapInArrow cannot take every name (a dot in it, for one): columns travel under numbers
    frame = rows.frame.select(*(quoted(name) for name in names)).toDF(*(f"c{i}" for i in range(len(names))))
    with bars.task(f"{what} on Spark"), quiet():
        if plan.unit.person is None:
            partial = frame.mapInArrow(_Sum(names, codec, phi, view), PARTIAL)
        else:
            tagged = frame.mapInArrow(_Tag(names, codec, plan.unit.person, os.urandom(KEY_BYTES)), _TAGGED)
            ordered = tagged.repartition("person").sortWithinPartitions("person", "ranked")
            partial = ordered.mapInArrow(_CapAndSum(codec, plan.unit.max_rows, phi, view), PARTIAL)
        return reduced(partial, phi)


def reduced(partial: Any, phi: FeatureMap) -> tuple[Tensor, int]:
    """Add partial sums slice by slice, each slice in one task: the driver receives the vector once, not once a task."""
    found = partial.repartition(ADDERS, "slice").mapInArrow(_add, PARTIAL).collect()
    sums = Sums(phi)
    if found:
        by_slice = {row["slice"]: bytes(row["sums"]) for row in found}
        raw = b"".join(by_slice[i] for i in range(len(by_slice)))
        sums.merge(torch.from_numpy(np.frombuffer(raw, "<i8").astype(np.int64)), sum(row["rows"] for row in found))
    return sums.total(), sums.rows


@final
class _Sum:
    """One task: its rows -> one partial sum."""

    def __init__(self, names: list[str], codec: Codec, phi: FeatureMap, view: View) -> None:
        self._names, self._codec, self._phi, self._view = names, codec, phi, view

    def __call__(self, batches: Batches) -> Batches:
        torch.set_num_threads(1)
        sums = Sums(self._phi)
        for batch in batches:
            sums.add(self._view(self._codec.encode(batch.rename_columns(self._names))))
        yield from packed(sums.total(), sums.rows)


@final
class _Tag:
    """One task: its rows -> encoded rows with the tags by which a person's rows are chosen."""

    def __init__(self, names: list[str], codec: Codec, person: str, key: bytes) -> None:
        self._names, self._codec, self._person, self._key = names, codec, person, key

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            named = batch.rename_columns(self._names)
            encoded = self._codec.encode(named)
            found = tags(named.column(self._person), encoded, self._key)
            yield pa.RecordBatch.from_arrays(
                [
                    binary(np.stack([found.high, found.low], axis=1).astype(">u8")),
                    binary(found.rank[:, None].astype(">u8")),
                    binary(_to_words(encoded)),
                ],
                names=["person", "ranked", "encoded"],
            )


@final
class _CapAndSum:
    """One task: encoded rows sorted by person and rank -> one partial sum over the first `most` of each person."""

    def __init__(self, codec: Codec, most: int, phi: FeatureMap, view: View) -> None:
        self._codec, self._most, self._phi, self._view = codec, most, phi, view

    def __call__(self, batches: Batches) -> Batches:
        torch.set_num_threads(1)
        sums = Sums(self._phi)
        last, had = b"", 0  # the person at the end of the batch before, and how many of their rows there were
        for batch in batches:
            if batch.num_rows == 0:
                continue
            high, low = words_of(batch.column("person"), 2, ">u8").astype(np.uint64).T
            place = Tags(high, low, high).place()
            first = place == np.arange(len(place))  # of the same person as the first row
            if batch.column("person")[0].as_py() == last:
                place = place + np.where(first, had, 0)
            last, had = batch.column("person")[-1].as_py(), int(place[-1]) + 1
            kept = torch.from_numpy(np.flatnonzero(place < self._most))
            sums.add(self._view(_from_words(batch.column("encoded"), self._codec).rows(kept)))
        yield from packed(sums.total(), sums.rows)


def packed(total: Tensor, rows: int) -> Batches:
    """Partial sums as slices of a few kilobytes, so that no batch of them is large."""
    if rows:
        raw = total.numpy().astype("<i8").tobytes()
        slices = [raw[i : i + SLICE] for i in range(0, len(raw), SLICE)]
        yield _slices(list(range(len(slices))), [rows] + [0] * (len(slices) - 1), slices)


def _add(batches: Batches) -> Batches:
    """One task: slices of partial sums -> one sum for each slice."""
    rows: dict[int, int] = {}
    totals: dict[int, np.ndarray] = {}
    for batch in batches:
        for i, n, raw in zip(*(batch.column(name).to_pylist() for name in ("slice", "rows", "sums")), strict=True):
            part = np.frombuffer(raw, "<i8")
            rows[i] = rows.get(i, 0) + n
            totals[i] = totals[i] + part if i in totals else part
    if totals:
        order = sorted(totals)
        yield _slices(order, [rows[i] for i in order], [totals[i].astype("<i8").tobytes() for i in order])


def _slices(places: list[int], rows: list[int], sums: list[bytes]) -> pa.RecordBatch:
    arrays = [pa.array(places, pa.int32()), pa.array(rows, pa.int64()), pa.array(sums, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["slice", "rows", "sums"])


def _names(codec: Codec) -> list[str]:
    """The discrete variables of an encoded row, in the order in which a packed row holds them."""
    label = codec.label
    extra = [label.name] if label is not None and label.name not in {v.name for v in codec.variables} else []
    looked = [readable.variable_name(name) for name in codec.looked]
    return [v.name for v in codec.variables] + extra + looked + [broken.variable_name(i) for i in codec.counted]


def _to_words(batch: Batch) -> np.ndarray:
    """(n, words) int64: an encoded row, bit for bit."""
    codes = [batch.codes[name].numpy()[:, None] for name in sorted(batch.codes)]
    return np.concatenate([batch.numbers.numpy().view(np.int64), *codes], axis=1)


def _from_words(column: pa.Array, codec: Codec) -> Batch:
    names, width = sorted(_names(codec)), codec.width
    words = words_of(column, width + len(names), "=i8")
    numbers = np.ascontiguousarray(words[:, :width]).view(np.float64)
    codes = {name: torch.from_numpy(np.ascontiguousarray(words[:, width + i])) for i, name in enumerate(names)}
    return Batch(torch.from_numpy(numbers), codes)


def binary(words: np.ndarray) -> pa.Array:
    """(n, k) eight-byte words -> n cells of 8k bytes."""
    n, k = words.shape
    offsets = pa.py_buffer(np.arange(0, 8 * k * (n + 1), 8 * k, dtype=np.int32)[: n + 1].tobytes())
    return pa.Array.from_buffers(pa.binary(), n, [None, offsets, pa.py_buffer(np.ascontiguousarray(words).tobytes())])


def words_of(column: pa.Array, k: int, kind: str) -> np.ndarray:
    """The inverse of `binary`."""
    raw = b"".join(column.to_pylist())
    return np.frombuffer(raw, kind).reshape(-1, k)


def quoted(name: str) -> str:
    """A column's name as Spark reads it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"
