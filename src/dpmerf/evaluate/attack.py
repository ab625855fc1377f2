"""Attack: how well releases with and without one row can be told apart, and a nearest-record check.

The game bounds ε from below with a stated confidence: it can show that a claim is false, never that it is true. For
teaching and for tests. It does not know how releases are made: the caller hands it a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from dpmerf.accounting.gaussian import check_delta, check_epsilon, epsilon_of
from dpmerf.errors import DpmerfError
from dpmerf.evaluate.results import MembershipGame, NearestRecord
from dpmerf.evaluate.ticks import Step, silent
from dpmerf.evaluate.views import Rows

Play = Callable[[bool, int], float]  # (is the row in?, trial) -> the attacker's score; higher says "in"


def membership_game(
    play: Play,
    trials: int,
    delta: float,
    epsilon: float | None = None,
    confidence: float = 0.95,
    step: Step = silent,
) -> MembershipGame:
    """`trials` releases with the row and as many without; a lower bound on ε that holds with `confidence`.

    A third of the trials choose the attacker's threshold, the rest measure it, so the choice cannot flatter the result.
    Both error rates are bounded by Clopper and Pearson, each at half of the allowed doubt. The Gaussian bound turns
    them into μ ≥ Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) and μ into ε at the claimed δ; it holds for any release that is μ-GDP, as
    ours are. `epsilon_lower_any` is ln((TPR − δ) / FPR) and assumes nothing.
    """
    delta = check_delta(delta)
    if epsilon is not None:
        check_epsilon(epsilon)
    if trials < 30:
        raise DpmerfError(f"trials is {trials}: a bound needs at least 30 releases on each side")
    if not 0.5 <= confidence < 1:
        raise DpmerfError(f"confidence is {confidence}: write a number from 0.5 up to 1, for example 0.95")
    scores: tuple[list[float], list[float]] = ([], [])
    for trial in range(trials):
        if trial % 100 == 0:
            step(f"releases {trial:,} of {trials:,}")
        for side in (0, 1):
            scores[side].append(float(play(bool(side), trial)))
    out, inside = np.array(scores[0]), np.array(scores[1])
    cut = trials // 3
    threshold = _best_threshold(out[:cut], inside[:cut])
    out, inside = out[cut:], inside[cut:]
    false_positives, true_positives = int((out > threshold).sum()), int((inside > threshold).sum())
    return _result(false_positives, true_positives, len(out), trials, delta, epsilon, confidence)


def _result(
    false_positives: int, true_positives: int, n: int, trials: int, delta: float, epsilon: float | None, sure: float
) -> MembershipGame:
    doubt = (1 - sure) / 2
    fpr_high = clopper_pearson(false_positives, n, doubt)[1]
    fnr_high = clopper_pearson(n - true_positives, n, doubt)[1]
    tpr_low = 1 - fnr_high
    normal = NormalDist()
    mu = 0.0
    if 0 < fpr_high < 1 and 0 < fnr_high < 1:
        mu = max(0.0, -normal.inv_cdf(fpr_high) - normal.inv_cdf(fnr_high))
    any_noise = math.log((tpr_low - delta) / fpr_high) if tpr_low - delta > fpr_high > 0 else 0.0
    lower = epsilon_of(mu, delta) if mu > 0 else 0.0
    return MembershipGame(
        trials=trials,
        confidence=sure,
        true_positive_rate=true_positives / n,
        false_positive_rate=false_positives / n,
        advantage=(true_positives - false_positives) / n,
        mu_lower=mu,
        epsilon_lower=lower,
        epsilon_lower_any=max(0.0, any_noise),
        epsilon_claimed=epsilon,
        delta=delta,
        exceeds_claim=epsilon is not None and max(lower, any_noise) > epsilon,
    )


def clopper_pearson(successes: int, n: int, doubt: float) -> tuple[float, float]:
    """One-sided exact limits of a rate: each is wrong with probability at most `doubt`.

    >>> [round(limit, 4) for limit in clopper_pearson(0, 10, 0.05)]
    [0.0, 0.2589]
    """
    low = 0.0 if successes == 0 else _invert(lambda p: 1 - _binomial_cdf(successes - 1, n, p), doubt, rising=True)
    high = 1.0 if successes == n else _invert(lambda p: _binomial_cdf(successes, n, p), doubt, rising=False)
    return low, high


def _invert(probability: Callable[[float], float], target: float, rising: bool) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if (probability(middle) < target) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _binomial_cdf(k: int, n: int, p: float) -> float:
    """P(at most k of n), in logarithms so that nothing underflows."""
    if p <= 0:
        return 1.0
    if p >= 1:
        return 1.0 if k >= n else 0.0
    i = np.arange(k + 1)
    steps = np.log((n - i[:-1]) / (i[:-1] + 1)) + math.log(p) - math.log1p(-p)
    logs = n * math.log1p(-p) + np.concatenate([[0.0], np.cumsum(steps)])
    top = float(logs.max())
    return min(1.0, math.exp(top) * float(np.exp(logs - top).sum()))


def _best_threshold(out: np.ndarray, inside: np.ndarray) -> float:
    """Midway between the two sides: where the bound on μ is sharpest for two equal bells."""
    return float((np.median(out) + np.median(inside)) / 2)


def nearest_record(
    synthetic: Rows, train: Rows, other: Rows | None, compared_with: str, most: int, seed: int
) -> NearestRecord:
    """Distance of each synthetic row to its nearest real row, beside the same for other real rows. No guarantee.

    A distance counts each column from 0 (same) to 1 (the whole declared range apart, or another category).
    """
    pool = train.sample(4 * most, seed).points()
    ours = _nearest(synthetic.sample(most, seed).points(), pool)
    theirs = _nearest(other.sample(most, seed).points(), pool) if other is not None else None
    near = 1e-6
    return NearestRecord(
        compared_with=compared_with,
        rows=len(ours),
        copies=float((ours < near).mean()),
        baseline_copies=float((theirs < near).mean()) if theirs is not None else None,
        median_distance=float(np.median(ours)),
        baseline_median_distance=float(np.median(theirs)) if theirs is not None else None,
        closer_than_real=float((ours < np.quantile(theirs, 0.05)).mean()) if theirs is not None else None,
    )


def _nearest(x: np.ndarray, pool: np.ndarray, rows: int = 500) -> np.ndarray:
    """(n,) Euclidean distance from each row of x to the nearest row of the pool."""
    lengths = (pool**2).sum(1)
    found = [
        np.sqrt(np.maximum((part**2).sum(1) + (lengths - 2 * part @ pool.T).min(1), 0))
        for part in (x[i : i + rows] for i in range(0, len(x), rows))
    ]
    return np.concatenate(found)
