"""Preferred: which of the values of a fine cell rows get, by what was counted of them. Post-processing.

Values that many rows share are found where two remainders and a cell agree; round numbers and hours are given as much
more than others as their counts say, in every cell alike. Where nothing of the kind was counted and a column's rows lie
in a few cells with empty ones between them, each such cell holds one value: its roundest is the best guess.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch

from dpmerf.encoding.fine_cells import ValueDraw
from dpmerf.encoding.grain import PRIMES, SLOTS, Grain
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.plan.queries.histograms import Histograms, noisy_histograms
from dpmerf.plan.queries.preferred_values import PreferredValues, preferred_counts
from dpmerf.release import Release


def preferred(release: Release, s: Settings) -> dict[str, ValueDraw]:
    """Column -> how values are drawn from its cells; only where the release shows more than the cells."""
    plan = release.plan
    histograms, sigma = noisy_histograms(release)
    if not plan.has(PreferredValues):
        return _few_values(release, {name: found.numpy() for name, found in histograms.items()}, sigma, s)
    grains = plan.query(PreferredValues).grains(release.codec, plan.query(Histograms))
    found: dict[str, ValueDraw] = {}
    for name, grain in grains.items():
        counts, noise = preferred_counts(release, name, grain)
        cells = histograms[name].numpy()[: grain.fine.size]
        if grain.clock or grain.days:
            hours = _weights(counts["hour"], s.clear * noise) if grain.clock else np.ones(SLOTS)
            found[name] = partial(_moments, grain, hours, _weights(counts["weekday"], s.clear * noise), s.tries)
        elif grain.single:
            found[name] = Preference.of(grain, counts, noise, cells, sigma[name], release.rows_estimate, s)
    return found


@final
@dataclass(frozen=True)
class Preference:
    """Of one column: single values with their shares of their cells, and the weights of round numbers."""

    grain: Grain
    level: np.ndarray  # (cells,) the value that stands out of a cell
    share: np.ndarray  # (cells,) its share; 0: there is none
    ladder: tuple[int, ...]  # divisors, and
    odds: np.ndarray  # (cells, divisors) how often the values of a cell are multiples of each and of none larger

    @staticmethod
    def of(
        grain: Grain,
        counts: dict[str, np.ndarray],
        noise: float,
        cells: np.ndarray,
        sigma: float,
        rows: float,
        s: Settings,
    ) -> Preference:
        """From noisy counts of remainders and divisors, and of cells."""
        level, mass = _single_values(grain, [counts[f"remainder by {p}"] for p in PRIMES], noise, cells, rows, s)
        total = np.maximum(cells, np.maximum(mass, sigma))
        share = np.where(mass > 0, np.minimum(mass / total, 1.0), 0.0)
        odds = np.ones((grain.fine.size, 1))
        ladder = grain.ladder if "divisor" in counts else (1,)
        if len(ladder) > 1:
            other = np.maximum(cells - mass, 0.0)
            known = np.zeros(len(ladder))
            np.add.at(known, grain.groups(level)["divisor"], mass)
            odds = _rounded(grain, ladder, counts["divisor"] - known, noise, other, s)
        return Preference(grain, level, share, ladder, odds)

    def __call__(self, cells: np.ndarray, rng: torch.Generator) -> np.ndarray:
        """(n,) cells -> (n,) values."""
        n, fine = len(cells), self.grain.fine
        draw = torch.rand(3, n, generator=rng, dtype=torch.float64).numpy()
        low, width = fine.edges[cells], fine.widths[cells]
        level = low + np.minimum((width * draw[0]).astype(np.int64), width - 1)
        if len(self.ladder) > 1:
            which = (draw[1][:, None] > np.cumsum(self.odds, axis=1)[cells]).sum(1).clip(max=len(self.ladder) - 1)
            for k in range(1, len(self.ladder)):
                first, count = self.grain.multiples(self.ladder[k])
                rows = np.flatnonzero((which == k) & (count[cells] > 0))
                at = first[cells[rows]] + np.minimum(
                    (count[cells[rows]] * draw[0][rows]).astype(np.int64), count[cells[rows]] - 1
                )
                level[rows] = at * self.ladder[k] + self.grain.zero
        alone = draw[2] < self.share[cells]
        level = np.where(alone, self.level[cells], level)
        value = fine.axis.low + level * fine.step
        if fine.axis.step is None and alone.any():
            for cell in np.unique(cells[alone]):
                value[alone & (cells == cell)] = _short(float(value[alone & (cells == cell)][0]), fine.step)
        return np.asarray(value)


def _few_values(
    release: Release, histograms: dict[str, np.ndarray], sigmas: dict[str, float], s: Settings
) -> dict[str, ValueDraw]:
    """Columns whose rows lie in lone cells: more rows than the density on either side explains, by far."""
    found: dict[str, ValueDraw] = {}
    for name, fine in release.plan.query(Histograms).grid(release.codec).numeric.items():
        grain = Grain(release.codec.schema.columns[name], fine)
        if name not in histograms or not grain.single or fine.widths.max() == 1:
            continue
        cells, sigma = histograms[name][: fine.size], sigmas[name]
        density = np.r_[0.0, cells.clip(min=0) / fine.widths, 0.0]
        above = cells - fine.widths * np.maximum(density[:-2], density[2:])
        lone = above > np.maximum(s.clear * sigma, s.lone * cells)
        if lone.sum() >= s.lone_cells and above[lone].sum() > s.lone * cells.clip(min=0).sum():
            share = np.where(lone, above / np.maximum(cells, sigma), 0.0).clip(max=1.0)
            found[name] = Preference(grain, _roundest(grain), share, (1,), np.ones((fine.size, 1)))
    return found


def _roundest(grain: Grain) -> np.ndarray:
    """(cells,) of each cell, the level that is a multiple of the largest of 1, 5, 10, 50, … (of decimals, likewise)."""
    fine, level = grain.fine, grain.fine.edges[:-1].copy()
    for divisor in grain.ladder:
        first, count = grain.multiples(divisor)
        level = np.where(count > 0, first * divisor + grain.zero, level)
    if fine.axis.step is None:
        low, high = (fine.axis.low + edges * fine.step for edges in (fine.edges[:-1], fine.edges[1:]))
        for k in range(math.floor(math.log10(fine.step)), math.ceil(math.log10(fine.axis.high - fine.axis.low)) + 1):
            for unit in (10.0**k, 5 * 10.0**k):
                value = np.ceil(low / unit) * unit
                level = np.where(value < high, np.rint((value - fine.axis.low) / fine.step).astype(np.int64), level)
    return level


def _single_values(
    grain: Grain, remainders: list[np.ndarray], noise: float, cells: np.ndarray, rows: float, s: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """(cells,) the level that stands out of each cell, and how many rows hold it; 0 where none does."""
    fine = grain.fine
    level, mass = fine.edges[:-1].copy(), np.zeros(fine.size)
    least = max(s.clear * noise, s.least_single * rows)
    peaks = []
    for counts in remainders:
        above = counts - np.median(counts)
        peaks.append([(int(r), float(above[r])) for r in np.flatnonzero(above > least)])
    p, q = PRIMES
    beside = np.maximum(np.r_[cells[1:], 0.0], np.r_[0.0, cells[:-1]]).clip(min=0)
    found = []
    for (r, a), (k, b) in itertools.product(*peaks):
        if abs(a - b) > s.clear * noise * 2**0.5:
            continue
        first = (r + p * ((k - r) * pow(p, -1, q) % q)) % (p * q)
        number = (fine.edges[1:] - 1 - first) // (p * q) - (fine.edges[:-1] - 1 - first) // (p * q)
        held = np.where(number > 0, cells - beside, -np.inf)
        cell = int(np.argmax(held))
        if held[cell] > 0.5 * min(a, b):
            found.append((abs(a - b), r, k, cell, first, min((a + b) / 2, float(cells[cell]))))
    taken: set[tuple[int, int]] = set()
    for _, r, k, cell, first, count in sorted(found):
        if (0, r) in taken or (1, k) in taken or mass[cell] > 0:
            continue
        taken |= {(0, r), (1, k)}
        start = int(fine.edges[cell])
        options = np.arange(start + (first - start) % (p * q), fine.edges[cell + 1], p * q)[:64]
        digits = [len(f"{fine.axis.low + int(o) * fine.step:.12g}".rstrip("0")) for o in options]
        level[cell], mass[cell] = options[int(np.argmin(digits))], count
    return level, mass


def _rounded(
    grain: Grain, ladder: tuple[int, ...], counts: np.ndarray, noise: float, cells: np.ndarray, s: Settings
) -> np.ndarray:
    """(cells, divisors) shares, by weights with which the counts of divisors are met; those within noise stay."""
    number = np.stack([grain.multiples(g)[1] for g in ladder], axis=1).astype(np.float64)
    number[:, :-1] -= number[:, 1:]  # multiples of this divisor and of none larger
    cells = cells * counts.sum() / max(cells.sum(), 1.0)
    weights = np.ones(len(ladder))
    even = _expected(number, weights, cells)
    wanted = np.where(np.abs(counts - even) > s.clear * noise, np.maximum(counts, 0.0), even)
    wanted *= even.sum() / max(wanted.sum(), 1e-9)
    for _ in range(s.divisor_rounds):
        weights = (weights * (wanted + 1e-9) / (_expected(number, weights, cells) + 1e-9)).clip(
            1 / s.most_weight, s.most_weight
        )
    shares = number * weights
    return np.asarray(shares / np.maximum(shares.sum(1, keepdims=True), 1e-300))


def _expected(number: np.ndarray, weights: np.ndarray, cells: np.ndarray) -> np.ndarray:
    shares = number * weights
    return np.asarray((cells[:, None] * shares / np.maximum(shares.sum(1, keepdims=True), 1e-300)).sum(0))


def _weights(counts: np.ndarray, clear: float) -> np.ndarray:
    """(k,) relative weights, at most 1: noisy counts that are positive; all 1 if none is above `clear`."""
    found = np.maximum(counts, 0.0) if counts.max() > clear else np.ones(len(counts))
    return np.asarray(found / found.max())


def _moments(
    grain: Grain, hours: np.ndarray, weekdays: np.ndarray, tries: int, cells: np.ndarray, rng: torch.Generator
) -> np.ndarray:
    """(n,) cells -> (n,) moments, drawn anywhere in them until their hour and weekday accept them."""
    fine = grain.fine
    level = np.zeros(len(cells), dtype=np.int64)
    left = np.arange(len(cells))
    for _ in range(tries):
        draw = torch.rand(2, len(left), generator=rng, dtype=torch.float64).numpy()
        width = fine.widths[cells[left]]
        tried = fine.edges[cells[left]] + np.minimum((width * draw[0]).astype(np.int64), width - 1)
        level[left] = tried
        left = left[draw[1] >= hours[grain.slots(tried)] * weekdays[grain.weekdays(tried)]]
        if len(left) == 0:
            break
    return np.asarray(fine.axis.low + level * fine.step)


def _short(value: float, within: float) -> float:
    """The shortest decimal that is as near to a value as its level.

    >>> _short(69.99998, 1e-4)
    70.0
    """
    return next((s for k in range(18) if abs((s := float(f"{value:.{k + 1}g}")) - value) <= within / 2), value)
