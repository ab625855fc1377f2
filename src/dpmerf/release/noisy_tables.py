"""Counts: the noisy tables of a release, laid out by position. And which pairs deserve a second look.

Post-processing: no row is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

from dpmerf.encoding.binning import to_simplex
from dpmerf.errors import TrainError
from dpmerf.lazy import torch
from dpmerf.plan.queries import CloserLook, Histograms, SecondLook, Tables
from dpmerf.release import Measurement, Release

if TYPE_CHECKING:
    from torch import Tensor


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
class Noisy:
    """The release's tables laid out by position; a family that was not measured is None or has an infinite sigma."""

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
    closer: int | None  # the column that was looked at more closely: it has less variance
    pairs: Tensor | None  # (P, P)
    pair_variance: Tensor  # (q, q) of a cell
    label_pairs: Tensor | None  # (C, P, P)
    label_pair_variance: Tensor  # (q, q)
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
    C, P = binning.variables[label].size if label else 1, layout.positions

    histogram, variance = torch.zeros(P), torch.full((P,), math.inf)
    for j, name in enumerate(names):
        if name not in histograms:
            continue
        bin_of = binning.bin_of[name]
        histogram[layout.span(j)] = torch.zeros(layout.sizes[j]).index_add(
            0, bin_of, histograms[name].values.flatten().float()
        )
        variance[layout.span(j)] = torch.bincount(bin_of).float() * fine_sigma**2

    singles, pairs, _ = recipe.families(codec, binning)
    parts = release.measurements(stages[Tables])
    first, second = len(singles.blocks), len(singles.blocks) + len(pairs.blocks)
    lab, lab_variance = torch.zeros(C, P), torch.full((P,), math.inf)
    by_part = {name: m.values.view(C, -1).float() for name, m in zip(names, parts[:first], strict=False)}
    for name, values in by_part.items():
        span, bin_of_part = layout.span(names.index(name)), binning.bin_of_part(name)
        lab[:, span] = torch.zeros(C, span.stop - span.start).index_add(1, bin_of_part, values)
        lab_variance[span] = torch.bincount(bin_of_part).float() * parts[0].sigma ** 2
    closer = _look_closer(release, layout, lab, lab_variance)
    found = _pair_tables(release, recipe, parts[first:second], parts[second:], layout, C)
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
        closer=closer,
        pairs=found.pairs,
        pair_variance=found.pair_variance,
        label_pairs=found.label_pairs,
        label_pair_variance=found.label_pair_variance,
        measured=found.measured,
    )


def _look_closer(release: Release, layout: Layout, singles: Tensor, variance: Tensor) -> int | None:
    """Weigh the table of the chosen column with its closer look, in place."""
    stage = next((s for s in release.plan.stages if isinstance(s.recipe, CloserLook)), None)
    if stage is None or stage.name not in release.sums or release.looked_at is None:
        return None
    (m,) = release.measurements(stage)
    column = layout.names.index(release.looked_at)
    span = layout.span(column)
    first, second = 1 / variance[span], 1 / m.sigma**2
    closer = m.values.view(len(singles), -1).float()
    singles[:, span] = (singles[:, span] * first + closer * second) / (first + second)
    variance[span] = 1 / (first + second)
    return column


def class_shares(release: Release) -> Tensor:
    """(C,) from the label's histogram and the label × column tables."""
    t = noisy_tables(release)
    return class_counts(t, t.singles, 1 / t.single_variance) / t.rows


def class_counts(t: Noisy, by_class: Tensor, precision: Tensor) -> Tensor:
    """(C,) rows of each class, given estimates (C, P) of class × column with their precision (P,)."""
    if not t.by_label:
        return torch.tensor([t.rows])
    if t.balanced:
        return torch.full((len(by_class),), t.rows / len(by_class))
    variance = (1 / precision) @ t.layout.members  # (q,)
    estimate = t.class_counts / t.class_sigma**2 + ((by_class @ t.layout.members) / variance).sum(1)
    weight = 1 / t.class_sigma**2 + float((1 / variance).sum())
    counts = to_simplex(estimate / weight, t.rows).clamp_min(1.0)
    return counts * (t.rows / counts.sum())


