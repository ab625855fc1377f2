"""Bugs of what is derived between stages: bins, scores, pairs and columns that are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from dpmerf.plan import Stage
from dpmerf.private import measure
from dpmerf.private.select import integer_shares, score
from dpmerf.release import Release, derive
from privacy.bugs.bug import Bug, leaking


def bins_from_exact_tables(patch: pytest.MonkeyPatch) -> None:
    """Bins (of tables) or scores (of wide tables) follow from histograms without noise."""
    leak, real = leaking(patch), derive._digested

    def exact(release: Release, stage: Stage) -> Any:
        return real(replace(release, sums={**release.sums, stage.name: leak.sums[-1]}), stage)

    patch.setattr(derive, "_digested", exact)


def rows_exact_for_bins(patch: pytest.MonkeyPatch) -> None:
    """Bins are cut with the exact number of rows, although it is private."""
    leak, real = leaking(patch), derive._digested
    patch.setattr(derive, "_digested", lambda release, stage: real(replace(release, rows=leak.rows), stage))


def pairs_from_exact_tables(patch: pytest.MonkeyPatch) -> None:
    leak, real = leaking(patch), derive.most_dependent

    def exact(release: Release, count: int) -> Any:
        return real(replace(release, sums={**release.sums, "tables": leak.sums[-1]}), count)

    patch.setattr(derive, "most_dependent", exact)


def shares_from_exact_tables(patch: pytest.MonkeyPatch) -> None:
    """The classes' shares in a choice are those of the rows."""
    leak = leaking(patch)

    def exact(release: Release) -> torch.Tensor:
        block, classes = leak.maps[-1].blocks[0], release.plan.classes
        counts = leak.sums[-1][: block.dim].view(classes, -1).sum(1).double()
        return counts / counts.sum()

    patch.setattr(measure, "class_shares", exact)


def closer_look_at_the_exact_best(patch: pytest.MonkeyPatch) -> None:
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
        "second look at pairs from exact tables",
        "selections",
        "tables, pairs",
        pairs_from_exact_tables,
        ("replay",),
        ("black box",),
    ),
    Bug("class shares of a choice from exact tables", "selections", "few rows", shares_from_exact_tables, ("replay",)),
    Bug(
        "closer look at the exact best column",
        "selections",
        "few rows",
        closer_look_at_the_exact_best,
        ("replay",),
        ("black box",),
    ),
)
