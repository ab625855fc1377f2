"""Cuts: where to cut a column's fine cells into bins, and bins into parts, given the (noisy) mass of each cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CLEAR = 4.0  # times its noise: a count that is no accident
SPIKE = 4.0  # times either neighbour: a cell in which one value is most of it
DEEP = 0.5  # a valley lies below this part of the lower of its two peaks
OWN, OWN_OF_MANY = 3.0, 1.0  # times its noise: the least count of a category with a bin of its own, of few or many
MOST_CATEGORIES, ALWAYS = 512, 64  # such categories of all columns together, and of each column at least


def most_categories(sizes: Sequence[int]) -> int:
    """How many categories of a column may keep a bin of their own, by the sizes of all columns of categories.

    >>> most_categories([5, 60, 500]), most_categories([500, 900, 80])
    (512, 170)
    """
    return max(MOST_CATEGORIES // max(sum(size > ALWAYS for size in sizes), 1), ALWAYS)


def nearest_counts(noisy: np.ndarray, total: float) -> np.ndarray:
    """Noisy counts -> the nearest that are not negative and add up to `total`.

    >>> nearest_counts(np.array([90.0, 60.0, -50.0]), 100.0).tolist()
    [65.0, 35.0, 0.0]
    """
    ordered = -np.sort(-np.asarray(noisy, dtype=np.float64))
    excess = np.cumsum(ordered) - max(total, 1e-9)
    last = max(int((ordered - excess / np.arange(1, len(ordered) + 1) > 0).sum()), 1) - 1
    return np.maximum(noisy - excess[last] / (last + 1), 0.0)


def cut_categories(mass: np.ndarray, sigma: float, most: int) -> np.ndarray:
    """Categories that stand out of the noise keep a bin of their own, at most so many; the rest share one."""
    own = np.zeros(len(mass), bool)
    own[np.argsort(-mass)[:most]] = True
    own &= mass > max((OWN_OF_MANY if len(mass) > ALWAYS else OWN) * sigma, 1.0)
    if (~own).sum() <= 1 or len(mass) <= 2:
        return np.arange(len(mass))
    if not own.any():
        own[np.argmax(mass)] = True
    return np.where(own, np.cumsum(own) - 1, own.sum())


def cut_numbers(
    mass: np.ndarray,
    widths: np.ndarray,
    nullable: bool,
    sigma: float,
    rows: float,
    bins: int,
    always: frozenset[int] = frozenset(),
) -> np.ndarray:
    """About `bins` bins of equal mass. Heavy single values stand alone, a valley between two peaks is always a cut (so
    are the first cells that `always` names), and a bin below the noise joins a neighbour.
    """
    size = len(mass) - nullable
    p = mass[:size]
    clear = max(3 * sigma, 1.0)
    spike = (widths == 1) | (p > SPIKE * np.maximum(np.r_[p[1:], 0.0], np.r_[0.0, p[:-1]]))
    alone = p > clear if size <= 2 * bins else spike & (p > max(3 * sigma, rows / (2 * bins)))
    shared = max(bins - int(alone.sum()), min(8, bins), 1)
    target = max(p[~alone].sum() / shared, 4 * sigma)
    cuts = _valleys(p, widths, alone, sigma, bins // 2) | always
    bin_of, current, filled, is_open = np.zeros(len(mass), np.int64), -1, 0.0, False
    for i in range(size):
        if alone[i]:
            current, is_open = current + 1, False
        elif not is_open or i in cuts or filled + 0.5 * p[i] >= target:
            current, filled, is_open = current + 1, p[i], True
        else:
            filled += p[i]
        bin_of[i] = current
    _merge_faint(bin_of[:size], p, alone, min(target / 3, 2 * sigma))
    _, bin_of[:size] = np.unique(bin_of[:size], return_inverse=True)
    _merge_down(bin_of[:size], p, 2 * bins)
    if nullable:
        bin_of[-1] = bin_of[:size].max() + 1
    return bin_of


def support(counts: np.ndarray, sigma: float) -> slice:
    """The cells without the ends of the range in which noise is all there is to see.

    No bin is cut there: such an end belongs to the last bin with rows to show, and how they fade into it is
    fitted later.

    >>> support(np.array([900.0, 80.0, 4.0, -3.0, 5.0]), 5.0)
    slice(0, 2, None)
    """
    last = len(counts) - _empty_end(counts[::-1], sigma)
    return slice(_empty_end(counts[:last], sigma), last)


def _empty_end(counts: np.ndarray, sigma: float) -> int:
    """How many cells at the beginning hold nothing but noise, each and all together."""
    together = np.cumsum(counts) / np.sqrt(np.arange(1, len(counts) + 1))
    seen = np.maximum(counts, together) > CLEAR * sigma
    return int(np.argmax(seen)) if seen.any() else 0


def cut_parts(bin_of: np.ndarray, mass: np.ndarray, most: int, least: float) -> np.ndarray:
    """Each bin, a run of cells, in at most `most` runs of about equal mass, none of them meant to be below `least`."""
    part_of = np.zeros_like(bin_of)
    first = 0
    for b in range(bin_of.max() + 1):
        cells = np.flatnonzero(bin_of == b)
        weight = mass[cells]
        count = int(max(1, min(most, len(cells), weight.sum() // least)))
        middle = np.cumsum(weight) - weight / 2  # a cell goes where its middle lies
        place = np.minimum((middle * count / max(weight.sum(), 1e-9)).astype(np.int64), count - 1)
        _, place = np.unique(place, return_inverse=True)
        part_of[cells] = first + place
        first += int(place.max()) + 1
    return part_of


def _valleys(mass: np.ndarray, widths: np.ndarray, alone: np.ndarray, sigma: float, most: int) -> set[int]:
    """Where to cut: cells of least density between two peaks that both stand out of it and of the noise."""
    cells = np.flatnonzero(~alone)
    if len(cells) < 5:
        return set()
    near = np.minimum(np.arange(len(cells))[:, None] + np.arange(-1, 2), len(cells) - 1).clip(0)  # with two neighbours
    width = widths[cells][near].sum(1)
    density, noise = mass[cells][near].sum(1) / width, 2 * sigma * np.sqrt(3) / width
    found: set[int] = set()
    parts = [(0, len(cells))]
    while parts and len(found) < most:
        low, high = parts.pop(0)
        left = np.maximum.accumulate(density[low:high] - noise[low:high])
        right = np.maximum.accumulate((density[low:high] - noise[low:high])[::-1])[::-1]
        depth = DEEP * np.minimum(left, right) - density[low:high] - noise[low:high]
        at = int(np.argmax(depth)) if high > low else 0
        if high - low < 5 or depth[at] <= 0:
            continue
        found.add(int(cells[low + at]))
        parts += [(low, low + at), (low + at, high)]
    return found


def _merge_down(bin_of: np.ndarray, mass: np.ndarray, most: int) -> None:
    """Join the lightest neighbours until there are at most `most` bins: the size that the plan's price counted."""
    while (count := bin_of.max() + 1) > most:
        weight = np.bincount(bin_of, mass, count)
        j = int(np.argmin(weight[:-1] + weight[1:]))
        bin_of[bin_of > j] -= 1


def _merge_faint(bin_of: np.ndarray, mass: np.ndarray, alone: np.ndarray, faint: float) -> None:
    count = bin_of.max() + 1
    weight = np.bincount(bin_of, mass, count)
    heavy = np.zeros(count, bool)
    heavy[bin_of[alone]] = True
    for j in range(count):
        if heavy[j] or weight[j] >= faint:
            continue
        for near in (j - 1, j + 1):
            if 0 <= near < count and not heavy[near]:
                bin_of[bin_of == j] = near
                weight[near] += weight[j]
                break
