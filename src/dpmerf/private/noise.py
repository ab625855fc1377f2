"""The noise: a discrete Gaussian on the integers, and choices by noisy scores; exact samplers, the system's entropy."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, final

import torch
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_noisy_max
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l2_distance, linf_distance
from opendp.mod import enable_features

from dpmerf.errors import BudgetError

MAX_SIGMA = 2.0**56  # leaves 2^7 standard deviations below the end of int64
CHUNK = 8192  # coordinates handed to the sampler at a time, about 0.2 s
LOOK = 512  # coordinates of each of two draws that are looked at before a release


class NoiseSource(ABC):
    """Adds independent noise to every coordinate. Takes no seed; `name` is stamped into the release."""

    name: ClassVar[str]

    @abstractmethod
    def add(self, sums: torch.Tensor, sigma: float, advance: Callable[[int], object] | None = None) -> torch.Tensor:
        """`sums` (any shape, int64) plus noise of scale `sigma`, in the same integer units, as a new tensor.

        `advance(count)` is called after each `count` coordinates, for a progress bar.
        """

    @abstractmethod
    def choose(self, scores: list[int], scale: float) -> int:
        """An index, with probability proportional to e^(score / scale)."""


@final
class OpenDPGaussian(NoiseSource):
    """OpenDP's discrete Gaussian: P(x) proportional to e^(-x^2 / (2 sigma^2)), sampled exactly, without floats.

    Formal guarantee: `budget.discrete_delta` bounds its distance to a rounded continuous Gaussian. Sums at the end of
    int64 saturate: never wrapped, never an error that depends on rows, and a function of the noisy value alone.

    >>> OpenDPGaussian().add(torch.zeros(3, dtype=torch.int64), sigma=10.0).shape
    torch.Size([3])
    """

    name = "opendp-discrete-gaussian"

    def add(self, sums: torch.Tensor, sigma: float, advance: Callable[[int], object] | None = None) -> torch.Tensor:
        if sums.dtype != torch.int64:
            raise TypeError(f"noise is added to int64 sums, not to {sums.dtype}")
        if not (math.isfinite(sigma) and 0 < sigma <= MAX_SIGMA):
            raise BudgetError(f"sigma is {sigma}: write a number above 0 and at most 2^56 in units of the grid")
        enable_features("contrib")
        domain = vector_domain(atom_domain(T="i64"))
        gaussian = make_gaussian(domain, l2_distance(T="i64"), scale=float(sigma))
        exact: list[int] = sums.flatten().tolist()
        noisy: list[int] = []
        for start in range(0, len(exact), CHUNK):
            chunk = exact[start : start + CHUNK]
            noisy += gaussian(chunk)
            if advance is not None:
                advance(len(chunk))
        return torch.tensor(noisy, dtype=torch.int64).reshape(sums.shape)

    def choose(self, scores: list[int], scale: float) -> int:
        """The largest score plus Gumbel noise, which OpenDP compares digit by digit: exactly the exponential mechanism.

        Its loss has the range 2 · (by how much a neighbour moves any score) ÷ scale.
        """
        if not (math.isfinite(scale) and scale > 0):
            raise BudgetError(f"scale is {scale}: write a finite number above 0")
        enable_features("contrib")
        domain, metric = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
        return int(make_noisy_max(domain, metric, zero_concentrated_divergence(), scale=float(scale))(scores))


@lru_cache(maxsize=1)
def check_sampler() -> None:
    """A cheap look at the installed samplers, once per process and before budget is spent: BudgetError if they are off.

    Right ones fail with a probability below 10⁻⁹. Noise that is missing, repeated or whose spread is off by a fifth
    fails, and so does a selection that ignores scores.
    """
    source, sigma = OpenDPGaussian(), 2.0**20
    zeros = torch.zeros(LOOK, dtype=torch.int64)
    first, second = (source.add(zeros, sigma).double() / sigma for _ in range(2))
    both = torch.cat([first, second])
    spread, centre = float(both.square().mean()), float(both.mean()) * math.sqrt(len(both))
    again = float((first * second).mean()) * math.sqrt(LOOK)
    best = all(source.choose([0, 0, 1000], 1.0) == 2 for _ in range(8))
    varied = len({source.choose([5] * 64, 1000.0) for _ in range(8)}) > 1
    if not (0.7 < spread < 1.4 and abs(centre) < 6.5 and abs(again) < 6.5 and best and varied):
        raise BudgetError("the installed sampler does not draw what it should: reinstall opendp. Nothing was spent")
