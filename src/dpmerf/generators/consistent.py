"""Consistent: one set of targets from all the noisy tables of a release. Post-processing, by precision weighting.

Every table says something about its margins. Weighing each source by its known noise gives sharper one-way counts
than any single table holds; the pair tables are then moved onto those margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.counts import Layout, Noisy
from dpmerf.generators.shrinkage import mixed
from dpmerf.grid import to_simplex

ROUNDS = 10  # that fit counts to the sums they must have
NULL_COLUMNS = 10.0  # that do not differ, assumed beside the real ones: as in the paper of the method


@final
@dataclass(frozen=True)
class Targets:
    """Counts that a model should meet, with the noise variance of their cells."""

    layout: Layout
    classes: Tensor  # (C,)
    singles: Tensor  # (C, P), non-negative, consistent
    pairs: Tensor  # (P, P), zero where not measured
    label_pairs: Tensor | None  # (C, P, P)
    pair_variance: Tensor  # (P, P)
    label_pair_variance: Tensor | None  # (P, P)
    measured: Tensor  # (P, P) 1 where a cell belongs to a measured pair


def consistent(t: Noisy) -> Targets:
    """Precision-weighted one-way counts, then pair tables with those margins."""
    layout, C = t.layout, t.singles.shape[0]
    seg, S = layout.column_of, layout.members
    sizes = torch.tensor(layout.sizes, dtype=torch.float32)
    near = t.measured[seg]  # (P, q)

    # class × column: its own table, and the margins of every label × pair table
    precision = 1 / t.single_variance
    weighted = t.singles * precision
    if t.label_pairs is not None:
        w = near / (sizes * t.label_pair_variance[seg])
        weighted = weighted + torch.einsum("cpq,pq->cp", t.label_pairs @ S, w)
        precision = precision + w.sum(1)
    by_class = weighted / precision

    # column totals: the histograms, the margins of every pair table, and the sum over classes of the above
    total_precision = 1 / t.histogram_variance
    totals = t.histogram * total_precision
    if t.pairs is not None:
        w = near / (sizes * t.pair_variance[seg])
        totals, total_precision = totals + ((t.pairs @ S) * w).sum(1), total_precision + w.sum(1)
    summed = precision / C
    totals = (totals + by_class.sum(0) * summed) / (total_precision + summed)

    classes = _class_counts(t, by_class, precision)
    spans = [layout.span(j) for j in range(len(layout.sizes))]
    spread = 1 / (total_precision + summed)
    totals = torch.cat([positive_parts(totals[s], spread[s], t.rows) for s in spans])
    by_class = _divided(by_class, 1 / precision, totals, classes, layout) if C > 1 else totals[None]

    pairs, label_pairs, v_pair, v_label = _combine(t, C)
    cells = t.measured[seg][:, seg]
    pairs = _onto_margins(pairs, by_class.sum(0), layout) * cells
    if label_pairs is not None:
        label_pairs = _onto_margins(label_pairs, by_class, layout) * cells
    return Targets(layout, classes, by_class, pairs, label_pairs, v_pair, v_label, cells)


def _class_counts(t: Noisy, by_class: Tensor, precision: Tensor) -> Tensor:
    if not t.by_label:
        return torch.tensor([t.rows])
    if t.balanced:
        return torch.full((len(by_class),), t.rows / len(by_class))
    variance = (1 / precision) @ t.layout.members  # (q,)
    estimate = t.class_counts / t.class_sigma**2 + ((by_class @ t.layout.members) / variance).sum(1)
    weight = 1 / t.class_sigma**2 + float((1 / variance).sum())
    counts = to_simplex(estimate / weight, t.rows).clamp_min(1.0)
    return counts * (t.rows / counts.sum())


def _divided(by_class: Tensor, variance: Tensor, totals: Tensor, classes: Tensor, layout: Layout) -> Tensor:
    """(C, P) each bin's total divided among the classes.

    Counts are positive, add up to the totals, and to the classes in every column.
    """
    S, seg, C = layout.members, layout.column_of, len(classes)
    prior = totals * (classes / classes.sum())[:, None]
    apart = by_class + (totals - by_class.sum(0)) / C - prior
    variance = variance * (1 - 1 / C)
    kept = kept_share(apart, variance, layout)[:, seg]
    counts, variance = prior + kept * apart, kept * variance
    of_column, of_bin = variance / (variance @ S)[:, seg], variance / variance.sum(0)
    for _ in range(ROUNDS):
        counts = counts + (totals - positive(counts, variance).sum(0)) * of_bin
        counts = counts + (classes[:, None] - positive(counts, variance) @ S)[:, seg] * of_column
    counts = positive(counts, variance)
    for _ in range(ROUNDS):
        counts = counts * (classes[:, None] / (counts @ S))[:, seg]
        counts = counts * (totals / counts.sum(0))
    return counts


def kept_share(apart: Tensor, variance: Tensor, layout: Layout) -> Tensor:
    """(C, q) how much of a class's difference from the whole is kept in a column: adaptive shrinkage (Stephens 2017).

    In some columns a class does not differ, in others by a normal of one of several variances. All columns together say
    how common each is, which tells the few that differ from the many that show only noise.
    """
    S, sizes = layout.members, torch.tensor(layout.sizes, dtype=torch.float64)
    free = (sizes - 1).clamp_min(1)
    length = (apart.square() @ S).double() / ((variance @ S) / sizes)  # (C, q) squared, in units of the noise
    largest = math.ceil(math.log2(float((length / free).max().clamp(1, 2**60))))
    ratios = torch.cat([torch.zeros(1), 2.0 ** torch.arange(-1, largest + 1)]).double()  # variance to that of the noise
    assumed = torch.nn.functional.one_hot(torch.tensor(0), len(ratios)) * NULL_COLUMNS + 1 / len(ratios)
    return (mixed(length, free, ratios, assumed) @ (ratios / (1 + ratios))).to(apart.dtype).clamp_min(1e-6)


def positive(mean: Tensor, variance: Tensor) -> Tensor:
    """The mean of a normal that is known to be positive: a noisy count below 0 means few rows, not none.

    >>> positive(torch.tensor([-50.0, 0.0, 500.0]), torch.tensor(100.0)).round(decimals=1).tolist()
    [1.899999976158142, 8.0, 500.0]
    """
    deviation = variance.double().clamp_min(1e-12).sqrt()
    z = (mean / deviation).clamp_min(-1e3)
    density = -z.square() / 2 - math.log(2 * math.pi) / 2
    return (deviation * (z + (density - torch.special.log_ndtr(z)).exp())).to(mean.dtype)


def positive_parts(v: Tensor, variance: Tensor, total: float) -> Tensor:
    """(k,) noisy counts -> positive ones that add up to the total; what is amiss goes where the noise is."""
    weight = variance / variance.sum()
    for _ in range(ROUNDS):
        v = v + (total - positive(v, variance).sum()) * weight
    v = positive(v, variance)
    return v * (total / v.sum())


def _combine(t: Noisy, C: int) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
    """Pairs and label pairs both know the pair totals: weigh them, and hand the classes the difference."""
    seg, P = t.layout.column_of, t.layout.positions
    v_pair, v_label = t.pair_variance[seg][:, seg], t.label_pair_variance[seg][:, seg]  # (P, P)
    if t.label_pairs is None:
        return torch.zeros(P, P) if t.pairs is None else t.pairs, None, v_pair, None
    summed = t.label_pairs.sum(0)
    if t.pairs is None:
        return summed, t.label_pairs, C * v_label, v_label
    both = 1 / v_pair + 1 / (C * v_label)
    pairs = (t.pairs / v_pair + summed / (C * v_label)) / both
    return pairs, t.label_pairs + (pairs - summed) / C, 1 / both, v_label * (1 - 1 / C) + 1 / both / C**2


def _onto_margins(tables: Tensor, margins: Tensor, layout: Layout) -> Tensor:
    """Add constants to rows and columns of every table until its margins are the given ones."""
    seg, S = layout.column_of, layout.members
    sizes = torch.tensor(layout.sizes, dtype=torch.float32)
    rows = margins[..., :, None] - tables @ S  # (…, P, q)
    tables = tables + (rows / sizes)[..., seg]
    columns = margins[..., None, :] - S.T @ tables  # (…, q, P)
    return tables + (columns / sizes[:, None])[..., seg, :]
