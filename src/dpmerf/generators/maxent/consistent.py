"""Consistent: one set of targets from all the noisy tables of a release. Post-processing, by precision weighting.

Every table says something about its margins. Weighing each source by its known noise gives sharper one-way counts
than any single table holds; the pair tables are then moved onto those margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.shrinkage import mixed
from dpmerf.plan.noisy_tables import Layout, Noisy, class_counts


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


@final
@dataclass(frozen=True)
class Weighed:
    """One-way counts by class and in all, with their precision: linear in the noisy tables."""

    by_class: Tensor  # (C, P)
    precision: Tensor  # (P,)
    totals: Tensor  # (P,)
    total_precision: Tensor  # (P,)


def weighed(t: Noisy) -> Weighed:
    """Every table's margins, weighed by precision."""
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
    return Weighed(by_class, precision, totals, total_precision + summed)


@final
@dataclass(frozen=True)
class Error:
    """One way in which all tables may be wrong at once: by their noise, and because rows are a sample."""

    noise: Noisy  # tables of noise alone
    sampled: Tensor  # (C, P, P) counts beyond those expected of as many rows


def consistent(t: Noisy, s: Settings, error: Error | None = None) -> Targets:
    """Precision-weighted one-way counts, then pair tables with those margins.

    With an error, a draw of what the counts may be: it is added to every table before these are weighed, and kept in a
    class's differences as far as they leave open (a posterior variance is κσ² where κ of a difference is kept).
    """
    layout, C = t.layout, t.singles.shape[0]
    w, own = weighed(t), None
    pairs, label_pairs, v_pair, v_label = combined(t, C)
    classes = class_counts(t, w.by_class, w.precision)
    if error is not None:
        wrong = weighed(error.noise)
        singles = error.sampled.diagonal(dim1=1, dim2=2)
        own = wrong.by_class + singles
        classes = _drawn_classes(t, w, error, singles)
        wrong_pairs, wrong_labels, _, _ = combined(error.noise, C)
        pairs = pairs + wrong_pairs + error.sampled.sum(0)
        if label_pairs is not None and wrong_labels is not None:
            label_pairs = label_pairs + wrong_labels + error.sampled
        w = Weighed(w.by_class, w.precision, w.totals + wrong.totals + singles.sum(0), w.total_precision)
    spans = [layout.span(j) for j in range(len(layout.sizes))]
    spread = 1 / w.total_precision
    totals = torch.cat([positive_parts(w.totals[at], spread[at], t.rows, s.sum_rounds) for at in spans])
    by_class = (
        _divided(w.by_class, 1 / w.precision, totals, classes, layout, t.selected, own, s) if C > 1 else totals[None]
    )

    cells = t.measured[layout.column_of][:, layout.column_of]
    pairs = onto_margins(pairs, by_class.sum(0), layout) * cells
    if label_pairs is not None:
        label_pairs = onto_margins(label_pairs, by_class, layout) * cells
    return Targets(layout, classes, by_class, pairs, label_pairs, v_pair, v_label, cells)


def _drawn_classes(t: Noisy, w: Weighed, error: Error, singles: Tensor) -> Tensor:
    """(C,) rows of each class, with an error."""
    if not t.by_label or t.balanced:
        return class_counts(t, w.by_class, w.precision)
    wrong = replace(t, class_counts=t.class_counts + error.noise.class_counts)
    found = class_counts(wrong, w.by_class + weighed(error.noise).by_class, w.precision)
    found = (found + singles[:, t.layout.span(0)].sum(1)).clamp_min(1.0)
    return found * (t.rows / found.sum())


def _divided(
    by_class: Tensor,
    variance: Tensor,
    totals: Tensor,
    classes: Tensor,
    layout: Layout,
    closer: int | None,
    error: Tensor | None,
    s: Settings,
) -> Tensor:
    """(C, P) each bin's total divided among the classes.

    Counts are positive, add up to the totals, and to the classes in every column.
    """
    S, seg, C = layout.members, layout.column_of, len(classes)
    prior, apart, kept = shrunk(by_class, variance, totals, classes, layout, closer, s)
    variance, kept = variance * (1 - 1 / C), kept[:, seg]
    counts, variance = prior + kept * apart, kept * variance
    if error is not None:
        counts = counts + kept.sqrt() * (error - error.mean(0))
    of_column, of_bin = variance / (variance @ S)[:, seg], variance / variance.sum(0)
    for _ in range(s.sum_rounds):
        counts = counts + (totals - positive(counts, variance).sum(0)) * of_bin
        counts = counts + (classes[:, None] - positive(counts, variance) @ S)[:, seg] * of_column
    counts = positive(counts, variance)
    for _ in range(s.sum_rounds):
        counts = counts * (classes[:, None] / (counts @ S))[:, seg]
        counts = counts * (totals / counts.sum(0))
    return counts


def shrunk(
    by_class: Tensor,
    variance: Tensor,
    totals: Tensor,
    classes: Tensor,
    layout: Layout,
    closer: int | None,
    s: Settings,
) -> tuple[Tensor, Tensor, Tensor]:
    """Counts if classes did not differ (C, P), by how much they seem to, and how much of that is kept (C, q)."""
    C = len(classes)
    prior = totals * (classes / classes.sum())[:, None]
    apart = by_class + (totals - by_class.sum(0)) / C - prior
    variance = variance * (1 - 1 / C)
    kept = torch.ones(len(apart), len(layout.sizes))
    if s.shrink_classes:
        kept = class_shrinkage(apart, variance, layout, s)
    if closer is not None:
        kept = _beside(kept, apart, variance, totals, classes, layout, closer, s)
    return prior, apart, kept


