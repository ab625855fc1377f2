"""Places: how far into its bin a row lies, and the fine cell that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

BELOW_ONE = 1 - 2**-40


def place_of(bin_of: Tensor, shares: Tensor, cells: Tensor, rng: torch.Generator) -> Tensor:
    """(n,) fine cells -> (n,) how far into their bins, from 0 to 1, rows lie whose cells are these."""
    members, sizes, ladder = _ladder(bin_of, shares)
    at = torch.empty_like(members)
    at[members] = torch.arange(len(members))
    above = ladder[at[cells]] - bin_of[cells]
    first = (sizes.cumsum(0) - sizes)[bin_of[cells]]
    below = torch.where(at[cells] > first, ladder[at[cells] - 1] - bin_of[cells], 0.0)
    return below + (above - below) * torch.rand(len(cells), generator=rng, dtype=torch.float64)


def draw_inside(
    bin_of: Tensor, shares: Tensor, bins: Tensor, place: Tensor, rng: torch.Generator, evened: bool
) -> Tensor:
    """(n,) bins -> (n,) fine cells: where rows' places are, if each cell of a bin is as long as its share.

    Evened, rows of a bin share its cells out in the order of their places: the shares are met as evenly as n allows.
    """
    members, sizes, ladder = _ladder(bin_of, shares)
    if len(sizes) == len(bin_of):
        return members[bins]
    place = place.double().clamp(0, BELOW_ONE)
    if not evened:
        return members[torch.searchsorted(ladder, bins + place, right=True)]
    counts = torch.bincount(bins, minlength=len(sizes))
    order = (bins + place).argsort()
    ordered = bins[order]
    rank = torch.arange(len(bins)) - (counts.cumsum(0) - counts)[ordered]
    point = (rank + torch.rand(len(bins), generator=rng, dtype=torch.float64)) / counts[ordered]
    found = members[torch.searchsorted(ladder, ordered + point.clamp_max(BELOW_ONE), right=True)]
    return torch.zeros_like(bins).scatter(0, order, found)


def _ladder(bin_of: Tensor, shares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cells, bin by bin; how many each bin has; and where each ends: those of bin b lie between b and b + 1."""
    members = bin_of.argsort(stable=True)
    sizes = torch.bincount(bin_of)
    weight = shares[members].double().clamp_min(0)
    empty = torch.zeros(len(sizes), dtype=torch.float64).index_add(0, bin_of[members], weight) <= 0
    weight = torch.where(empty[bin_of[members]], 1.0, weight)
    total = torch.zeros(len(sizes), dtype=torch.float64).index_add(0, bin_of[members], weight)
    ladder = bin_of[members] + _within(weight, sizes) / total[bin_of[members]]
    ladder[sizes.cumsum(0) - 1] = (torch.arange(len(sizes)) + 1).double()
    return members, sizes, ladder


def _within(weight: Tensor, sizes: Tensor) -> Tensor:
    """Cumulative sums that start anew with every bin."""
    whole = weight.cumsum(0)
    before = torch.cat([torch.zeros(1, dtype=whole.dtype), whole])[sizes.cumsum(0) - sizes]
    return whole - before.repeat_interleave(sizes)
