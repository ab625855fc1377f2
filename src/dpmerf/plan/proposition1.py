"""Expected error of the embedding (the paper's Proposition 1) and the number of features it recommends."""

from __future__ import annotations

import math

LEAST_DIM, MOST_DIM = 64, 10_000


def paper_bound(dim: int, noise_multiplier: float, rows: float) -> float:
    """The paper's bound on E|noisy random-feature MMD² − MMD²|: noise, cross term and random features."""
    ratio = math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
    noise = 4 * dim * noise_multiplier**2 / rows**2
    return noise + 8 * math.sqrt(2) * noise_multiplier / rows * ratio + _features(dim)


def tight_bound(dim: int, noise_multiplier: float, rows: float, classes: int = 1) -> float:
    """The same with the cross term computed instead of bounded.

    For noise n of scale s = 2σ/m per coordinate and a fixed vector v with ‖v‖ ≤ 2, nᵀv is Gaussian, so
    E|2nᵀv| = 2·√(2/π)·s·‖v‖ ≤ 8·√(2/π)·σ/m: free of D. Labels multiply the coordinates by the number of classes.
    """
    noise = 4 * dim * classes * noise_multiplier**2 / rows**2
    return noise + 8 * math.sqrt(2 / math.pi) * noise_multiplier / rows + _features(dim)


def recommended_dim(noise_multiplier: float, rows: float, classes: int = 1) -> int:
    """The even D that minimises the tight bound, within [64, 10,000] (beyond, training time buys next to nothing).

    >>> recommended_dim(3.731, rows=600), recommended_dim(3.731, rows=30_000, classes=2)
    (1612, 10000)
    """
    best = (math.sqrt(2 * math.pi) * rows**2 / (noise_multiplier**2 * classes)) ** (2 / 3)
    return int(min(max(best, LEAST_DIM), MOST_DIM)) // 2 * 2


def _features(dim: int) -> float:
    return 8 * math.sqrt(2 * math.pi / dim)
