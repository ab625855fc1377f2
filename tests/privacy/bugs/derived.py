"""Bugs of what is derived between stages: bins, scores, pairs and columns that are chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from dpmerf.plan import Known
from dpmerf.plan.queries import Directions, PairsAgain, Query, Tables
from dpmerf.private import measure
from dpmerf.private.select import integer_shares, score
from dpmerf.release import Release
from privacy.bugs.bug import Bug, leaking


def bins_from_exact_tables(patch: pytest.MonkeyPatch) -> None:
    """Bins (of tables) or scores (of wide tables) follow from histograms without noise."""
    leak = leaking(patch)
    for query in (Tables, Directions):
        _plant(patch, query, lambda known: replace(known, sums={**known.sums, "discover": leak.of_stage["discover"]}))


def rows_exact_for_bins(patch: pytest.MonkeyPatch) -> None:
    """Bins are cut with the exact number of rows, although it is private."""
    leak = leaking(patch)
    _plant(patch, Tables, lambda known: replace(known, rows=leak.rows))


def pairs_from_exact_tables(patch: pytest.MonkeyPatch) -> None:
    """Pairs are picked from tables without noise."""
    leak = leaking(patch)
    _plant(patch, PairsAgain, lambda known: replace(known, sums={**known.sums, "tables": leak.of_stage["tables"]}))


def _plant(patch: pytest.MonkeyPatch, query: type[Query], knowing: Callable[[Known], Known]) -> None:
    """The query derives what it needs from more than is known."""
    real = query.derive
    patch.setattr(query, "derive", lambda self, known: real(self, knowing(known)))


def shares_from_exact_tables(patch: pytest.MonkeyPatch) -> None:
    """The classes' shares in a choice are those of the rows."""
    leak = leaking(patch)

    def exact(release: Release) -> torch.Tensor:
        block, classes = leak.maps[-1].blocks[0], release.plan.classes
        counts = leak.sums[-1][: block.dim].view(classes, -1).sum(1).double()
        return counts / counts.sum()

    patch.setattr(measure, "class_shares", exact)


def selection_of_the_exact_best(patch: pytest.MonkeyPatch) -> None:
    def best(exact: torch.Tensor, phi: Any, shares: torch.Tensor, *others: Any) -> int:
        parts = integer_shares(shares)
        tables = zip(phi.blocks, exact.split([b.dim for b in phi.blocks]), strict=True)
        scores = [score(sums.view(len(parts), -1) // block.integer_norm, parts) for block, sums in tables]
        return scores.index(max(scores))

    patch.setattr(measure, "choose", best)


BUGS = (
    Bug("bins from exact tables", "bins", "tables", bins_from_exact_tables, ("replay", "black box")),
    Bug("bins from exact tables, persons", "bins", "persons, tables", bins_from_exact_tables, ("replay",)),
    Bug("scores from exact histograms", "bins", "wide", bins_from_exact_tables, ("replay",), ("black box",)),
    Bug("bins cut with the exact private n", "bins", "tables, add-remove", rows_exact_for_bins, ("replay",)),
    Bug(
        "pairs measured again from exact tables",
        "selections",
        "tables, pairs",
        pairs_from_exact_tables,
        ("replay",),
        ("black box",),
    ),
    Bug("class shares of a selection, exact", "selections", "few rows", shares_from_exact_tables, ("replay",)),
    Bug(
        "selected table of the exact best column",
        "selections",
        "few rows",
        selection_of_the_exact_best,
        ("replay",),
        ("black box",),
    ),
)
