"""Zeros: cells that the schema's rules forbid, as a model of bins sees them.

Bins never reach across a cut of the rules, so a forbidden combination is a set of whole cells. Two columns (with the
class) are barred by a large negative interaction, three or more by the sweeps themselves. Decoding settles every row
once more, so these zeros serve the fit: what is forbidden draws no mass from its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import final

import torch
from torch import Tensor

from dpmerf.encoding.atoms import subsets
from dpmerf.encoding.binning import Binning
from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.gibbs import Bar
from dpmerf.plan.noisy_tables import Layout
from dpmerf.release import Release
from dpmerf.schema.boxes import Subset

BARRED = -25.0  # a log-interaction: nothing that a release can show is as rare


@final
@dataclass(frozen=True)
class Corner:
    """Three or more columns that must not be in these bins at once, in these classes."""

    classes: Tensor  # (C,) bool
    bins: tuple[tuple[int, Tensor], ...]  # column, (bins,) bool


@final
@dataclass(frozen=True)
class Zeros:
    """What is forbidden in each class: single bins, pairs of bins, corners."""

    layout: Layout
    singles: Tensor | None  # (C, P) 0 or BARRED
    pairs: Tensor | None  # (C, P, P), or (1, P, P) of all classes: 0 or BARRED
    corners: tuple[Corner, ...]

    @staticmethod
    def of(release: Release, binning: Binning, layout: Layout, label: str | None, classes: int) -> Zeros:
        """Follows from the schema and the bins of the release: it is never stored."""
        P = layout.positions
        singles, pairs, corners = torch.zeros(classes, P), torch.zeros(classes, P, P), []
        for box in release.plan.schema.program.boxes:
            marked = {name: _bins(binning, name, subset) for name, subset in box.sets}
            own = marked.pop(label, None) if label is not None else None
            rows = torch.ones(classes, dtype=torch.bool) if own is None else own[:classes]
            places = [(layout.names.index(name), mask) for name, mask in marked.items() if name in layout.names]
            if len(places) < len(marked) or not all(bool(mask.any()) for _, mask in places):
                continue
            spread = [_spread(layout, j, mask) for j, mask in places]
            if len(spread) == 1:
                singles[rows] = torch.where(spread[0], BARRED, singles[rows])
            elif len(spread) == 2:
                a, b = spread
                both = (a[:, None] & b[None, :]) | (b[:, None] & a[None, :])
                pairs[rows] = torch.where(both, BARRED, pairs[rows])
            elif len(spread) > 2:
                corners.append(Corner(rows, tuple(places)))
        any_single, any_pair = bool((singles < 0).any()), bool((pairs < 0).any())
        return Zeros(layout, singles if any_single else None, pairs if any_pair else None, tuple(corners))

    def also(self, empty: Tensor) -> Zeros:
        """These, and cells (P, P) that are empty in every class."""
        if not bool(empty.any()):
            return self
        more = torch.where(empty, BARRED, 0.0)
        classes = 1 if self.pairs is None else len(self.pairs)
        return replace(self, pairs=more.expand(classes, -1, -1) if self.pairs is None else self.pairs.minimum(more))

    @property
    def barred(self) -> Tensor | None:
        """(P, P) bool: pairs of bins that no class can have."""
        return None if self.pairs is None else (self.pairs < 0).all(0)

    @property
    def in_corners(self) -> frozenset[int]:
        """Columns that a corner speaks of."""
        return frozenset(j for corner in self.corners for j, _ in corner.bins)

    def on(self, h: Tensor, J: Tensor, c: int | None = None) -> tuple[Tensor, Tensor]:
        """A model's parameters, of all classes or of one, with what is forbidden barred."""
        own = slice(None) if c is None else slice(c, c + 1)
        h = h if self.singles is None else h + self.singles[own]
        return h, J if self.pairs is None else J + (self.pairs if len(self.pairs) == 1 else self.pairs[own])

    def targets(self, t: Targets) -> Targets:
        """The same targets with no mass where none can be."""
        singles, pairs, label_pairs = t.singles, t.pairs, t.label_pairs
        if self.singles is not None:
            open_bins = (self.singles == 0).float()
            singles = singles * open_bins
            sums = (singles @ t.layout.members)[:, t.layout.column_of].clamp_min(1e-9)
            singles = singles * (t.classes[:, None] / sums)
        if self.pairs is not None:
            allowed = (self.pairs == 0).float()
            pairs = pairs * allowed.amax(0)
            label_pairs = None if label_pairs is None else label_pairs * allowed
        return replace(t, singles=singles, pairs=pairs, label_pairs=label_pairs)

    def bars(self, classes: list[int]) -> Bar | None:
        """What a sweep over these classes has to bar; None if that is nothing."""
        return partial(self._bar, classes) if self.corners else None

    def _bar(self, classes: list[int], place: int, logits: Tensor, j: int, onehot: Tensor) -> None:
        """Bar, in place, the bins of column j (bins, N) that the other columns of a corner leave no room for."""
        for corner in self.corners:
            mask = next((m for k, m in corner.bins if k == j), None)
            if mask is None or not bool(corner.classes[classes[place]]):
                continue
            hit = torch.ones(onehot.shape[1])
            for k, other in corner.bins:
                if k != j:
                    hit = hit * (other.float() @ onehot[self.layout.span(k)])
            logits += BARRED * mask.float()[:, None] * hit


def _bins(binning: Binning, name: str, subset: Subset) -> Tensor:
    """(bins,) which bins lie in a subset; bins that reach across it, as no bin of a release does, do not count."""
    place = subsets(binning.grid.codec, name).index(subset)
    cells, bin_of = torch.from_numpy(binning.grid.marks(name)[place]), binning.bin_of[name]
    counts = torch.zeros(int(bin_of.max()) + 1).index_add(0, bin_of, cells.float())
    return counts == torch.bincount(bin_of)


def _spread(layout: Layout, j: int, mask: Tensor) -> Tensor:
    """(P,) a column's bins among all positions."""
    found = torch.zeros(layout.positions, dtype=torch.bool)
    found[layout.span(j)] = mask
    return found
