"""Elliptic: rows of normal scores as a length times a direction, class by class. For tables too wide for pair tables.

A direction is a normal vector with the class's mean and covariance, brought to length 1. The covariance is that of
groups of neighbouring columns, which depends on their distance but for a few axes that stand out, and noise of each
column's own. Everything is read off the release in closed form, shrunk by as much as noise of known size inflates it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor

from dpmerf.codec import Batch
from dpmerf.errors import ArtefactError, TrainError
from dpmerf.features.moments import Moments
from dpmerf.generators.base import Generator, Given, History, State, apportion, overwrite
from dpmerf.generators.consistent import positive_parts
from dpmerf.generators.shrinkage import (
    along,
    as_long,
    of_directions,
    positive_definite,
    smooth_spikes,
    spikes,
    stationary,
    toward_zero,
)
from dpmerf.progress import SILENT, Bars
from dpmerf.recipes import Directions
from dpmerf.release import Measurement, Release
from dpmerf.scores import LENGTHS, Scores

QUANTILES = 257  # of each column's scores as they are drawn
SIMULATED = 16_384  # rows from which these are taken
DRAWN = 8_192  # rows at a time
LEAST_OWN = 0.1  # of a column's variance: what the factors cannot take from it
LEAST_KEPT = 0.5  # of how far classes lie apart, once rows are divided by their lengths
LONGEST = 2.2  # length ÷ √columns where the last bin ends
TENSORS = ("shares", "means", "factors", "own", "lengths", "quantiles")


@final
@dataclass(frozen=True)
class Fitted:
    """The parameters, per class."""

    shares: Tensor  # (C,) class frequencies
    means: Tensor  # (C, q) of scores
    factors: Tensor  # (C, groups, factors)
    own: Tensor  # (C, q) standard deviations
    lengths: Tensor  # (C, bins) frequencies
    quantiles: Tensor  # (q, QUANTILES) of all classes together


@final
@dataclass(frozen=True)
class Measured:
    """What the release holds, per class, and the standard deviations of its noise."""

    sums: Tensor  # (C, q) of directions
    sum_noise: float
    products: Tensor  # (C, groups, groups) of groups' products, summed
    product_noise: float  # on the diagonal; √2 less beside it
    lengths: Tensor  # (C, bins) counts
    length_noise: float
    counts: list[Measurement]  # of the classes, with a label


@final
class Elliptic(Generator):
    """A fitted model, ready to draw."""

    kind: ClassVar[str] = "elliptic"

    def __init__(self, release: Release, fitted: Fitted) -> None:
        self._release, self._fitted = release, fitted
        self._recipe = _recipe(release)
        self._scores = _scores(release).moved(_mean_scores(release))
        self._moments = self._recipe.moments(release.codec)

    @property
    def conditions(self) -> frozenset[str]:
        return frozenset(self._release.plan.schema.learned)

    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        f, label = self._fitted, self._release.plan.schema.label if self._recipe.by_label else None
        shares = f.shares
        if given and label in given.names:
            shares = torch.nn.functional.one_hot(given.row.codes[label][0], len(shares)).double()
        held = self._held(given) if given else {}
        parts, labels, left = [], [], n
        while left > 0:
            size = min(left, DRAWN)
            if held:
                classes, scores = _draw_given(f, self._moments, shares, held, size, rng)
            else:
                counts = apportion(shares, size, rng)
                classes = torch.repeat_interleave(torch.arange(len(counts)), counts)
                classes = classes[torch.randperm(size, generator=rng)]
                scores = _draw(f, self._moments, classes, rng)
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
        return State({}, {name: getattr(self._fitted, name).contiguous() for name in TENSORS})

    @classmethod
    def from_state(cls, release: Release, state: State) -> Elliptic:
        t, moments = state.tensors, _recipe(release).moments(release.codec)
        C, q, k = len(t["shares"]), moments.columns, t["factors"].shape[-1]
        shapes = {
            "means": (C, q),
            "factors": (C, moments.groups, k),
            "own": (C, q),
            "lengths": (C, len(LENGTHS) + 1),
            "quantiles": (q, QUANTILES),
        }
        if any(t[name].shape != shape for name, shape in shapes.items()) or _classes(release) != C:
            raise ArtefactError("the model's weights do not fit its release: it is damaged")
        return cls(release, Fitted(**{name: t[name] for name in TENSORS}))

    @staticmethod
    def fit(release: Release, seed: int, *, bars: Bars = SILENT) -> tuple[Elliptic, History]:
        """Shrunk means and covariances; then the quantiles of what they draw."""
        rng = torch.Generator().manual_seed(seed)
        with bars.task("training", total=None):
            fitted, misfit = _estimate(release)
            fitted = _set_apart(fitted, _recipe(release).moments(release.codec), rng)
            classes = torch.multinomial(fitted.shares, SIMULATED, replacement=True, generator=rng)
            drawn = _draw(fitted, _recipe(release).moments(release.codec), classes, rng)
            levels = torch.linspace(0, 1, QUANTILES)
            quantiles = torch.stack([torch.quantile(column, levels) for column in drawn.T])
        history = History(floor=1.0)
        history.note(1, misfit)
        return Elliptic(release, replace(fitted, quantiles=quantiles)), history


def _estimate(release: Release) -> tuple[Fitted, float]:
    """Everything but the quantiles, and the misfit of the products in units of their noise."""
    moments = _recipe(release).moments(release.codec)
    known = _measured(release)
    C, q, K = _classes(release), moments.columns, moments.groups
    lengths_noise = torch.full((len(LENGTHS) + 1,), known.length_noise**2, dtype=torch.float64)
    sizes = _class_sizes(release, known)
    rows, part = float(sizes.sum()), sizes / sizes.sum()
    sums = known.sums * math.sqrt(q)  # of vectors of length √q: scores have variance 1
    overall = sums.sum(0) / rows
    centre = moments.parts(overall[None])[0]
    seconds = known.products * q
    tau = known.product_noise * q / math.sqrt(2)  # of a sum off the diagonal

    # all rows: what depends on distance alone, and the few axes that stand out of the noise beside it
    total = seconds.sum(0) / rows - torch.outer(centre, centre)
    smooth = stationary(total, tau * math.sqrt(C) / rows)
    visible = smooth_spikes(total - smooth, tau * math.sqrt(C) / rows)
    variances, axes = positive_definite(smooth + visible, LEAST_OWN)
    whole = (axes * variances) @ axes.T
    misfit = float((total - whole).square().sum()) / (K * (K + 1) * C * (tau / rows) ** 2)
    leading = axes[:, K - max(1, int((torch.linalg.eigvalsh(visible) > 1e-9).sum())) :]

    # classes: how far their means lie apart, and how their covariances differ
    noise = known.sum_noise * math.sqrt(q)
    means = torch.zeros_like(sums)
    for c in range(C if C > 1 else 0):
        found = sums[c] / sizes[c] - overall
        kept = _mean(moments, found, variances, axes, float(noise / sizes[c] * (1 - part[c]).sqrt()))
        means[c] = as_long(kept, found, float(noise * ((1 / sizes[c] - 1 / rows) ** 2 + (C - 1) / rows**2).sqrt()))
    middles = moments.parts(means)  # (C, K)
    between = torch.einsum("c,cq->q", part, means.square())
    inside = whole - torch.einsum("c,ck,cl->kl", part, middles, middles)
    middle = _overall(known, rows)
    beside = 1 - middle.square() - between  # (q,) what is left for the classes' covariances
    own_level = _own_level(moments, inside, float(beside.sum()))
    factors, own, bins = [], [], []
    for c in range(C):
        covariance = inside
        if C > 1:
            second = seconds[c] / sizes[c] - torch.outer(centre + middles[c], centre + middles[c])
            covariance = _of_class(second, inside, leading, float(tau / sizes[c] * (1 - part[c]).sqrt()))
        values, vectors = positive_definite(covariance, own_level)
        values, other = of_directions(values, own_level, q - K)
        factor = vectors * (values - other).clamp_min(0).sqrt()
        taken = (factor.square().sum(1) / moments.sizes).repeat_interleave(moments.sizes)
        factors.append(factor)
        own.append((beside - taken).clamp_min(LEAST_OWN).sqrt())
        bins.append(positive_parts(known.lengths[c], lengths_noise, float(sizes[c])))
    fitted = Fitted(
        shares=sizes / sizes.sum(),
        means=(middle + means).float(),
        factors=torch.stack(factors).float(),
        own=torch.stack(own).float(),
        lengths=torch.stack(bins).float(),
        quantiles=torch.zeros(q, QUANTILES),
    )
    return fitted, misfit


def _overall(known: Measured, rows: float) -> Tensor:
    """(q,) the mean of all rows, each of length √q: 0 but for the noise of the histograms, which is thus seen."""
    C, q = known.sums.shape
    return toward_zero(known.sums.sum(0) * math.sqrt(q) / rows, q, known.sum_noise * math.sqrt(C * q) / rows)


def _mean_scores(release: Release) -> Tensor:
    """(q,) the same of rows as long as they are."""
    known, rows = _measured(release), release.rows_estimate
    counts = known.lengths.sum(0)
    noise = torch.full_like(counts, len(known.lengths) * known.length_noise**2)
    middles = (_ends()[1:] + _ends()[:-1]).double() / 2
    return _overall(known, rows) * float((positive_parts(counts, noise, rows) * middles).sum() / rows)


def _mean(moments: Moments, noisy: Tensor, variances: Tensor, axes: Tensor, sigma: float) -> Tensor:
    """(q,) how far a class lies from the whole: groups along the covariance's axes, and what differs inside them."""
    spread = moments.sizes.double().sqrt()
    parts = moments.parts(noisy[None])[0]
    kept = axes @ along(axes.T @ parts, variances, sigma)
    beside = noisy - (parts / spread).repeat_interleave(moments.sizes)
    inside = toward_zero(beside, moments.columns - moments.groups, sigma)
    return (kept / spread).repeat_interleave(moments.sizes) + inside


