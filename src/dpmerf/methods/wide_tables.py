"""Wide: histograms that borrow from each other; then means and covariances of groups of neighbouring columns."""

from __future__ import annotations

import math

from dpmerf.errors import PlanError
from dpmerf.methods.by_tables import affordable_pairs
from dpmerf.methods.method import Request
from dpmerf.plan import Stage
from dpmerf.plan.queries import Directions, Histograms
from dpmerf.schema import Numeric


def suits(asked: Request) -> bool:
    """Many columns, each of them ordered, and not all pairs can be paid for."""
    if len(asked.features) < asked.settings.auto.wide or affordable_pairs(asked):
        return False
    return _ordered(asked)


def stages(asked: Request) -> tuple[Stage, ...]:
    """The noise of k groups' covariance has eigenvalues up to a multiple of k^1.5.

    Fewer groups where it would drown them, and where their products would be more than pairs of columns may have cells.
    """
    if not _ordered(asked):
        raise PlanError("the method wide needs numbers and columns of two values: choose --method tables")
    s, features = asked.settings.wide, asked.features
    fine = min(max(2 * _cells(asked), s.cells[0]), s.cells[1])
    room = s.group_noise * asked.rows * math.sqrt(2 * s.products * (1 - s.histograms)) / (2 * asked.noise)  # groups^1.5
    groups = min(room ** (2 / 3), math.sqrt(asked.settings.tables.most_cells / asked.classes))
    query = Directions(
        group=math.ceil(len(features) / max(1.0, groups)),
        by_label=asked.by_label,
        share_mean=s.mean,
        share_products=s.products,
        share_length=s.norms,
    )
    return (
        Stage("discover", s.histograms, Histograms(cells=fine, columns=tuple(features))),
        Stage("directions", 1 - s.histograms, query),
    )


def _cells(asked: Request) -> int:
    """Fine cells of a column that the method `tables` would take."""
    s = asked.settings.tables
    drawn = sum(v.size > s.no_histogram for v in asked.grid(s.fine_cells[1]).values()) or len(asked.schema.learned)
    return asked.fine_cells(drawn, s.ample.histograms)


def _ordered(asked: Request) -> bool:
    """Numbers and columns of two values: a score can stand for them."""
    grid, columns = asked.grid(_cells(asked)), asked.schema.columns
    return all(isinstance(columns[name], Numeric) or grid[name].size <= 2 for name in asked.features)
