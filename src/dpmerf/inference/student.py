"""Student's t: tail and quantile for any degrees of freedom, without a further library."""

from __future__ import annotations

import math

MOST_TERMS = 500
CLOSE = 1e-14


def tail(t: float, freedom: float) -> float:
    """P(|T| > |t|), by the regularised incomplete beta function I_x(ν / 2, 1 / 2) at x = ν / (ν + t²).

    >>> round(tail(2.262157, 9), 4), round(tail(1.959964, math.inf), 4)
    (0.05, 0.05)
    """
    if math.isinf(freedom):
        return math.erfc(abs(t) / math.sqrt(2))
    return _beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def quantile(confidence: float, freedom: float) -> float:
    """The t that |T| exceeds with probability 1 − confidence.

    >>> round(quantile(0.95, 19), 3)
    2.093
    """
    low, high = 0.0, 1.0
    while tail(high, freedom) > 1 - confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > 1 - confidence else (low, middle)
    return high


def _beta(x: float, a: float, b: float) -> float:
    """I_x(a, b) by Lentz's continued fraction, on the side where it converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - front * _fraction(1 - x, b, a) / b
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _away(1 + term * d), _away(1 + term / c)
            found *= c * d
        if abs(c * d - 1) < CLOSE:
            break
    return found


def _away(number: float) -> float:
    """Not zero."""
    return number if abs(number) > 1e-300 else 1e-300
