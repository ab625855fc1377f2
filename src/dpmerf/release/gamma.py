"""Gamma: the incomplete gamma function, for tails of Poisson and χ². Its series and its continued fraction.

Abramowitz and Stegun 6.5.29 and 6.5.31; Numerical Recipes, section 6.2.
"""

from __future__ import annotations

import math

EXACT = 1e-15  # a term as small as this ends a sum
TINY = 1e-300


def lower_gamma(a: float, x: float) -> float:
    """P(a, x), the share of the gamma function's integral below x.

    >>> round(lower_gamma(1, 2.0), 12) == round(1 - math.exp(-2), 12), lower_gamma(3, 0.0)
    (True, 0.0)
    """
    return _series(a, x) if x < a + 1 else 1 - _fraction(a, x)


def upper_gamma(a: float, x: float) -> float:
    """Q(a, x) = 1 − P(a, x), exact also where it is small.

    >>> math.isclose(upper_gamma(1, 50.0), math.exp(-50))
    True
    """
    return 1 - _series(a, x) if x < a + 1 else _fraction(a, x)


def _front(a: float, x: float) -> float:
    """x^a e^−x ÷ Γ(a)."""
    return math.exp(a * math.log(x) - x - math.lgamma(a)) if 0 < x < math.inf else 0.0


def _series(a: float, x: float) -> float:
    term = whole = 1 / a
    n = a
    while term > EXACT * whole:
        n += 1
        term *= x / n
        whole += term
    return min(whole * _front(a, x), 1.0)


def _fraction(a: float, x: float) -> float:
    """Lentz's way through the continued fraction."""
    if x == math.inf:
        return 0.0
    b = x + 1 - a
    c, d = 1 / TINY, 1 / b
    whole, i, step = d, 0, 0.0
    while abs(step - 1) > EXACT:
        i += 1
        factor, b = -i * (i - a), b + 2
        d = 1 / (factor * d + b or TINY)
        c = b + factor / c or TINY
        step = c * d
        whole *= step
    return min(whole * _front(a, x), 1.0)
