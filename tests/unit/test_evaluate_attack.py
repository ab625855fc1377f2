"""The membership game: never above a true claim, clearly above a false one."""

import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmerf.accounting.gaussian import epsilon_of, mu_of
from dpmerf.errors import DpmerfError
from dpmerf.evaluate.attack import clopper_pearson, membership_game, nearest_record
from dpmerf.evaluate.views import Rows
from dpmerf.private.measure import measure
from dpmerf.private.noise import NoiseSource, OpenDPGaussian
from dpmerf.schema import Schema
from privacy.variants import antipodal

SCHEMA = Schema.parse("""
label = "ill"
[columns.age]
kind = "integer"
min = 0
max = 9
[columns.ill]
kind = "flag"
""")
EPSILON, DELTA = 1.0, 1e-5


def gaussian(noise: float, seed: int):
    """A release of one number whose sensitivity is 1, with `noise` times the noise that (1, 1e-5) asks for."""
    rng = np.random.default_rng(seed)
    sigma = noise / mu_of(EPSILON, DELTA)
    return lambda inside, trial: float(inside) + sigma * rng.standard_normal()


@pytest.mark.privacy
def test_correct_noise_never_shows_more_than_was_claimed():
    for seed in range(40):
        found = membership_game(gaussian(1.0, seed), 2000, DELTA, EPSILON)
        assert not found.exceeds_claim and found.epsilon_lower <= EPSILON and found.epsilon_lower_any <= EPSILON


@pytest.mark.privacy
def test_half_the_noise_is_caught():
    for seed in range(5):
        found = membership_game(gaussian(0.5, seed), 6000, DELTA, EPSILON)
        assert found.exceeds_claim and found.epsilon_lower > 1.3 * EPSILON


def test_the_bound_comes_near_the_truth_with_many_trials():
    found = membership_game(gaussian(0.25, 0), 20_000, DELTA, EPSILON)
    true = epsilon_of(4 * mu_of(EPSILON, DELTA), DELTA)
    assert 0.85 * true < found.epsilon_lower <= true


class Spoiled(NoiseSource):
    """The real source with a planted bug: a fraction of the noise."""

    name = "TEST-ONLY spoiled noise"

    def __init__(self, fraction: float) -> None:
        self.fraction = fraction

    def add(self, sums, sigma, advance=None):
        return OpenDPGaussian().add(sums, sigma * self.fraction, advance)

    def choose(self, scores, scale):
        return OpenDPGaussian().choose(scores, scale * self.fraction)


def release_game(fraction: float, trials: int):
    """Real releases of two neighbouring tables, told apart by the known difference of their sums."""
    pair = antipodal()  # plan at (1, 1e-5), and the pair of tables that uses its whole sensitivity
    exact = [measure(t, pair.plan, noise=Silent()).sums for t in (pair.out, pair.inside)]
    direction = {name: (exact[1][name] - exact[0][name]).double() for name in exact[0]}

    def play(inside: bool, trial: int) -> float:
        release = measure(pair.inside if inside else pair.out, pair.plan, noise=Spoiled(fraction))
        return float(sum((release.sums[name].double() @ direction[name]) for name in direction))

    return membership_game(play, trials, DELTA, EPSILON)


class Silent(NoiseSource):
    """No noise: the attacker of the game knows both tables."""

    name = "TEST-ONLY no noise"

    def add(self, sums, sigma, advance=None):
        return sums.clone()

    def choose(self, scores, scale):
        return scores.index(max(scores))


@pytest.mark.privacy
def test_the_game_on_real_releases_with_correct_noise():
    """At 95 % a game may be wrong; bounds on both rates make that 1 in 400, and twice in five 6 in 100,000."""
    games = [release_game(1.0, 700) for _ in range(5)]
    assert all(g.epsilon_claimed == EPSILON and g.trials == 700 for g in games)
    assert sum(g.exceeds_claim for g in games) <= 1


@pytest.mark.privacy
@pytest.mark.slow
def test_the_game_on_real_releases_with_half_the_noise():
    found = release_game(0.5, 4000)
    assert found.exceeds_claim and found.epsilon_lower > 1.2 * EPSILON


def test_clopper_pearson_against_known_limits():
    from scipy.stats import beta

    for k, n in ((0, 20), (3, 20), (20, 20), (700, 1333)):
        low, high = clopper_pearson(k, n, 0.025)
        assert low == pytest.approx(beta.ppf(0.025, k, n - k + 1) if k else 0, abs=1e-9)
        assert high == pytest.approx(beta.ppf(0.975, k + 1, n - k) if k < n else 1, abs=1e-9)


def test_a_perfect_attacker_gives_a_finite_bound():
    found = membership_game(lambda inside, trial: float(inside), 300, DELTA)
    assert found.true_positive_rate == 1 and found.false_positive_rate == 0
    assert math.isfinite(found.epsilon_lower) and found.epsilon_lower > 4 and not found.exceeds_claim


def test_a_useless_attacker_shows_nothing():
    found = membership_game(lambda inside, trial: 0.0, 300, DELTA, EPSILON)
    assert found.epsilon_lower == 0 and found.epsilon_lower_any == 0


@pytest.mark.parametrize(("trials", "confidence"), [(10, 0.95), (100, 1.0), (100, float("nan"))])
def test_senseless_games_are_refused(trials, confidence):
    with pytest.raises(DpmerfError):
        membership_game(lambda inside, trial: 0.0, trials, DELTA, EPSILON, confidence)


def test_nearest_records_are_shown_and_never_called_a_guarantee():
    rng = np.random.default_rng(0)

    def draw(n: int) -> Rows:
        return Rows.read(pa.table({"age": rng.integers(0, 10, n), "ill": rng.random(n) < 0.5}), SCHEMA)

    train = draw(200)
    found = nearest_record(train, train, draw(200), "the real training rows", 100, seed=0)
    assert found.copies == 1 and found.guarantee is False and found.covered is False
    assert "not a privacy guarantee" in found.note
    assert torch.is_tensor(train.batch.numbers)  # rows were not changed
