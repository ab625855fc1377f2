"""Consistent: one set of targets from all the noisy tables of a release. Post-processing, by precision weighting.

Every table says something about its margins. Weighing each source by its known noise gives sharper one-way counts
than any single table holds; the pair tables are then moved onto those margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from dpmerf.errors import TrainError
from dpmerf.grid import to_simplex
from dpmerf.recipes import Histograms, Tables
from dpmerf.release import Measurement, Release

ROUNDS = 10  # that fit counts to the sums they must have
MIXED = 50  # rounds that find how common differences of each size are
NULL_COLUMNS = 10.0  # that do not differ, assumed beside the real ones: as in the paper of the method


@final
@dataclass(frozen=True)
class Layout:
    """Columns side by side as positions 0 … P − 1, one per bin."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @cached_property
    def offsets(self) -> list[int]:
        return [sum(self.sizes[:j]) for j in range(len(self.sizes) + 1)]

    @property
    def positions(self) -> int:
        return sum(self.sizes)

    def span(self, j: int) -> slice:
        return slice(self.offsets[j], self.offsets[j + 1])

    @cached_property
    def column_of(self) -> Tensor:
        """(P,) which column a position belongs to."""
        return torch.repeat_interleave(torch.arange(len(self.sizes)), torch.tensor(self.sizes))

    @cached_property
    def members(self) -> Tensor:
        """(P, q) one-hot of `column_of`: multiplying by it sums over the bins of each column."""
        return torch.nn.functional.one_hot(self.column_of, len(self.sizes)).float()


@final
@dataclass(frozen=True)
class Targets:
    """Counts that a model should meet, with the noise variance of their cells."""

    layout: Layout
    classes: Tensor  # (C,)
    singles: Tensor  # (C, P), non-negative, consistent
    pairs: Tensor  # (P, P), zero where not measured
    label_pairs: Tensor | None  # (C, P, P)
    pair_variance: float
    label_pair_variance: float
    measured: Tensor  # (P, P) 1 where a cell belongs to a measured pair


@final
@dataclass(frozen=True)
class Noisy:
    """The release's tables laid out by position; sigma is infinite where a family was not measured."""

    layout: Layout
    rows: float
    by_label: bool
    balanced: bool  # declared: classes are equally frequent
    class_counts: Tensor  # (C,), and its sigma
    class_sigma: float
    histogram: Tensor  # (P,) sums of fine cells
    histogram_variance: Tensor  # (P,)
    parts: dict[str, Tensor]  # column -> (C, parts)
    part_sigma: float
    singles: Tensor  # (C, P) sums of parts
    single_variance: Tensor  # (P,)
    pairs: Tensor  # (P, P)
    pair_sigma: float
    label_pairs: Tensor | None  # (C, P, P)
    label_pair_sigma: float
    measured: Tensor  # (q, q)


