"""Derive: what follows from released sums alone, by fixed rules: bins, normal scores, the pairs of a second look.

The locked room resolves later stages with it, and `verify` does it again. A change of any of these rules needs another
number, or old releases would no longer follow from their sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpmerf.encoding.binning import Binning
from dpmerf.encoding.normal_scores import Scores
from dpmerf.features.algebra import BITS
from dpmerf.plan import Stage
from dpmerf.plan.queries import Directions, Histograms, SecondLook, Tables
from dpmerf.release.noisy_tables import most_dependent
from dpmerf.release.release import Release

if TYPE_CHECKING:
    from torch import Tensor

Known = dict[str, Any] | None


def derive(so_far: Release, stage: Stage) -> Known:
    """What is known once `stage`, the last of `so_far`, was released; what was known before it stays."""
    known = so_far.binning_json
    if isinstance(stage.recipe, Histograms):
        return _digested(so_far, stage)
    again = next((s.recipe for s in so_far.plan.stages if isinstance(s.recipe, SecondLook)), None)
    if isinstance(stage.recipe, Tables) and again is not None:
        return {**(known or {}), "chosen": [list(pair) for pair in most_dependent(so_far, again.count)]}
    return known


def derive_all(release: Release) -> Known:
    """The same for a whole release, from its sums alone."""
    known: Known = None
    sums: dict[str, Tensor] = {}
    for stage in release.plan.stages:
        sums = {**sums, stage.name: release.sums[stage.name]}
        known = derive(Release(release.plan, sums, release.rows, release.noise, known), stage)
    return known


def _digested(release: Release, stage: Stage) -> Known:
    """What the next stage needs to know of the noisy histograms."""
    plan = release.plan
    measured = release.measurements(stage)
    noisy = {name: m.values.flatten() for name, m in zip(plan.histograms.columns, measured, strict=True)}
    sigma = measured[0].sigma
    for at, later in enumerate(plan.stages):
        match later.recipe:
            case Tables():
                return _cut_bins(release, at, later.recipe, noisy, sigma).to_json()
            case Directions():
                grid = plan.histograms.grid(release.codec)
                return Scores.estimate(grid, noisy, sigma, release.rows_estimate).to_json()
    return None


def _cut_bins(release: Release, at: int, tables: Tables, noisy: dict[str, Tensor], sigma: float) -> Binning:
    plan = release.plan
    whole = frozenset({plan.codec.schema.label} if tables.by_label and plan.codec.schema.label else ())
    grid = plan.histograms.grid(release.codec)
    single = plan.nominal_map(plan.stages[at]).blocks[0]  # label × column: its weight is that of the real one
    part_sigma = plan.prices[at].sigma / (single.weight * 2**BITS)
    return Binning.cut(grid, noisy, sigma, release.rows_estimate, tables.bins, whole, tables.parts, part_sigma)
