"""MaxEnt: the distribution of largest entropy that agrees with the released tables, as far as their noise allows.

A pairwise log-linear (Potts) model per class: log p(x | y) = Σ h[y, xᵢ] + Σ J[y, xᵢ, xⱼ]. Its moments are the tables,
so its gradient is (released − generated) counts: the mean-embedding loss in its natural geometry. It is fitted by
Gibbs sampling on persistent chains, with a ridge on every cell set by the known noise (empirical Bayes), and drawn
from by the same Gibbs sweeps, which also answer any condition by holding columns still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from dpmerf.encoding.binning import Binning, tilted
from dpmerf.encoding.codec import Batch
from dpmerf.encoding.fine_cells import ValueDraw
from dpmerf.errors import ArtefactError, TrainError
from dpmerf.generators.base import Generator, Given, History, State, apportion, by_chance, overwrite
from dpmerf.generators.maxent.consistent import Targets, consistent
from dpmerf.generators.maxent.copula import Copula
from dpmerf.generators.maxent.gibbs import Chains, Goal, even_out
from dpmerf.generators.maxent.inside import fine_shares
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.preferred import preferred
from dpmerf.generators.maxent.ridges import Ridges, ridges
from dpmerf.generators.maxent.zeros import Zeros
from dpmerf.plan.noisy_tables import Layout, noisy_tables
from dpmerf.plan.queries import Query, Tables
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release

CHAINS = 8_192  # of all classes together; more where classes are many and tables small
MOST_WORK = 300_000_000  # chains of a class × positions², for those additional ones
RATES = (0.2, 0.1, 0.05, 0.025)  # the largest that leads somewhere: columns that say the same overshoot together
SLOWING = 4.0  # by which the rate falls until the last step
TRIAL, TRIAL_CHAINS = 40, 2_048  # steps and chains, of all classes together, that tell
WORSE = 3.0  # times the least loss of the trials: near enough, since rates fall and large ones mix better
AVERAGED = 0.25  # the last part of the steps, whose parameters are averaged
FEW_BINS = 7  # up to which the ridge is full, and less of it with more: interactions have heavy tails
BURN, BURN_GIVEN = 10, 30  # Gibbs sweeps before rows are taken
PASSES = 3  # that even out the sampling noise of the rows drawn together
DRAWN = 16_384  # chains moved at a time when drawing
PARAMETERS = ("h", "J", "moments", "singles", "measured", "shares")
CHECK_EVERY = 20


@final
@dataclass(frozen=True)
class Fitted:
    """What fitting leaves: the parameters, where the chains stand and what they amount to."""

    h: Tensor  # (C, P)
    J: Tensor  # (C, P, P)
    moments: Tensor  # (C, P, P) pair frequencies of the model
    singles: Tensor  # (C, P) target frequencies
    measured: Tensor  # (P, P)
    states: Tensor  # (C, chains, q) bins, to start drawing from
    shares: Tensor  # (C,) class frequencies


@final
class MaxEnt(Generator):
    """A fitted model, ready to draw."""

    kind: ClassVar[str] = "maxent"
    reads: ClassVar[type[Query]] = Tables
    takes: ClassVar[type[Any]] = Settings

    def __init__(self, release: Release, fitted: Fitted, fine: dict[str, Tensor], evened: bool = True) -> None:
        self._release, self.fitted, self._fine = release, fitted, fine
        self._evened = evened  # rows drawn together have less sampling noise than independent ones
        self._layout = _layout(release)
        self._zeros = zeros_of(release, self._layout, len(fitted.shares))

    @property
    def conditions(self) -> frozenset[str]:
        return frozenset(self._release.codec.schema.learned)

    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        binning, label = binning_of(self._release), _label(self._release)
        fixed = {}
        if given:
            bins = binning.encode(given.row)
            fixed = {name: int(bins[name]) for name in given.names}
        shares = self.fitted.shares
        if label in fixed:
            shares = torch.nn.functional.one_hot(torch.tensor(fixed[label]), len(shares)).double()
        parts, places, labels = [], [], []
        counts = apportion(shares, n, rng) if self._evened else by_chance(shares, n, rng)
        for c, count in enumerate(counts.tolist()):
            if count:
                parts.append(self._draw_class(c, count, fixed, rng))
                places.append(self._places(c, parts[-1], rng))
                labels.append(torch.full((count,), c))
        order = torch.randperm(n, generator=rng)
        rows, place, classes = torch.cat(parts)[order], torch.cat(places)[order], torch.cat(labels)[order]
        codes = {name: rows[:, j] for j, name in enumerate(self._layout.names)}
        if label is not None:
            codes[label] = classes
        numbers = {self._layout.names[j]: place[:, i] for i, (j, _) in enumerate(self._numbers)}
        batch = binning.decode(codes, self._fine, classes, numbers, rng, self._preferred)
        return overwrite(batch, given, self._release.codec) if given else batch

    def _draw_class(self, c: int, n: int, fixed: dict[str, int], rng: torch.Generator) -> Tensor:
        """(n, q) bins of one class."""
        f, layout, bar = self.fitted, self._layout, self._zeros.bars([c])
        h, J = self._zeros.on(f.h[c : c + 1], f.J[c : c + 1], c)
        start = torch.randperm(f.states.shape[1], generator=rng).repeat(-(-n // f.states.shape[1]))[:n]
        held = {layout.names.index(name): b for name, b in fixed.items() if name in layout.names}
        parts = []
        for rows in f.states[c, start].split(DRAWN):
            chains = Chains(layout, rows[None])
            for j, b in held.items():
                chains.put(j, torch.full((1, len(rows)), b))
            for _ in range(BURN_GIVEN if held else BURN):
                chains.sweep(h, J, rng, held=frozenset(held), bar=bar)
            parts.append(chains.bins[0])
        bins = torch.cat(parts)
        if held or not self._evened or not bool(f.measured.any()):
            return bins
        goal = Goal(f.singles[c], f.moments[c], f.measured)
        return even_out(layout, bins, h[0], J[0], goal, PASSES, rng, bar)

    @cached_property
    def _numbers(self) -> list[tuple[int, int]]:
        """Numeric columns, and how many of their bins hold numbers: null comes after these."""
        fine, bin_of = binning_of(self._release).grid.numeric, binning_of(self._release).bin_of
        found = [(j, name) for j, name in enumerate(self._layout.names) if name in fine]
        return [(j, int(bin_of[name][: fine[name].size].max()) + 1) for j, name in found]

    def _places(self, c: int, bins: Tensor, rng: torch.Generator) -> Tensor:
        """(n, numeric columns) how far into its bin each number lies, from 0 to 1."""
        numbers = [j for j, _ in self._numbers]
        if not numbers or not bool(self.fitted.measured.any()):
            return torch.rand(len(bins), len(numbers), generator=rng, dtype=torch.float64)
        if c not in self._copulas:
            first = self._layout.offsets
            spans = [slice(first[j], first[j] + k) for j, k in self._numbers]
            self._copulas[c] = Copula.of(self.fitted.singles[c], self.fitted.moments[c], spans)
        return tilted(self._copulas[c].places(bins[:, numbers], rng), self._tilts(c, bins))

    @cached_property
    def _preferred(self) -> dict[str, ValueDraw]:
        return preferred(self._release)

    @cached_property
    def _copulas(self) -> dict[int, Copula]:
        return {}

    def _tilts(self, c: int, bins: Tensor) -> Tensor:
        """(n, numeric columns) by how much a number's log-density grows across its bin, given the row's categories.

        Bins see a density that jumps at their edges. What the others say of the bins on either side gives its slope.
        """
        f, layout = self.fitted, self._layout
        found = torch.zeros(len(bins), len(self._numbers))
        categories = torch.ones(layout.positions)
        for j, k in self._numbers:
            categories[layout.offsets[j] : layout.offsets[j] + k] = 0
        for start in range(0, len(bins), DRAWN):
            rows = bins[start : start + DRAWN]
            pull = (f.J[c] * categories) @ Chains(layout, rows[None]).onehot[0]  # (P, rows)
            for i, (j, k) in enumerate(self._numbers):
                if k < 2:
                    continue
                first, b = layout.offsets[j], rows[:, j].clamp_max(k - 1)
                mass = f.singles[c, first : first + k].clamp_min(1e-9)
                centre = mass.cumsum(0) - mass / 2
                below, above = (b - 1).clamp_min(0), (b + 1).clamp_max(k - 1)
                own = pull[first : first + k]
                rise = (own.gather(0, above[None]) - own.gather(0, below[None]))[0]
                slope = rise / (centre[above] - centre[below])
                found[start : start + DRAWN, i] = torch.where(rows[:, j] < k, slope * mass[b], 0.0)
        return found

    def state(self) -> State:
        f = self.fitted
        tensors = {name: getattr(f, name) for name in PARAMETERS} | {"states": f.states.to(torch.int16)}
        return State({"evened": self._evened}, tensors | {f"fine.{name}": share for name, share in self._fine.items()})

    @classmethod
    def from_state(cls, release: Release, state: State) -> MaxEnt:
        t, layout = state.tensors, _layout(release)
        C, P, q = len(t["shares"]), layout.positions, len(layout.names)
        shapes = {"h": (C, P), "J": (C, P, P), "moments": (C, P, P), "singles": (C, P), "measured": (P, P)}
        if any(t[name].shape != shape for name, shape in shapes.items()) or t["states"].shape[::2] != (C, q):
            raise ArtefactError("the model's weights do not fit its release: it is damaged")
        states = t["states"].long()
        if bool((states < 0).any()) or bool((states >= torch.tensor(layout.sizes)).any()):
            raise ArtefactError("the model's states do not fit its release: it is damaged")
        fine = {name: t[f"fine.{name}"] for name in binning_of(release).bin_of}
        if any(share.shape != (C, len(binning_of(release).bin_of[name])) for name, share in fine.items()):
            raise ArtefactError("the model's shares do not fit its release: it is damaged")
        fitted = Fitted(states=states, **{name: t[name] for name in PARAMETERS})
        return cls(release, fitted, fine, bool(state.settings.get("evened", True)))

    @classmethod
    def fit(
        cls, release: Release, settings: Settings, seed: int, *, device: str = "cpu", bars: Bars = SILENT
    ) -> tuple[MaxEnt, History]:
        """Persistent contrastive divergence on the consistent targets. Runs on the CPU."""
        rng = torch.Generator().manual_seed(seed)
        noisy = noisy_tables(release)
        t = consistent(noisy)
        C = len(t.classes)
        zeros = zeros_of(release, t.layout, C)
        t = zeros.targets(t)
        h = (t.singles / t.classes[:, None]).clamp_min(1e-7).log()
        walkers = Chains.independent(t.layout, h, _chains(C, t.layout.positions), rng)
        weight = min(1.0, FEW_BINS / release.plan.query(Tables).bins)
        fitted, history = _descend(t, zeros, weight, h, walkers, settings.steps, rng, bars)
        return MaxEnt(release, fitted, fine_shares(release, binning_of(release), noisy, t)), history


def _descend(
    t: Targets,
    zeros: Zeros,
    weight: float,
    h: Tensor,
    walkers: Chains,
    steps: int,
    rng: torch.Generator,
    bars: Bars,
) -> tuple[Fitted, History]:
    C, P = t.singles.shape
    history = History(floor=1.0)  # the loss is in units of the noise variance
    mean_h, mean_J, moments = h, torch.zeros(C, P, P), torch.zeros(C, P, P)
    if bool(t.measured.any()):
        ridge = ridges(t, zeros, weight)
        averaged = 0
        with bars.task("training", total=steps + TRIAL * len(RATES), counted="steps") as advance:
            rate = _rate(t, zeros, ridge, h, walkers, rng, advance)
            rates = [rate * SLOWING ** (-step / steps) for step in range(1, steps + 1)]
            for step, at in enumerate(ascent(t, zeros, ridge, h, walkers, rates, rng), 1):
                if step > steps * (1 - AVERAGED):
                    averaged += 1
                    mean_h = mean_h + (at.h - mean_h) / averaged
                    mean_J = mean_J + (at.J - mean_J) / averaged
                    moments = moments + (at.seen / t.classes[:, None, None] - moments) / averaged
                if step % CHECK_EVERY == 0 or step == steps:
                    history.note(step, at.loss(t))
                advance(1)
        walkers.sweep(*zeros.on(mean_h, mean_J), rng, bar=zeros.bars())
        walkers = walkers.raked(t.singles / t.classes[:, None], rng)
    fitted = Fitted(
        h=mean_h,
        J=mean_J,
        moments=moments,
        singles=t.singles / t.classes[:, None],
        measured=t.measured,
        states=walkers.bins,
        shares=(t.classes / t.classes.sum()).double(),
    )
    return fitted, history


@final
@dataclass(frozen=True)
class At:
    """Where the ascent stands after a step, and the counts that led there."""

    h: Tensor  # (C, P)
    J: Tensor  # (C, P, P)
    seen: Tensor  # (C, P, P) counts of the chains, scaled to those of the classes

    def loss(self, t: Targets) -> float:
        gap = t.pairs - self.seen.sum(0)
        return float((gap.square() / t.pair_variance * t.measured).sum() / t.measured.sum())


def ascent(
    t: Targets,
    zeros: Zeros,
    ridge: Ridges,
    h: Tensor,
    walkers: Chains,
    rates: list[float],
    rng: torch.Generator,
    start: tuple[Tensor, Tensor] | None = None,
) -> Iterator[At]:
    """Steps of penalised likelihood from independent columns, or from interactions (shared, by class).

    The chains follow the parameters.
    """
    C, P = t.singles.shape
    shared, own = start if start is not None else (torch.zeros(P, P), torch.zeros(C, P, P))
    J = shared + own
    for rate in rates:
        walkers.sweep(*zeros.on(h, J), rng, bar=zeros.bars())
        seen = walkers.counts() * (t.classes[:, None, None] / walkers.bins.shape[1])
        singles, pairs = seen.diagonal(dim1=1, dim2=2), seen.sum(0)
        h = h + rate * (t.singles - singles) / torch.maximum(t.singles.clamp_min(20.0), singles)
        shared = shared + rate * t.measured * _step(t.pairs - pairs, shared, ridge.shared, ridge.scale, pairs)
        J = shared.expand(C, P, P)
        if t.label_pairs is not None and ridge.own is not None and ridge.own_scale is not None:
            own = own + rate * t.measured * _step(t.label_pairs - seen, own, ridge.own, ridge.own_scale, seen)
            J = shared + own
        yield At(h, J, seen)


def _rate(
    t: Targets,
    zeros: Zeros,
    ridge: Ridges,
    h: Tensor,
    walkers: Chains,
    rng: torch.Generator,
    advance: Callable[[int], object],
) -> float:
    """The largest of RATES after which a few steps are (nearly) as far as after any.

    A step takes each cell by itself. Where many columns say the same, as in a census, their steps add up and overshoot:
    no rate suits all tables.
    """
    few = max(TRIAL_CHAINS // len(t.classes), 256)
    losses = []
    for rate in RATES:
        chains = Chains(t.layout, walkers.bins[:, :few])
        *_, last = ascent(t, zeros, ridge, h, chains, [rate] * TRIAL, rng)
        losses.append(last.loss(t))
        advance(TRIAL)
    return next(rate for rate, loss in zip(RATES, losses, strict=True) if loss <= WORSE * min(losses))


def _chains(classes: int, positions: int) -> int:
    """Chains per class: enough to see a class's tables through their own sampling noise, within a bounded cost."""
    return max(CHAINS // classes, min(CHAINS // 2, MOST_WORK // positions**2), 256)


def _step(gap: Tensor, parameter: Tensor, ridge: Tensor, scale: Tensor, seen: Tensor) -> Tensor:
    """A ridge-penalised Newton step, cell by cell, with the count as curvature."""
    return (gap - ridge * parameter) / (torch.maximum(scale, seen) + ridge)


def _layout(release: Release) -> Layout:
    if not release.plan.has(Tables):
        raise TrainError("this generator needs a release of tables (the default preset)")
    names = release.plan.query(Tables).columns(release.codec)
    return Layout(names, tuple(binning_of(release).variables[n].size for n in names))


def zeros_of(release: Release, layout: Layout, classes: int) -> Zeros:
    return Zeros.of(release, binning_of(release), layout, _label(release), classes)


def _label(release: Release) -> str | None:
    return release.plan.query(Tables).label(release.codec)


def binning_of(release: Release) -> Binning:
    if release.binning is None:
        raise TrainError("the release has no bins: it was not made for this generator")
    return release.binning
