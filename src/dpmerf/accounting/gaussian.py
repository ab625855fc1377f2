"""What privacy costs: (epsilon, delta) <-> mu <-> sigma, and the unit that is protected. No rows here.

A Gaussian of scale sigma on a sum of sensitivity s is mu-GDP with mu = s / sigma, exactly, and such releases compose
exactly: mu^2 = sum of mu_i^2. One curve turns mu into (epsilon, delta) (Balle and Wang 2018):

    delta = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

A selection of one of several candidates by noisy scores (the exponential mechanism) has a loss of bounded range, which
composes exactly with the Gaussians too; see `selection.py`.

>>> round(noise_multiplier(1.0, 1e-5), 3)
3.731
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dpmerf.accounting.curve import gaussian_delta, gaussian_deltas, upper_tail
from dpmerf.accounting.selection import MOST_RANGE, selection_losses
from dpmerf.errors import BudgetError


def check_epsilon(epsilon: float) -> float:
    """epsilon as a float, or BudgetError."""
    value = _number("epsilon", epsilon, "write a number above 0, for example 1")
    if not (math.isfinite(value) and value > 0):
        raise BudgetError(f"epsilon is {value}: write a number above 0, for example 1")
    return value


def check_delta(delta: float) -> float:
    """delta as a float, or BudgetError."""
    value = _number("delta", delta, "write a number between 0 and 1, for example 1e-5")
    if not 0 < value < 1:
        raise BudgetError(f"delta is {value}: write a number between 0 and 1, for example 1e-5")
    return value


def warnings_for(epsilon: float, delta: float, rows: int | None = None) -> list[str]:
    """Plain words about a budget that is legal and unwise. `rows` must be public: None leaves its advice out."""
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    found = []
    if epsilon > 10:
        found.append(f"epsilon = {epsilon:g} is above 10: the guarantee says very little about any one individual")
    if epsilon < 0.01:
        found.append(f"epsilon = {epsilon:g} is below 0.01: expect the noise to drown the data unless it is very large")
    if rows is not None and rows > 0 and delta >= 1 / rows:
        found.append(
            f"delta = {delta:g} is not below 1/rows = {1 / rows:.2g}: a mechanism that publishes one row "
            f"outright would pass. Choose {0.1 / rows:.0e} or less"
        )
    elif rows is None and delta > 1e-3:
        found.append(f"delta = {delta:g} is large: choose it well below 1 / (the number of rows)")
    return found


def delta_of(mu: float, epsilon: float, ranges: Sequence[float] = ()) -> float:
    """The smallest delta for which a mu-GDP release with selections of these `ranges` is (epsilon, delta)-DP.

    >>> f"{delta_of(1 / 3.7306, 1.0):.2e}"
    '1.00e-05'
    """
    _check_mu(mu)
    if not epsilon >= 0:
        raise BudgetError(f"epsilon is {epsilon}: write a number of 0 or more")
    if ranges:
        losses, mass = selection_losses(tuple(ranges))
        return math.fsum(mass * gaussian_deltas(mu, epsilon - losses))
    return gaussian_delta(mu, epsilon)


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon for which a mu-GDP release is (epsilon, delta)-DP, rounded up."""
    _check_mu(mu)
    delta = check_delta(delta)
    if delta_of(mu, 0.0) <= delta:
        return 0.0
    enough = 1.0
    while delta_of(mu, enough) > delta:
        enough *= 2
    return _bisect(enough, 0.0, lambda epsilon: delta_of(mu, epsilon) <= delta)


