"""Elliptic: rows of normal scores as a length times a direction, class by class. For tables too wide for pair tables.

A direction is a normal vector with the class's mean and covariance, brought to length 1. The covariance is that of
groups of neighbouring columns, which depends on their distance but for a few axes that stand out, and noise of each
column's own; `estimate.py` reads them off the release.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from dpmerf.encoding.codec import Batch
from dpmerf.encoding.normal_scores import LENGTHS
from dpmerf.errors import ArtefactError
from dpmerf.features.moments import Moments
from dpmerf.generators.base import Generator, Given, History, State, apportion, check_shares, overwrite
from dpmerf.generators.elliptic.elliptic_settings import EllipticSettings
from dpmerf.generators.elliptic.estimate import (
    Fitted,
    classes_of,
    estimate,
    mean_scores,
    norm_ends,
    query_of,
    scores_of,
)
from dpmerf.plan.queries import Directions, Query
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release

TENSORS = ("shares", "means", "factors", "own", "lengths", "quantiles")
KEPT = ("longest", "moved", "count_rounds")  # settings that drawing asks for


@final
class Elliptic(Generator):
    """A fitted model, ready to draw."""

    kind: ClassVar[str] = "elliptic"
    reads: ClassVar[type[Query]] = Directions
    takes: ClassVar[type[Any]] = EllipticSettings

    def __init__(self, release: Release, fitted: Fitted, settings: EllipticSettings) -> None:
        self._release, self._fitted, self._settings = release, fitted, settings
        self._query = query_of(release)
        scores = scores_of(release)
        self._scores = scores.moved(mean_scores(release, settings)) if settings.moved else scores
        self._moments = self._query.moments(release.codec)

    @property
    def _ends(self) -> Tensor:
        return norm_ends(self._settings.longest)

    @property
    def conditions(self) -> frozenset[str]:
        return frozenset(self._release.codec.schema.learned)

    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        f, label = self._fitted, self._release.codec.schema.label if self._query.by_label else None
        shares = f.shares
        if given and label in given.names:
            shares = torch.nn.functional.one_hot(given.row.codes[label][0], len(shares)).double()
        held = self._held(given) if given else {}
        parts, labels, left = [], [], n
        while left > 0:
            size = min(left, self._settings.drawn)
            if held:
                classes, scores = _draw_given(f, self._moments, shares, held, size, self._ends, rng)
            else:
                counts = apportion(shares, size, rng)
                classes = torch.repeat_interleave(torch.arange(len(counts)), counts)
                classes = classes[torch.randperm(size, generator=rng)]
                scores = _draw(f, self._moments, classes, self._ends, rng)
            parts.append(_ranks(scores, f.quantiles))
            labels.append(classes)
            left -= size
        codes, within = self._places(torch.cat(parts))
        if label is not None:
            codes[label] = torch.cat(labels)
        batch = self._scores.grid.decode(codes, within)
        return overwrite(batch, given, self._release.codec) if given else batch

    def _held(self, given: Given) -> dict[int, float]:
        """Scored column -> the score at which its given value lies, as the model draws scores."""
        cells = self._scores.grid.encode(given.row)
        found = {}
        for j, (name, mass) in enumerate(self._scores.mass.items()):
            if name in given.names:
                cell = int(cells[name])
                rank = float(mass[:cell].sum() + mass[cell] / 2)
                found[j] = float(torch.quantile(self._fitted.quantiles[j], rank))
        return found

    def _places(self, ranks: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """(n, q) ranks from 0 to 1 -> each column's fine cells, and how far into them."""
        codes, within = {}, {}
        for j, (name, mass) in enumerate(self._scores.mass.items()):
            rank, ends = ranks[:, j].double(), mass.cumsum(0)
            codes[name] = torch.searchsorted(ends[:-1], rank.contiguous(), right=True)
            within[name] = (1 - (ends[codes[name]] - rank) / mass[codes[name]]).clamp(0, 1)
        return codes, within

    def state(self) -> State:
        return State(
            {name: getattr(self._settings, name) for name in KEPT},
            {name: getattr(self._fitted, name).contiguous() for name in TENSORS},
        )

    @classmethod
    def from_state(cls, release: Release, state: State) -> Elliptic:
        t, moments = state.tensors, query_of(release).moments(release.codec)
        C, q, k = len(t["shares"]), moments.columns, t["factors"].shape[-1]
        shapes = {
            "means": (C, q),
            "factors": (C, moments.groups, k),
            "own": (C, q),
            "lengths": (C, len(LENGTHS) + 1),
            "quantiles": (q, t["quantiles"].shape[-1]),
        }
        if any(t[name].shape != shape for name, shape in shapes.items()) or classes_of(release) != C:
            raise ArtefactError("the model's weights do not fit its release: it is damaged")
        check_shares(t["shares"])
        settings = EllipticSettings(**{name: state.settings[name] for name in KEPT if name in state.settings})
        return cls(release, Fitted(**{name: t[name] for name in TENSORS}), settings)

    @classmethod
    def fit(
        cls, release: Release, settings: EllipticSettings, seed: int, *, device: str = "cpu", bars: Bars = SILENT
    ) -> tuple[Elliptic, History]:
        """Shrunk means and covariances, in closed form; then the quantiles of what they draw. Runs on the CPU."""
        s, ends = settings, norm_ends(settings.longest)
        rng = torch.Generator().manual_seed(seed)
        with bars.task("training", total=None):
            fitted, misfit = estimate(release, s)
            moments = query_of(release).moments(release.codec)
            if s.restored:
                fitted = _set_apart(fitted, moments, s, rng)
            classes = torch.multinomial(fitted.shares, s.simulated, replacement=True, generator=rng)
            drawn = _draw(fitted, moments, classes, ends, rng)
            levels = torch.linspace(0, 1, s.quantiles)
            quantiles = torch.stack([torch.quantile(column, levels) for column in drawn.T])
        history = History(floor=1.0)
        history.note(1, misfit)
        return Elliptic(release, replace(fitted, quantiles=quantiles), s), history