@final
@dataclass(frozen=True)
class _Pairs:
    pairs: Tensor | None
    pair_variance: Tensor
    label_pairs: Tensor | None
    label_pair_variance: Tensor
    measured: Tensor


def _pair_tables(
    release: Release, recipe: Tables, pairs: list[Measurement], by_label: list[Measurement], layout: Layout, C: int
) -> _Pairs:
    """Tables of pairs and of label × pairs; those that were measured again are weighed with their second look."""
    P, q = layout.positions, len(layout.names)
    measured = torch.zeros(q, q)
    for a, b in recipe.pairs:
        i, j = layout.names.index(a), layout.names.index(b)
        measured[i, j] = measured[j, i] = 1
    whole, whole_variance = torch.zeros(1, P, P) if pairs else None, torch.ones(q, q)
    parted, parted_variance = torch.zeros(C, P, P) if by_label else None, torch.ones(q, q)
    for into, variance, found in ((whole, whole_variance, pairs), (parted, parted_variance, by_label)):
        for names, m in zip(recipe.pairs, found, strict=False):
            if into is not None:
                _place(into, variance, layout, names, m)
    again = next((s for s in release.plan.stages if isinstance(s.recipe, SecondLook)), None)
    if whole is not None and again is not None and again.name in release.sums:
        for names, m in zip(release.chosen, release.measurements(again), strict=True):
            _place_again(whole, whole_variance, layout, names, m)
    return _Pairs(whole[0] if whole is not None else None, whole_variance, parted, parted_variance, measured)


def _place(into: Tensor, variance: Tensor, layout: Layout, names: tuple[str, str], m: Measurement) -> None:
    i, j = (layout.names.index(name) for name in names)
    table = m.values.view(into.shape[0], layout.sizes[i], layout.sizes[j]).float()
    into[:, layout.span(i), layout.span(j)] = table
    into[:, layout.span(j), layout.span(i)] = table.transpose(1, 2)
    variance[i, j] = variance[j, i] = m.sigma**2


def _place_again(into: Tensor, variance: Tensor, layout: Layout, names: tuple[str, str], m: Measurement) -> None:
    """The mean of both looks, by precision."""
    i, j = (layout.names.index(name) for name in names)
    first, second = 1 / float(variance[i, j]), 1 / m.sigma**2
    old = into[:, layout.span(i), layout.span(j)].double()
    table = (old * first + m.values.view(old.shape) * second) / (first + second)
    _place(into, variance, layout, names, Measurement(m.block, table.flatten(), (first + second) ** -0.5))


def most_dependent(release: Release, count: int) -> list[tuple[str, str]]:
    """The pairs whose tables lie farthest, beyond their noise, from independence within the classes."""
    t = noisy_tables(release)
    if t.pairs is None:
        return []
    S, seg = t.layout.members.double(), t.layout.column_of
    sizes = torch.tensor(t.layout.sizes, dtype=torch.float64)
    single = t.singles.double().clamp_min(1.0)
    classes = (single @ S).mean(1)  # (C,)
    gap = t.pairs.double() - torch.einsum("ci,cj->ij", single / classes[:, None], single)
    gap = gap - (gap @ S / sizes)[:, seg]  # what margins say is known better from other tables
    gap = gap - (S.T @ gap / sizes[:, None])[seg]
    excess = S.T @ gap.square() @ S - t.pair_variance.double() * (sizes[:, None] - 1) * (sizes - 1)
    row, column = torch.nonzero(t.measured.triu(1), as_tuple=True)
    order = torch.argsort(excess[row, column], descending=True, stable=True)[:count]
    return [(t.layout.names[i], t.layout.names[j]) for i, j in torch.stack([row, column], 1)[order].tolist()]