def mu_of(epsilon: float, delta: float, ranges: Sequence[float] = ()) -> float:
    """The largest mu that (epsilon, delta) allows beside selections of these `ranges`, rounded down.

    `delta_of(mu, epsilon, ranges) <= delta` holds in floats.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    too_much = 1.0
    while delta_of(too_much, epsilon, ranges) <= delta:
        too_much *= 2
    mu = _bisect(0.0, too_much, lambda mu: delta_of(mu, epsilon, ranges) <= delta)
    if not (mu > 0 and math.isfinite(1 / mu)):
        raise BudgetError(f"epsilon = {epsilon:g} with delta = {delta:g} is too small for any noise: raise one of them")
    return mu


def noise_multiplier(epsilon: float, delta: float) -> float:
    """sigma / sensitivity that makes one Gaussian release (epsilon, delta)-DP."""
    return 1 / mu_of(epsilon, delta)


def compose(*mus: float) -> float:
    """mu of several Gaussian releases together, adaptive or not: exact.

    >>> compose(3.0, 4.0)
    5.0
    """
    for mu in mus:
        _check_mu(mu)
    return math.hypot(*mus)


def selection_range(epsilon: float, delta: float, mu: float) -> float:
    """The largest range of one selection that (epsilon, delta) allows beside Gaussian releases of `mu`, rounded down.

    Losses of a selection have no tails, so it costs less than its share of mu^2 would say:

    >>> mu = mu_of(1.0, 1e-5)
    >>> round(selection_range(1.0, 1e-5, mu * 0.6**0.5), 3)
    0.38
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    return _bisect(0.0, MOST_RANGE, lambda r: r == 0 or delta_of(mu, epsilon, (r,)) <= delta)


# --- the discrete sampler --------------------------------------------------------------------------------------------


def total_variation(coordinates: int, sigma: float) -> float:
    """Upper bound on the distance between a discrete Gaussian vector and a rounded continuous one.

    p is the discrete Gaussian on the integers, q the continuous one rounded to the nearest integer, both of scale
    sigma; g is the normal density, so p = g / Z with Z = sum of g over the integers, and Z >= 1 (Poisson summation).

    Any sigma. q(x) is the mean of g(x + u) over |u| <= 1/2. By Jensen log q(x) >= mean of log g(x + u) =
    log g(x) - 1/(24 sigma^2), so p <= e^a q with a = 1/(24 sigma^2). For D independent coordinates p <= e^(Da) q, and
    TV = sum of (p - q)+ <= 1 - e^(-Da) <= D / (24 sigma^2).

    sigma >= 4. Let w = q / g. The discrete Gaussian has a sub-Gaussian moment generating function (Canonne, Kamath,
    Steinke 2020), so E_p w^2 <= E e^(uv/sigma^2) over u, v uniform on [-1/2, 1/2], which is at most
    1 + cosh(1/(4 sigma^2)) / (288 sigma^4). As q/p = Z w has mean 1 under p and is at least e^-a,
    KL(p || q) <= e^(2a)/2 (Z^2 E_p w^2 - 1). KL adds up over coordinates and Pinsker gives TV <= sqrt(D KL / 2),
    which is below 0.0296 sqrt(D) / sigma^2 for sigma >= 4 (Z - 1 < 1e-136 there). We use 0.03.
    """
    if coordinates < 0:
        raise BudgetError(f"coordinates is {coordinates}: write 0 or more")
    if not (math.isfinite(sigma) and sigma > 0):
        raise BudgetError(f"sigma is {sigma}: write a finite number above 0")
    if coordinates == 0:
        return 0.0
    unscaled = 0.03 * math.sqrt(coordinates) if sigma >= 4 else coordinates / 24
    return min(1.0, unscaled / sigma / sigma)


def discrete_delta(epsilon: float, coordinates: int, sigma: float) -> float:
    """What the discrete sampler adds to delta: (1 + e^epsilon) TV, with `total_variation` as TV.

    A rounded continuous Gaussian Q is post-processing of the continuous one, hence (epsilon, delta)-DP. For the
    discrete P within TV of it: P(S) <= Q(S) + TV <= e^epsilon Q'(S) + delta + TV
    <= e^epsilon P'(S) + delta + (1 + e^epsilon) TV. `sigma` is in units of the integer grid.

    >>> discrete_delta(1.0, coordinates=100_000, sigma=3.731 * 2 * 2**20) < 1e-12
    True
    """
    epsilon = check_epsilon(epsilon)
    tv = total_variation(coordinates, sigma)
    if tv == 0:
        return 0.0
    exponent = epsilon + math.log(tv)  # e^epsilon alone overflows above 709
    return 1.0 if exponent >= 0 else min(1.0, tv + math.exp(exponent))


