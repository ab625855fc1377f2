"""MaxEnt: the distribution of largest entropy that agrees with the released tables, as far as their noise allows.

A pairwise log-linear (Potts) model per class: log p(x | y) = Σ h[y, xᵢ] + Σ J[y, xᵢ, xⱼ]. Its moments are the tables,
so its gradient is (released − generated) counts: the mean-embedding loss in its natural geometry. It is fitted by
Gibbs sampling on persistent chains, with a ridge on every cell set by the known noise (empirical Bayes), and drawn
from by the same Gibbs sweeps, which also answer any condition by holding columns still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from dpmerf.codec import Batch
from dpmerf.errors import ArtefactError, TrainError
from dpmerf.generators.base import Generator, Given, History, State
from dpmerf.generators.consistent import Layout, Targets, consistent, noisy_tables
from dpmerf.progress import SILENT, Bars
from dpmerf.recipes import Tables
from dpmerf.release import Release

CHAINS = 16_384
STEPS = 400
RATE, LAST_RATE = 0.2, 0.05
AVERAGED = 0.25  # the last part of the steps, whose parameters are averaged
MOST_PRIOR = 4.0  # largest prior variance of a log-interaction
KEPT = 4_096  # chain states saved with the model, to start drawing from
BURN, BURN_GIVEN = 10, 30  # Gibbs sweeps before rows are taken
CHECK_EVERY = 20


@final
class MaxEnt(Generator):
    """A fitted model: fields h, couplings J and the states of its chains."""

    kind: ClassVar[str] = "maxent"

    def __init__(self, release: Release, h: Tensor, J: Tensor, states: Tensor, shares: Tensor) -> None:
        self._release = release
        self._layout = _layout(release)
        self._h, self._J = h, J  # (C, P), (C, P, P)
        self._states = states  # (C, kept, q) bins
        self._shares = shares  # (C,)

    @property
    def conditions(self) -> frozenset[str]:
        return frozenset(self._release.plan.schema.learned)

    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        binning, label = _binning(self._release), _label(self._release)
        fixed = {}
        if given:
            bins = binning.encode(given.row)
            fixed = {name: int(bins[name]) for name in given.names}
        shares = self._shares
        if label in fixed:
            shares = torch.nn.functional.one_hot(torch.tensor(fixed[label]), len(shares)).double()
        parts, labels = [], []
        for c, count in enumerate(_apportion(shares, n, rng).tolist()):
            if count:
                parts.append(self._draw_class(c, count, fixed, rng))
                labels.append(torch.full((count,), c))
        order = torch.randperm(n, generator=rng)
        rows, classes = torch.cat(parts)[order], torch.cat(labels)[order]
        codes = {name: rows[:, j] for j, name in enumerate(self._layout.names)}
        if label is not None:
            codes[label] = classes
        batch = binning.decode(codes, rng)
        return _overwrite(batch, given, self._release) if given else batch

    def _draw_class(self, c: int, n: int, fixed: dict[str, int], rng: torch.Generator) -> Tensor:
        """(n, q) bins of one class."""
        start = torch.randint(self._states.shape[1], (n,), generator=rng)
        chains = Chains(self._layout, self._states[c, start][None])
        held = {self._layout.names.index(name): b for name, b in fixed.items() if name in self._layout.names}
        for j, b in held.items():
            chains.put(j, torch.full((1, n), b))
        for _ in range(BURN_GIVEN if held else BURN):
            chains.sweep(self._h[c : c + 1], self._J[c : c + 1], rng, held=frozenset(held))
        return chains.bins[0]

    def state(self) -> State:
        tensors = {"h": self._h, "J": self._J, "states": self._states.to(torch.int32), "shares": self._shares}
        return State({}, tensors)

    @classmethod
    def from_state(cls, release: Release, state: State) -> MaxEnt:
        t = state.tensors
        layout = _layout(release)
        C, P = len(t["shares"]), layout.positions
        if t["h"].shape != (C, P) or t["J"].shape != (C, P, P) or t["states"].shape[::2] != (C, len(layout.names)):
            raise ArtefactError("the model's weights do not fit its release: it is damaged")
        states = t["states"].long()
        if bool((states < 0).any()) or bool((states >= torch.tensor(layout.sizes)).any()):
            raise ArtefactError("the model's states do not fit its release: it is damaged")
        return cls(release, t["h"], t["J"], states, t["shares"])

    @staticmethod
    def fit(
        release: Release, seed: int, *, steps: int = STEPS, chains: int = CHAINS, bars: Bars = SILENT
    ) -> tuple[MaxEnt, History]:
        """Persistent contrastive divergence on the consistent targets."""
        if steps < 1:
            raise TrainError(f"steps is {steps}: write 1 or more")
        rng = torch.Generator().manual_seed(seed)
        t = consistent(noisy_tables(release))
        layout, C = t.layout, len(t.classes)
        per_class = max(chains // C, 256)
        h = (t.singles / t.classes[:, None]).clamp_min(1e-7).log()
        walkers = Chains.independent(layout, h, per_class, rng)
        fitted = _descend(t, h, walkers, steps, rng, bars)
        kept = walkers.bins[:, : max(KEPT // C, 256)].clone()
        shares = (t.classes / t.classes.sum()).double()
        return MaxEnt(release, fitted.h, fitted.J, kept, shares), fitted.history


@final
class Chains:
    """Rows of bins, as indices and as one-hots, moved by Gibbs sweeps. One group of chains per class."""

    def __init__(self, layout: Layout, bins: Tensor) -> None:
        self.layout = layout
        self.bins = bins.clone()  # (C, N, q)
        C, N, _ = bins.shape
        self.onehot = torch.zeros(C, N, layout.positions)
        self.onehot.scatter_(2, bins + torch.tensor(layout.offsets[:-1]), 1.0)

    @staticmethod
    def independent(layout: Layout, h: Tensor, n: int, rng: torch.Generator) -> Chains:
        """Columns drawn independently within each class."""
        parts = [
            torch.multinomial(h[:, layout.span(j)].exp(), n, replacement=True, generator=rng)
            for j in range(len(layout.sizes))
        ]
        return Chains(layout, torch.stack(parts, dim=2))

    def put(self, j: int, bins: Tensor) -> None:
        """Set column j of every chain."""
        self.bins[:, :, j] = bins
        hot = self.onehot[:, :, self.layout.span(j)]
        hot.zero_()
        hot.scatter_(2, bins[:, :, None], 1.0)

    def sweep(self, h: Tensor, J: Tensor, rng: torch.Generator, held: frozenset[int] = frozenset()) -> None:
        """Redraw every column given the others, in random order."""
        for j in torch.randperm(len(self.layout.sizes), generator=rng).tolist():
            if j in held:
                continue
            span = self.layout.span(j)
            logits = torch.baddbmm(h[:, None, span], self.onehot, J[:, :, span])  # (C, N, k)
            ladder = torch.softmax(logits, dim=-1).cumsum_(-1)
            point = torch.rand(*ladder.shape[:-1], 1, generator=rng)
            self.put(j, (ladder < point).sum(-1).clamp_max_(ladder.shape[-1] - 1))

    def moments(self) -> Tensor:
        """(C, P, P) how often two positions occur together."""
        return torch.bmm(self.onehot.transpose(1, 2), self.onehot) / self.onehot.shape[1]


@final
@dataclass(frozen=True)
class _Fitted:
    h: Tensor
    J: Tensor
    history: History


def _descend(t: Targets, h: Tensor, walkers: Chains, steps: int, rng: torch.Generator, bars: Bars) -> _Fitted:
    C, P = t.singles.shape
    history = History(floor=1.0)  # the loss is in units of the noise variance
    J = torch.zeros(C, P, P)
    if not bool(t.measured.any()):
        return _Fitted(h, J, history)
    ridge = _ridges(t)
    shared, own = torch.zeros(P, P), torch.zeros(C, P, P)
    mean_h, mean_J, averaged = torch.zeros_like(h), torch.zeros_like(J), 0
    with bars.task("training", total=steps, counted="steps") as advance:
        for step in range(1, steps + 1):
            rate = RATE * (LAST_RATE / RATE) ** (step / steps)
            walkers.sweep(h, J, rng)
            seen = walkers.moments() * t.classes[:, None, None]  # (C, P, P) counts
            singles, pairs = seen.diagonal(dim1=1, dim2=2), seen.sum(0)
            h = h + rate * (t.singles - singles) / torch.maximum(t.singles.clamp_min(20.0), singles)
            gap = t.pairs - pairs
            shared = (
                shared
                + rate * (gap - ridge.shared * shared) / (torch.maximum(ridge.scale, pairs) + ridge.shared) * t.measured
            )
            J = shared.expand(C, P, P)
            if t.label_pairs is not None and ridge.own is not None and ridge.own_scale is not None:
                own_gap = t.label_pairs - seen
                own = (
                    own
                    + rate
                    * (own_gap - ridge.own * own)
                    / (torch.maximum(ridge.own_scale, seen) + ridge.own)
                    * t.measured
                )
                J = shared + own
            if step > steps * (1 - AVERAGED):
                averaged += 1
                mean_h += (h - mean_h) / averaged
                mean_J += (J - mean_J) / averaged
            if step % CHECK_EVERY == 0 or step == steps:
                history.note(step, float((gap.square() * t.measured).sum() / t.measured.sum() / t.pair_variance))
            advance(1)
    return _Fitted(mean_h, mean_J, history)


@final
@dataclass(frozen=True)
class _Ridges:
    """Penalty per cell, and the count that sets each cell's step."""

    shared: Tensor  # (P, P)
    scale: Tensor
    own: Tensor | None  # (C, P, P)
    own_scale: Tensor | None