def _set_apart(f: Fitted, moments: Moments, s: EllipticSettings, rng: torch.Generator) -> Fitted:
    """Classes as far from each other as was asked for: dividing rows by their lengths brings their means nearer."""
    C, q = f.means.shape
    found = torch.zeros_like(f.means)
    for c in range(C):
        common = torch.randn(max(s.simulated // (2 * C), 1), f.factors.shape[2], generator=rng)
        beside = common @ _loadings(f, moments, c).T + torch.randn(len(common), q, generator=rng) * f.own[c]
        drawn = f.means[c] + torch.cat([beside, -beside])
        found[c] = (drawn * (math.sqrt(q) / drawn.norm(dim=1, keepdim=True))).mean(0)
    asked, found = (m - f.shares.float() @ m for m in (f.means, found))
    kept = (found * asked).sum(1) / asked.square().sum(1).clamp_min(1e-12)
    return replace(f, means=f.means + asked * (1 / kept.clamp(s.least_kept, 1) - 1)[:, None])


def _draw(f: Fitted, moments: Moments, classes: Tensor, ends: Tensor, rng: torch.Generator) -> Tensor:
    """(n,) classes -> (n, q) scores."""
    n, q = len(classes), f.means.shape[1]
    found = torch.randn(n, q, generator=rng) * f.own[classes] + f.means[classes]
    common = torch.randn(n, f.factors.shape[2], generator=rng)
    for c in classes.unique().tolist():
        rows = torch.nonzero(classes == c).flatten()
        found[rows] += common[rows] @ _loadings(f, moments, c).T
    place = torch.multinomial(f.lengths, n, replacement=True, generator=rng)[classes, torch.arange(n)]
    return found * (_norm_in(place, ends, rng) * math.sqrt(q) / found.norm(dim=1).clamp_min(1e-12))[:, None]


def _draw_given(
    f: Fitted, moments: Moments, shares: Tensor, held: dict[int, float], n: int, ends: Tensor, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(n,) classes and (n, q) scores, where some columns have given scores.

    Given its class and length a row is a normal vector (of many columns, whose own length hardly varies) times that
    length. So class and length are drawn by the likelihood of what is given, then the factors, then the rest.
    """
    at, values = torch.tensor(list(held)), torch.tensor(list(held.values()))
    middles = (ends[1:] + ends[:-1]) / 2
    weights = torch.zeros(len(shares), len(middles), dtype=torch.float64)
    for c, share in enumerate(shares.tolist()):
        loadings = _loadings(f, moments, c)[at]
        covariance = loadings @ loadings.T + torch.diag(f.own[c, at].square())
        normal = torch.distributions.MultivariateNormal(f.means[c, at], covariance)
        likely = normal.log_prob(values / middles[:, None]) - len(held) * middles.log()
        weights[c] = likely.double() + math.log(share + 1e-300) + (f.lengths[c] / f.lengths[c].sum()).double().log()
    picked = torch.multinomial((weights - weights.max()).exp().flatten(), n, replacement=True, generator=rng)
    classes, place = picked // len(middles), picked % len(middles)
    length = _norm_in(place, ends, rng)[:, None]
    found = torch.randn(n, f.means.shape[1], generator=rng) * f.own[classes] + f.means[classes]
    for c in classes.unique().tolist():
        rows, loadings = torch.nonzero(classes == c).flatten(), _loadings(f, moments, c)
        scaled = loadings[at] / f.own[c, at].square()[:, None]  # (held, factors)
        covariance = torch.linalg.inv(torch.eye(loadings.shape[1]) + loadings[at].T @ scaled)
        mean = (values / length[rows] - f.means[c, at]) @ scaled @ covariance
        spread = torch.linalg.cholesky(covariance)
        found[rows] += (mean + torch.randn(mean.shape, generator=rng) @ spread.T) @ loadings.T
    found = found * length
    found[:, at] = values
    return classes, found


def _loadings(f: Fitted, moments: Moments, c: int) -> Tensor:
    """(q, factors) of one class: columns of a group share theirs."""
    return (f.factors[c] / moments.sizes.sqrt()[:, None]).repeat_interleave(moments.sizes, dim=0)


def _norm_in(place: Tensor, ends: Tensor, rng: torch.Generator) -> Tensor:
    """(n,) bins -> (n,) norms ÷ √columns."""
    return ends[place] + (ends[place + 1] - ends[place]) * torch.rand(len(place), generator=rng)


def _ranks(scores: Tensor, quantiles: Tensor) -> Tensor:
    """(n, q) -> the share of all rows with a lower score, by linear interpolation."""
    columns = scores.T.contiguous()
    above = torch.searchsorted(quantiles, columns, right=True).clamp(1, quantiles.shape[1] - 1)
    low, high = quantiles.gather(1, above - 1), quantiles.gather(1, above)
    part = ((columns - low) / (high - low).clamp_min(1e-12)).clamp(0, 1)
    return ((above - 1 + part) / (quantiles.shape[1] - 1)).T
