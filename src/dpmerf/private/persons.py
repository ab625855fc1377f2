"""Persons: at most k rows of each person, the same ones whatever the order of the rows.

A person's rows are ranked by a keyed hash of the person and the encoded row, and the k smallest are kept. The choice
depends on that person's rows alone, so replacing one person changes nobody else's rows: any hash of the rows would do
for privacy, and a keyed one makes the choice as good as random. What must never collide are persons: their names are
128-bit keyed BLAKE2b digests. The key is drawn for one reading of the data and forgotten with it.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
import torch

from dpmerf.encoding import cells
from dpmerf.encoding.codec import Batch

KEY_BYTES = 32
_HELD = 262_144  # rows seen before the first pruning
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@final
@dataclass(frozen=True)
class Tags:
    """What stands for each of n rows in the choice: its person (128 bits) and its rank among that person's rows."""

    high: np.ndarray  # (n,) uint64
    low: np.ndarray  # (n,) uint64
    rank: np.ndarray  # (n,) uint64

    def __len__(self) -> int:
        return len(self.rank)

    def rows(self, index: np.ndarray) -> Tags:
        return Tags(self.high[index], self.low[index], self.rank[index])

    def order(self) -> np.ndarray:
        """Positions sorted by person, then rank."""
        return np.lexsort((self.rank, self.low, self.high))

    def place(self) -> np.ndarray:
        """0, 1, 2, … within each person, for sorted tags."""
        if len(self) == 0:  # a table without rows is the neighbour of one with a single person
            return np.empty(0, np.int64)
        return _count_runs((self.high[1:] != self.high[:-1]) | (self.low[1:] != self.low[:-1]))


def tags(persons: pa.Array | pa.ChunkedArray, batch: Batch, key: bytes) -> Tags:
    """The tags of encoded rows. Cells without a name are one person."""
    high, low = digests(persons, key)
    return Tags(high, low, _hash(batch, high, key))


@final
class PersonCap:
    """First pass: the k smallest ranks of each person. Memory grows with the rows kept: 24 bytes each."""

    def __init__(self, most: int, key: bytes | None = None) -> None:
        self.key = os.urandom(KEY_BYTES) if key is None else key
        self._most = most
        self._kept = _NOBODY
        self._waiting: list[Tags] = []
        self._held = 0
        self._seen = 0
        self._crowded = np.empty(0, np.uint64), np.empty(0, np.uint64)  # persons who had more than k rows
        self._lock = threading.Lock()

    def see(self, seen: Tags) -> None:
        with self._lock:
            self._waiting.append(seen)
            self._held += len(seen)
            self._seen += len(seen)
            if self._held > max(_HELD, len(self._kept)):
                self._prune()

    def chosen(self) -> Chosen:
        """What the second pass takes: all rows of most persons, the first k ranks of those who had more."""
        with self._lock:
            self._prune()
            last = self._kept.place() == self._most - 1
            ends = np.flatnonzero(last)
            crowded = self._kept.rows(ends)
            known = find(*self._crowded, crowded.high, crowded.low) >= 0
            return Chosen(self._kept, ends[known], self.key, self._seen)

    def _prune(self) -> None:
        together = _join([self._kept, *self._waiting])
        together = together.rows(together.order())
        place = together.place()
        over = together.rows(np.flatnonzero(place == self._most))
        high, low = (np.concatenate(pair) for pair in zip(self._crowded, (over.high, over.low), strict=True))
        order = np.lexsort((low, high))
        high, low = high[order], low[order]
        first = np.r_[True, (high[1:] != high[:-1]) | (low[1:] != low[:-1])][: len(high)]
        self._crowded = high[first], low[first]
        self._kept = together.rows(np.flatnonzero(place < self._most))
        self._waiting, self._held = [], 0


