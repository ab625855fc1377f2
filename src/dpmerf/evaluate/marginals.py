"""Marginals: total variation between two tables over sets of columns, in public bins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from dpmerf.evaluate.results import Marginals, WorstMarginal
from dpmerf.evaluate.views import Coded

DENSE = 1 << 20  # joint tables up to this many cells are counted directly


def total_variation(a: list[Coded], b: list[Coded]) -> float:
    """½ Σ |share in a − share in b| over the joint bins of the given columns.

    >>> one = [Coded("x", np.array([0, 0, 1, 1]), 2, False)]
    >>> two = [Coded("x", np.array([0, 1, 1, 1]), 2, False)]
    >>> total_variation(one, two), total_variation(one, one)
    (0.25, 0.0)
    """
    i, j = _joint(a), _joint(b)
    size = math.prod(c.size for c in a)
    if size > DENSE:
        _, codes = np.unique(np.concatenate([i, j]), return_inverse=True)
        i, j, size = codes[: len(i)], codes[len(i) :], int(codes.max()) + 1
    p, q = (np.bincount(code, minlength=size) / max(1, len(code)) for code in (i, j))
    return float(np.abs(p - q).sum() / 2)


def marginals(
    synthetic: list[Coded],
    real: list[Coded],
    train: list[Coded] | None,
    order: int,
    most: int,
    seed: int,
) -> Marginals:
    """All sets of `order` columns, or `most` of them drawn at random."""
    possible = math.comb(len(real), order)
    errors, baseline = [], []
    for columns in column_sets(len(real), order, most, seed):
        pick = [real[c] for c in columns]
        errors.append((total_variation([synthetic[c] for c in columns], pick), columns))
        if train is not None:
            baseline.append(total_variation([train[c] for c in columns], pick))
    values = [e for e, _ in errors]
    worst = sorted(errors, key=lambda e: (-e[0], e[1]))[:10]
    return Marginals(
        order=order,
        measured=len(values),
        possible=possible,
        mean=float(np.mean(values)) if values else 0.0,
        largest=max(values, default=0.0),
        baseline_mean=float(np.mean(baseline)) if baseline else None,
        worst=[WorstMarginal(columns=[real[c].name for c in columns], tv=tv) for tv, columns in worst],
    )


def column_sets(columns: int, order: int, most: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Every set of `order` columns if there are at most `most`; otherwise that many different ones, drawn at random."""
    if math.comb(columns, order) <= most:
        yield from itertools.combinations(range(columns), order)
        return
    rng = np.random.default_rng([seed, order])
    seen: set[tuple[int, ...]] = set()
    while len(seen) < most:
        drawn = tuple(sorted(int(c) for c in rng.choice(columns, order, replace=False)))
        if drawn not in seen:
            seen.add(drawn)
            yield drawn


def _joint(columns: list[Coded]) -> np.ndarray:
    """(n,) one number for each combination of bins."""
    code = np.zeros_like(columns[0].codes)
    for column in columns:
        code = code * column.size + column.codes
    return code
