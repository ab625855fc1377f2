"""Bugs in what a person with several rows adds to the sums, each planted in the real code path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dpmerf.encoding.codec import Batch
from dpmerf.private import histories
from dpmerf.private.histories import Histories, Kept, PersonSums
from privacy.person_hunt import MOST

Plant = Callable[[pytest.MonkeyPatch], None]


def _keep_all(patch: pytest.MonkeyPatch) -> None:
    real = histories.keep

    def keep(*arguments: Any) -> Kept:
        kept = real(*arguments)
        return replace(kept, windows=kept.starts, sizes=kept.counts)

    patch.setattr(histories, "keep", keep)


def cap_after_the_sum(patch: pytest.MonkeyPatch) -> None:
    """All rows are summed; the cap only says by how many at most a person's sum is divided."""
    _keep_all(patch)
    _divided_by(patch, lambda sizes: np.minimum(sizes, MOST))


def weights_by_uncapped_n(patch: pytest.MonkeyPatch) -> None:
    """Kept rows are divided by the number of all rows of the person."""
    counts: list[np.ndarray] = []
    real = histories.keep

    def keep(*arguments: Any) -> Kept:
        kept = real(*arguments)
        counts.append(kept.counts)
        return kept

    patch.setattr(histories, "keep", keep)
    _divided_by(patch, lambda sizes: counts[-1] if len(counts[-1]) == len(sizes) else sizes)


def _divided_by(patch: pytest.MonkeyPatch, divisor: Callable[[np.ndarray], np.ndarray]) -> None:
    def add(self: PersonSums, batch: Batch, sizes: np.ndarray) -> None:
        per_row = torch.from_numpy(np.repeat(divisor(sizes), sizes))
        for block, table in zip(self._phi.blocks, self._tables, strict=True):
            cell = block.cell(batch.codes)
            assert cell is not None
            table.scatter_add_(0, cell, int(block.weight * 2**24) // per_row)

    patch.setattr(PersonSums, "add", add)


def window_by_other_persons(patch: pytest.MonkeyPatch) -> None:
    """Which rows are kept depends on how many rows there are in all."""
    real = histories.keep

    def keep(high: np.ndarray, low: np.ndarray, *others: Any) -> Kept:
        kept = real(high, low, *others)
        return replace(kept, windows=kept.starts + len(high) % (kept.counts - kept.sizes + 1))

    patch.setattr(histories, "keep", keep)


def stratum_not_in_the_bound(patch: pytest.MonkeyPatch) -> None:
    """First rows and later rows have a mean each, as if they were two persons'."""
    real = PersonSums.add

    def add(self: PersonSums, batch: Batch, sizes: np.ndarray) -> None:
        if "step" not in batch.codes:
            return real(self, batch, sizes)
        step, owner = batch.codes["step"].numpy(), np.repeat(np.arange(len(sizes)), sizes)
        for stratum in (0, 1):
            index = np.flatnonzero(step == stratum)
            if len(index):
                _, own = np.unique(owner[index], return_counts=True)
                real(self, batch.rows(torch.from_numpy(index)), own)
        return None

    patch.setattr(PersonSums, "add", add)


def parent_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """Every row of the parent table counts, also the second one of a person."""

    def all_of_them(self: Histories, parts: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        high, low, numbers = self._load(self.persons.tables[0], parts)
        order = np.lexsort((low, high))
        return high[order], low[order], numbers[order]

    patch.setattr(Histories, "_one_each", all_of_them)


def nameless_person(patch: pytest.MonkeyPatch) -> None:
    """Rows without a key are taken to be one more person's."""
    real = histories.digests

    def digests(column: Any, key: bytes) -> tuple[np.ndarray, np.ndarray]:
        high, low = real(column, key)
        return (high, low) if len(column) != 1 or column[0].is_valid else (high ^ np.uint64(1), low)

    patch.setattr(histories, "digests", digests)


PERSON_BUGS: dict[str, tuple[Plant, str]] = {  # name -> how to plant it, and what must be said
    "a cap after the sum": (cap_after_the_sum, "longer than the bound"),
    "weights by un-capped n": (weights_by_uncapped_n, "no mean of rows"),
    "a window chosen by other persons' rows": (window_by_other_persons, "depends on a person"),
    "a stratum that is not in the bound": (stratum_not_in_the_bound, "longer than the bound"),
    "a parent row counted twice": (parent_counted_twice, "longer than the bound"),
    "rows without a key are a person": (nameless_person, "somebody's"),
}
