"""Choose: the column that tells the classes most, by noisy scores. Only its index leaves the room.

The score of a column is by how many rows its label × column table departs from independence:

    u = Σ over values v and classes y of (T[y, v] − π[y] · T[·, v])⁺

with the classes' shares π from what was released before, on a binary grid, so that scores are whole numbers. A row of
class y moves one of these differences up by 1 − π[y] and the others down by as much in all, so it moves u by at most
1 − π[y]: by less than 1, whatever the number of values. Gaussian noise on all tables would cost as if all of them were
published; a selection costs as one (`losses.py`).
"""

from __future__ import annotations

import math

from torch import Tensor

from dpmerf.accounting.unit import Unit
from dpmerf.features.algebra import FeatureMap
from dpmerf.private.noise import NoiseSource

SHARE_BITS = 20  # of a class's share: times 2³⁶ rows stays below 2⁶³


def choose(exact: Tensor, phi: FeatureMap, shares: Tensor, unit: Unit, loss_range: float, noise: NoiseSource) -> int:
    """The block of `phi`, a label × column table each, that is chosen. `exact` are its sums before noise.

    Formal guarantee: the loss has at most the given range, for `unit`.
    """
    parts = integer_shares(shares)
    tables = zip(phi.blocks, exact.split([b.dim for b in phi.blocks]), strict=True)
    scores = [score(sums.view(len(parts), -1) // block.integer_norm, parts) for block, sums in tables]
    return noise.choose(scores, math.nextafter(2 * moved(parts, unit) / loss_range, math.inf))


def moved(parts: Tensor, unit: Unit) -> float:
    """By how much a unit can move any score, in units of 2⁻²⁰ rows."""
    most = float(max(2**SHARE_BITS - int(parts.min()), 1))
    return unit.sensitivity(most, 2 * most)


def score(table: Tensor, parts: Tensor) -> int:
    """(C, values) counts -> u, in units of 2⁻²⁰ rows.

    >>> import torch
    >>> score(torch.tensor([[8, 0], [0, 8]]), integer_shares(torch.tensor([0.5, 0.5]))) / 2**SHARE_BITS
    8.0
    """
    apart = table * 2**SHARE_BITS - parts[:, None] * table.sum(0)
    return int(apart.clamp_min(0).sum())


def integer_shares(shares: Tensor) -> Tensor:
    """(C,) shares as multiples of 2⁻²⁰ that add up to 1 exactly."""
    parts = (shares.double().clamp(0, 1) * 2**SHARE_BITS).floor().long()
    parts[parts.argmax()] += 2**SHARE_BITS - parts.sum()
    return parts
