"""A noise source that gives no privacy at all: reproducible, for tests. `verify` refuses its name."""

from collections.abc import Callable
from typing import final

import torch

from dpmerf.private.noise import NoiseSource


@final
class FixedNoise(NoiseSource):
    """A rounded Gaussian from a seed; every call draws the same noise again."""

    name = "TEST-ONLY fixed noise"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def add(self, sums: torch.Tensor, sigma: float, advance: Callable[[int], object] | None = None) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn(sums.shape, generator=generator, dtype=torch.float64) * sigma
        if advance is not None:
            advance(sums.numel())
        return sums + noise.round().to(torch.int64)

    def choose(self, scores: list[int], scale: float) -> int:
        generator = torch.Generator().manual_seed(self.seed)
        gumbel = -torch.empty(len(scores), dtype=torch.float64).exponential_(generator=generator).log()
        return int((torch.tensor(scores) / scale + gumbel).argmax())


@final
class SeededNoise(NoiseSource):
    """A rounded Gaussian from one stream of a seed: every call draws new noise, so that stages are independent."""

    name = "TEST-ONLY seeded noise"

    def __init__(self, seed: int = 0) -> None:
        self._rng = torch.Generator().manual_seed(seed)

    def add(self, sums: torch.Tensor, sigma: float, advance: Callable[[int], object] | None = None) -> torch.Tensor:
        noise = torch.randn(sums.shape, generator=self._rng, dtype=torch.float64) * sigma
        return sums + noise.round().to(torch.int64)

    def choose(self, scores: list[int], scale: float) -> int:
        gumbel = -torch.empty(len(scores), dtype=torch.float64).exponential_(generator=self._rng).log()
        return int((torch.tensor(scores) / scale + gumbel).argmax())
