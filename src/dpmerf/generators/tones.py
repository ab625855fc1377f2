"""Tone curves: a generator's greys, bent so that each class has the tones that were released for it.

Networks leave a haze where real pictures are black. A monotone curve per class and channel, from the network's own
distribution of pixel values to the released one, removes it without moving an edge.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from dpmerf.features.tones import BINS, quantiles
from dpmerf.grid import to_simplex
from dpmerf.release import Measurement

GRID = 1024  # cells of a curve


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


def tone_curves(shares: Tensor, outputs: list[Tensor]) -> Tensor:
    """(classes, channels, GRID + 1): where each grid point of [0, 1] goes. `outputs[c]` are (n, channels, pixels)."""
    found = []
    for target, pictures in zip(shares.numpy(), outputs, strict=True):
        for channel, wanted in enumerate(target):
            have, _ = np.histogram(pictures[:, channel].numpy(), bins=GRID, range=(0.0, 1.0))
            reached = np.concatenate([[0.0], np.cumsum(have)]) / max(have.sum(), 1)
            found.append(quantiles(wanted, reached))
    return torch.from_numpy(np.stack(found)).float().view(*shares.shape[:2], GRID + 1)


def bend(numbers: Tensor, curves: Tensor, labels: Tensor) -> Tensor:
    """Pictures (n, channels · pixels) through the curves of their classes."""
    channels = curves.shape[1]
    x = numbers.view(len(numbers), channels, -1) * GRID
    low = x.floor().clamp(0, GRID - 1)
    curve = curves[labels]  # (n, channels, GRID + 1)
    left, right = curve.gather(2, low.long()), curve.gather(2, low.long() + 1)
    return (left + (right - left) * (x - low)).flatten(1)
