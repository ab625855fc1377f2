"""Inside: how the fine cells share a bin's mass, class by class. Noisy counts, shrunk as far as their noise demands."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from dpmerf.encoding.binning import Binning, to_simplex
from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.tails import Runs, TailSettings, tail_weights, toward_tail
from dpmerf.plan.noisy_tables import Noisy
from dpmerf.plan.queries.histograms import Histograms, noisy_histograms
from dpmerf.release import Release

TAILS = TailSettings()


def fine_shares(release: Release, binning: Binning, noisy: Noisy, t: Targets, s: Settings) -> dict[str, Tensor]:
    """Column -> (C, fine cells) shares that add up to 1 within each bin.

    Parts share the mass of their bin by what both histograms and label × column tables say of them, cells that of
    their part; then the parts of a bin are shared out anew in each class.
    """
    histograms, sigma = noisy_histograms(release)
    found = {name: torch.ones(len(t.classes), len(cells)).double() for name, cells in binning.bin_of.items()}
    for name, histogram in histograms.items():
        found[name] = _column(binning, noisy, t, name, histogram, sigma[name], s)
    for name, other in release.plan.query(Histograms).alike:
        found[name] = _as(binning, name, other, found[other])
    return found


def _as(binning: Binning, name: str, other: str, shares: Tensor) -> Tensor:
    """(C, fine cells) shares of a column that is spread as another: what lies in its cells there."""
    size, theirs = binning.grid.numeric[name].size, binning.grid.numeric[other].size
    into = torch.from_numpy(binning.grid.cells_of(other, name))
    inside = torch.zeros(len(shares), size, dtype=torch.float64).index_add(1, into, shares[:, :theirs])
    return torch.cat([inside, torch.ones(len(shares), len(binning.bin_of[name]) - size).double()], dim=1)


def _column(
    binning: Binning, noisy: Noisy, t: Targets, name: str, histogram: Tensor, sigma: float, s: Settings
) -> Tensor:
    C, bin_of, part_of = len(t.classes), binning.bin_of[name], binning.part_of[name]
    counts = noisy.parts.get(name)  # (C, parts)
    by_class: Tensor | None = None
    if name in t.layout.names:
        by_class = t.singles[:, t.layout.span(t.layout.names.index(name))].double()  # (C, bins)
    found = torch.zeros(C, len(histogram), dtype=torch.float64)
    for b in range(int(bin_of.max()) + 1):
        cells = torch.nonzero(bin_of == b).flatten()
        parts = part_of[cells] - int(part_of[cells].min())
        total = max(float(by_class[:, b].sum() if by_class is not None else histogram[cells].sum()), 1.0)
        widths, sloped = _widths(binning, name, cells)
        ends = _outermost(binning, name, b)
        masses = torch.zeros(int(parts.max()) + 1, dtype=torch.float64).index_add(0, parts, histogram[cells])
        variance = torch.bincount(parts).double() * sigma**2
        here = counts[:, part_of[cells].unique()].double() if counts is not None else None  # (C, parts of the bin)
        runs = None
        if here is not None:
            other = C * noisy.part_sigma**2
            masses = (masses / variance + here.sum(0) / other) / (1 / variance + 1 / other)
            variance = 1 / (1 / variance + 1 / other)
            runs = Runs((parts == torch.arange(len(masses))[:, None]).double().numpy(), here.sum(0).numpy(), other**0.5)
        tail, noise = s.shaped and any(ends), sigma if s.shaped else math.inf
        if tail:
            fading = _tail(histogram[cells], widths, sigma, total, ends, runs)
            sloping = _slope(histogram[cells], widths, sigma, total)  # only where it fits better by more than chance
            tail = _misfit(histogram[cells], fading, sigma) <= (
                _misfit(histogram[cells], sloping, sigma) + TAILS.outlier**2
            )
            widths = fading if tail else widths
        spread = torch.zeros_like(masses).index_add(0, parts, widths)
        share = _shrink(masses, spread, float(variance.mean()) ** 0.5 if s.shaped else math.inf, total, sloped, tail)
        inside = torch.zeros(len(cells), dtype=torch.float64)  # of its part
        for k in range(len(share)):
            own = torch.nonzero(parts == k).flatten()
            mass = max(total * float(share[k]), 1.0)
            inside[own] = _shrink(histogram[cells[own]], widths[own], noise, mass, sloped, tail)
        of_class = share.expand(C, -1)
        if here is not None and by_class is not None and C > 1 and len(share) > 1:
            of_class = _split(here, by_class[:, b], share, noisy.part_sigma, s.part_rounds)
        found[:, cells] = of_class[:, parts] * inside
    return found


def _split(counts: Tensor, classes: Tensor, share: Tensor, sigma: float, rounds: int) -> Tensor:
    """(C, k) shares of a bin's parts in each class: as far from the shares of all as the noise lets us see."""
    classes = classes.clamp_min(1e-3)
    prior = classes[:, None] * share
    apart = counts - prior
    apart = apart - apart.mean(dim=1, keepdim=True)
    noise = (len(share) - 1) * sigma**2
    kept = (1 - noise / apart.square().sum(dim=1).clamp_min(1e-9)).clamp_min(0)
    found = to_simplex(prior + kept[:, None] * apart, classes) + 1e-6 * prior + 1e-12
    for _ in range(rounds):
        found = found * (share * classes.sum() / found.sum(0).clamp_min(1e-12))
        found = found * (classes / found.sum(1).clamp_min(1e-12))[:, None]
    return found / found.sum(1, keepdim=True)


