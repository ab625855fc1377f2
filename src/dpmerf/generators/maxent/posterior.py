"""Posterior: other models that the same release could have come from, for copies whose spread tells what is not known.

A draw perturbs what a fit rests on, then fits again from a warm start. One-way counts: fresh noise of the known size is
added to every table before they are weighed. Pairs: a draw of each table's departure from independence (see
`departures`). All of them: the sampling error of n rows of the fitted model, so that the spread is about the
population. Differences between the classes' pairs: their ridges pull towards a draw from the prior that they stand for
(perturb, then optimise). Post-processing: no row is needed, and the simulated noise protects nobody and may be seeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from dpmerf.accounting.events import Gaussian
from dpmerf.generators.maxent.ascent import Ascent
from dpmerf.generators.maxent.blocks import Block
from dpmerf.generators.maxent.consistent import Error, Targets, consistent
from dpmerf.generators.maxent.departures import Departures, departures, independent
from dpmerf.generators.maxent.empty import without
from dpmerf.generators.maxent.first_scores import Newton, first_scores
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.generators.maxent.inside import fine_shares
from dpmerf.generators.maxent.maxent import Fitted, MaxEnt, binning_of, blocks_for, zeros_of
from dpmerf.generators.maxent.maxent_settings import Settings as FitSettings
from dpmerf.generators.maxent.ridges import Ridges, ridges
from dpmerf.generators.maxent.tree import Start
from dpmerf.generators.maxent.zeros import Zeros
from dpmerf.plan.noisy_tables import Layout, noisy_tables
from dpmerf.plan.queries import Tables
from dpmerf.release import Release


@final
@dataclass(frozen=True)
class Settings:
    """How draws are fitted."""

    chains: int = 4_096  # of all classes together: they start as rows of the fitted model
    first_steps: int = 60  # that lead from the fitted model to the posterior mean
    steps: int = 24  # that lead from there to a draw
    rate: float = 0.3
    slowing: float = 4.0  # by which the rate falls until the last step
    averaged: float = 0.4  # the last part of the steps, whose parameters are averaged
    lead: float = 1.0  # how much of a change of the targets the parameters follow at once, cell by cell
    newton_every: int = 3  # steps of cells before one of first scores,
    newton: float = 0.5  # which takes so much of what is lacking
    singular: float = 0.02  # of its curvature, added to it: products that say the same share the step
    widest: float = 2.56  # prior variance of a log-interaction: what keeps cells without rows finite


@final
@dataclass(frozen=True)
class _Posterior:
    """What all draws share."""

    release: Release
    fitted: Fitted
    targets: Targets
    zeros: Zeros
    blocks: tuple[Block, ...]
    beyond: Departures
    ridge: Ridges
    weight: float
    fit: FitSettings  # those of the fitted model
    settings: Settings
    newton: Newton | None

    def refit(
        self, t: Targets, h: Tensor, start: tuple[Tensor, Tensor], walkers: Chains, steps: int, rng: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """h, J that meet the targets, and their counts, averaged over the last steps. The chains follow."""
        s, shared, own = self.settings, *start
        begin = Start(h, shared, walkers, self.fitted.common)
        climb = Ascent(t, self.zeros, self.ridge, begin, self.blocks, self.fit, own)
        found = []
        for step in range(1, steps + 1):
            slow = s.slowing ** (-step / steps)
            climb.step(s.rate * slow, rng)
            if self.newton is not None and step % s.newton_every == 0:
                more_h, more_J = self.newton.step(t.pairs - climb.seen.sum(0))
                climb.h, climb.shared = climb.h + s.newton * slow * more_h, climb.shared + s.newton * slow * more_J
            if step > steps * (1 - s.averaged):
                found.append((climb.h, climb.J, climb.seen))
        h, J, seen = (torch.stack(parts).mean(0) for parts in zip(*found, strict=True))
        return h, J, seen

    def drawn(self, sampled: Tensor, t: Targets, rng: torch.Generator) -> Targets:
        """Pairs, too, are drawn; those of the classes add up to them."""
        base = self.targets
        pairs = independent(t) + self.beyond.draw(rng) + sampled.sum(0) - _of_margins(base, sampled)
        found = without(replace(t, pairs=pairs * base.measured), self.fitted.empty, self.fit)
        return replace(found, label_pairs=self._classes(found, rng))

    def _classes(self, t: Targets, rng: torch.Generator) -> Tensor | None:
        ridge, base = self.ridge, self.targets
        if t.label_pairs is None or ridge.own is None or ridge.own_scale is None or base.label_pair_variance is None:
            return None
        each = t.singles[:, :, None] * t.singles[:, None, :] / t.classes[:, None, None]
        found = t.label_pairs + each / each.sum(0).clamp_min(1e-6) * (t.pairs - t.label_pairs.sum(0))
        prior = self.weight * base.label_pair_variance / (ridge.own * ridge.own_scale)
        return (found + ridge.own * _symmetric(prior, rng)) * base.measured * ~self.fitted.empty


def draws(
    release: Release,
    fitted: Fitted,
    fit: FitSettings,
    count: int,
    rng: torch.Generator,
    settings: Settings | None = None,
) -> Iterator[MaxEnt]:
    """Models drawn given the release, of which one was fitted with these settings."""
    s = settings or Settings()
    noisy, C = noisy_tables(release), len(fitted.shares)
    zeros = zeros_of(release, noisy.layout, C).also(fitted.empty)
    t = without(zeros.targets(consistent(noisy, fit)), fitted.empty, fit)
    weight = min(1.0, fit.few_bins / release.plan.query(Tables).bins)
    beyond, ridge = departures(t, _numbers(release, t.layout)), ridges(t, zeros, weight, fit)
    ridge = replace(ridge, shared=(beyond.variance() / (s.widest * ridge.scale)).clamp_min(1e-3))
    blocks = blocks_for(noisy.layout, fitted.common, zeros, fit)
    few = torch.randperm(fitted.states.shape[1], generator=rng)[: max(s.chains // C, 256)]
    many = torch.randperm(fitted.states.shape[1], generator=rng)[: max(fit.chains // C, 256)]
    every, walkers = (Chains(noisy.layout, fitted.states[:, rows].long()) for rows in (many, few))
    newton = Newton.of(t, first_scores(t.singles.sum(0), t.layout, _numbers(release, t.layout)), every, s.singular)
    post = _Posterior(release, fitted, t, zeros, blocks, beyond, ridge, weight, fit, s, newton)
    centre = without(replace(t, pairs=(independent(t) + beyond.mean()) * t.measured), fitted.empty, fit)
    h, J = fitted.h, fitted.J
    if bool(t.measured.any()):
        h, J, _ = post.refit(centre, h, _split(J, ridge), walkers, s.first_steps, rng)
    for _ in range(count):
        noise = noise_alone(release, rng)
        sampled = sampling_error(every, t.classes, rng)
        wrong = Error(noisy_tables(noise), sampled)
        drawn = post.drawn(sampled, zeros.targets(consistent(noisy, fit, wrong)), rng)
        yield _model(post, drawn, centre, h, J, Chains(noisy.layout, walkers.bins), noise, rng)


def _model(
    post: _Posterior,
    t: Targets,
    centre: Targets,
    h: Tensor,
    J: Tensor,
    walkers: Chains,
    noise: Release,
    rng: torch.Generator,
) -> MaxEnt:
    """The model that meets drawn targets, from the parameters that meet the central ones."""
    s, release = post.settings, post.release
    singles = t.singles / t.classes[:, None]
    h = h + (singles.clamp_min(1e-7) / (centre.singles / centre.classes[:, None]).clamp_min(1e-7)).log()
    moments = post.fitted.moments
    if bool(t.measured.any()):
        shared, own = _split(J, post.ridge)
        ahead = (t.pairs - independent(t)) - (centre.pairs - independent(centre))
        shared = shared + s.lead * t.measured * ahead / (post.ridge.scale + post.ridge.shared)
        h, J, seen = post.refit(t, h, (shared, own), walkers, s.steps, rng)
        moments = seen / t.classes[:, None, None]
    shares = (t.classes / t.classes.sum()).double()
    found = replace(post.fitted, h=h, J=J, moments=moments, singles=singles, states=walkers.bins, shares=shares)
    perturbed = replace(release, sums=_added(release, noise))
    fine = fine_shares(perturbed, binning_of(release), noisy_tables(perturbed), t, post.fit)
    return MaxEnt(release, found, fine, evened=False, settings=post.fit)


def noise_alone(release: Release, rng: torch.Generator) -> Release:
    """The same release of no rows at all: sums of fresh noise of the size that was used. What was selected stays."""
    sums = dict(release.sums)
    for stage in release.plan.stages:
        if stage.query.event is Gaussian and stage.name in sums:
            z = torch.randn(sums[stage.name].shape, generator=rng, dtype=torch.float64)
            sums[stage.name] = (z * release.plan.price_of(stage).sigma).round().long()
    return replace(release, sums=sums)


def _added(release: Release, noise: Release) -> dict[str, Tensor]:
    counted = {s.name for s in release.plan.stages if s.query.event is Gaussian}
    return {name: sums + noise.sums[name] if name in counted else sums for name, sums in release.sums.items()}


def sampling_error(chains: Chains, classes: Tensor, rng: torch.Generator) -> Tensor:
    """(C, P, P) by how much the pair counts of Σ classes rows of the model depart from those expected.

    Normal weights on the model's own chains, N of them for n_c rows of class c: Σ z √(n_c / N) φ(x) has the covariance
    n_c E[φφᵀ] of that many rows; taking out the error of the total leaves that of a sample of fixed size.
    """
    N = chains.bins.shape[1]
    z = torch.randn(len(classes), N, generator=rng) * (classes / N).sqrt()[:, None]
    error = torch.bmm(chains.onehot * z[:, None], chains.onehot.transpose(1, 2))
    expected = chains.counts() * (classes / N)[:, None, None]
    return error - expected * (float(z.sum()) / float(classes.sum()))


def _of_margins(t: Targets, sampled: Tensor) -> Tensor:
    """(P, P) the part of a sampling error that independence within classes accounts for, to first order."""
    wrong = sampled.diagonal(dim1=1, dim2=2)  # (C, P)
    rows = wrong[:, t.layout.span(0)].sum(1)
    one = torch.einsum("cp,cq->pq", wrong / t.classes[:, None], t.singles)
    return one + one.T - torch.einsum("cp,cq->pq", t.singles * (rows / t.classes.square())[:, None], t.singles)


def _numbers(release: Release, layout: Layout) -> dict[int, int]:
    """Numeric column -> how many of its bins hold numbers."""
    binning = binning_of(release)
    fine = binning.grid.numeric
    found = [(j, name) for j, name in enumerate(layout.names) if name in fine]
    return {j: int(binning.bin_of[name][: fine[name].size].max()) + 1 for j, name in found}


def _split(J: Tensor, ridge: Ridges) -> tuple[Tensor, Tensor]:
    """(P, P) what all classes share, and (C, P, P) the rest, of fitted interactions.

    Where a fit stands still, every gap is its ridge times its parameter, and the gaps of the classes add up to that of
    all: Σ r_c (J_c − shared) = r · shared.
    """
    if ridge.own is None:
        return J.mean(0), torch.zeros_like(J)
    shared = (ridge.own * J).sum(0) / (ridge.shared + ridge.own.sum(0))
    return shared, J - shared


def _symmetric(variance: Tensor, rng: torch.Generator) -> Tensor:
    """Normal numbers of these variances (…, P, P), equal at (i, j) and (j, i)."""
    z = torch.randn(variance.shape, generator=rng).triu(1)
    return (z + z.transpose(-1, -2)) * variance.clamp_min(0).nan_to_num(0.0).sqrt()
