"""Losses of choices: what the exponential mechanism costs beside Gaussian noise. No rows here.

The exponential mechanism picks c with probability proportional to e^(u_c / scale). If a neighbour moves no score by
more than s, its loss log(P(c) / Q(c)) = (u_c - u'_c) / scale - log(Z / Z') lies in a window of width range = 2 s /
scale, wherever that window is ("bounded range", Durfee and Rogers 2019). Of all pairs P, Q with losses in [t - range,
t] the worst has both ends only, and the largest delta over t is (Dong, Durfee and Rogers 2020; a = e^epsilon)

    delta(epsilon) = (sqrt(e^range) - sqrt(a))^2 / (e^range - 1),   |epsilon| <= range.

Its second derivative in a is the density of P/Q under Q: under P the loss has density e^(l/2) / (4 sinh(range / 2))
on [-range, range]. A pair with that law dominates the choice, and dominating pairs compose with others, adaptively
and in any order (Zhu, Dong and Wang 2022): losses add up, and delta is the mean of the Gaussians' delta at epsilon
less the loss.
"""

import math
from functools import lru_cache

from dpmerf.errors import BudgetError

MOST_RANGE = 20.0  # of a choice's loss
CELLS = 64  # of the range of a choice: the error of delta falls with their square


@lru_cache(maxsize=64)
def choice_losses(ranges: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """((loss, probability), ...) of several choices together, from above: a discrete pair that dominates them.

    The mass of a cell of losses goes to its two ends so that both P's and Q's mass stay (a mean-preserving spread of
    P/Q, which only helps an attacker).

    >>> found = choice_losses((0.4,))
    >>> round(sum(p for _, p in found), 12), round(sum(p * math.exp(-l) for l, p in found), 12)
    (1.0, 1.0)
    """
    if not ranges or any(not (math.isfinite(r) and 0 < r <= MOST_RANGE) for r in ranges):
        raise BudgetError(f"a choice has a range above 0 and at most {MOST_RANGE:g}")
    step = 2 * max(ranges) / CELLS
    total = {0: 1.0}  # multiples of the step -> probability
    for r in ranges:
        ends = math.ceil(r / step)
        own: dict[int, float] = {}
        for i in range(-ends, ends):
            low, high = max(i * step, -r), min((i + 1) * step, r)
            mass = (math.exp(high / 2) - math.exp(low / 2)) / (2 * math.sinh(r / 2))
            inverse = (math.exp(-low / 2) - math.exp(-high / 2)) / (2 * math.sinh(r / 2))
            upper = (mass - inverse * math.exp(i * step)) / -math.expm1(-step)
            own[i + 1] = own.get(i + 1, 0.0) + upper
            own[i] = own.get(i, 0.0) + mass - upper
        total = _convolved(total, own)
    return tuple((i * step, p) for i, p in sorted(total.items()))


def _convolved(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for i, p in one.items():
        for j, q in other.items():
            found[i + j] = found.get(i + j, 0.0) + p * q
    return found
