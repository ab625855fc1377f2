"""MaxEnt: the distribution of largest entropy that agrees with the released tables, as far as their noise allows.

A pairwise log-linear (Potts) model per class: log p(x | y) = Σ h[y, xᵢ] + Σ J[y, xᵢ, xⱼ]. Its moments are the tables,
so its gradient is (released − generated) counts: the mean-embedding loss in its natural geometry. It starts from a tree
of the strongest pairs and is fitted by Gibbs sampling on persistent chains, with a ridge on every cell set by the known
noise (empirical Bayes), and drawn from by the same Gibbs sweeps, which also answer any condition by holding columns
still.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from dpmerf.encoding.binning import Binning, tilted
from dpmerf.encoding.codec import Batch
from dpmerf.encoding.fine_cells import ValueDraw
from dpmerf.errors import ArtefactError, TrainError
from dpmerf.generators.base import Generator, Given, History, State, apportion, by_chance, check_shares, overwrite
from dpmerf.generators.maxent.ascent import Ascent, climb
from dpmerf.generators.maxent.blocks import Block, blocks_of, holding, moves
from dpmerf.generators.maxent.consistent import consistent
from dpmerf.generators.maxent.copula import NOTHING_KNOWN, Copula
from dpmerf.generators.maxent.empty import empty_cells, without
from dpmerf.generators.maxent.following import followed
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.generators.maxent.inside import fine_shares
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.preferred import preferred
from dpmerf.generators.maxent.ridges import ridges
from dpmerf.generators.maxent.tree import alike, from_tree
from dpmerf.generators.maxent.triples import TRIPLES, TripleWeights
from dpmerf.generators.maxent.zeros import Zeros
from dpmerf.plan.noisy_tables import Layout, noisy_tables
from dpmerf.plan.queries import Query, Tables
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release
from dpmerf.schema.extended_schema import before

PARAMETERS = ("h", "J", "moments", "singles", "measured", "empty", "common", "shares")
DEFAULT = Settings()


@final
@dataclass(frozen=True)
class Fitted:
    """What fitting leaves: the parameters, where the chains stand and what they amount to."""

    h: Tensor  # (C, P)
    J: Tensor  # (C, P, P)
    moments: Tensor  # (C, P, P) pair frequencies of the model
    singles: Tensor  # (C, P) target frequencies
    measured: Tensor  # (P, P)
    empty: Tensor  # (P, P) bool: cells that the release shows to be empty
    common: Tensor  # (q, q) the share of the smaller entropy that two columns have in common
    states: Tensor  # (C, chains, q) bins, to start drawing from
    shares: Tensor  # (C,) class frequencies


@final
class MaxEnt(Generator):
    """A fitted model, ready to draw."""

    kind: ClassVar[str] = "maxent"
    reads: ClassVar[type[Query]] = Tables
    takes: ClassVar[type[Any]] = Settings

    def __init__(
        self,
        release: Release,
        fitted: Fitted,
        fine: dict[str, Tensor],
        evened: bool = True,
        settings: Settings = DEFAULT,
    ) -> None:
        self._release, self.fitted, self._fine = release, fitted, fine
        self._evened = evened  # rows drawn together have less sampling noise than independent ones
        self._layout = _layout(release)
        self._zeros = zeros_of(release, self._layout, len(fitted.shares)).also(fitted.empty)
        self.settings = settings

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
                parts.append(self._draw_triples(c, count, fixed, rng))
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

    def _draw_triples(self, c: int, n: int, fixed: dict[str, int], rng: torch.Generator) -> Tensor:
        """(n, q) bins of one class, by pairs and, where the release shows more, by triples."""
        if self._triples is None:
            return self._draw_class(c, n, fixed, rng)
        return self._triples.kept(c, self._draw_class(c, TRIPLES.excess * n, fixed, rng), n, rng)

    @cached_property
    def _triples(self) -> TripleWeights | None:
        return TripleWeights.of(self._release, self._layout, self.fitted.states, self.fitted.shares)

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        return blocks_for(self._layout, self.fitted.common, self._zeros, self.settings)

    def _draw_class(self, c: int, n: int, fixed: dict[str, int], rng: torch.Generator) -> Tensor:
        """(n, q) bins of one class."""
        f, layout, settings, bar = self.fitted, self._layout, self.settings, self._zeros.bars([c])
        held = {layout.names.index(name): b for name, b in fixed.items() if name in layout.names}
        h, J = self._zeros.on(f.h[c : c + 1], f.J[c : c + 1], c)
        prepared = moves(holding(layout, self._blocks, held), h, J)[0]
        kept = f.states.shape[1]
        start = torch.randint(kept, (n,), generator=rng)
        if self._evened:
            start = torch.randperm(kept, generator=rng).repeat(-(-n // kept))[:n]
        burn = settings.burn_given if held else settings.burn
        have, parts = torch.zeros(layout.positions), []
        for rows in f.states[c, start].long().split(max(settings.drawn // 8, min(settings.drawn, n // 8))):
            for j, b in held.items():
                rows[:, j] = b
            chains = Chains(layout, rows[None])
            tilt = torch.zeros(layout.positions) if held or not self._evened else self._lack(c, have, len(rows))
            tilted_moves = [[move.tilted(tilt) for move in prepared]]
            for _ in range(burn):
                chains.sweep(tilted_moves, rng, bar, self._evened)
            have += chains.onehot[0].sum(1)
            parts.append(chains.bins[0])
        return torch.cat(parts)

    def _lack(self, c: int, have: Tensor, rows: int) -> Tensor:
        """(P,) by how much to change h, so that the rows drawn next make up for what those so far have too few of."""
        layout, s = self._layout, self.settings
        wanted = self.fitted.singles[c].clamp_min(1e-7)
        done = have[layout.span(0)].sum()
        lack = (wanted * (done + rows) - have).clamp_min(0) + s.soft
        found = (lack / (wanted * rows + s.soft)).log() * s.gain / alike(layout, self.fitted.common)
        return found.clamp(-s.most_tilt, s.most_tilt)

    @cached_property
    def _numbers(self) -> list[tuple[int, int]]:
        """Numeric columns, and how many of their bins hold numbers."""
        return list(numbers_of(self._release, self._layout).items())

    def _places(
        self, c: int, bins: Tensor, rng: torch.Generator, known: Mapping[int, Tensor] = NOTHING_KNOWN
    ) -> Tensor:
        """(n, numeric columns) how far into its bin each number lies, from 0 to 1; `known` (n,) of some of them."""
        numbers = [j for j, _ in self._numbers]
        if not numbers or not bool(self.fitted.measured.any()):
            return torch.rand(len(bins), len(numbers), generator=rng, dtype=torch.float64)
        if c not in self._copulas:
            first = self._layout.offsets
            spans = [slice(first[j], first[j] + k) for j, k in self._numbers]
            place = {j: i for i, (j, _) in enumerate(self._numbers)}
            pairs = [(place[i], place[j]) for i, j in following(self._release, self._layout)]
            self._copulas[c] = Copula.of(self.fitted.singles[c], self.fitted.moments[c], spans, self.settings, pairs)
        return tilted(self._copulas[c].places(bins[:, numbers], rng, known), self._tilts(c, bins))

    @cached_property
    def _preferred(self) -> dict[str, ValueDraw]:
        return preferred(self._release, self.settings)

    @cached_property
    def _copulas(self) -> dict[int, Copula]:
        return {}

    def _tilts(self, c: int, bins: Tensor) -> Tensor:
        """(n, numeric columns) by how much a number's log-density grows across its bin, given the row's categories.

        Bins see a density that jumps at their edges. What the others say of the bins on either side gives its slope.
        """
        f, layout, chunk = self.fitted, self._layout, self.settings.drawn
        asked = torch.cat([torch.arange(layout.offsets[j], layout.offsets[j] + k) for j, k in self._numbers])
        J = f.J[c, asked].index_fill(1, asked, 0.0)
        pull = torch.cat([J @ Chains(layout, rows[None]).onehot[0] for rows in bins.split(chunk)], dim=1)  # (asked, n)
        found, at = [], 0
        for j, k in self._numbers:
            own, at = pull[at : at + k], at + k
            first, b = layout.offsets[j], bins[:, j].clamp_max(k - 1)
            mass = f.singles[c, first : first + k].clamp_min(1e-9)
            centre = mass.cumsum(0) - mass / 2
            below, above = (torch.arange(k) - 1).clamp_min(0), (torch.arange(k) + 1).clamp_max(k - 1)
            scale = mass / (centre[above] - centre[below]).clamp_min(1e-12)
            rise = own[above].gather(0, b[None])[0] - own[below].gather(0, b[None])[0]
            found.append(torch.where(bins[:, j] < k, rise * scale[b], 0.0))
        return torch.stack(found, dim=1)

    def state(self) -> State:
        f = self.fitted
        tensors = {name: getattr(f, name) for name in PARAMETERS} | {"states": f.states}
        settings = {"evened": self._evened, "settings": asdict(self.settings)}
        return State(settings, tensors | {f"fine.{name}": share for name, share in self._fine.items()})

    @classmethod
    def from_state(cls, release: Release, state: State) -> MaxEnt:
        t, layout = state.tensors, _layout(release)
        C, P, q = len(t["shares"]), layout.positions, len(layout.names)
        shapes = {"h": (C, P), "J": (C, P, P), "moments": (C, P, P), "singles": (C, P), "measured": (P, P)}
        shapes |= {"empty": (P, P), "common": (q, q)}
        if any(t[name].shape != shape for name, shape in shapes.items()) or t["states"].shape[::2] != (C, q):
            raise ArtefactError("the model's weights do not fit its release: it is damaged")
        check_shares(t["shares"])
        states = t["states"]
        if bool((states < 0).any()) or bool((states >= torch.tensor(layout.sizes)).any()):
            raise ArtefactError("the model's states do not fit its release: it is damaged")
        fine = {name: t[f"fine.{name}"] for name in binning_of(release).bin_of}
        if any(share.shape != (C, len(binning_of(release).bin_of[name])) for name, share in fine.items()):
            raise ArtefactError("the model's shares do not fit its release: it is damaged")
        fitted = Fitted(states=states, **{name: t[name] for name in PARAMETERS})
        return cls(release, fitted, fine, bool(state.settings["evened"]), Settings.read(state.settings["settings"]))

    @classmethod
    def fit(
        cls, release: Release, settings: Settings, seed: int, *, device: str = "cpu", bars: Bars = SILENT
    ) -> tuple[MaxEnt, History]:
        """Persistent contrastive divergence on the consistent targets. Runs on the CPU."""
        rng = torch.Generator().manual_seed(seed)
        noisy = noisy_tables(release)
        t = consistent(noisy, settings)
        C = len(t.classes)
        zeros = zeros_of(release, t.layout, C)
        t = zeros.targets(t)
        empty = empty_cells(t, zeros.barred, settings)
        if bool(empty.any()):
            t, zeros = without(t, empty, settings), zeros.also(empty)
        t = followed(t, following(release, t.layout), numbers_of(release, t.layout), settings)
        weight = min(1.0, settings.few_bins / release.plan.query(Tables).bins)
        ridge = ridges(t, zeros, weight, settings, numbers_of(release, t.layout) if settings.smooth else None)
        begin = from_tree(t, zeros, ridge, _chains(C, t.layout.positions, settings), settings, rng)
        ascent = Ascent(t, zeros, ridge, begin, blocks_for(t.layout, begin.common, zeros, settings), settings)
        steps = settings.steps if bool(t.measured.any()) else 1
        with bars.task("training", total=steps, counted="steps") as advance:
            top = climb(ascent, settings, steps, rng, advance)
        fitted = Fitted(
            h=top.h,
            J=top.J,
            moments=top.moments,
            singles=t.singles / t.classes[:, None],
            measured=t.measured,
            empty=empty,
            common=begin.common,
            states=top.states.to(torch.uint8 if max(t.layout.sizes) <= 256 else torch.int16),
            shares=(t.classes / t.classes.sum()).double(),
        )
        fine = fine_shares(release, binning_of(release), noisy, t, settings)
        return MaxEnt(release, fitted, fine, settings=settings), top.history


def following(release: Release, layout: Layout) -> list[tuple[int, int]]:
    """Of the pairs that were measured, those of a number and the same number in the row before."""
    numbers = binning_of(release).grid.numeric
    pairs = [(a, b) for a, b in release.plan.query(Tables).pairs if b == before(a) and {a, b} <= set(numbers)]
    return [(layout.names.index(a), layout.names.index(b)) for a, b in pairs]


def blocks_for(layout: Layout, common: Tensor, zeros: Zeros, settings: Settings) -> tuple[Block, ...]:
    """Columns that are redrawn together."""
    return blocks_of(layout, common, zeros.barred, zeros.in_corners, settings.together, settings.most_states)


def _chains(classes: int, positions: int, settings: Settings) -> int:
    """Chains per class: enough to see a class's tables through their own sampling noise, within a bounded cost."""
    more = min(settings.chains // 2, settings.most_work // positions**2)
    return max(settings.chains // classes, more, 256)


def _layout(release: Release) -> Layout:
    if not release.plan.has(Tables):
        raise TrainError("this generator needs a release of tables (the default preset)")
    names = release.plan.query(Tables).columns(release.codec)
    return Layout(names, tuple(binning_of(release).variables[n].size for n in names))


def numbers_of(release: Release, layout: Layout) -> dict[int, int]:
    """Numeric column -> how many of its bins hold numbers: null comes after these."""
    binning = binning_of(release)
    fine = binning.grid.numeric
    found = [(j, name) for j, name in enumerate(layout.names) if name in fine]
    return {j: int(binning.bin_of[name][: fine[name].size].max()) + 1 for j, name in found}


def zeros_of(release: Release, layout: Layout, classes: int) -> Zeros:
    """Cells that the schema's rules forbid."""
    return Zeros.of(release, binning_of(release), layout, _label(release), classes)


def _label(release: Release) -> str | None:
    return release.plan.query(Tables).label(release.codec)


def binning_of(release: Release) -> Binning:
    """The release's bins, or TrainError if it has none."""
    if release.binning is None:
        raise TrainError("the release has no bins: it was not made for this generator")
    return release.binning
