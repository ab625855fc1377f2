"""Empty: cells of pair tables that no row has, as far as the release shows them. Post-processing: no row is needed.

One empty cell is hard to see through noise. A table where one column decides another has hundreds, and together they
show. So every table has a share of empty cells, and all tables together say how common each share is (empirical Bayes).
A cell is empty (a spike at 0), or holds what independent columns would give it times a log-normal factor (a slab).
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from dpmerf.generators.maxent.consistent import Targets, onto_allowed
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.ridges import prior_variance


def empty_cells(t: Targets, barred: Tensor | None, s: Settings) -> Tensor:
    """(P, P) bool: cells that are empty with a probability above `s.empty`; `barred` are known to be and tell nothing.

    `s.full_tables` without any empty cell are assumed beside the real ones. Every bin keeps a cell that it can be in.
    """
    open_cells = t.measured > 0 if barred is None else (t.measured > 0) & ~barred
    row, column = torch.nonzero(torch.triu(open_cells, 1), as_tuple=True)
    found = torch.zeros_like(open_cells)
    if len(row) == 0:
        return found
    odds = _odds(t, row, column, s)
    q, seg = len(t.layout.sizes), t.layout.column_of
    table = seg[row] * q + seg[column]
    shares = torch.tensor(s.empty_shares, dtype=torch.float64)
    evidence = torch.zeros(q * q, len(shares), dtype=torch.float64)
    for k, share in enumerate(shares):
        cell = torch.logaddexp(odds + share.log(), torch.log1p(-share).expand_as(odds))
        evidence[:, k].index_add_(0, table, cell)
    real = torch.zeros(q * q, dtype=torch.bool)
    real[table] = True
    assumed = torch.full_like(shares, 1 / len(shares))
    assumed[0] += s.full_tables
    common = assumed / assumed.sum()
    for _ in range(s.empty_rounds):
        common = torch.softmax(evidence[real] + common.log(), dim=1).sum(0) + assumed
        common = common / common.sum()
    weight = torch.softmax(evidence + common.log(), dim=1)  # (q², shares)
    chance = torch.zeros_like(odds)
    for k, share in enumerate(shares):
        chance += weight[table, k] * torch.sigmoid(odds + share.log() - torch.log1p(-share))
    found[row, column] = chance > s.empty
    full = torch.zeros_like(t.pairs)
    full[row, column] = -odds.float()
    return _possible(t, found | found.T, open_cells, full + full.T, s.left_rounds)


def _odds(t: Targets, row: Tensor, column: Tensor, s: Settings) -> Tensor:
    """(cells,) log-likelihood of a noisy count if its cell is empty, less that if it is not."""
    sizes = torch.tensor(t.layout.sizes, dtype=torch.float64)[t.layout.column_of]
    expected = (t.singles.T @ (t.singles / t.classes[:, None])).clamp_min(1e-3)  # independent within a class
    spread = prior_variance(t, t.pairs - expected, expected, t.pair_variance, s)[row, column].double().sqrt()
    spread = spread.clamp_min(s.least_spread)
    count, mean = t.pairs[row, column].double(), expected[row, column].double()
    variance = t.pair_variance[row, column].double() * (1 - 1 / sizes[row]) * (1 - 1 / sizes[column])  # on its margins
    variance = variance.clamp_min(1e-9)
    points = torch.linspace(-s.reach, s.reach, s.points, dtype=torch.float64)
    weights = torch.log_softmax(-points.square() / 2, dim=0)
    full = torch.full_like(count, -math.inf)
    for point, weight in zip(points, weights, strict=True):
        apart = count - mean * torch.exp(spread * point)
        full = torch.logaddexp(full, weight - apart.square() / (2 * variance))
    odds = (-count.square() / (2 * variance) - full).clamp(-60, 60)
    return torch.where(count > s.surely_full * variance.sqrt(), -60.0, odds)


def _possible(t: Targets, empty: Tensor, open_cells: Tensor, full: Tensor, rounds: int) -> Tensor:
    """The same cells, less one for every bin that would have none left.

    Of the bins that it may go with, that is the likeliest: by the odds (log, P × P) that its noisy count is no empty
    cell's, where bins are as likely beforehand as they lack rows.
    """
    layout, S, seg = t.layout, t.layout.members, t.layout.column_of
    allowed = (open_cells & ~empty).float()
    margins = t.singles.sum(0)
    table = t.pairs.clamp_min(1e-3) * allowed
    for _ in range(rounds):
        table = table * (margins[:, None] / (table @ S).clamp_min(1e-9))[:, seg]
        table = table * (margins / (S.T @ table).clamp_min(1e-9))[seg]
    lacking = margins[:, None] - table @ S  # (P, q) of a bin, in its table with a column
    stuck = ((allowed @ S) == 0) & ((empty.float() @ S) > 0)
    empty = empty.clone()
    for position, j in torch.nonzero(stuck).tolist():
        span, own = layout.span(j), int(seg[position])
        likely = lacking[span, own].clamp_min(1.0).log() + full[position, span]
        choice = torch.where(empty[position, span], likely, -math.inf)
        other = span.start + int(choice.argmax())
        empty[position, other] = empty[other, position] = False
    return empty


def without(t: Targets, empty: Tensor, s: Settings) -> Targets:
    """Targets with nothing in the empty cells, and their tables moved onto their margins again."""
    allowed = (~empty).float() * t.measured
    label_pairs = t.label_pairs
    if label_pairs is not None:
        label_pairs = onto_allowed(label_pairs, t.singles, allowed, t.layout, s.sum_rounds)
    pairs = onto_allowed(t.pairs, t.singles.sum(0), allowed, t.layout, s.sum_rounds)
    return replace(t, pairs=pairs, label_pairs=label_pairs)