def _of_class(second: Tensor, inside: Tensor, leading: Tensor, tau: float) -> Tensor:
    """(K, K) a class's covariance: that of all, and how it differs in distance and along the leading axes."""
    shared = inside + stationary(second - inside, tau)
    return shared + leading @ spikes(leading.T @ (second - shared) @ leading, tau) @ leading.T


def _set_apart(f: Fitted, moments: Moments, rng: torch.Generator) -> Fitted:
    """Classes as far from each other as was asked for: dividing rows by their lengths brings their means nearer."""
    C, q = f.means.shape
    found = torch.zeros_like(f.means)
    for c in range(C):
        common = torch.randn(max(SIMULATED // (2 * C), 1), f.factors.shape[2], generator=rng)
        beside = common @ _loadings(f, moments, c).T + torch.randn(len(common), q, generator=rng) * f.own[c]
        drawn = f.means[c] + torch.cat([beside, -beside])
        found[c] = (drawn * (math.sqrt(q) / drawn.norm(dim=1, keepdim=True))).mean(0)
    asked, found = (m - f.shares.float() @ m for m in (f.means, found))
    kept = (found * asked).sum(1) / asked.square().sum(1).clamp_min(1e-12)
    return replace(f, means=f.means + asked * (1 / kept.clamp(LEAST_KEPT, 1) - 1)[:, None])


def _own_level(moments: Moments, inside: Tensor, variance: float) -> float:
    """The variance that columns have beside their group: what the sum over a group leaves of that of its columns."""
    free = moments.columns - moments.groups
    return max(LEAST_OWN, (variance - float(inside.diagonal().sum())) / free) if free else LEAST_OWN


def _class_sizes(release: Release, known: Measured) -> Tensor:
    """(C,) rows of each class: by the table of lengths and, where there is one, by that of the classes."""
    rows, C = release.rows_estimate, len(known.lengths)
    if C == 1 or release.plan.balanced:
        return torch.full((C,), rows / C, dtype=torch.float64)
    precision = 1 / (known.lengths.shape[1] * known.length_noise**2)
    weighted = known.lengths.sum(1) * precision
    for m in known.counts:
        weighted, precision = weighted + m.values.flatten() / m.sigma**2, precision + 1 / m.sigma**2
    return positive_parts(weighted / precision, torch.full((C,), 1 / precision, dtype=torch.float64), rows)


def _draw(f: Fitted, moments: Moments, classes: Tensor, rng: torch.Generator) -> Tensor:
    """(n,) classes -> (n, q) scores."""
    n, q = len(classes), f.means.shape[1]
    found = torch.randn(n, q, generator=rng) * f.own[classes] + f.means[classes]
    common = torch.randn(n, f.factors.shape[2], generator=rng)
    for c in classes.unique().tolist():
        rows = torch.nonzero(classes == c).flatten()
        found[rows] += common[rows] @ _loadings(f, moments, c).T
    place = torch.multinomial(f.lengths, n, replacement=True, generator=rng)[classes, torch.arange(n)]
    return found * (_length_in(place, rng) * math.sqrt(q) / found.norm(dim=1).clamp_min(1e-12))[:, None]


def _draw_given(
    f: Fitted, moments: Moments, shares: Tensor, held: dict[int, float], n: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(n,) classes and (n, q) scores, where some columns have given scores.

    Given its class and length a row is a normal vector (of many columns, whose own length hardly varies) times that
    length. So class and length are drawn by the likelihood of what is given, then the factors, then the rest.
    """
    at, values = torch.tensor(list(held)), torch.tensor(list(held.values()))
    middles = (_ends()[1:] + _ends()[:-1]) / 2
    weights = torch.zeros(len(shares), len(middles), dtype=torch.float64)
    for c, share in enumerate(shares.tolist()):
        loadings = _loadings(f, moments, c)[at]
        covariance = loadings @ loadings.T + torch.diag(f.own[c, at].square())
        normal = torch.distributions.MultivariateNormal(f.means[c, at], covariance)
        likely = normal.log_prob(values / middles[:, None]) - len(held) * middles.log()
        weights[c] = likely.double() + math.log(share + 1e-300) + (f.lengths[c] / f.lengths[c].sum()).double().log()
    picked = torch.multinomial((weights - weights.max()).exp().flatten(), n, replacement=True, generator=rng)
    classes, place = picked // len(middles), picked % len(middles)
    length = _length_in(place, rng)[:, None]
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


def _ends() -> Tensor:
    return torch.tensor([0.0, *LENGTHS, LONGEST])


def _length_in(place: Tensor, rng: torch.Generator) -> Tensor:
    """(n,) bins -> (n,) lengths ÷ √columns."""
    ends = _ends()
    return ends[place] + (ends[place + 1] - ends[place]) * torch.rand(len(place), generator=rng)


def _ranks(scores: Tensor, quantiles: Tensor) -> Tensor:
    """(n, q) -> the share of all rows with a lower score, by linear interpolation."""
    columns = scores.T.contiguous()
    above = torch.searchsorted(quantiles, columns, right=True).clamp(1, quantiles.shape[1] - 1)
    low, high = quantiles.gather(1, above - 1), quantiles.gather(1, above)
    part = ((columns - low) / (high - low).clamp_min(1e-12)).clamp(0, 1)
    return ((above - 1 + part) / (quantiles.shape[1] - 1)).T


def _recipe(release: Release) -> Directions:
    recipe = next((s.recipe for s in release.plan.stages if isinstance(s.recipe, Directions)), None)
    if recipe is None:
        raise TrainError("this generator needs a release of directions (the default preset, for wide tables)")
    return recipe


def _measured(release: Release) -> Measured:
    recipe, C = _recipe(release), _classes(release)
    moments = recipe.moments(release.codec)
    both, length, *counts = release.measurements(next(s for s in release.plan.stages if s.recipe == recipe))
    sums, products = moments.apiece(both.values.view(C, -1))
    return Measured(
        sums,
        both.sigma / math.sqrt(1 - moments.share),
        products,
        both.sigma / math.sqrt(moments.share),
        length.values.view(C, -1),
        length.sigma,
        counts,
    )


def _scores(release: Release) -> Scores:
    scores = release.scores
    if scores is None:
        raise TrainError("the release has no scores: it was not made for this generator")
    sizes = {name: scores.grid.variables[name].size for name in _recipe(release).columns(release.codec)}
    if {name: len(mass) for name, mass in scores.mass.items()} != sizes or not all(
        bool((mass > 0).all() and mass.isfinite().all()) for mass in scores.mass.values()
    ):
        raise ArtefactError("the release's scores do not fit its columns: it is damaged")
    return scores


def _classes(release: Release) -> int:
    return release.codec.label.size if _recipe(release).by_label and release.codec.label else 1
