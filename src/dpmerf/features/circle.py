"""Circle: cos and sin of angles, the same bits everywhere on the private side, fused for training on the other.

Library cosines differ in the last bit between processors and library versions, and some of them between the places of
a vector register: a row's features would then depend on where it was computed and beside whom. In float64 we look both
up at the nearest of 2¹⁵ points of the circle: a few correctly rounded operations, each on one element alone, which
every machine does alike. An angle is off by at most 2π/2¹⁶, as often up as down: a feature by less than 10⁻⁴ of its
scale, the mean over many rows by far less than any noise. cos² + sin² ≤ 1 holds pair by pair.
"""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

POINTS = 2**15
_PER_RADIAN = POINTS / (2 * math.pi)
_ROUNDER = 1.5 * 2**52  # x + this has the nearest whole number to x in its last bits
_PRECISION = 96  # bits of the integers that the table is computed with
_BLOCK = 2**16  # elements looked up at a time
_OWN = threading.local()
_SAFETY = 1 - 2.0**-50  # outweighs roundings


def cos_sin(angles: Tensor) -> Tensor:
    """(n, m) -> (n, 2m): cosines, then sines, divided by √m, so that every row has norm 1 (at most 1 in float64).

    >>> cos_sin(torch.zeros(1, 4)).tolist()
    [[0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    if angles.dtype == torch.float64 and not angles.requires_grad:
        return torch.from_numpy(_looked_up(np.ascontiguousarray(angles.numpy())))
    return torch.cat([torch.cos(angles), torch.sin(angles)], dim=1) / math.sqrt(angles.shape[1])


def _looked_up(angles: np.ndarray) -> np.ndarray:
    """(n, m) float64 -> (n, 2m), divided by √m. Angles are finite and below 2³⁰, as those of numbers in [0, 1] are."""
    n, m = angles.shape
    cosines, sines = _scaled_table(m)
    found = np.empty((n, 2 * m))
    rows = max(1, _BLOCK // m)
    for start in range(0, n, rows):
        part = angles[start : start + rows]
        shifted = _scratch(rows * m)[: part.size].reshape(part.shape)
        np.multiply(part, _PER_RADIAN, out=shifted)
        shifted += _ROUNDER
        place = shifted.view(np.int64)
        place &= POINTS - 1
        cosines.take(place, out=found[start : start + rows, :m], mode="clip")
        sines.take(place, out=found[start : start + rows, m:], mode="clip")
    return found


def _scratch(size: int) -> np.ndarray:
    """A buffer that stays in this thread's cache."""
    if getattr(_OWN, "size", -1) < size:
        _OWN.size, _OWN.buffer = size, np.empty(size)
    return _OWN.buffer  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def _scaled_table(m: int) -> tuple[np.ndarray, np.ndarray]:
    cosines, sines = _table()
    scale = _SAFETY / math.sqrt(m)
    return cosines * scale, sines * scale


@lru_cache(maxsize=1)
def _table() -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of k·2π/2¹⁵, computed in integers, so that no library's cosine is trusted."""
    one = 1 << _PRECISION
    turn = 2 * _pi()  # in units of 2⁻⁹⁶
    c, s = one, 0
    step_c, step_s = _small(turn // POINTS)
    cosines, sines = np.empty(POINTS), np.empty(POINTS)
    for k in range(POINTS // 4):  # a quarter; the others are its mirror images
        cosines[k], sines[k] = c / one, s / one
        c, s = (c * step_c - s * step_s) >> _PRECISION, (s * step_c + c * step_s) >> _PRECISION
    q = POINTS // 4
    cosines[q : 2 * q], sines[q : 2 * q] = -sines[:q], cosines[:q]
    cosines[2 * q :], sines[2 * q :] = -cosines[: 2 * q], -sines[: 2 * q]
    return cosines, sines


def _small(angle: int) -> tuple[int, int]:
    """cos and sin of a small angle by their series, all in units of 2⁻⁹⁶."""
    totals, term = [0, 0], 1 << _PRECISION
    for k in range(1, 40):
        totals[(k - 1) % 2] += term if (k - 1) % 4 < 2 else -term
        term = (term * angle >> _PRECISION) // k
    return totals[0], totals[1]


def _pi() -> int:
    """π = 16·arctan(1/5) − 4·arctan(1/239), in units of 2⁻⁹⁶."""

    def arctan(n: int) -> int:
        total, power, k = 0, (1 << (_PRECISION + 32)) // n, 0
        while power:
            total += power // (2 * k + 1) * (-1) ** k
            power, k = power // (n * n), k + 1
        return total

    return (16 * arctan(5) - 4 * arctan(239)) >> 32
