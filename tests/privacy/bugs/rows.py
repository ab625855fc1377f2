"""Bugs of what a row, or a person, adds to the sums."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmerf.accounting.unit import Unit
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.encoding.normal_scores import Scores
from dpmerf.features.algebra import BITS, Block
from dpmerf.features.dense import Dense
from dpmerf.features.fourier import Fourier
from dpmerf.plan import Plan
from dpmerf.private import contribute, measure, persons
from privacy.bugs.bug import Bug


def _encode(patch: pytest.MonkeyPatch, change: Any) -> None:
    """Change the numbers of a table after they were read."""
    real = Codec.encode

    def changed(self: Codec, table: pa.Table) -> Batch:
        batch = real(self, table)
        return Batch(change(batch.numbers), batch.codes)

    patch.setattr(Codec, "encode", changed)


def bounds_from_data(patch: pytest.MonkeyPatch) -> None:
    def fitted(numbers: torch.Tensor) -> torch.Tensor:
        low, high = numbers.amin(dim=0), numbers.amax(dim=0)
        return (numbers - low) / (high - low).clamp_min(1e-9)

    _encode(patch, fitted)


def brightest_pixel(patch: pytest.MonkeyPatch) -> None:
    _encode(patch, lambda numbers: numbers / numbers.max().clamp_min(1e-9))


def mean_picture(patch: pytest.MonkeyPatch) -> None:
    _encode(patch, lambda numbers: (numbers - numbers.mean(dim=0) + 0.5).clamp(0, 1))


def length_scale_from_rows(patch: pytest.MonkeyPatch) -> None:
    """Frequencies follow the spread of the rows, as in the paper's own code."""
    real = measure.sum_locally

    def fitted(rows: Any, plan: Plan, phi: Any, *others: Any) -> Any:
        table = pa.Table.from_batches(list(rows.batches(measure.columns_of(plan))))
        spread = float(plan.codec.encode(table).numbers.std(unbiased=False))
        blocks = [replace(b, dense=_fitted(b.dense, spread)) for b in phi.blocks]
        return real(rows, plan, replace(phi, blocks=tuple(blocks)), *others)

    patch.setattr(measure, "sum_locally", fitted)


def _fitted(dense: Dense | None, spread: float) -> Dense | None:
    """With length-scales of its own, and so with other frequencies."""
    if not isinstance(dense, Fourier):
        return dense
    return replace(dense, scales=tuple(scale / (4 * max(spread, 0.05)) for scale in dense.scales))


def centred_scores(patch: pytest.MonkeyPatch) -> None:
    """Normal scores less the mean of the table's own scores."""
    real = Scores.__call__

    def centred(self: Scores, batch: Batch) -> torch.Tensor:
        scores = real(self, batch)
        return scores - scores.mean(dim=0)

    patch.setattr(Scores, "__call__", centred)


def round_to_nearest(patch: pytest.MonkeyPatch) -> None:
    def rounded(values: torch.Tensor, block: Block) -> torch.Tensor:
        return torch.round(values * (block.weight * 2**BITS))

    for name in ("bounded", "_bound"):
        patch.setattr(contribute, name, rounded)


def not_enforced_by_label(patch: pytest.MonkeyPatch) -> None:
    real = contribute._bound

    def skipped(values: torch.Tensor, block: Block) -> torch.Tensor:
        if not block.cells:
            return real(values, block)
        return torch.trunc(values * (block.weight * 2**BITS))

    patch.setattr(contribute, "_bound", skipped)


def no_cap(patch: pytest.MonkeyPatch) -> None:
    real = persons.PersonCap.__init__
    patch.setattr(persons.PersonCap, "__init__", lambda self, most: real(self, 10**9))


def cap_per_batch(patch: pytest.MonkeyPatch) -> None:
    """Each batch may hold as many rows of a person as the cap allows."""
    real = persons.PersonCap.see

    def see(self: persons.PersonCap, seen: persons.Tags) -> None:
        self.batches = getattr(self, "batches", 0) + 1  # type: ignore[attr-defined]
        self.first = getattr(self, "first", self._most)  # type: ignore[attr-defined]
        self._most = self.first * self.batches  # type: ignore[attr-defined]
        real(self, seen)

    patch.setattr(persons.PersonCap, "see", see)


def cap_not_priced(patch: pytest.MonkeyPatch) -> None:
    real = Unit.sensitivity
    patch.setattr(Unit, "sensitivity", lambda self, norm, diameter: real(self, norm, diameter) / self.max_rows)


def nameless_escape(patch: pytest.MonkeyPatch) -> None:
    """Rows without a name are taken to be different persons."""
    real = persons.digests

    def digests(names: Any, key: bytes) -> tuple[np.ndarray, np.ndarray]:
        high, low = (half.copy() for half in real(names, key))
        absent = np.asarray(names.is_null())
        high[absent] = np.frombuffer(os.urandom(8 * int(absent.sum())), np.uint64)
        return high, low

    patch.setattr(persons, "digests", digests)


BUGS = (
    Bug("bounds from data", "sums", "embedding, outlier", bounds_from_data, ("bounds",), ("attack",)),
    Bug("length-scale from the rows", "sums", "embedding, outlier", length_scale_from_rows, ("bounds",)),
    Bug("pictures stretched to their brightest pixel", "sums", "images", brightest_pixel, ("bounds",)),
    Bug("mean picture subtracted", "sums", "images", mean_picture, ("bounds",)),
    Bug("scores centred on the table's mean", "sums", "wide", centred_scores, ("bounds",)),
    Bug("float round-to-nearest", "sums", "embedding", round_to_nearest, ("norm",)),
    Bug("enforcement skipped for dense × label", "sums", "embedding", not_enforced_by_label, ("norm",)),
    Bug("enforcement skipped for pictures × label", "sums", "images", not_enforced_by_label, ("norm",)),
    Bug("contribution cap off", "sums", "persons", no_cap, ("bounds",), ("attack",)),
    Bug("contribution cap per batch", "sums", "persons", cap_per_batch, ("bounds",)),
    Bug("contribution cap not priced", "sums", "persons", cap_not_priced, ("bounds",)),
    Bug("rows without a name escape the cap", "sums", "persons, nameless", nameless_escape, ("bounds",)),
)
