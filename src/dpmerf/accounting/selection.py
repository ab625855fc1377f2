"""Selections: what the exponential mechanism costs beside Gaussian noise. No rows here.

The exponential mechanism picks c with probability proportional to e^(u_c / scale). If a neighbour moves no score by
more than s, its loss log(P(c) / Q(c)) = (u_c - u'_c) / scale - log(Z / Z') lies in a window of width range = 2 s /
scale, wherever that window is ("bounded range", Durfee and Rogers 2019). Of all pairs P, Q with losses in [t - range,
t] the worst has both ends only, and the largest delta over t is (Dong, Durfee and Rogers 2020; a = e^epsilon)

    delta(epsilon) = (sqrt(e^range) - sqrt(a))^2 / (e^range - 1),   |epsilon| <= range.

Its second derivative in a is the density of P/Q under Q: under P the loss has density e^(l/2) / (4 sinh(range / 2))
on [-range, range]. A pair with that law dominates the selection, and dominating pairs compose with others, adaptively
and in any order (Zhu, Dong and Wang 2022): losses add up, and delta is the mean of the Gaussians' delta at epsilon
less the loss.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpmerf.errors import BudgetError

MOST_RANGE = 20.0  # of a selection's loss
LEAST_RANGE = 1e-9  # a smaller one counts as this: from above, and far from where floats end
CELLS = 64  # of the range of a selection: the error of delta falls with their square
FINE, COARSE = 4096, 256  # cells of several selections together: while they are added up, and in the end

Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=64)
def selection_losses(ranges: tuple[float, ...]) -> tuple[Floats, Floats]:
    """(losses, probabilities) of several selections together, from above: a discrete pair that dominates them.

    The mass of a cell of losses goes to its two ends so that both P's and Q's mass stay (a mean-preserving spread of
    P/Q, which only helps an attacker). Many selections spread over many cells: these are joined in the same way.

    >>> losses, mass = selection_losses((0.4,))
    >>> round(float(mass.sum()), 12), round(float((mass * np.exp(-losses)).sum()), 12)
    (1.0, 1.0)
    """
    if not ranges or any(not (math.isfinite(r) and 0 < r <= MOST_RANGE) for r in ranges):
        raise BudgetError(f"a selection has a range above 0 and at most {MOST_RANGE:g}")
    # From the smallest range on: its cells are as fine as those of a selection alone, and are joined for larger ones
    first, *others = sorted(max(r, LEAST_RANGE) for r in ranges)
    step = 2 * first / CELLS
    ends, mass = _cells(first, step)
    for r in others:
        own = 2 * r / CELLS
        while step < own * (1 - 1e-9) or 2 * ends > FINE:
            ends, mass = _joined(ends, mass, step)
            step *= 2
        own_ends, own_mass = _cells(r, step)
        ends, mass = ends + own_ends, np.convolve(mass, own_mass)
    while 2 * ends > COARSE:
        ends, mass = _joined(ends, mass, step)
        step *= 2
    return np.arange(-ends, ends + 1, dtype=np.float64) * step, mass


def _cells(r: float, step: float) -> tuple[int, Floats]:
    """The law of one selection at -ends · step, …, ends · step."""
    ends = math.ceil(r / step * (1 - 1e-12))
    at = np.arange(-ends, ends) * step  # lower end of each cell
    low, high = np.maximum(at, -r), np.minimum(at + step, r)
    # e^(high/2) - e^(low/2) by sinh: nothing cancels, however small the range
    mass = np.exp((low + high) / 4) * np.sinh((high - low) / 4) / math.sinh(r / 2)
    upper = mass * np.expm1(-((low - at) + (high - at)) / 2) / math.expm1(-step)
    found = np.zeros(2 * ends + 1)
    found[1:] += upper
    found[:-1] += mass - upper
    return ends, found


def _joined(ends: int, mass: Floats, step: float) -> tuple[int, Floats]:
    """The same law on cells twice as wide: a point in the middle of one goes to its ends, P's and Q's mass stay."""
    if ends % 2:
        ends, mass = ends + 1, np.pad(mass, 1)
    wide, middle = mass[::2].copy(), mass[1::2]
    upper = middle * (math.expm1(-step) / math.expm1(-2 * step))
    wide[1:] += upper
    wide[:-1] += middle - upper
    return ends // 2, wide
