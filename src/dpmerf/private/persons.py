"""PersonCap: at most k rows of each person, the same ones whatever the order of the rows.

A person's rows are ranked by a keyed hash of their encoded content and the k smallest are kept, so the choice depends
on that person's rows alone: replacing one person changes nobody else's rows. Names and rows are 128-bit keyed BLAKE2b
digests under a key that is drawn for this release and forgotten with it. Memory grows with the rows kept.
"""

from __future__ import annotations

import hashlib
import os
from typing import final

import numpy as np
import pyarrow as pa
import torch

from dpmerf import cells
from dpmerf.codec import Batch

_ENTRY = np.dtype([("person", "S32"), ("row", "S32")])  # hexadecimal digests: no trailing zero bytes to lose


@final
class PersonCap:
    """First pass: which rows of each person are the k smallest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._key = os.urandom(32)
        self._kept = np.empty(0, _ENTRY)
        self._waiting: list[np.ndarray] = []
        self._held = 0

    def see(self, persons: pa.Array | pa.ChunkedArray, batch: Batch) -> None:
        self._waiting.append(_entries(persons, batch, self._key))
        self._held += len(batch)
        if self._held > max(262_144, len(self._kept)):
            self._prune()

    def chosen(self) -> Chosen:
        self._prune()
        return Chosen(self._kept, self._key)

    def _prune(self) -> None:
        entries = np.sort(np.concatenate([self._kept, *self._waiting]), order=["person", "row"])
        self._kept = entries[_rank(entries["person"]) < self._most]
        self._waiting, self._held = [], 0


@final
class Chosen:
    """Second pass: take each kept row once."""

    def __init__(self, kept: np.ndarray, key: bytes) -> None:
        self._key = key
        self._entries, self._left = np.unique(kept, return_counts=True)

    def take(self, persons: pa.Array | pa.ChunkedArray, batch: Batch) -> torch.Tensor:
        """Positions of the rows of this batch that count."""
        entries = _entries(persons, batch, self._key)
        if len(self._entries) == 0 or len(entries) == 0:
            return torch.empty(0, dtype=torch.int64)
        order = np.argsort(entries, order=["person", "row"], kind="stable")
        entries = entries[order]
        place = np.minimum(np.searchsorted(self._entries, entries), len(self._entries) - 1)
        same = self._entries[place] == entries
        rank = _rank(np.char.add(entries["person"], entries["row"]))  # equal rows of a person, counted
        taken = same & (rank < self._left[place])
        np.subtract.at(self._left, place[taken], 1)
        return torch.from_numpy(np.sort(order[taken]))


def _rank(sorted_keys: np.ndarray) -> np.ndarray:
    """0, 1, 2, … within each run of equal keys."""
    n = len(sorted_keys)
    if n == 0:
        return np.empty(0, np.int64)
    starts = np.r_[True, sorted_keys[1:] != sorted_keys[:-1]]
    first = np.maximum.accumulate(np.where(starts, np.arange(n), 0))
    return np.arange(n) - first


def _entries(persons: pa.Array | pa.ChunkedArray, batch: Batch, key: bytes) -> np.ndarray:
    names = [cell.encode("utf-8", "replace") for cell in cells.as_names(persons)]
    content = np.concatenate(
        [batch.numbers.numpy().view(np.int64), *[code.numpy()[:, None] for code in batch.codes.values()]], axis=1
    )
    lines = np.ascontiguousarray(content)
    found = np.empty(len(batch), _ENTRY)
    for i, name in enumerate(names):
        found["person"][i] = hashlib.blake2b(name, digest_size=16, key=key).hexdigest()
        found["row"][i] = hashlib.blake2b(lines[i].tobytes(), digest_size=16, key=key).hexdigest()
    return found