def noisy_tables(release: Release) -> Noisy:
    """Read the two stages of a tables release."""
    stages = {type(s.recipe): s for s in release.plan.stages}
    if Tables not in stages or Histograms not in stages or release.binning is None:
        raise TrainError("this generator needs a release of tables (the default preset)")
    recipe = stages[Tables].recipe
    assert isinstance(recipe, Tables)
    binning, codec = release.binning, release.codec
    names = recipe.columns(codec)
    layout = Layout(names, tuple(binning.variables[n].size for n in names))
    histograms = dict(zip(release.plan.histograms.columns, release.measurements(stages[Histograms]), strict=True))
    fine_sigma = next(iter(histograms.values())).sigma
    label = codec.schema.label if recipe.by_label else None
    C, P, q = (binning.variables[label].size if label else 1), layout.positions, len(names)

    histogram, variance = torch.zeros(P), torch.full((P,), math.inf)
    for j, name in enumerate(names):
        if name not in histograms:
            continue
        bin_of = binning.bin_of[name]
        histogram[layout.span(j)] = torch.zeros(layout.sizes[j]).index_add(
            0, bin_of, histograms[name].values.flatten().float()
        )
        variance[layout.span(j)] = torch.bincount(bin_of).float() * fine_sigma**2

    singles, pairs, label_pairs = recipe.families(codec, binning)
    parts = release.measurements(stages[Tables])
    first, second = len(singles.blocks), len(singles.blocks) + len(pairs.blocks)
    lab, lab_variance = torch.zeros(C, P), torch.full((P,), math.inf)
    by_part = {name: m.values.view(C, -1).float() for name, m in zip(names, parts[:first], strict=False)}
    for name, values in by_part.items():
        span, bin_of_part = layout.span(names.index(name)), binning.bin_of_part(name)
        lab[:, span] = torch.zeros(C, span.stop - span.start).index_add(1, bin_of_part, values)
        lab_variance[span] = torch.bincount(bin_of_part).float() * parts[0].sigma ** 2
    measured = torch.zeros(q, q)
    pair = torch.zeros(P, P)
    by_class = torch.zeros(C, P, P) if label_pairs.blocks else None
    for (a, b), m in zip(recipe.pairs, parts[first:second], strict=False):
        i, j = names.index(a), names.index(b)
        measured[i, j] = measured[j, i] = 1
        _place(pair[None], layout, i, j, m)
    for (a, b), m in zip(recipe.pairs, parts[second:], strict=False):
        i, j = names.index(a), names.index(b)
        measured[i, j] = measured[j, i] = 1
        if by_class is not None:
            _place(by_class, layout, i, j, m)
    counted = histograms.get(label) if label else None
    counts = counted.values.flatten().float() if counted else torch.full((C,), release.rows_estimate / C)
    return Noisy(
        layout=layout,
        rows=release.rows_estimate,
        by_label=label is not None,
        balanced=release.plan.balanced,
        class_counts=counts,
        class_sigma=counted.sigma if counted else math.inf,
        histogram=histogram,
        histogram_variance=variance,
        parts=by_part,
        part_sigma=parts[0].sigma if first else math.inf,
        singles=lab,
        single_variance=lab_variance,
        pairs=pair,
        pair_sigma=parts[first].sigma if second > first else math.inf,
        label_pairs=by_class,
        label_pair_sigma=parts[second].sigma if by_class is not None else math.inf,
        measured=measured,
    )


def _place(into: Tensor, layout: Layout, i: int, j: int, m: Measurement) -> None:
    table = m.values.view(into.shape[0], layout.sizes[i], layout.sizes[j]).float()
    into[:, layout.span(i), layout.span(j)] = table
    into[:, layout.span(j), layout.span(i)] = table.transpose(1, 2)


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
        w = near / (sizes * t.label_pair_sigma**2)
        weighted = weighted + torch.einsum("cpq,pq->cp", t.label_pairs @ S, w)
        precision = precision + w.sum(1)
    by_class = weighted / precision

    # column totals: the histograms, the margins of every pair table, and the sum over classes of the above
    total_precision = 1 / t.histogram_variance
    totals = t.histogram * total_precision
    if math.isfinite(t.pair_sigma):
        w = near / (sizes * t.pair_sigma**2)
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
    evidence = (length[..., None] * ratios / (1 + ratios) - free[:, None] * torch.log1p(ratios)) / 2
    assumed = torch.nn.functional.one_hot(torch.tensor(0), len(ratios)) * NULL_COLUMNS + 1 / len(ratios)
    common = torch.full((len(length), 1, len(ratios)), 1 / len(ratios), dtype=torch.float64)
    for _ in range(MIXED):
        weight = torch.softmax(evidence + common.log(), dim=-1)
        common = weight.sum(1, keepdim=True) + assumed
        common = common / common.sum(-1, keepdim=True)
    return (weight @ (ratios / (1 + ratios))).to(apart.dtype).clamp_min(1e-6)


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


def _combine(t: Noisy, C: int) -> tuple[Tensor, Tensor | None, float, float]:
    """Pairs and label pairs both know the pair totals: weigh them, and hand the classes the difference."""
    v_pair, v_label = t.pair_sigma**2, t.label_pair_sigma**2
    if t.label_pairs is None:
        return t.pairs, None, v_pair, math.inf
    summed = t.label_pairs.sum(0)
    if not math.isfinite(v_pair):
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
