"""Shrinkage: estimates without what noise of a known size put into them. No rows are needed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dpmerf.encoding.binning import to_simplex


def spikes(noisy: Tensor, tau: float) -> Tensor:
    """A symmetric matrix without what noise of standard deviation tau off the diagonal puts into its eigenvalues.

    Those of the noise alone reach 2τ√k; a larger one is what remains in the plane of its vector (Gavish and Donoho).

    >>> [round(v, 2) for v in spikes(torch.diag(torch.tensor([10.0, 1.0])), 1.0).diagonal().tolist()]
    [9.59, 0.0]
    """
    edge = 2 * tau * math.sqrt(len(noisy))
    values, vectors = torch.linalg.eigh(noisy)
    kept = values.sign() * (values.square() - edge**2).clamp_min(0).sqrt()
    return (vectors * kept) @ vectors.T


def smooth_spikes(noisy: Tensor, tau: float, smoothest: int = 8) -> Tensor:
    """The same, first among smooth vectors: the fewer directions are looked at, the less their noise can reach.

    Neighbouring columns are often alike. So the slowest cosines are looked at by themselves, then twice as many, up to
    all, each time for what is left. `smoothest` is how many are first; 0: all at once.

    >>> noisy = torch.randn(64, 64, generator=torch.Generator().manual_seed(0)).triu(1).double()
    >>> smooth = torch.full((64, 64), 10 / 64).double()
    >>> [round(float(f(noisy + noisy.T + smooth, 1.0).mean() * 64), 1) for f in (smooth_spikes, spikes)]
    [9.4, 1.9]
    """
    size = len(noisy)
    at = (torch.arange(size, dtype=noisy.dtype) + 0.5) * math.pi / size
    cosines = torch.cos(torch.arange(size, dtype=noisy.dtype)[:, None] * at)
    cosines = cosines / cosines.norm(dim=1, keepdim=True)
    found, count = torch.zeros_like(noisy), min(smoothest or size, size)
    while True:
        slow = cosines[:count]
        found = found + slow.T @ spikes(slow @ (noisy - found) @ slow.T, tau) @ slow
        if count == size:
            return found
        count = min(2 * count, size)


def stationary(noisy: Tensor, tau: float, lag_noise: float = 2.0) -> Tensor:
    """The part of a covariance that depends on the distance of two columns alone: its diagonals' means.

    A mean of k entries has the noise τ/√k (that of the main one √2 more), far less than an entry, so what neighbours
    have in common shows where no single entry does. Means within `lag_noise` of it are nothing. Distant columns count
    less, as in any autocovariance.

    >>> stationary(torch.tensor([[2.0, 1.0], [1.0, 4.0]]), 0.0).tolist()
    [[3.0, 0.5], [0.5, 3.0]]
    """
    k = len(noisy)
    row, column = torch.meshgrid(torch.arange(k), torch.arange(k), indexing="ij")
    lag = (row - column).abs()
    entries = torch.bincount(lag.flatten(), minlength=k).to(noisy.dtype)  # (k,) each pair twice
    means = torch.zeros(k, dtype=noisy.dtype).index_add(0, lag.flatten(), noisy.flatten()) / entries
    noise = lag_noise * tau / (entries / 2).sqrt()
    kept = means * (1 - (noise / means.abs().clamp_min(1e-12)).square()).clamp_min(0)
    kept = kept * (1 - torch.arange(k) / k)
    kept[0] = means[0]
    return kept[lag]


def positive_definite(matrix: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """(k,) eigenvalues, none below `least`, and (k, k) their vectors; the largest come last. The trace is kept.

    >>> positive_definite(torch.diag(torch.tensor([5.0, 1.0, -0.5])), 0.5)[0].tolist()
    [0.5, 0.5, 4.5]
    """
    values, vectors = torch.linalg.eigh(matrix)
    return to_simplex(values - least, max(float(values.sum()) - least * len(values), 1e-6)) + least, vectors


def of_directions(
    values: Tensor, other: float, free: int, directions: int = 2_048, rounds: int = 20
) -> tuple[Tensor, float]:
    """Variances of a normal vector x, by those of √q·x ÷ ‖x‖: k of them, and one common to `free` other axes.

    Dividing by the length takes from the large ones, which make the length: they are enlarged until what is left of
    them is what was asked for.

    >>> found, rest = of_directions(torch.tensor([30.0, 1.0]).double(), 1.0, 60)
    >>> bool(found[0] > 35), bool(found[1] < 1.05), rest < 1.05
    (True, True, True)
    """
    rng = torch.Generator().manual_seed(0)
    squares = torch.randn(directions, len(values), generator=rng, dtype=torch.float64).square()
    beside = torch.randn(directions, free, generator=rng, dtype=torch.float64).square().sum(1)
    total = float(values.sum()) + other * free
    found, rest = values.clone(), other
    for _ in range(rounds):
        length = squares @ found + rest * beside  # ‖x‖²
        left = total * found * (squares / length[:, None]).mean(0)
        left_rest = total * rest * float((beside / length).mean()) / free if free else other
        found, rest = found * values / left, rest * other / left_rest
    return found, rest


def along(noisy: Tensor, variances: Tensor, sigma: float, ratios: tuple[float, float, int] = (-5.0, 0.5, 45)) -> Tensor:
    """(k,) the mean of a class in the axes of a covariance: classes differ most where rows do.

    Its prior variance is that of the rows times the ratio that makes the noisy mean likeliest: 0, or one on a
    logarithmic scale.

    >>> along(torch.tensor([30.0, 1.0]).double(), torch.tensor([100.0, 0.01]).double(), 1.0).round().tolist()
    [30.0, 0.0]
    """
    tried = torch.cat([torch.zeros(1), torch.logspace(*ratios)]).double()
    spread = tried[:, None] * variances + sigma**2
    likely = -(spread.log() + noisy.square() / spread).sum(1)
    ratio = tried[likely.argmax()]
    return noisy * ratio * variances / (ratio * variances + sigma**2)


def toward_zero(noisy: Tensor, freedom: int, sigma: float) -> Tensor:
    """James and Stein: a vector of so many free entries, each with noise sigma, less what noise alone would be."""
    energy, noise = float(noisy.square().sum()), freedom * sigma**2
    return noisy * (1 - noise / energy) if energy > noise else torch.zeros_like(noisy)


def as_long(kept: Tensor, noisy: Tensor, sigma: float, sure: float = 2.0) -> Tensor:
    """What shrinkage kept of a noisy vector, as long as the vector is without its noise, where it is surely longer.

    Shrinkage finds the direction; the length of many entries together is known far better than any of them.

    >>> as_long(torch.tensor([1.0, 0.0]), torch.tensor([3.0, 4.0]), 1e-6)
    tensor([5., 0.])
    """
    count, length = len(noisy), float(kept.square().sum())
    asked = float(noisy.square().sum()) - sigma**2 * (count + sure * math.sqrt(2 * count))
    return kept * math.sqrt(asked / length) if asked > length > 0 else kept


def mixed(length: Tensor, free: Tensor, ratio: Tensor, assumed: Tensor, rounds: int = 50) -> Tensor:
    """(…, m, k) how probable it is, in each of m cases, that its signal has one of k variances (Stephens, 2017).

    A case is a vector of so many `free` entries with a squared `length` (…, m) in units of its noise; `ratio` are the
    variances, in the same units. All cases together say how common each is, beside so many `assumed` (k,) ones.
    Where no case says anything, what is assumed stays.

    >>> mixed(torch.tensor([90.0, 90.0, 1.0]), torch.ones(3), torch.tensor([0.0, 9.0]), torch.ones(2))[0].argmax()
    tensor(1)
    >>> mixed(torch.ones(99), torch.ones(99), torch.zeros(2), torch.tensor([0.75, 0.25]))[0].round(decimals=2).tolist()
    [0.75, 0.25]
    """
    evidence = (length[..., None] * ratio / (1 + ratio) - free[:, None] * torch.log1p(ratio)) / 2
    common = (assumed / assumed.sum()).expand_as(evidence[..., :1, :])
    for _ in range(rounds):
        weight = torch.softmax(evidence + common.log(), dim=-1)
        common = weight.sum(-2, keepdim=True) + assumed
        common = common / common.sum(-1, keepdim=True)
    return weight
