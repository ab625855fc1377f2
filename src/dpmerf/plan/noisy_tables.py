"""Noisy tables: those of a release, found by name and laid out by position.

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
from dpmerf.plan.measurements import Measurement
from dpmerf.plan.queries.histograms import noisy_histograms
from dpmerf.plan.queries.selected_table import SelectedTable
from dpmerf.plan.queries.tables import Tables

if TYPE_CHECKING:
    from torch import Tensor

    from dpmerf.plan.known import Known


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
    selected: int | None  # the column whose table was measured by itself: it has less variance
    pairs: Tensor | None  # (P, P)
    pair_variance: Tensor  # (q, q) of a cell
    label_pairs: Tensor | None  # (C, P, P)
    label_pair_variance: Tensor  # (q, q)
    measured: Tensor  # (q, q)


def noisy_tables(known: Known) -> Noisy:
    """Read a release of tables, or as much of it as is known."""
    plan, binning, codec = known.plan, known.binning, known.codec
    if not plan.has(Tables) or binning is None:
        raise TrainError("this generator needs a release of tables (the default preset)")
    tables = plan.query(Tables)
    names, label = tables.columns(codec), tables.label(codec)
    layout = Layout(names, tuple(binning.variables[n].size for n in names))
    histograms, fine_sigma = noisy_histograms(known)
    C, P = binning.variables[label].size if label else 1, layout.positions

    histogram, variance = torch.zeros(P), torch.full((P,), math.inf)
    for j, name in enumerate(names):
        if name not in histograms:
            continue
        bin_of = binning.bin_of[name]
        histogram[layout.span(j)] = torch.zeros(layout.sizes[j]).index_add(0, bin_of, histograms[name].float())
        variance[layout.span(j)] = torch.bincount(bin_of).float() * fine_sigma[name] ** 2

    by_columns = {m.columns: m for m in known.answers(plan.stage(Tables))}
    split = (label,) if label else ()
    singles = {name: by_columns[*split, name] for name in names if (*split, name) in by_columns}
    part_sigma = next(iter(singles.values())).sigma if singles else math.inf
    lab, lab_variance = torch.zeros(C, P), torch.full((P,), math.inf)
    by_part = {name: m.values.view(C, -1).float() for name, m in singles.items()}
    for name, values in by_part.items():
        span, bin_of_part = layout.span(names.index(name)), torch.from_numpy(binning.bin_of_part(name))
        lab[:, span] = torch.zeros(C, span.stop - span.start).index_add(1, bin_of_part, values)
        lab_variance[span] = torch.bincount(bin_of_part).float() * part_sigma**2
    selected = _weigh_selected(known, layout, lab, lab_variance)
    found = _pair_tables(known, by_columns, layout, split, C)
    counted = label is not None and label in histograms
    counts = histograms[label].float() if label and counted else torch.full((C,), known.rows_estimate / C)
    return Noisy(
        layout=layout,
        rows=known.rows_estimate,
        by_label=label is not None,
        balanced=plan.balanced,
        class_counts=counts,
        class_sigma=fine_sigma[label] if label and counted else math.inf,
        histogram=histogram,
        histogram_variance=variance,
        parts=by_part,
        part_sigma=part_sigma,
        singles=lab,
        single_variance=lab_variance,
        selected=selected,
        pairs=found.pairs,
        pair_variance=found.pair_variance,
        label_pairs=found.label_pairs,
        label_pair_variance=found.label_pair_variance,
        measured=found.measured,
    )


def _weigh_selected(known: Known, layout: Layout, singles: Tensor, variance: Tensor) -> int | None:
    """Weigh the table of the selected column with the one that was measured by itself, in place."""
    if not known.plan.has(SelectedTable) or not (measured := known.answers(known.plan.stage(SelectedTable))):
        return None
    (m,) = measured
    column = layout.names.index(m.columns[-1])
    span = layout.span(column)
    first, second = 1 / variance[span], 1 / m.sigma**2
    alone = m.values.view(len(singles), -1).float()
    singles[:, span] = (singles[:, span] * first + alone * second) / (first + second)
    variance[span] = 1 / (first + second)
    return column


def class_shares(known: Known) -> Tensor:
    """(C,) from the label's histogram and the label × column tables."""
    t = noisy_tables(known)
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
    known: Known, by_columns: dict[tuple[str, ...], Measurement], layout: Layout, label: tuple[str, ...], C: int
) -> _Pairs:
    """Tables of pairs and of label × pairs; those that were measured again are the mean of both, by precision."""
    pairs = known.plan.query(Tables).pairs
    P, q = layout.positions, len(layout.names)
    measured = torch.zeros(q, q)
    for a, b in pairs:
        i, j = layout.names.index(a), layout.names.index(b)
        measured[i, j] = measured[j, i] = 1
    of_all = {pair: by_columns[pair] for pair in pairs if pair in by_columns}
    of_class = {pair: by_columns[*label, *pair] for pair in pairs if label and (*label, *pair) in by_columns}
    whole, whole_variance = torch.zeros(1, P, P) if of_all else None, torch.ones(q, q)
    split, split_variance = torch.zeros(C, P, P) if of_class else None, torch.ones(q, q)
    for into, variance, tables in ((whole, whole_variance, of_all), (split, split_variance, of_class)):
        for pair, m in tables.items():
            if into is not None:
                _place(into, variance, layout, pair, m.values, m.sigma)
    if whole is not None:
        for m in again_measured(known):
            _place_again(whole, whole_variance, layout, m)
    return _Pairs(whole[0] if whole is not None else None, whole_variance, split, split_variance, measured)


def again_measured(known: Known) -> list[Measurement]:
    """Tables of stages that measure again what stood out before."""
    return [m for stage in known.plan.stages if stage.query.recounts for m in known.answers(stage)]


def _place(into: Tensor, variance: Tensor, layout: Layout, pair: tuple[str, ...], values: Tensor, sigma: float) -> None:
    i, j = (layout.names.index(name) for name in pair)
    table = values.view(into.shape[0], layout.sizes[i], layout.sizes[j]).float()
    into[:, layout.span(i), layout.span(j)] = table
    into[:, layout.span(j), layout.span(i)] = table.transpose(1, 2)
    variance[i, j] = variance[j, i] = sigma**2


def _place_again(into: Tensor, variance: Tensor, layout: Layout, m: Measurement) -> None:
    """The mean of both measurements, by precision."""
    i, j = (layout.names.index(name) for name in m.columns)
    first, second = 1 / float(variance[i, j]), 1 / m.sigma**2
    old = into[:, layout.span(i), layout.span(j)].double()
    table = (old * first + m.values.view(old.shape) * second) / (first + second)
    _place(into, variance, layout, m.columns, table, (first + second) ** -0.5)