def _ridges(t: Targets) -> _Ridges:
    """Empirical Bayes: a table whose departure from independence is no larger than its noise is held near it."""
    expected = t.singles[:, :, None] * t.singles[:, None, :] / t.classes[:, None, None]  # independent within a class
    total = expected.sum(0)
    departure = t.pairs - total
    prior = _prior(t, departure, total, t.pair_variance)
    scale = torch.maximum(total, t.pairs - math.sqrt(t.pair_variance)).clamp_min(1.0)
    shared = t.pair_variance / (prior * scale)
    if t.label_pairs is None:
        return _Ridges(shared, scale, None, None)
    explained = (1 + departure / total.clamp_min(1.0) * (scale / (scale + shared))).clamp(0, 50)
    rest = t.label_pairs - expected * explained
    own_prior = torch.stack([_prior(t, rest[c], expected[c], t.label_pair_variance) for c in range(len(t.classes))])
    own_scale = torch.maximum(expected, t.label_pairs - math.sqrt(t.label_pair_variance)).clamp_min(1.0)
    return _Ridges(shared, scale, t.label_pair_variance / (own_prior * own_scale), own_scale)


def _prior(t: Targets, departure: Tensor, expected: Tensor, variance: float) -> Tensor:
    """(P, P) prior variance of the log-interactions, one value per table: signal beyond noise, relative to counts."""
    S, seg = t.layout.members, t.layout.column_of
    signal = S.T @ ((departure.square() - variance) * t.measured) @ S
    size = (S.T @ (expected.square() * t.measured + 1e-6) @ S).clamp_min(1e-6)
    return (signal / size).clamp(1e-4, MOST_PRIOR)[seg][:, seg]


