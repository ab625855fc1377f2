"""Intervals: of linear answers, of ratios (Fieller) and of quantiles (by inverting the distribution function)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

SMOOTH = 2.0  # rows added to a count before its sampling variance is taken (Agresti and Coull)


@final
@dataclass(frozen=True)
class Parts:
    """Estimates of several groups with the covariances of their errors. NaN: cannot be given."""

    estimate: np.ndarray  # (G,)
    low: np.ndarray
    high: np.ndarray
    privacy: np.ndarray  # (G, G) covariance
    inside: np.ndarray  # (G, G)
    sampling: np.ndarray | None  # (G, G)


def of_sums(
    weights: np.ndarray,
    counts: np.ndarray,
    covariance: np.ndarray,
    rows: float,
    inside: np.ndarray,
    placed: np.ndarray,
    population: bool,
    z: float,
) -> Parts:
    """Counts and sums: estimate ± z · error. About the population: what a table of as many rows is expected to hold."""
    estimate, privacy = weights @ counts, weights @ covariance @ weights.T
    sampling = None
    if population:
        second = (weights * counts) @ weights.T
        sampling = second - np.outer(estimate, estimate) / rows
        least = SMOOTH * np.max(weights**2, axis=1, initial=0.0) * (np.abs(estimate) < rows * (1 - 1e-9))
        np.fill_diagonal(sampling, np.maximum(sampling.diagonal(), 0) + least + placed)
    else:
        inside = inside + np.diag(placed)
    half = z * np.sqrt(_diagonal(privacy, inside, sampling))
    return Parts(estimate, estimate - half, estimate + half, privacy, inside, sampling)


def of_ratios(
    top: np.ndarray,
    bottom: np.ndarray,
    counts: np.ndarray,
    covariance: np.ndarray,
    inside: np.ndarray,
    placed: np.ndarray,
    population: bool,
    z: float,
) -> Parts:
    """Σ top ÷ Σ bottom. Fieller: all R for which top − R · bottom may be zero, given the errors of both.

    Where the bottom itself may be zero, no interval is finite and none is given.
    """
    a, b = top @ counts, bottom @ counts
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = a / b
        u = (top - np.nan_to_num(ratio)[:, None] * bottom) / b[:, None]
    u = np.nan_to_num(u, posinf=0.0, neginf=0.0)
    privacy = u @ covariance @ u.T
    scale = np.outer(b, b)
    scale[scale == 0] = np.inf
    inside = inside / scale
    placed = placed / np.diag(scale)
    sampling = None
    if population:
        sampling = (u * counts) @ u.T
        least = SMOOTH * np.max(u**2, axis=1, initial=0.0) * (np.abs(u).max(axis=1, initial=0.0) > 0)
        np.fill_diagonal(sampling, np.maximum(sampling.diagonal(), 0) + least + placed)
    else:
        inside = inside + np.diag(placed)
    extra = (inside.diagonal() + (sampling.diagonal() if sampling is not None else 0.0)) * b**2
    v_a, v_b = _quadratic(top, covariance), _quadratic(bottom, covariance)
    c_ab = np.einsum("gi,ij,gj->g", top, covariance, bottom, optimize=True)
    lead = b**2 - z**2 * v_b
    middle = a * b - z**2 * c_ab
    last = a**2 - z**2 * (v_a + extra)
    root = np.sqrt(np.maximum(middle**2 - lead * last, 0))
    given = (lead > 1e-9 * b**2) & (b > 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (np.where(given, (middle + sign * root) / lead, np.nan) for sign in (-1, 1))
    return Parts(np.where(given, ratio, np.nan), low, high, privacy, inside, sampling)


def _quadratic(w: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return np.einsum("gi,gi->g", w @ covariance, w)


def _diagonal(*parts: np.ndarray | None) -> np.ndarray:
    return np.maximum(sum(p.diagonal() for p in parts if p is not None), 0.0)


@final
@dataclass(frozen=True)
class Crossing:
    """Where a distribution function passes q, and the ends of the interval; None where it never surely does."""

    at: float
    low: float
    high: float


def quantile(
    below: np.ndarray, error: np.ndarray, low: np.ndarray, high: np.ndarray, step: float, z: float
) -> Crossing:
    """Invert `below`: at each edge of the cells (K + 1,), rows below it less q of all, with its standard error.

    Cells hold values from low to high (K,); inside a cell of several values they lie evenly, a single value is a step.
    """
    rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
    upper, lower = below + z * error, below - z * error
    return Crossing(_first(rising, low, high, step), _first(upper, low, high, step), _last(lower, low, high, step))


def _first(curve: np.ndarray, low: np.ndarray, high: np.ndarray, step: float) -> float:
    """The least value at which the curve, from edge to edge, reaches zero."""
    reached = np.flatnonzero(curve[1:] >= 0)
    if len(reached) == 0:
        return float(high[-1])
    return _place(int(reached[0]), curve, low, high, step)


def _last(curve: np.ndarray, low: np.ndarray, high: np.ndarray, step: float) -> float:
    """The greatest value at which the curve is still at or below zero."""
    under = np.flatnonzero(curve[:-1] <= 0)
    if len(under) == 0:
        return float(low[0])
    return _place(int(under[-1]), curve, low, high, step)


def _place(cell: int, curve: np.ndarray, low: np.ndarray, high: np.ndarray, step: float) -> float:
    first, last = float(curve[cell]), float(curve[cell + 1])
    if high[cell] <= low[cell]:
        return float(low[cell])
    along = 0.0 if first >= 0 else 1.0 if last <= first else min(max(-first / (last - first), 0.0), 1.0)
    span = high[cell] - low[cell] + step
    return float(min(max(low[cell] - step / 2 + along * span, low[cell]), high[cell]))


def shown(number: float) -> float | None:
    """None in place of NaN."""
    return None if math.isnan(number) else float(number)
