"""Subgroups: who is served worst. Rows that share a value, and how far their other columns are off."""

from __future__ import annotations

import numpy as np

from dpmerf.evaluate.axis_cells import axis_cells
from dpmerf.evaluate.results import Subgroup
from dpmerf.evaluate.utility import TableUtility
from dpmerf.evaluate.views import Coded, Rows
from dpmerf.schema import Numeric

SHOWN = 12
LEAST_ROWS = 100
LEAST_SHARE = 0.005
PARTS = 4  # a numeric column is cut into this many equal parts of its declared range


def worst_subgroups(synthetic: Rows, real: Rows, utility: TableUtility | None) -> list[Subgroup]:
    """The groups of at least 100 real rows (and ½ %) with the largest error beyond chance, worst first."""
    ours, theirs = synthetic.all_coded(), real.all_coded()
    found = []
    for index, name in enumerate(real.names):
        a, b = _groups(synthetic, name), _groups(real, name)
        for code in range(b.size):
            rows_a, rows_b = a.codes == code, b.codes == code
            if rows_b.sum() < max(LEAST_ROWS, LEAST_SHARE * len(real)):
                continue
            tv, chance = _error(ours, theirs, rows_a, rows_b, skip=index)
            score_real, score_synthetic = _scores(utility, name, code)
            found.append(
                Subgroup(
                    column=name,
                    value=_value(real, name, code),
                    share_real=float(rows_b.mean()),
                    share_synthetic=float(rows_a.mean()),
                    tv=tv,
                    excess=max(0.0, tv - chance),
                    score_real=score_real,
                    score_synthetic=score_synthetic,
                )
            )
    return sorted(found, key=lambda g: (-g.excess, g.column, g.value))[:SHOWN]


def _groups(rows: Rows, name: str) -> Coded:
    column = rows.schema.columns[name]
    if not isinstance(column, Numeric):
        return rows.coded(name)
    return rows.in_cells(name, axis_cells(column, PARTS, declared_scale=False))


def _error(
    ours: list[Coded], theirs: list[Coded], rows_a: np.ndarray, rows_b: np.ndarray, skip: int
) -> tuple[float, float]:
    """Mean total variation of the other columns within the group, and what two samples of one truth would show."""
    errors, chances = [], []
    n_a, n_b = int(rows_a.sum()), int(rows_b.sum())
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if index == skip:
            continue
        q = np.bincount(b.codes[rows_b], minlength=b.size) / n_b
        if n_a == 0:
            errors.append(1.0)  # nobody of this group was produced
            chances.append(0.0)
            continue
        p = np.bincount(a.codes[rows_a], minlength=a.size) / n_a
        errors.append(float(np.abs(p - q).sum() / 2))
        chances.append(float(np.sqrt(q * (1 - q) * (1 / n_a + 1 / n_b) / (2 * np.pi)).sum()))
    return (float(np.mean(errors)), float(np.mean(chances))) if errors else (0.0, 0.0)


def _scores(utility: TableUtility | None, name: str, code: int) -> tuple[float | None, float | None]:
    """Accuracy (R² for a numeric target) of the leading model within the group, from real and from synthetic rows."""
    if utility is None or utility.result.label == name:
        return None, None
    inside = _groups(utility.test, name).codes == code
    if inside.sum() < 30:
        return None, None
    y = utility.target[inside]
    sides = (utility.lead_real[inside], utility.lead_synthetic[inside])
    if utility.result.task == "regression":
        total = float(((y - y.mean()) ** 2).sum())
        if total <= 0:
            return None, None
        real, synthetic = (1 - float(((y - p) ** 2).sum()) / total for p in sides)
    else:
        real, synthetic = (float((y == p).mean()) for p in sides)
    return real, synthetic


def _value(rows: Rows, name: str, code: int) -> str:
    if not rows.numeric(name):
        return rows.level_name(name, code)
    column = rows.schema.columns[name]
    assert isinstance(column, Numeric)
    names = axis_cells(column, PARTS, declared_scale=False).names
    return names[code] if code < len(names) else "null"
