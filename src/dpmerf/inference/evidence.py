"""Evidence: the noisy tables of counts in a release, each with its columns, how finely they are cut, and its noise.

The one place that knows how a release keeps its measurements. Everything else of this package sees `Evidence`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np

from dpmerf.encoding.binning import Binning, FineGrid
from dpmerf.encoding.codec import Codec, Variable
from dpmerf.encoding.fine_cells import Fine
from dpmerf.features.algebra import BITS
from dpmerf.plan import Plan
from dpmerf.plan.queries import Histograms, Tables
from dpmerf.release import Release

CELLS = 256  # of a column in a plan without histograms: only its categories can be asked for
Level = str  # how finely a column is cut: "fine", "part" or "bin"


@final
@dataclass(frozen=True)
class Counted:
    """One table of noisy counts: `values` has one axis per column. The noise of every cell has the same variance."""

    stage: str
    columns: tuple[str, ...]
    levels: tuple[Level, ...]
    values: np.ndarray
    variance: float

    @property
    def name(self) -> str:
        return f"{' × '.join(self.columns)} ({self.stage})"


@final
@dataclass(frozen=True)
class Evidence:
    """All tables of counts. `rows` is exact where it is public, else None."""

    codec: Codec
    grid: FineGrid
    tables: tuple[Counted, ...]
    group_of: dict[tuple[str, Level], np.ndarray]  # (column, level) -> (fine cells,) which cell of that level
    rows: int | None
    planned_rows: int
    unit: str = "row"
    notes: tuple[str, ...] = ()
    solved: dict[tuple[str, ...], object] = field(default_factory=dict, compare=False, repr=False)  # by `blue.solve`

    def size(self, column: str, level: Level) -> int:
        return int(self.group_of[column, level].max()) + 1

    def fine(self, column: str) -> Fine | None:
        """The fine cells of a numeric column; None for categories."""
        return self.grid.numeric.get(column)

    @cached_property
    def totals(self) -> list[tuple[float, float]]:
        """What each table says about the number of rows, and the variance of that."""
        return [(float(t.values.sum()), t.variance * t.values.size) for t in self.tables]

    @cached_property
    def measured(self) -> frozenset[frozenset[str]]:
        """The sets of columns that some table holds together."""
        return frozenset(frozenset(t.columns) for t in self.tables)


def evidence(release: Release) -> Evidence:
    """Read a release."""
    grid, group_of = _levels(release.plan, release.codec, release.binning)
    tables = []
    for m in release.measurements:
        columns = _columns(m.variables, group_of) if m.dense is None else None
        if columns is not None:
            tables.append(Counted(m.stage, *columns, m.values.numpy(), m.sigma**2))
    notes = []
    if release.plan.unit.person is not None:
        notes.append("rows of a person beyond the cap were not used: answers are about the rows that were")
    return Evidence(release.codec, grid, tuple(tables), group_of, release.rows, release.plan.rows, "row", tuple(notes))


def expected(plan: Plan, counts: Mapping[str, np.ndarray] | None = None) -> Evidence:
    """What a plan will measure, with the sizes to be expected and zeros for counts: for errors before any spending.

    With `counts` of every column's fine cells, the bins and parts are those that such counts would lead to.
    """
    binning = plan.query(Tables).expected_bins(plan) if plan.has(Tables) else None
    grid, group_of = _levels(plan, plan.codec, binning)
    tables = []
    for stage, sigma in zip(plan.stages, (p.sigma for p in plan.prices), strict=True):
        for block in stage.query.expected(plan).blocks:
            columns = _columns(block.cells, group_of) if block.dense is None else None
            if columns is not None:
                shape = [v.size for v in block.cells]
                tables.append(Counted(stage.name, *columns, np.zeros(shape), (sigma / (block.weight * 2**BITS)) ** 2))
    if counts and plan.has(Tables) and plan.has(Histograms):
        looked = plan.stage(Histograms).name
        sigmas = {t.columns[0]: math.sqrt(t.variance) for t in tables if t.stage == looked}
        told = plan.query(Tables).bins_for(plan, {n: counts[n] for n in sigmas}, sigmas, plan.rows)
        grid, group_of = _levels(plan, plan.codec, told)
        for i, t in enumerate(tables):
            shape = [int(group_of[key].max()) + 1 for key in zip(t.columns, t.levels, strict=True)]
            tables[i] = replace(t, values=np.zeros(shape))
    rows = plan.rows if plan.unit.rows_public else None
    return Evidence(plan.codec, grid, tuple(tables), group_of, rows, plan.rows)


def _levels(plan: Plan, codec: Codec, binning: Binning | None) -> tuple[FineGrid, dict[tuple[str, Level], np.ndarray]]:
    grid = plan.query(Histograms).grid(codec) if plan.has(Histograms) else FineGrid(codec, CELLS)
    group_of: dict[tuple[str, Level], np.ndarray] = {}
    if codec.schema.image is not None:
        label = codec.label
        return grid, {} if label is None else {(label.name, "fine"): np.arange(label.size)}
    for name, variable in grid.variables.items():
        group_of[name, "fine"] = np.arange(variable.size)
        if binning is not None:
            group_of[name, "part"] = binning.part_numbers[name]
            group_of[name, "bin"] = binning.bin_numbers[name]
    return grid, group_of


def _columns(
    cells: tuple[Variable, ...], group_of: dict[tuple[str, Level], np.ndarray]
) -> tuple[tuple[str, ...], tuple[Level, ...]] | None:
    """Columns and levels of a table's variables; None for tables of something else, as of lengths."""
    found: list[tuple[str, Level]] = []
    for v in cells:
        key = v.column, v.cut or "fine"
        if key not in group_of or int(group_of[key].max()) + 1 != v.size:
            return None
        found.append(key)
    return tuple(c for c, _ in found), tuple(level for _, level in found)
