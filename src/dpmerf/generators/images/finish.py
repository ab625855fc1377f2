"""Finish: grain and tone curves, which give a generator's smooth pictures the pixels of real ones.

Networks leave a haze where real pictures are black. A monotone curve per class and channel, from the network's own
distribution of pixel values to the released one, removes it without moving an edge. What is left are pixels that hardly
vary within a class: grain (white noise) lets them vary, and a second curve restores the tones. How much grain: as much
as the release does not object to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from dpmerf.encoding.binning import to_simplex
from dpmerf.features.tones import BINS, quantiles
from dpmerf.generators.images.training_settings import FinishSettings
from dpmerf.plan import Measurement

LOW, HIGH = -1.0, 2.0  # grainy values lie here
CELLS = 1024  # cells of a curve from 0 to 1
GRID = round((HIGH - LOW) * CELLS)
AT_ONCE = 500  # pictures


@final
@dataclass(frozen=True)
class Finish:
    """What pictures go through after the network."""

    before: Tensor  # curves (classes, channels, GRID + 1): where each grid point goes
    grain: float
    after: Tensor  # curves again

    def __call__(self, numbers: Tensor, labels: Tensor, rng: torch.Generator) -> Tensor:
        """Pictures (n, channels · pixels) of these labels."""
        clear = bend(numbers, self.before, labels)
        return bend(clear + self.grain * torch.randn(clear.shape, generator=rng), self.after, labels)


def fitted(
    shares: Tensor, outputs: Tensor, distance: Callable[[Tensor], float], settings: FinishSettings, rng: torch.Generator
) -> Finish:
    """Curves for each strength of grain, and the strongest that `distance` hardly tells from the best.

    `outputs` are a network's pictures, (classes, n, channels, pixels); `distance` judges (classes · n, numbers).
    """
    classes, n = outputs.shape[:2]
    labels = torch.arange(classes).repeat_interleave(n)
    before = tone_curves(shares, outputs)
    clear = bend(outputs.flatten(2).flatten(0, 1), before, labels)
    noise = torch.randn(clear.shape, generator=rng)
    tried = []
    for grain in settings.grains:
        rough = clear + grain * noise
        after = tone_curves(shares, rough.view(outputs.shape))
        tried.append((distance(bend(rough, after, labels)), Finish(before, grain, after)))
    least = min(d for d, _ in tried)
    allowed = [finish for d, finish in tried if d <= least + settings.slack * max(least, 0.0)]
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
    """Pictures (n, channels · pixels) through the curves of their classes, a few at a time."""
    parts = zip(numbers.split(AT_ONCE), labels.split(AT_ONCE), strict=True)
    return torch.cat([_bent(part, curves[codes]) for part, codes in parts])


def _bent(numbers: Tensor, curve: Tensor) -> Tensor:
    """`curve` is (n, channels, GRID + 1)."""
    x = (numbers.view(*curve.shape[:2], -1).clamp(LOW, HIGH) - LOW) * CELLS
    low = x.floor().clamp(0, GRID - 1)
    left, right = curve.gather(2, low.long()), curve.gather(2, low.long() + 1)
    return (left + (right - left) * (x - low)).flatten(1)
