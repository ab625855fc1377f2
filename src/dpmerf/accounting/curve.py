"""The curve of Gaussian noise: δ for every ε and μ, without cancellation. No rows here.

    delta = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)        (Balle and Wang 2018)

With x = epsilon/mu - mu/2 the two terms share the factor e^epsilon phi(x + mu) = phi(x), so that
    delta = phi(x) * integral over s > 0 of e^(-s^2/2 - x s) (1 - e^(-mu s)) ds.
Nothing is subtracted, so nothing cancels, however small epsilon, mu or delta. The trapezoid rule after the
double-exponential substitution s = e^(t - e^-t) integrates it to full float precision.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEP = 1 / 24
_NODES = tuple(
    (math.exp(t - math.exp(-t)), _STEP * math.exp(t - math.exp(-t)) * (1 + math.exp(-t)))
    for t in (i * _STEP for i in range(-88, 94))
)
_AT, _WEIGHTS = (np.array(column) for column in zip(*_NODES, strict=True))
_SMALLEST = 40.0  # phi(40) is below the smallest float


def _integral(x: float, factor: Callable[[float], float]) -> float:
    """Integral over s > 0 of e^(-s^2/2 - x s) factor(s), for x >= -1."""
    scale = 1 / max(1.0, x)
    return scale * math.fsum(
        weight * math.exp(-s * (s / 2 + x)) * factor(s) for s, weight in ((scale * u, w) for u, w in _NODES)
    )


@lru_cache(maxsize=4096)  # one plan is priced many times, by the same bisections
def gaussian_delta(mu: float, epsilon: float) -> float:
    """The smallest delta for which mu-GDP is (epsilon, delta)-DP, for epsilon of 0 or more.

    >>> f"{gaussian_delta(1 / 3.7306, 1.0):.2e}"
    '1.00e-05'
    """
    if mu == 0:
        return 0.0
    x = epsilon / mu - mu / 2
    if x > _SMALLEST:
        return 0.0
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    if x > -1:
        return density * _integral(x, lambda s: -math.expm1(-mu * s))
    # delta > 0.6 here, so the subtraction is harmless
    return upper_tail(x) - density * _integral(epsilon / mu + mu / 2, lambda s: 1.0)


def gaussian_deltas(mu: float, epsilons: Floats) -> Floats:
    """The same for many epsilons of any sign at once: P(S) - e^epsilon Q(S) at its largest, over S.

    A negative epsilon follows by the symmetry of P and Q: 1 - e^epsilon + e^epsilon delta(-epsilon).
    """
    size = np.abs(epsilons)
    found = np.zeros_like(size)
    if mu > 0:
        x = size / mu - mu / 2
        near = (x > -1) & (x <= _SMALLEST)
        found[near] = _integrals(mu, x[near])
        for i in np.flatnonzero(x <= -1):  # few: mu above 2
            found[i] = gaussian_delta(mu, float(size[i]))
    return np.where(epsilons >= 0, found, -np.expm1(-size) + np.exp(-size) * found)


def _integrals(mu: float, x: Floats) -> Floats:
    """phi(x) times the integral above, for x > -1."""
    scale = 1 / np.maximum(1.0, x)
    s = scale[:, None] * _AT  # (points, nodes)
    inner = np.exp(-s * (s / 2 + x[:, None])) * -np.expm1(-mu * s)
    density: Floats = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return density * scale * (inner @ _WEIGHTS)


def upper_tail(z: float) -> float:
    """Q(z): how often a standard normal exceeds z.

    >>> round(upper_tail(1.96), 3)
    0.025
    """
    return math.erfc(z / math.sqrt(2)) / 2
