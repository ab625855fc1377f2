"""Few rows for so many columns: each alone and, roughly, by label; then, closely, the one that separates it most."""

from __future__ import annotations

import math

from dpmerf.errors import PlanError
from dpmerf.methods.method import Request
from dpmerf.plan import Stage
from dpmerf.plan.queries import ColumnSelection, Histograms, SelectedTable, Tables


def suits(asked: Request) -> bool:
    """Tables of all columns by label show little, and the best of them can be found.

    Their noise grows with √columns, the number of rows by which the best must stand out with log(columns).
    """
    s, columns, rows = asked.settings.auto, len(asked.features), asked.rows / asked.noise
    if asked.classes < 2 or columns < s.selection_columns:
        return False
    return s.too_few * math.log(columns) < rows < s.few_rows * math.sqrt(columns)


def stages(asked: Request) -> tuple[Stage, ...]:
    """Histograms, label × column tables, a selection by the exponential mechanism, and the selected table."""
    if asked.classes < 2:
        raise PlanError("the method few-rows needs a label with classes: name one, or choose --method tables")
    s, names = asked.settings.few_rows, tuple(asked.schema.learned)
    tables = Tables(
        bins=asked.settings.tables.bins[0],
        parts=1,
        by_label=True,
        pairs=(),
        share_single=1.0,
        share_pair=0.0,
        share_label_pair=0.0,
    )
    cells = asked.fine_cells(len(names), s.histograms)
    return (
        Stage("discover", s.histograms, Histograms(cells=cells, columns=names)),
        Stage("tables", s.single, tables),
        Stage("column selection", s.selection, ColumnSelection()),
        Stage("selected table", s.selected, SelectedTable()),
    )