def _widths(binning: Binning, name: str, cells: Tensor) -> tuple[Tensor, bool]:
    """The cells' widths in levels, and whether they lie on a line; categories and null count 1 each."""
    fine = binning.grid.numeric.get(name)
    if fine is None or int(cells[-1]) >= fine.size:
        return torch.ones(len(cells), dtype=torch.float64), False
    return torch.from_numpy(fine.widths.astype(np.float64))[cells], True


def _outermost(binning: Binning, name: str, b: int) -> tuple[bool, bool]:
    """Whether a bin of several cells is the lowest and whether it is the highest of a column of numbers."""
    fine, bin_of = binning.grid.numeric.get(name), binning.bin_of[name]
    if fine is None or int((bin_of == b).sum()) < 3:
        return False, False
    return int(bin_of[0]) == b, int(bin_of[fine.size - 1]) == b


def _tail(
    noisy: Tensor, widths: Tensor, sigma: float, total: float, ends: tuple[bool, bool], runs: Runs | None
) -> Tensor:
    """(k,) what the cells of an outermost bin should hold; a bin that is both goes outward from its largest count."""
    counts, sizes = noisy.numpy().astype(np.float64), widths.numpy()
    peak = int(np.argmax(counts / sizes)) if ends[0] and ends[1] else len(counts) if ends[0] else 0
    low, high = counts[:peak].sum(), counts[peak:].sum()
    found = np.zeros(len(counts))
    for side, mass in ((np.arange(peak)[::-1], max(low, 0.0)), (np.arange(peak, len(counts)), max(high, 0.0))):
        if len(side):
            mass = total * mass / max(low + high, 1e-9) if ends[0] and ends[1] else total
            found[side] = mass * tail_weights(counts[side], sizes[side], sigma, mass, TAILS, runs and runs.on(side))
    return torch.from_numpy(np.maximum(found, 1e-12))


def _misfit(noisy: Tensor, counts: Tensor, sigma: float) -> float:
    """How far noisy counts lie from these, in units of the noise; no cell counts for more than an outlier does."""
    return float(((noisy - counts) / sigma).square().clamp_max(TAILS.outlier**2).sum())


def _shrink(noisy: Tensor, widths: Tensor, sigma: float, total: float, sloped: bool, tail: bool = False) -> Tensor:
    """James–Stein towards a flat density, towards a slope where one stands out of the noise, or towards a tail."""
    if len(noisy) == 1:
        return torch.ones(1, dtype=torch.float64)
    if tail:
        return torch.from_numpy(toward_tail(noisy.numpy().astype(np.float64), widths.numpy(), sigma, total, TAILS))
    fitted = int(sloped and len(noisy) > 3)
    prior = _slope(noisy, widths, sigma, total) if fitted else total * widths / widths.sum()
    apart = noisy - prior
    signal = max(float(apart.square().sum()) / max(len(noisy) - fitted, 1) - sigma**2, 0.0)
    share = to_simplex(prior + apart * signal / (signal + sigma**2), total)
    return share / share.sum()


def _slope(noisy: Tensor, widths: Tensor, sigma: float, total: float) -> Tensor:
    """(k,) counts of a density that is flat, or as steep as stands out of the noise."""
    prior = total * widths / widths.sum()
    x = widths.cumsum(0) - widths / 2
    z = widths * (x - (widths * x).sum() / widths.sum())
    zz = float(z @ z) + 1e-12
    slope = float(z @ (noisy - prior)) / zz
    slope *= max(1 - sigma**2 / (slope**2 * zz + 1e-12), 0.0)
    prior = (prior + slope * z).clamp_min(0)
    return prior * total / prior.sum()
