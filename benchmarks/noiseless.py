"""The ε = ∞ columns: a noise source that adds nothing. It lives outside the package, and `verify` refuses its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch

from dpmerf.private.noise import NoiseSource


@final
class Noiseless(NoiseSource):
    """NOT PRIVATE: the exact sums come out. For comparison with the paper's non-private column, on public data only."""

    name = "NOT PRIVATE: no noise was added, for a benchmark"

    def add(self, sums: torch.Tensor, sigma: float, advance: Callable[[int], object] | None = None) -> torch.Tensor:
        if advance is not None:
            advance(sums.numel())
        return sums.clone()

    def choose(self, scores: list[int], scale: float) -> int:
        return scores.index(max(scores))
