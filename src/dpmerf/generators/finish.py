"""Finish: grain and tone curves, which give a generator's smooth pictures the pixels of real ones.

Networks leave a haze where real pictures are black, and pixels that hardly vary within a class. Grain (white noise)
lets pixels vary; then a monotone curve per class and channel, from the distribution of the grainy values to the
released one, restores the tones without moving an edge. How much grain: as much as the release does not object to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from dpmerf.features.tones import BINS, quantiles
from dpmerf.grid import to_simplex
from dpmerf.release import Measurement

LOW, HIGH = -1.0, 2.0  # grainy values lie here
CELLS = 1024  # cells of a curve from 0 to 1
GRID = round((HIGH - LOW) * CELLS)
GRAINS = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)  # standard deviations to choose from
SLACK = 0.04  # the strongest grain may raise the held-out distance by this share of the least


@final
@dataclass(frozen=True)
class Finish:
    """What pictures go through after the network."""

    grain: float
    curves: Tensor  # (classes, channels, GRID + 1): where each grid point goes

    def __call__(self, numbers: Tensor, labels: Tensor, rng: torch.Generator) -> Tensor:
        """Pictures (n, channels · pixels) of these labels."""
        return bend(numbers + self.grain * torch.randn(numbers.shape, generator=rng), self.curves, labels)


def fitted(shares: Tensor, outputs: Tensor, distance: Callable[[Tensor], float], rng: torch.Generator) -> Finish:
    """Curves for each strength of grain, and the strongest that `distance` hardly tells from the best.

    `outputs` are a network's pictures, (classes, n, channels, pixels); `distance` judges (classes · n, numbers).
    """
    classes, n = outputs.shape[:2]
    labels = torch.arange(classes).repeat_interleave(n)
    noise = torch.randn(outputs.shape, generator=rng)
    tried = []
    for grain in GRAINS:
        rough = outputs + grain * noise
        curves = tone_curves(shares, rough)
        tried.append((distance(bend(rough.flatten(2).flatten(0, 1), curves, labels)), Finish(grain, curves)))
    least = min(d for d, _ in tried)
    allowed = [finish for d, finish in tried if d <= least + SLACK * max(least, 0.0)]
    return allowed[-1] if least > 0 else allowed[0]


def released_tones(m: Measurement, counts: Tensor, channels: int) -> Tensor:
    """(classes, channels, BINS) shares that add up to 1.

    Each class is drawn toward the mean of all classes as far as noise asks for it (James and Stein).
    """
    raw = m.values.view(len(counts), channels, BINS) / counts[:, None, None] * math.sqrt(channels)
    noise = (m.sigma / counts * math.sqrt(channels)).square() * BINS  # (classes,) E‖noise‖² of a class and channel
    mean = (raw * counts[:, None, None]).sum(dim=0) / counts.sum()
    apart = raw - mean
    kept = (1 - noise[:, None, None] / apart.square().sum(dim=2, keepdim=True).clamp_min(1e-12)).clamp(0, 1)
    return to_simplex(mean + kept * apart)


def tone_curves(shares: Tensor, outputs: Tensor) -> Tensor:
    """(classes, channels, GRID + 1): where each grid point goes. `outputs` are (classes, n, channels, pixels)."""
    found = []
    for target, pictures in zip(shares.numpy(), outputs.clamp(LOW, HIGH), strict=True):
        for channel, wanted in enumerate(target):
            have, _ = np.histogram(pictures[:, channel].numpy(), bins=GRID, range=(LOW, HIGH))
            reached = np.concatenate([[0.0], np.cumsum(have)]) / max(have.sum(), 1)
            found.append(quantiles(wanted, reached))
    return torch.from_numpy(np.stack(found)).float().view(*shares.shape[:2], GRID + 1)


def bend(numbers: Tensor, curves: Tensor, labels: Tensor) -> Tensor:
    """Pictures (n, channels · pixels) through the curves of their classes."""
    channels = curves.shape[1]
    x = (numbers.view(len(numbers), channels, -1).clamp(LOW, HIGH) - LOW) * CELLS
    low = x.floor().clamp(0, GRID - 1)
    curve = curves[labels]  # (n, channels, GRID + 1)
    left, right = curve.gather(2, low.long()), curve.gather(2, low.long() + 1)
    return (left + (right - left) * (x - low)).flatten(1)