@final
class Chosen:
    """Second pass: take each kept row once."""

    def __init__(self, kept: Tags, ends: np.ndarray, key: bytes, seen: int) -> None:
        """`ends`: positions, in sorted `kept`, of the last kept row of every person who had more than k."""
        self.key = key
        self.seen = seen  # rows of the first pass, all persons together
        self._last = kept.rows(ends)
        # equal rows share a rank: as many of the last rank are taken as were kept
        same = np.r_[
            True,
            (kept.high[1:] != kept.high[:-1]) | (kept.low[1:] != kept.low[:-1]) | (kept.rank[1:] != kept.rank[:-1]),
        ][: len(kept)]
        start = np.maximum.accumulate(np.where(same, np.arange(len(kept)), 0)) if len(kept) else ends
        self._left = (ends - start[ends] + 1).astype(np.int64)
        self._lock = threading.Lock()

    def take(self, seen: Tags) -> torch.Tensor:
        """Positions of the rows that count."""
        place = find(self._last.high, self._last.low, seen.high, seen.low)
        crowded = place >= 0
        if not crowded.any():
            return torch.arange(len(seen))
        last = self._last.rank[place]
        taken = ~crowded | (seen.rank < last)
        ties = np.flatnonzero(crowded & (seen.rank == last))
        if len(ties):
            order = ties[np.argsort(place[ties], kind="stable")]
            turn = _count_runs(np.diff(place[order]) != 0)
            with self._lock:
                won = order[turn < self._left[place[order]]]
                np.subtract.at(self._left, place[won], 1)
            taken[won] = True
        return torch.from_numpy(np.flatnonzero(taken))


_NOBODY = Tags(*(np.empty(0, np.uint64) for _ in range(3)))


def _join(parts: list[Tags]) -> Tags:
    return Tags(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("high", "low", "rank")))


def _count_runs(changes: np.ndarray) -> np.ndarray:
    """0, 1, 2, … from each change on; `changes` has one element fewer than the result."""
    n = len(changes) + 1
    starts = np.r_[True, changes]
    return np.arange(n) - np.maximum.accumulate(np.where(starts, np.arange(n), 0))


def find(high: np.ndarray, low: np.ndarray, wanted_high: np.ndarray, wanted_low: np.ndarray) -> np.ndarray:
    """Where each wanted 128-bit name is in the sorted names (high, low); -1 if it is not there."""
    if len(high) == 0:
        return np.full(len(wanted_high), -1)
    place = np.searchsorted(high, wanted_high)
    longest = int(np.unique(high, return_counts=True)[1].max())
    for _ in range(longest - 1):  # two names that share their first half: all but impossible
        at = np.minimum(place, len(high) - 1)
        place += (high[at] == wanted_high) & (low[at] < wanted_low) & (place < len(high))
    at = np.minimum(place, len(high) - 1)
    return np.where((high[at] == wanted_high) & (low[at] == wanted_low), at, -1)


def digests(persons: pa.Array | pa.ChunkedArray, key: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Each different name is hashed once."""
    array = cells.plain(persons)
    try:
        encoded = array.dictionary_encode()
        names = [*cells.as_names(encoded.dictionary), ""]
        index = np.asarray(encoded.indices.fill_null(len(names) - 1))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # nested cells
        names = cells.as_names(array)
        index = np.arange(len(names))
    raw = b"".join(hashlib.blake2b(n.encode("utf-8", "replace"), digest_size=16, key=key).digest() for n in names)
    halves = np.frombuffer(raw, ">u8").astype(np.uint64).reshape(-1, 2)
    return halves[index, 0], halves[index, 1]


def _hash(batch: Batch, start: np.ndarray, key: bytes) -> np.ndarray:
    """(n,) uint64: a keyed hash of each encoded row, begun from its person."""
    columns = [batch.numbers[:, j].numpy().view(np.uint64) for j in range(batch.numbers.shape[1])]
    columns += [batch.codes[name].numpy().view(np.uint64) for name in sorted(batch.codes)]
    secret = np.frombuffer(hashlib.shake_256(key).digest(8 * (len(columns) + 1)), np.uint64)
    found = _mixed(start ^ secret[0])
    for column, own in zip(columns, secret[1:], strict=True):
        found = _mixed(found + (column ^ own))
    return found


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every bit of x moves every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * _MIX[0]
    x = (x ^ (x >> np.uint64(27))) * _MIX[1]
    found: np.ndarray = x ^ (x >> np.uint64(31))
    return found
