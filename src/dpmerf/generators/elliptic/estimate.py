"""Elliptic fit: what a release of directions says of each class: its mean, its covariance, its lengths. In closed form.

Everything is shrunk by as much as noise of known size inflates it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.encoding.normal_scores import LENGTHS, Scores
from dpmerf.errors import ArtefactError, TrainError
from dpmerf.features.moments import Moments
from dpmerf.generators.elliptic.elliptic_settings import EllipticSettings
from dpmerf.generators.maxent.consistent import positive_parts
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
from dpmerf.plan import Measurement
from dpmerf.plan.queries import Directions
from dpmerf.plan.queries.directions import NORM
from dpmerf.release import Release


@final
@dataclass(frozen=True)
class Fitted:
    """The parameters, per class."""

    shares: Tensor  # (C,) class frequencies
    means: Tensor  # (C, q) of scores
    factors: Tensor  # (C, groups, factors)
    own: Tensor  # (C, q) standard deviations
    lengths: Tensor  # (C, bins) frequencies
    quantiles: Tensor  # (q, quantiles) of all classes together


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


def estimate(release: Release, s: EllipticSettings) -> tuple[Fitted, float]:
    """Everything but the quantiles, and the misfit of the products in units of their noise."""
    moments = query_of(release).moments(release.codec)
    known = _measured(release)
    C, q, K = classes_of(release), moments.columns, moments.groups
    lengths_noise = torch.full((len(LENGTHS) + 1,), known.length_noise**2, dtype=torch.float64)
    sizes = _class_sizes(release, known, s.count_rounds)
    rows, part = float(sizes.sum()), sizes / sizes.sum()
    sums = known.sums * math.sqrt(q)  # of vectors of length √q: scores have variance 1
    overall = sums.sum(0) / rows
    centre = moments.parts(overall[None])[0]
    seconds = known.products * q
    tau = known.product_noise * q / math.sqrt(2)  # of a sum off the diagonal

    # all rows: what depends on distance alone, and the few axes that stand out of the noise beside it
    total = seconds.sum(0) / rows - torch.outer(centre, centre)
    smooth = _stationary(total, tau * math.sqrt(C) / rows, s)
    visible = smooth_spikes(total - smooth, tau * math.sqrt(C) / rows, s.smoothest)
    variances, axes = positive_definite(smooth + visible, s.least_own)
    whole = (axes * variances) @ axes.T
    misfit = float((total - whole).square().sum()) / (K * (K + 1) * C * (tau / rows) ** 2)
    leading = axes[:, K - max(1, int((torch.linalg.eigvalsh(visible) > 1e-9).sum())) :]

    # classes: how far their means lie apart, and how their covariances differ
    noise = known.sum_noise * math.sqrt(q)
    means = torch.zeros_like(sums)
    for c in range(C if C > 1 else 0):
        found = sums[c] / sizes[c] - overall
        kept = _mean(moments, found, variances, axes, float(noise / sizes[c] * (1 - part[c]).sqrt()), s)
        spread = float(noise * ((1 / sizes[c] - 1 / rows) ** 2 + (C - 1) / rows**2).sqrt())
        means[c] = as_long(kept, found, spread, s.sure) if s.restored else kept
    middles = moments.parts(means)  # (C, K)
    between = torch.einsum("c,cq->q", part, means.square())
    inside = whole - torch.einsum("c,ck,cl->kl", part, middles, middles)
    middle = _overall(known, rows)
    beside = 1 - middle.square() - between  # (q,) what is left for the classes' covariances
    own_level = _own_level(moments, inside, float(beside.sum()), s.least_own)
    factors, own, bins = [], [], []
    for c in range(C):
        covariance = inside
        if C > 1:
            second = seconds[c] / sizes[c] - torch.outer(centre + middles[c], centre + middles[c])
            covariance = _of_class(second, inside, leading, float(tau / sizes[c] * (1 - part[c]).sqrt()), s)
        values, vectors = positive_definite(covariance, own_level)
        values, other = of_directions(values, own_level, q - K, s.directions, s.rounds)
        factor = vectors * (values - other).clamp_min(0).sqrt()
        taken = (factor.square().sum(1) / moments.sizes).repeat_interleave(moments.sizes)
        factors.append(factor)
        own.append((beside - taken).clamp_min(s.least_own).sqrt())
        bins.append(positive_parts(known.lengths[c], lengths_noise, float(sizes[c]), s.count_rounds))
    fitted = Fitted(
        shares=sizes / sizes.sum(),
        means=(middle + means).float(),
        factors=torch.stack(factors).float(),
        own=torch.stack(own).float(),
        lengths=torch.stack(bins).float(),
        quantiles=torch.zeros(q, s.quantiles),
    )
    return fitted, misfit


def _overall(known: Measured, rows: float) -> Tensor:
    """(q,) the mean of all rows, each of length √q: 0 but for the noise of the histograms, which is thus seen."""
    C, q = known.sums.shape
    return toward_zero(known.sums.sum(0) * math.sqrt(q) / rows, q, known.sum_noise * math.sqrt(C * q) / rows)


def mean_scores(release: Release, s: EllipticSettings) -> Tensor:
    """(q,) the same of rows as long as they are."""
    known, rows = _measured(release), release.rows_estimate
    counts = known.lengths.sum(0)
    noise = torch.full_like(counts, len(known.lengths) * known.length_noise**2)
    ends = norm_ends(s.longest)
    middles = (ends[1:] + ends[:-1]).double() / 2
    norms = positive_parts(counts, noise, rows, s.count_rounds)
    return _overall(known, rows) * float((norms * middles).sum() / rows)


def _mean(
    moments: Moments, noisy: Tensor, variances: Tensor, axes: Tensor, sigma: float, s: EllipticSettings
) -> Tensor:
    """(q,) how far a class lies from the whole: groups along the covariance's axes, and what differs inside them."""
    spread = moments.sizes.double().sqrt()
    parts = moments.parts(noisy[None])[0]
    rotated = axes.T @ parts
    shrunk = along(rotated, variances, sigma, s.ratios) if s.along_axes else toward_zero(rotated, len(rotated), sigma)
    kept = axes @ shrunk
    beside = noisy - (parts / spread).repeat_interleave(moments.sizes)
    inside = toward_zero(beside, moments.columns - moments.groups, sigma)
    return (kept / spread).repeat_interleave(moments.sizes) + inside


