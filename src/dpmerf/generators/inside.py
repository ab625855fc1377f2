"""Inside: how the fine cells share a bin's mass. The noisy histogram, shrunk as far as its noise demands."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dpmerf.generators.consistent import Layout, Targets
from dpmerf.grid import Binning, to_simplex
from dpmerf.recipes import Histograms
from dpmerf.release import Release


def fine_shares(release: Release, binning: Binning, t: Targets) -> dict[str, Tensor]:
    """Column -> (fine cells,) shares that add up to 1 within each bin."""
    stage = next(s for s in release.plan.stages if isinstance(s.recipe, Histograms))
    measured = dict(zip(release.plan.schema.learned, release.measurements(stage), strict=True))
    totals = t.singles.sum(0).double()
    found = {}
    for name, m in measured.items():
        noisy, bin_of = m.values.flatten(), binning.bin_of[name]
        shares = torch.zeros(len(noisy), dtype=torch.float64)
        for b in range(int(bin_of.max()) + 1):
            cells = torch.nonzero(bin_of == b).flatten()
            total = float(totals[_position(t.layout, name, b)]) if name in t.layout.names else float(noisy[cells].sum())
            widths, sloped = _widths(binning, name, cells)
            shares[cells] = _shrink(noisy[cells], widths, m.sigma, max(total, 1.0), sloped)
        found[name] = shares
    return found


def _position(layout: Layout, name: str, b: int) -> int:
    return layout.offsets[layout.names.index(name)] + b


def _widths(binning: Binning, name: str, cells: Tensor) -> tuple[Tensor, bool]:
    """The cells' widths in levels, and whether they lie on a line; categories and null count 1 each."""
    fine = binning.grid.numeric.get(name)
    if fine is None or int(cells[-1]) >= fine.size:
        return torch.ones(len(cells), dtype=torch.float64), False
    return torch.from_numpy(fine.widths.astype(np.float64))[cells], True


def _shrink(noisy: Tensor, widths: Tensor, sigma: float, total: float, sloped: bool) -> Tensor:
    """James–Stein towards a flat density, or towards a slope where one stands out of the noise."""
    if len(noisy) == 1:
        return torch.ones(1, dtype=torch.float64)
    prior = total * widths / widths.sum()
    apart, fitted = noisy - prior, 0
    if sloped and len(noisy) > 3:
        x = widths.cumsum(0) - widths / 2
        z = widths * (x - (widths * x).sum() / widths.sum())
        zz = float(z @ z) + 1e-12
        slope = float(z @ apart) / zz
        slope *= max(1 - sigma**2 / (slope**2 * zz + 1e-12), 0.0)
        prior = (prior + slope * z).clamp_min(0)
        prior = prior * total / prior.sum()
        apart, fitted = noisy - prior, 1
    signal = max(float(apart.square().sum()) / max(len(noisy) - fitted, 1) - sigma**2, 0.0)
    share = to_simplex(prior + apart * signal / (signal + sigma**2), total)
    return share / share.sum()
