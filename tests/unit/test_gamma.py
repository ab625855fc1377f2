"""The incomplete gamma function against PyTorch's, and against a Poisson sum."""

from __future__ import annotations

import math

import pytest
import torch

from dpmerf.release.gamma import lower_gamma, upper_gamma


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0, 17.5, 400.0, 5_307.0, 1_000_000.0])
@pytest.mark.parametrize("away", [-6.0, -3.0, -0.5, 0.0, 0.5, 3.0, 6.0, 20.0])
def test_tails_are_those_of_a_library(a: float, away: float) -> None:
    x = max(a + away * math.sqrt(a), a / 50)
    pair = torch.tensor(a, dtype=torch.float64), torch.tensor(x, dtype=torch.float64)
    assert lower_gamma(a, x) == pytest.approx(float(torch.special.gammainc(*pair)), rel=1e-5, abs=1e-30)
    if a < 1_000:  # PyTorch's own upper tail is exact there
        assert upper_gamma(a, x) == pytest.approx(float(torch.special.gammaincc(*pair)), rel=1e-5, abs=1e-30)
    assert lower_gamma(a, x) + upper_gamma(a, x) == pytest.approx(1.0, abs=1e-12)


def test_a_poisson_tail_is_its_sum() -> None:
    tail = 1 - math.fsum(math.exp(-3.7) * 3.7**k / math.factorial(k) for k in range(9))
    assert lower_gamma(9, 3.7) == pytest.approx(tail, rel=1e-10)


@pytest.mark.parametrize("a", [0.5, 2.0, 1e5])
def test_the_ends(a: float) -> None:
    assert (lower_gamma(a, 0.0), upper_gamma(a, 0.0)) == (0.0, 1.0)
    assert (lower_gamma(a, math.inf), upper_gamma(a, math.inf)) == (1.0, 0.0)
    assert (lower_gamma(a, 1e9), upper_gamma(a, 1e9)) == (1.0, 0.0)