def _stationary(noisy: Tensor, tau: float, s: EllipticSettings) -> Tensor:
    if s.by_distance:
        return stationary(noisy, tau, s.lag_noise)
    return torch.eye(len(noisy), dtype=noisy.dtype) * noisy.diagonal().mean()


def _of_class(second: Tensor, inside: Tensor, leading: Tensor, tau: float, s: EllipticSettings) -> Tensor:
    """(K, K) a class's covariance: that of all, and how it differs in distance and along the leading axes."""
    shared = inside + _stationary(second - inside, tau, s)
    return shared + leading @ spikes(leading.T @ (second - shared) @ leading, tau) @ leading.T


def _own_level(moments: Moments, inside: Tensor, variance: float, least: float) -> float:
    """The variance that columns have beside their group: what the sum over a group leaves of that of its columns."""
    free = moments.columns - moments.groups
    return max(least, (variance - float(inside.diagonal().sum())) / free) if free else least


def _class_sizes(release: Release, known: Measured, rounds: int) -> Tensor:
    """(C,) rows of each class: by the table of lengths and, where there is one, by that of the classes."""
    rows, C = release.rows_estimate, len(known.lengths)
    if C == 1 or release.plan.balanced:
        return torch.full((C,), rows / C, dtype=torch.float64)
    precision = 1 / (known.lengths.shape[1] * known.length_noise**2)
    weighted = known.lengths.sum(1) * precision
    for m in known.counts:
        weighted, precision = weighted + m.values.flatten() / m.sigma**2, precision + 1 / m.sigma**2
    return positive_parts(weighted / precision, torch.full((C,), 1 / precision, dtype=torch.float64), rows, rounds)


def query_of(release: Release) -> Directions:
    """What was measured, or TrainError if it was something else."""
    if not release.plan.has(Directions):
        raise TrainError("this generator needs a release of directions (the default preset, for wide tables)")
    return release.plan.query(Directions)


def _measured(release: Release) -> Measured:
    C, moments = classes_of(release), query_of(release).moments(release.codec)
    answers = release.answers(release.plan.stage(Directions))
    both = next(m for m in answers if m.dense is not None)
    length = next(m for m in answers if m.dense is None and NORM in m.variables)
    counts = [m for m in answers if m.dense is None and NORM not in m.variables]
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


def scores_of(release: Release) -> Scores:
    """The release's normal scores, checked against its columns."""
    scores = release.scores
    if scores is None:
        raise TrainError("the release has no scores: it was not made for this generator")
    sizes = {name: scores.grid.variables[name].size for name in query_of(release).columns(release.codec)}
    if {name: len(mass) for name, mass in scores.mass.items()} != sizes or not all(
        bool((mass > 0).all() and mass.isfinite().all()) for mass in scores.mass.values()
    ):
        raise ArtefactError("the release's scores do not fit its columns: it is damaged")
    return scores


def classes_of(release: Release) -> int:
    """How many classes rows are split into."""
    return query_of(release).classes(release.codec)


def norm_ends(longest: float) -> Tensor:
    """Where the bins of norms begin and end."""
    return torch.tensor([0.0, *LENGTHS, longest])
