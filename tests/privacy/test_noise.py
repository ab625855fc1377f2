"""The sampler draws the law that the accountant assumes, freshly every time. False alarms: below 1 in 10^6 a test."""

import inspect
import math
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from scipy import stats

from dpmerf.errors import BudgetError
from dpmerf.private.noise import CHUNK, MAX_SIGMA, NoiseSource, OpenDPGaussian
from fixed_noise import FixedNoise

pytestmark = pytest.mark.privacy
ALARM = 1e-6
WIDE = 2.0**50  # two draws of a thousand coordinates share a value with a probability of about 10^-9


def draw(count: int, sigma: float) -> np.ndarray:
    return OpenDPGaussian().add(torch.zeros(count, dtype=torch.int64), sigma).numpy()


def draw_wide(_: int = 0) -> list[int]:
    return draw(1000, WIDE).tolist()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.731, 20.5])
def test_law_at_small_scales(sigma: float) -> None:
    draws = draw(30_000, sigma)
    reach = math.ceil(12 * sigma) + 1
    points = np.arange(-reach, reach + 1)
    law = np.exp(-(points**2) / (2 * sigma**2))
    law /= law.sum()
    expected = law * len(draws)
    observed = np.array([(draws == x).sum() for x in points])
    assert observed.sum() == len(draws)
    common = expected >= 10
    cells = np.append(observed[common], observed[~common].sum())
    means = np.append(expected[common], expected[~common].sum())
    if means[-1] < 10:  # too rare for a cell of its own: joined to the middle
        middle = len(cells) // 2
        cells[middle] += cells[-1]
        means[middle] += means[-1]
        cells, means = cells[:-1], means[:-1]
    assert stats.chisquare(cells, means).pvalue > ALARM


@pytest.mark.parametrize("sigma", [2.0**10, 2.0**27, 2.0**45])
def test_law_at_large_scales(sigma: float) -> None:
    draws = draw(20_000, sigma)
    assert stats.kstest(draws / sigma, "norm").pvalue > ALARM
    low_bits = np.bincount(draws & 15, minlength=16)  # a float sampler would leave holes here
    assert stats.chisquare(low_bits).pvalue > ALARM
    lag = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(lag) * math.sqrt(len(draws)) < 5


def test_half_the_noise_would_be_noticed() -> None:
    assert stats.kstest(draw(20_000, 2.0**26) / 2.0**27, "norm").pvalue < ALARM


def test_variance_is_what_was_asked() -> None:
    z = draw(20_000, 7.8e6) / 7.8e6
    assert abs((z**2).mean() - 1) < 5 * math.sqrt(2 / len(z))
    assert abs(z.mean()) < 5 / math.sqrt(len(z))


def test_noise_is_added_and_shape_kept() -> None:
    sums = torch.arange(-6, 6, dtype=torch.int64).reshape(3, 4) * 10**9
    noisy = OpenDPGaussian().add(sums, 2.0)
    assert noisy.shape == sums.shape and noisy.dtype == torch.int64
    assert (noisy - sums).abs().max() < 40
    assert sums[0, 0] == -6 * 10**9  # the input is left alone
    assert OpenDPGaussian().add(torch.zeros(0, 3, dtype=torch.int64), 2.0).shape == (0, 3)


def test_progress_counts_every_coordinate() -> None:
    steps: list[int] = []
    OpenDPGaussian().add(torch.zeros(CHUNK + 5, dtype=torch.int64), 1.0, advance=steps.append)
    assert steps == [CHUNK, 5]


def test_calls_never_repeat() -> None:
    calls = [draw_wide() for _ in range(4)]
    assert len(set().union(*calls)) == 4 * 1000


def test_threads_never_repeat() -> None:
    with ThreadPoolExecutor(4) as threads:
        calls = list(threads.map(draw_wide, range(4)))
    assert len(set().union(*calls)) == 4 * 1000


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_never_repeat() -> None:
    before = draw_wide()  # whatever state the sampler keeps exists before the fork
    with multiprocessing.get_context("fork").Pool(3) as pool:
        calls = pool.map(draw_wide, range(6), chunksize=1)
    assert len(set().union(before, draw_wide(), *calls)) == 8 * 1000


def test_seeds_of_other_generators_do_not_matter() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    first = draw_wide()
    torch.manual_seed(1)
    np.random.seed(1)
    assert not set(first) & set(draw_wide())


def test_signature_takes_no_seed() -> None:
    assert list(inspect.signature(OpenDPGaussian).parameters) == []
    assert list(inspect.signature(OpenDPGaussian.add).parameters) == ["self", "sums", "sigma", "advance"]


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, MAX_SIGMA * 2])
def test_bad_sigma(sigma: float) -> None:
    with pytest.raises(BudgetError, match=r"^sigma is"):
        draw(1, sigma)


def test_only_integers() -> None:
    with pytest.raises(TypeError, match="int64"):
        OpenDPGaussian().add(torch.zeros(3), 1.0)


@pytest.mark.parametrize("end", [2**63 - 1, -(2**63)])
def test_sums_at_the_end_saturate_and_never_wrap(end: int) -> None:
    noisy = OpenDPGaussian().add(torch.full((200,), end), 1000.0)
    assert noisy.min() >= end - 20_000 if end > 0 else noisy.max() <= end + 20_000
    assert (noisy == end).any()


def test_fixed_noise_is_reproducible_and_says_what_it_is() -> None:
    sums = torch.zeros(50, dtype=torch.int64)
    assert torch.equal(FixedNoise(3).add(sums, 100.0), FixedNoise(3).add(sums, 100.0))
    assert not torch.equal(FixedNoise(3).add(sums, 100.0), FixedNoise(4).add(sums, 100.0))
    assert FixedNoise.name.startswith("TEST-ONLY")
    assert OpenDPGaussian.name == "opendp-discrete-gaussian"
    with pytest.raises(TypeError):
        NoiseSource()  # type: ignore[abstract]
