"""Association: how strongly each pair of columns goes together, on one scale from 0 to 1."""

from __future__ import annotations

import numpy as np

from dpmerf.evaluate.results import Association, WorstPair
from dpmerf.evaluate.views import Rows

MEASURES = {2: "Pearson", 1: "correlation ratio", 0: "Cramér's V"}  # by the number of numeric columns in the pair


def association_matrix(rows: Rows) -> np.ndarray:
    """(q, q) symmetric: |Pearson|, correlation ratio or Cramér's V, whichever fits the pair; nulls are left out."""
    names = rows.names
    values = {name: rows.values(name) if rows.numeric(name) else rows.coded(name).codes for name in names}
    sizes = {name: 0 if rows.numeric(name) else rows.coded(name).size for name in names}
    matrix = np.eye(len(names))
    for i, a in enumerate(names):
        for j in range(i):
            b = names[j]
            matrix[i, j] = matrix[j, i] = _pair(values[a], sizes[a], values[b], sizes[b])
    return matrix


def association(synthetic: Rows, real: Rows, train: Rows | None) -> Association:
    """Both matrices and where they differ most."""
    ours, theirs = association_matrix(synthetic), association_matrix(real)
    difference = np.abs(ours - theirs)
    pairs = np.tril_indices(len(real.names), -1)
    order = np.argsort(-difference[pairs], kind="stable")[:10]
    names = real.names

    def mean_over_pairs(matrix: np.ndarray) -> float:
        return float(matrix[pairs].mean()) if len(pairs[0]) else 0.0

    return Association(
        columns=list(names),
        real=theirs.tolist(),
        synthetic=ours.tolist(),
        mean_difference=mean_over_pairs(difference),
        largest_difference=float(difference.max()),
        baseline_mean_difference=mean_over_pairs(np.abs(association_matrix(train) - theirs)) if train else None,
        worst=[
            WorstPair(
                columns=(names[j], names[i]),
                measure=MEASURES[real.numeric(names[i]) + real.numeric(names[j])],
                real=float(theirs[i, j]),
                synthetic=float(ours[i, j]),
            )
            for i, j in ((int(pairs[0][k]), int(pairs[1][k])) for k in order)
        ],
    )


def _pair(a: np.ndarray, size_a: int, b: np.ndarray, size_b: int) -> float:
    if size_a and size_b:
        return cramers_v(a, size_a, b, size_b)
    if size_a:
        return correlation_ratio(b, a, size_a)
    if size_b:
        return correlation_ratio(a, b, size_b)
    return pearson(a, b)


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """|correlation| of two numeric columns over the rows where both are known.

    >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])), 6)
    1.0
    """
    known = ~(np.isnan(a) | np.isnan(b))
    x, y = a[known], b[known]
    if len(x) < 2:
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float(min(1.0, abs((x * y).sum()) / scale)) if scale > 0 else 0.0


def correlation_ratio(values: np.ndarray, codes: np.ndarray, size: int) -> float:
    """√(variance between groups ÷ total variance) of a numeric column over the groups of a category."""
    known = ~np.isnan(values)
    x, group = values[known], codes[known]
    if len(x) < 2:
        return 0.0
    x = x - x.mean()
    total = float((x**2).sum())
    counts = np.bincount(group, minlength=size)
    sums = np.bincount(group, weights=x, minlength=size)
    between = float((sums[counts > 0] ** 2 / counts[counts > 0]).sum())
    return float(np.sqrt(min(1.0, between / total))) if total > 0 else 0.0


def cramers_v(a: np.ndarray, size_a: int, b: np.ndarray, size_b: int) -> float:
    """Cramér's V of two categories: 0 unrelated, 1 each determines the other."""
    table = np.bincount(a * size_b + b, minlength=size_a * size_b).reshape(size_a, size_b).astype(float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least = min(table.shape) - 1
    if least < 1:
        return 0.0
    n = table.sum()
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / n
    chi2 = float(((table - expected) ** 2 / expected).sum())
    return float(np.sqrt(min(1.0, chi2 / (n * least))))