# --- what it means ---------------------------------------------------------------------------------------------------


class AttackerOdds(NamedTuple):
    """What an attacker who knows everything else can still learn about one unit, from a 50:50 prior."""

    accuracy: float  # share of right guesses of the best possible test: (1 + delta at epsilon 0) / 2, or Phi(mu / 2)
    posterior: float  # 1 / (1 + e^-epsilon): belief after the release is at most this, ...
    passed: float  # ... except with this probability, at most: more than delta


def attacker_odds(
    epsilon: float, delta: float, mu: float | None = None, ranges: Sequence[float] = (), adaptive: bool = False
) -> AttackerOdds:
    """Odds for the card. `mu` is what was really spent, when it is known; else all that (epsilon, delta) allows.

    >>> odds = attacker_odds(1.0, 1e-5)
    >>> round(odds.accuracy, 2), round(odds.posterior, 2), f"{odds.passed:.1e}"
    (0.55, 0.73, '1.6e-04')
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    mu = mu_of(epsilon, delta) if mu is None else _check_mu(mu)
    accuracy = (1 + delta_of(mu, 0.0, ranges)) / 2 if ranges else upper_tail(-mu / 2)
    return AttackerOdds(accuracy, 1 / (1 + math.exp(-epsilon)), loss_above(epsilon, mu, ranges, adaptive))


def at_most(value: float) -> str:
    """Three digits, rounded up: what is printed after "at most" is at least the value.

    >>> at_most(1.611981e-4), at_most(1.0), at_most(0.0)
    ('1.62e-04', '1.00e+00', '0.00e+00')
    """
    if value == 0:
        return "0.00e+00"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit - 1e-9) * unit:.2e}"


def loss_above(epsilon: float, mu: float, ranges: Sequence[float] = (), adaptive: bool = False) -> float:
    """How often, at most, the loss exceeds epsilon: then the belief passes 1 / (1 + e^-epsilon).

    One Gaussian release: the loss is normal with mean mu^2/2 and variance mu^2, so Q(epsilon/mu - mu/2), exactly.
    `adaptive`: what a stage measures may depend on what earlier ones released, and a selection has any law of its
    range. A larger tail may then be traded for less elsewhere at the same delta curve. Let S be the outcomes whose
    loss is above epsilon, so Q(S) < e^-epsilon P(S). For every e < epsilon: delta(e) >= P(S) - e^e Q(S) >= P(S) (1 -
    e^(e - epsilon)), hence P(S) <= delta(e) / (1 - e^(e - epsilon)); the smallest of these is taken.

    >>> f"{loss_above(1.0, mu_of(1.0, 1e-5), adaptive=True):.1e}"
    '4.1e-04'
    """
    epsilon = check_epsilon(epsilon)
    if _check_mu(mu) == 0 and not ranges:
        return 0.0
    if not (ranges or adaptive):
        return upper_tail(epsilon / mu - mu / 2)
    gaps = [gap for i in range(100) if (gap := epsilon * 0.9**i) > 0]  # of the smallest floats some vanish
    return min(1.0, *(delta_of(mu, epsilon - gap, ranges) / -math.expm1(-gap) for gap in gaps))


def _number(name: str, value: object, advice: str) -> float:
    if isinstance(value, bool | str | bytes):
        raise BudgetError(f"{name} is {value!r}: {advice}")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise BudgetError(f"{name} is {value!r}: {advice}") from None


def _check_mu(mu: float) -> float:
    if not (math.isfinite(mu) and mu >= 0):
        raise BudgetError(f"mu is {mu}: write a finite number of 0 or more")
    return mu


def _bisect(good: float, bad: float, holds: Callable[[float], bool]) -> float:
    """The last float, coming from `good`, for which `holds` is true."""
    while True:
        middle = (good + bad) / 2
        if middle in (good, bad):
            return good
        if holds(middle):
            good = middle
        else:
            bad = middle
