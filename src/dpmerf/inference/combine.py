"""Combine: estimates from several synthetic copies, pooled into one, with an interval that counts the privacy noise.

Each copy is n* rows of a model that was drawn given the release, so their spread holds the noise, the sampling of the
real rows and that of their own. For such fully synthetic copies (Raghunathan, Reiter and Rubin 2003; with a posterior
that knows the privacy noise: Räisä, Jälkö, Kaski and Honkela, AISTATS 2023)

    q̄ = Σ q_i / m,   b = Σ (q_i − q̄)² / (m − 1),   v̄ = Σ v_i / m,   T = (1 + 1/m) b − v̄,

with ν = (m − 1) (1 − v̄ / ((1 + 1/m) b))² degrees of freedom: the copies' own sampling, v̄, is in b but not in what is
asked about. Where chance makes T negative, v̄ takes its place (Reiter 2002, for as many synthetic rows as real ones).
Rubin's rule for missing values, v̄ + (1 + 1/m) b, would count the sampling twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpmerf.errors import AnswerError
from dpmerf.inference import student

LEAST_COPIES = 2
LEAST_FREEDOM = 1.0
WITHOUT = "the fit gave no standard errors: the sampling of the copies' own rows is counted too, so intervals are wide"


@final
@dataclass(frozen=True)
class Coefficient:
    """One pooled estimate."""

    name: str
    estimate: float
    error: float  # standard error: noise and sampling together
    low: float
    high: float
    p_value: float  # that it is zero
    freedom: float  # degrees of freedom


@final
@dataclass(frozen=True)
class Pooled:
    """Estimates pooled over copies, about the population that the real rows were drawn from."""

    coefficients: tuple[Coefficient, ...]
    copies: int
    confidence: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Coefficient:
        found = next((c for c in self.coefficients if c.name == name), None)
        if found is None:
            raise AnswerError(f"there is no '{name}'. There are: {', '.join(c.name for c in self.coefficients)}")
        return found

    def __str__(self) -> str:
        width = max(len("coefficient"), *(len(c.name) for c in self.coefficients))
        lines = [f"{'coefficient':{width}} {'estimate':>10} {'error':>10} {self.confidence:.0%} interval{'p':>14}"]
        lines += [
            f"{c.name:{width}} {c.estimate:10.4g} {c.error:10.4g} {c.low:10.4g} … {c.high:<10.4g} {c.p_value:8.3g}"
            for c in self.coefficients
        ]
        return "\n".join([*lines, f"{self.copies} copies", *self.notes])

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "copies": self.copies,
            "confidence": self.confidence,
            "notes": list(self.notes),
            "coefficients": [vars(c) for c in self.coefficients],
        }


def combine(
    estimates: Iterable[tuple[Any, Any]], *, names: Sequence[str] | None = None, confidence: float = 0.95
) -> Pooled:
    """Pool pairs of (estimate, variance), one per copy: numbers, or arrays of as many estimates.

    Parameters
    ----------
    estimates : iterable of pairs
        One per copy. A variance of None means that it is not known.
    names : sequence of str, optional
        Of the estimates; their numbers if left out.
    confidence : float
        Of the intervals, between 0 and 1.

    Returns
    -------
    Pooled
        Estimates with standard errors that count the noise of the release.

    Examples
    --------
    >>> print(combine([(1.0, 0.01), (1.4, 0.01), (1.2, 0.01)])["0"].estimate)
    1.2
    """
    pairs = list(estimates)
    if len(pairs) < LEAST_COPIES:
        raise AnswerError(f"{len(pairs)} copies cannot be pooled: make {LEAST_COPIES} or more (20 is a good number)")
    if not 0 < confidence < 1:
        raise AnswerError(f"confidence is {confidence}: write a number between 0 and 1, for example 0.95")
    q = _rows([q for q, _ in pairs])  # (m, k)
    known = all(v is not None for _, v in pairs)
    v = _rows([v for _, v in pairs]) if known else np.zeros_like(q)
    if q.shape != v.shape:
        raise AnswerError("every copy needs as many variances as estimates")
    if bool((v < 0).any()) or not bool(np.isfinite(q).all() and np.isfinite(v).all()):
        raise AnswerError("an estimate or variance is not finite, or a variance is negative: the fit failed on a copy")
    m, words = len(q), tuple(names) if names is not None else tuple(map(str, range(q.shape[1])))
    if len(words) != q.shape[1]:
        raise AnswerError(f"{len(words)} names for {q.shape[1]} estimates")
    between, within = (1 + 1 / m) * q.var(0, ddof=1), v.mean(0)
    each = zip(words, q.mean(0), between, within, strict=True)
    found = [_pooled(name, centre, b, w, m, confidence) for name, centre, b, w in each]
    return Pooled(tuple(found), m, confidence, () if known else (WITHOUT,))


def _pooled(name: str, centre: float, between: float, within: float, m: int, confidence: float) -> Coefficient:
    total, freedom = between - within, LEAST_FREEDOM
    if total > 0:
        freedom = max((m - 1) * (total / between) ** 2, LEAST_FREEDOM)
    else:
        total, freedom = within, float(m - 1)
    error = float(np.sqrt(total))
    half = student.quantile(confidence, freedom) * error
    p = student.tail(centre / error, freedom) if error > 0 else float(centre == 0)
    return Coefficient(name, float(centre), error, float(centre - half), float(centre + half), p, float(freedom))


def analyse(copies: Iterable[Any], fit: Callable[[Any], Any], *, confidence: float = 0.95) -> Pooled:
    """Run `fit` on each copy and pool what it gives.

    Parameters
    ----------
    copies : iterable of tables
        From `Model.copies` or `dpmerf sample --copies`.
    fit : function
        Takes a table and returns a fitted statsmodels result (anything with `params` and `bse`), a scikit-learn
        estimator (`coef_`, perhaps `intercept_` and `feature_names_in_`; it has no standard errors), a mapping from
        names to (estimate, variance), or one pair (estimates, variances).
    confidence : float
        Of the intervals, between 0 and 1.

    Returns
    -------
    Pooled
        As from `combine`.

    Examples
    --------
    >>> found = analyse([[1, 2, 3], [2, 3, 4], [1, 3, 5]], lambda x: {"mean": (np.mean(x), np.var(x) / 3)})
    >>> round(found["mean"].estimate, 2)
    2.67
    """
    found = [_read(fit(copy)) for copy in copies]
    if not found:
        raise AnswerError("there is no copy to analyse. Make some with `Model.copies` or `dpmerf sample --copies`")
    names = found[0][0]
    if any(other != names for other, _, _ in found):
        raise AnswerError(
            "the copies gave different coefficients: a rare category may be missing from one. Declare the categories "
            "in the fit, or merge rare ones first"
        )
    return combine([(q, v) for _, q, v in found], names=names, confidence=confidence)


def _read(result: Any) -> tuple[tuple[str, ...] | None, np.ndarray, np.ndarray | None]:
    if hasattr(result, "params") and hasattr(result, "bse"):
        index = getattr(result.params, "index", None)
        names = (
            tuple(map(str, index)) if index is not None and not callable(index) else _named(result, len(result.params))
        )
        return names, np.asarray(result.params, float).ravel(), np.asarray(result.bse, float).ravel() ** 2
    if hasattr(result, "coef_"):
        coef = np.atleast_1d(np.asarray(result.coef_, float)).ravel()
        given = getattr(result, "feature_names_in_", None)
        names = tuple(map(str, given)) if given is not None and len(given) == len(coef) else _numbered(len(coef))
        if hasattr(result, "intercept_") and np.size(result.intercept_) == 1:
            coef, names = np.r_[np.ravel(result.intercept_), coef], ("intercept", *names)
        return names, coef, None
    if isinstance(result, Mapping):
        q, v = (np.array([pair[i] for pair in result.values()], float) for i in (0, 1))
        return tuple(map(str, result)), q, v
    if isinstance(result, tuple) and len(result) == 2:
        q, v = result
        return None, np.atleast_1d(np.asarray(q, float)), None if v is None else np.atleast_1d(np.asarray(v, float))
    raise AnswerError("the fit gave nothing that can be pooled: return a fitted model, or (estimates, variances)")


def _named(result: Any, size: int) -> tuple[str, ...]:
    names = getattr(getattr(result, "model", None), "exog_names", None)
    return tuple(map(str, names)) if names is not None and len(names) == size else _numbered(size)


def _numbered(size: int) -> tuple[str, ...]:
    return tuple(f"x{i + 1}" for i in range(size))


def _rows(values: list[Any]) -> np.ndarray:
    try:
        return np.stack([np.atleast_1d(np.asarray(v, float)) for v in values])
    except ValueError:
        raise AnswerError("the copies gave different numbers of estimates: they cannot be pooled") from None
