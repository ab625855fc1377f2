"""Training settings: every tuned number of the generators of pictures (docs/adr/0004)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, final


@final
@dataclass(frozen=True)
class FinishSettings:
    """Grain and tone curves."""

    on: bool = True  # where tones were released
    grains: tuple[float, ...] = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)  # standard deviations to choose from
    slack: float = 0.04  # the strongest grain may raise the held-out distance by this share of the least
    numbers: int = 4_000_000  # pixels, about, from which curves are taken
    pictures: tuple[int, int] = (8, 500)  # of each class, least and most


@final
@dataclass(frozen=True)
class ImageTraining:
    """How a generator of pictures is built and trained."""

    body: Literal["default", "paper"] = "default"
    latent: int = 8
    batch: int = 100  # pictures in a step
    steps: int = 4_000
    rate: float = 5e-3
    stairs: bool = False  # the rate falls by a tenth every 600 steps, as in the paper; else along a cosine
    parts: int = 3  # the features are cut into this many; a step uses one
    held_out: float = 0.04  # of the frequencies of every block, to judge by
    check_every: int = 250  # steps
    least_per_class: int = 5  # pictures of a class in a step
    most_classes: int = 32  # in a step; with more classes a step takes some of them
    fast: float = 0.3  # of the steps, when training is cut short on request
    finish: FinishSettings = field(default_factory=FinishSettings)

    def rate_at(self, step: int, steps: int) -> float:
        """The rate of a step."""
        falling = 0.9 ** (step // 600) if self.stairs else 0.5 * (1 + math.cos(math.pi * step / steps))
        return self.rate * falling


PAPER = ImageTraining(body="paper", latent=5, steps=3_000, rate=1e-2, stairs=True, parts=1)
