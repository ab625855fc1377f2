"""Tones: how much of a picture is black, how much white, and how much of each grey between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from dpmerf.features.dense import Dense
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

TOP = 255
GREYS = 15  # bins between pure black and pure white
BINS = GREYS + 2


@final
@dataclass(frozen=True)
class Tones(Dense):
    """The histogram of a picture's pixel levels, channel by channel: black, 15 greys, white.

    A channel's shares are not negative and add up to 1, so their norm is at most 1; c channels are divided by √c.
    Counts are whole numbers: nothing here depends on an order. Not smooth: generators match it when they draw.

    >>> Tones(1, 4)(torch.tensor([[0.0, 0.0, 0.0, 1.0]], dtype=torch.float64))[0, [0, -1]].tolist()
    [0.75, 0.25]
    """

    channels: int
    pixels: int  # of one channel

    @property
    def name(self) -> str:
        return "tones"

    @property
    def dim(self) -> int:
        return self.channels * BINS

    def __call__(self, numbers: Tensor) -> Tensor:
        n = len(numbers)
        level = torch.round(numbers.detach().double() * TOP).clamp(0, TOP).long()
        groups = torch.arange(n * self.channels).view(-1, 1) * BINS
        place = bin_of(level).view(-1, self.pixels) + groups
        counts = torch.bincount(place.flatten(), minlength=n * self.dim).view(n, self.dim)
        return counts.to(numbers.dtype) / (self.pixels * math.sqrt(self.channels))


def bin_of(level: Tensor) -> Tensor:
    """0 for black, BINS − 1 for white, else the grey's bin."""
    grey = 1 + torch.div((level - 1) * GREYS, TOP - 1, rounding_mode="floor")
    return torch.where(level == 0, 0, torch.where(level == TOP, BINS - 1, grey))


def quantiles(shares: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Pixel values in [0, 1] at cumulative shares `at`, for a histogram: greys spread evenly within their bins.

    >>> half = np.array([0.5] + [0.0] * GREYS + [0.5])
    >>> quantiles(half, np.array([0.2, 0.9])).round().tolist()
    [0.0, 1.0]
    """
    last = [np.flatnonzero(bin_of(torch.arange(TOP + 1)).numpy() == b)[-1] for b in range(1, BINS - 1)]
    ends = np.array([0.0, 0.0, *((level + 0.5) / TOP for level in last), 1.0])
    return np.interp(at, np.concatenate([[0.0], np.cumsum(shares)]), ends)
