"""Ascent: the penalised likelihood of a pairwise model is climbed by Gibbs sampling on persistent chains.

The gradient is what the tables ask for less what the chains hold. Whether it is nothing but the chains' own chance is
seen from the release and the chains alone, so training stops where it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.base import History
from dpmerf.generators.maxent.blocks import Block, moves
from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.ridges import Ridges
from dpmerf.generators.maxent.tree import Start
from dpmerf.generators.maxent.zeros import Zeros
from dpmerf.progress import Advance


@final
@dataclass(frozen=True)
class Top:
    """Where the ascent ended: means over its last steps."""

    h: Tensor  # (C, P)
    J: Tensor  # (C, P, P)
    moments: Tensor  # (C, P, P) pair frequencies
    states: Tensor  # (C, rows, q) where the chains stood in some of these steps
    history: History


@final
class Ascent:
    """Parameters, chains and what these hold, step by step."""

    def __init__(
        self,
        t: Targets,
        zeros: Zeros,
        ridge: Ridges,
        begin: Start,
        blocks: tuple[Block, ...],
        settings: Settings,
        own: Tensor | None = None,
    ) -> None:
        """From where `begin` stands; `own` (C, P, P) is what a class's interactions have beyond the shared ones."""
        self._t, self._zeros, self._ridge, self._blocks = t, zeros, ridge, blocks
        self._settings = settings
        self.chains: Chains = begin.chains
        self.h, self.shared = begin.h, begin.shared
        C, P = t.singles.shape
        self.own = None
        if t.label_pairs is not None:
            self.own = torch.zeros(C, P, P) if own is None else own
        self._bar = zeros.bars(list(range(C)))
        self.seen = torch.zeros(0)
        self._alike = begin.alike  # (P,)
        self._pairs_alike = self._alike[:, None] * self._alike

    @property
    def J(self) -> Tensor:
        """(C, P, P)"""
        C, P = self.h.shape
        return self.shared.expand(C, P, P) if self.own is None else self.shared + self.own

    def step(self, rate: float, rng: torch.Generator) -> None:
        """One sweep of the chains, one step of the parameters: cell by cell, with the count as curvature."""
        t, ridge = self._t, self._ridge
        self.chains.sweep(moves(self._blocks, *self._zeros.on(self.h, self.J)), rng, self._bar)
        self.seen = seen = self.chains.counts() * (t.classes[:, None, None] / self.chains.count)
        singles, pairs = seen.diagonal(dim1=1, dim2=2), seen.sum(0)
        lack = t.singles - singles  # (C, P)
        curvature = torch.maximum(t.singles.clamp_min(self._settings.least_count), singles)
        self.h = self.h + rate * lack / (curvature * self._alike)
        margins = _from_margins(lack.sum(0), t.singles.sum(0), t.classes.sum())
        gap = t.pairs - pairs - margins - ridge.pull(self.shared)
        change = ridge.step(t.measured * gap, torch.maximum(ridge.scale, pairs))
        self.shared = self.shared + rate * change / self._pairs_alike
        if self.own is not None and t.label_pairs is not None and ridge.own is not None and ridge.own_scale is not None:
            margins = _from_margins(lack, t.singles, t.classes[:, None, None])
            gap = t.label_pairs - seen - margins - ridge.own * self.own
            size = torch.maximum(ridge.own_scale, seen) + ridge.own
            self.own = self.own + rate * t.measured * gap / (size * self._pairs_alike)

    def frequencies(self, seen: Tensor) -> Tensor:
        """(C, P, P) counts as shares of their class."""
        return seen / self._t.classes[:, None, None]

    def raked(self, rng: torch.Generator) -> Tensor:
        """(C, N, q) the chains, drawn anew so that their columns are as frequent as they should be."""
        return self.chains.raked(self._t.singles / self._t.classes[:, None], self._settings, rng).bins

    def loss(self, seen: Tensor) -> float:
        """Mean squared distance of counts (C, P, P) from the tables, in noise variances."""
        t = self._t
        gap = (t.pairs - seen.sum(0)) * t.measured
        return float((gap.square() / t.pair_variance).sum() / t.measured.sum().clamp_min(1))  # no pair may be measured

    def gradient(self, seen: Tensor, shared: Tensor, chance: float) -> float:
        """The same of the gradient, by mean counts and interactions, less what the chance of so many chains adds."""
        t, pairs = self._t, seen.sum(0)
        gap = (t.pairs - pairs - self._ridge.pull(shared)) * t.measured
        by_chance = (seen * (t.classes[:, None, None] / chance)).sum(0) * t.measured
        return float(((gap.square() - by_chance) / t.pair_variance).sum() / t.measured.sum().clamp_min(1))


def _from_margins(lack: Tensor, singles: Tensor, rows: Tensor) -> Tensor:
    """(…, P, P) what the gaps of single bins put into those of pairs: h sees to it, once instead of in every table."""
    part = lack[..., :, None] * singles[..., None, :] / rows
    return part + part.transpose(-1, -2)


def climb(ascent: Ascent, settings: Settings, steps: int, rng: torch.Generator, advance: Advance) -> Top:
    """Steps until the gradient is small, then those that are averaged, with a falling rate; `steps` at most."""
    history = History(floor=1.0)  # the loss is in units of the noise variance
    averaged = min(settings.averaged, max(1, steps // 2))
    rate, least, done, converged = settings.rate, math.inf, 0, False
    while done < steps - averaged and not converged:
        few = min(settings.check_every, steps - averaged - done)
        seen, shared = torch.zeros(()), torch.zeros(())
        for _ in range(few):
            shared = shared + ascent.shared / few
            ascent.step(rate, rng)
            seen = seen + ascent.seen / few
            advance(1)
        done += few
        loss = ascent.loss(seen)
        history.note(done, loss)
        rate = rate / 2 if loss > settings.worse * least else rate
        least = min(least, loss)
        small = ascent.gradient(seen, shared, few * ascent.chains.count / 2) < settings.tolerance
        converged = small and few == settings.check_every
    h, J, seen, states = ascent.h, ascent.J, torch.zeros(()), []
    for step in range(1, averaged + 1):
        ascent.step(rate * settings.slowing ** (-step / averaged), rng)
        h = h + (ascent.h - h) / step
        J = J + (ascent.J - J) / step
        seen = seen + (ascent.seen - seen) / step
        if (averaged - step) % settings.kept_every == 0:
            states.append(ascent.raked(rng))
        advance(1)
    history.note(done + averaged, ascent.loss(seen))
    stopped = "converged" if converged else f"the limit of {steps} steps"
    return Top(h, J, ascent.frequencies(seen), torch.cat(states, dim=1), replace(history, stopped=stopped))