def _apportion(shares: Tensor, n: int, rng: torch.Generator) -> Tensor:
    """Whole numbers that add up to n, as near to the shares as they can be; what is left over falls at random."""
    exact = shares.double() / shares.sum() * n
    counts = exact.floor().long()
    rest = n - int(counts.sum())
    if rest:
        extra = torch.multinomial((exact - counts).clamp_min(1e-12), rest, replacement=False, generator=rng)
        counts[extra] += 1
    return counts


def _overwrite(batch: Batch, given: Given, release: Release) -> Batch:
    """A given number is that number, not just its bin."""
    numbers = batch.numbers.clone()
    for i, name in enumerate(release.codec.numeric):
        if name in given.names:
            numbers[:, i] = given.row.numbers[0, i]
    codes = dict(batch.codes)
    for name in given.names & codes.keys():
        codes[name] = given.row.codes[name].expand(len(batch))
    return Batch(numbers, codes)


def _layout(release: Release) -> Layout:
    recipe = next((s.recipe for s in release.plan.stages if isinstance(s.recipe, Tables)), None)
    if recipe is None:
        raise TrainError("this generator needs a release of tables (the default preset)")
    names = recipe.columns(release.codec)
    return Layout(names, tuple(_binning(release).columns[n].size for n in names))


def _label(release: Release) -> str | None:
    recipe = next(s.recipe for s in release.plan.stages if isinstance(s.recipe, Tables))
    return release.plan.schema.label if recipe.by_label else None


def _binning(release: Release):  # type: ignore[no-untyped-def]
    if release.binning is None:
        raise TrainError("the release has no bins: it was not made for this generator")
    return release.binning