def class_shrinkage(apart: Tensor, variance: Tensor, layout: Layout, s: Settings, most: Tensor | None = None) -> Tensor:
    """(C, q) how much of a class's difference from the whole is kept in a column: adaptive shrinkage (Stephens 2017).

    In some columns a class does not differ, in others by a normal of one of several variances. All columns together say
    how common each is, which tells the few that differ from the many that show only noise. The variances are multiples
    of the noise, or parts of `most` (C, q), the squared length that a difference can have at all; then as many columns
    that do not differ are assumed as there are.
    """
    length, free, noise = _lengths(apart, variance, layout)
    nulls = s.null_columns
    if most is None:
        largest = math.ceil(math.log2(float((length / free).max().clamp(1, 2**60))))
        ratios = 2.0 ** torch.arange(-1, largest + 1).double()  # variance to that of the noise
    else:
        ratios = (most / (free * noise))[..., None] * 2.0 ** -torch.arange(s.class_variances)  # (C, q, k)
        nulls = float(len(free))
    ratios = torch.cat([torch.zeros_like(ratios[..., :1]), ratios], dim=-1)
    k = ratios.shape[-1]
    assumed = torch.nn.functional.one_hot(torch.tensor(0), k) * nulls + 1 / k
    weight = mixed(length, free, ratios, assumed)
    return (weight * (ratios / (1 + ratios))).sum(-1).to(apart.dtype).clamp_min(1e-6)


def _lengths(apart: Tensor, variance: Tensor, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
    """(C, q) squared lengths in units of the noise, (q,) their free entries, and (q,) that noise."""
    S, sizes = layout.members, torch.tensor(layout.sizes, dtype=torch.float64)
    noise = (variance @ S).double() / sizes
    return (apart.square() @ S).double() / noise, (sizes - 1).clamp_min(1), noise


def _beside(
    kept: Tensor,
    apart: Tensor,
    variance: Tensor,
    totals: Tensor,
    classes: Tensor,
    layout: Layout,
    closer: int,
    s: Settings,
) -> Tensor:
    """`kept` (C, q), where one column was chosen because it tells the classes and then looked at more closely.

    That column keeps what stands out of its noise. If it is nearly all of it, differences elsewhere that are large for
    their noise and impossible for the class would drown it: there they are measured by what a class can differ at all.
    If not, such differences are all there is, and a model can still rank rows by them.
    """
    length, free, _ = _lengths(apart, variance, layout)
    own = (1 - free[closer] / length[:, closer]).clamp_min(0).to(kept.dtype)  # (C,)
    if float(own.max()) >= s.stands_out:
        rows = classes.sum()
        spread = 1 - (totals / rows).square() @ layout.members  # (q,) of a column's values
        most = (classes * (1 - classes / rows)).square()[:, None] * spread.clamp_min(1e-3)
        kept = class_shrinkage(apart, variance, layout, s, most.double())
    kept = kept.clone()
    kept[:, closer] = torch.maximum(kept[:, closer], own)
    return kept


def positive(mean: Tensor, variance: Tensor) -> Tensor:
    """The mean of a normal that is known to be positive: a noisy count below 0 means few rows, not none.

    >>> positive(torch.tensor([-50.0, 0.0, 500.0]), torch.tensor(100.0)).round(decimals=1).tolist()
    [1.899999976158142, 8.0, 500.0]
    """
    deviation = variance.double().clamp_min(1e-12).sqrt()
    z = (mean / deviation).clamp_min(-1e3)
    density = -z.square() / 2 - math.log(2 * math.pi) / 2
    return (deviation * (z + (density - torch.special.log_ndtr(z)).exp())).to(mean.dtype)


def positive_parts(v: Tensor, variance: Tensor, total: float, rounds: int) -> Tensor:
    """(k,) noisy counts -> positive ones that add up to the total; what is amiss goes where the noise is."""
    weight = variance / variance.sum()
    for _ in range(rounds):
        v = v + (total - positive(v, variance).sum()) * weight
    v = positive(v, variance)
    return v * (total / v.sum())


def combined(t: Noisy, C: int) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
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


def onto_margins(tables: Tensor, margins: Tensor, layout: Layout) -> Tensor:
    """Add constants to rows and columns of every table until its margins are the given ones."""
    seg, S = layout.column_of, layout.members
    sizes = torch.tensor(layout.sizes, dtype=torch.float32)
    rows = margins[..., :, None] - tables @ S  # (…, P, q)
    tables = tables + (rows / sizes)[..., seg]
    columns = margins[..., None, :] - S.T @ tables  # (…, q, P)
    return tables + (columns / sizes[:, None])[..., seg, :]


def onto_allowed(tables: Tensor, margins: Tensor, allowed: Tensor, layout: Layout, rounds: int) -> Tensor:
    """The same where some cells are known to be empty: constants for the allowed cells alone, as near as they can."""
    seg, S = layout.column_of, layout.members
    of_row = (allowed @ S).clamp_min(1)  # (P, q)
    tables = tables * allowed
    for _ in range(rounds):
        rows = (margins[..., :, None] - tables @ S) / of_row
        tables = tables + rows[..., seg] * allowed
        columns = (margins[..., None, :] - S.T @ tables) / of_row.T
        tables = tables + columns[..., seg, :] * allowed
    return tables
