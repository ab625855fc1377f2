"""Bugs of relations: rows that break one must be rows like any other, placed by themselves and never told about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dpmerf.encoding import derived
from dpmerf.encoding.broken import broken
from dpmerf.encoding.codec import placed
from dpmerf.encoding.derived import Relations, Values
from dpmerf.encoding.reading import read
from dpmerf.errors import DataError
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.schema.derivations import Learned, Step
from dpmerf.schema.program import Program
from privacy.bugs.bug import Bug, Leak, leaking, on_the_card


def mended_by_other_rows(patch: pytest.MonkeyPatch) -> None:
    """A quantity out of its bounds becomes the largest one of the table, instead of the nearest bound."""
    real = Relations._measure

    def measure(self: Relations, step: Step, values: Values) -> Values:
        found = real(self, step, values)
        if isinstance(step, Learned):
            at_end = found[step.name] <= step.low
            found[step.name] = np.where(at_end, np.nanmax(found[step.name]), found[step.name])
        return found

    patch.setattr(Relations, "_measure", measure)


def rule_of_the_table(patch: pytest.MonkeyPatch) -> None:
    """A rule that every row breaks is taken for a mistake and not kept."""
    real = derived.settled

    def settled(measured: Values, program: Program) -> Values:
        moved = real(measured, program)
        every = all(np.all(moved[name] != measured[name]) for name in ("s",))
        return measured if every else moved

    patch.setattr(derived, "settled", settled)


def refused(patch: pytest.MonkeyPatch) -> None:
    """A table that breaks a relation in every row is refused."""
    real = Relations.forward

    def forward(self: Relations, declared: Values) -> Values:
        if all(rows.all() for i, rows in broken(declared | _computed(declared), self.program).items() if i != 1):
            raise DataError("every row breaks a relation")
        return real(self, declared)

    patch.setattr(Relations, "forward", forward)


def _computed(values: Values) -> Values:
    """Columns that are not read: as far as this bug looks, wrong in every row."""
    rows = len(next(iter(values.values())))
    return {"q": np.full(rows, 2.0), "k": np.full(rows, 3.0)}


def counted_on_the_card(patch: pytest.MonkeyPatch) -> None:
    leak = leaking(patch)
    on_the_card(patch, lambda: f"\n{_count(leak)} rows break a relation.\n")


def _count(leak: Leak) -> int:
    assert leak.table is not None
    from privacy.cases import case

    schema = case("relations, counted").plan.schema
    found = broken(placed(read(leak.table, schema), schema), schema.program)
    return int(np.any(list(found.values()), axis=0).sum())


def share_without_noise(patch: pytest.MonkeyPatch) -> None:
    """The bought share is the exact one."""
    real = OpenDPGaussian.add

    def add(self: OpenDPGaussian, sums: torch.Tensor, sigma: float, advance: Any = None) -> torch.Tensor:
        return sums.clone() if len(sums) == 8 else real(self, sums, sigma, advance)

    patch.setattr(OpenDPGaussian, "add", add)


BUGS = (
    Bug("broken rows mended by the table's own", "sums", "relations", mended_by_other_rows, ("bounds",), ("attack",)),
    Bug("a rule that all rows break is not kept", "sums", "relations", rule_of_the_table, ("bounds",)),
    Bug("a table that breaks relations is refused", "terminal", "relations", refused, ("replay",)),
    Bug("exact count of broken rows on the card", "metadata", "relations, counted", counted_on_the_card, ("replay",)),
    Bug("bought share of broken rows without noise", "sums", "relations, counted", share_without_noise, ("noise",)),
)
