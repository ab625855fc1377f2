"""A source that adds no noise and notes what was to be given some: for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, final

import torch

from dpmerf.private.noise import NoiseSource


@final
class Recorder(NoiseSource):
    """Notes what was to be given noise, and how much; adds none."""

    name: ClassVar[str] = "TEST-ONLY recorder"

    def __init__(self) -> None:
        self.calls: list[tuple[torch.Tensor, float]] = []

    def add(self, sums: torch.Tensor, sigma: float, advance: Callable[[int], object] | None = None) -> torch.Tensor:
        self.calls.append((sums.clone(), sigma))
        return sums

    def choose(self, scores: list[int], scale: float) -> int:
        return scores.index(max(scores))
