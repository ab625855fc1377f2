"""Bounds: from an attacker's scores with and without a row to a lower bound on μ, and so on ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import final

import numpy as np

from dpmerf.accounting.gaussian import delta_of, epsilon_of
from dpmerf.evaluate.attack import clopper_pearson
from dpmerf.plan import Plan

_NORMAL = NormalDist()


@final
@dataclass(frozen=True)
class MuBound:
    """What two sets of scores say about μ, at a stated confidence."""

    estimate: float  # difference of means in standard deviations
    lower: float  # μ is at least this
    upper: float  # and, if scores are Gaussian, at most this
    confidence: float
    trials: int  # on each side

    def epsilon_lower(self, delta: float) -> float:
        """The ε that any claim at this δ must have at least."""
        if self.lower <= 0:
            return 0.0
        return math.inf if math.isinf(self.lower) else epsilon_of(self.lower, delta)


def mu_bound(out: np.ndarray, inside: np.ndarray, confidence: float = 0.95) -> MuBound:
    """The better of two lower bounds, each taken at half of the allowed doubt.

    Shift: for Gaussian scores of equal spread μ is the difference of means in standard deviations (exact for the
    log-likelihood ratio of a Gaussian release); mean and spread get a quarter of the doubt each. Threshold: "inside if
    the score passes a value fixed on the first third", with Clopper-Pearson limits for both error rates, which assumes
    nothing about the scores: μ ≥ Φ⁻¹(1 − FPR) − Φ⁻¹(FNR).
    """
    out, inside = np.asarray(out, float), np.asarray(inside, float)
    if min(len(out), len(inside)) < 30 or len(out) != len(inside):
        raise ValueError("a bound needs at least 30 scores on each side, and as many on one as on the other")
    n, doubt = len(out), 1 - confidence
    spread = math.sqrt((out.var(ddof=1) + inside.var(ddof=1)) / 2)
    gap = float(inside.mean() - out.mean())
    lower = max(0.0, _by_threshold(out, inside, doubt / 2))
    if spread <= 1e-12 * max(1.0, abs(gap)):  # the same score every time: noise that does not move
        certain = math.inf if abs(gap) > 0 else 0.0
        return MuBound(certain, certain, certain, confidence, n)
    slack = -_NORMAL.inv_cdf(doubt / 4) * math.sqrt(2 / n)  # of the mean difference, in true standard deviations
    low, high = _spread_factors(2 * n - 2, doubt / 4)
    estimate = gap / spread
    return MuBound(
        estimate=estimate,
        lower=max(lower, estimate * low - slack),
        upper=max(0.0, estimate * high + slack),
        confidence=confidence,
        trials=n,
    )


def _spread_factors(freedom: int, doubt: float) -> tuple[float, float]:
    """(measured ÷ true standard deviation) lies between these, each with the given doubt (Wilson and Hilferty)."""
    z = -_NORMAL.inv_cdf(doubt)
    a = 2 / (9 * freedom)
    return tuple(math.sqrt(max(0.0, 1 - a + sign * z * math.sqrt(a)) ** 3) for sign in (-1, 1))  # type: ignore[return-value]


def _by_threshold(out: np.ndarray, inside: np.ndarray, doubt: float) -> float:
    return max(rates.mu for rates in error_rates(out, inside, doubt))


@final
@dataclass(frozen=True)
class ErrorRates:
    """Upper limits of both error rates of one test: it says `inside` although it is `out`, and the other way round."""

    false_positives: float
    misses: float

    @property
    def mu(self) -> float:
        """A Gaussian release with such a test has at least this μ: Φ⁻¹(1 − FPR) − Φ⁻¹(FNR)."""
        if max(self.false_positives, self.misses) >= 1:
            return -math.inf
        return -_NORMAL.inv_cdf(self.false_positives) - _NORMAL.inv_cdf(self.misses)

    def epsilon(self, delta: float) -> float:
        """Any release with such a test has at least this ε at `delta`: ln((TPR − δ)/FPR), or the same of negatives."""
        a, b = self.false_positives, self.misses
        return max([0.0, *(math.log(hit / miss) for hit, miss in ((1 - b - delta, a), (1 - a - delta, b)) if hit > 0)])


def error_rates(out: np.ndarray, inside: np.ndarray, doubt: float) -> list[ErrorRates]:
    """Of three thresholds: midway, and where few on either side pass. All limits hold together but for `doubt`.

    The first third of the scores places the thresholds, the rest is judged by them.
    """
    cut = len(out) // 3
    first = (out[:cut], inside[:cut])
    lines = [
        (np.median(first[0]) + np.median(first[1])) / 2,
        np.quantile(first[0], 0.98),
        np.quantile(first[1], 0.02),
    ]
    found, share = [], doubt / (2 * len(lines))
    for line in lines:
        wrong = int((out[cut:] > line).sum()), int((inside[cut:] <= line).sum())
        found.append(ErrorRates(*(clopper_pearson(count, len(out) - cut, share)[1] for count in wrong)))
    return found


@final
@dataclass(frozen=True)
class Claim:
    """The whole curve that a plan claims: Gaussian stages of μ, choices beside them, and the discrete sampler's δ."""

    mu: float
    choices: tuple[float, ...] = ()
    discrete_delta: float = 0.0

    @staticmethod
    def of(plan: Plan) -> Claim:
        return Claim(plan.mu, plan.selections, plan.discrete_delta)

    def allows(self, rates: ErrorRates) -> bool:
        """May a release with this claim have such a test? For every ε: TPR ≤ e^ε · FPR + δ(ε), and so for negatives."""
        a, b = rates.false_positives, rates.misses
        for epsilon, delta in _curve(self.mu, self.choices):
            grown, more = math.exp(epsilon), delta + self.discrete_delta
            if 1 - b > grown * a + more or 1 - a > grown * b + more:
                return False
        return True


@lru_cache(maxsize=64)
def _curve(mu: float, choices: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """(ε, δ) along the claim, on 200 steps up to where δ is nothing."""
    most = sum(choices) + mu * (mu / 2 + 8)
    return tuple((epsilon, delta_of(mu, epsilon, choices)) for epsilon in np.linspace(0, most, 200).tolist())
