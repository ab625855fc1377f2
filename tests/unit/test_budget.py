"""The price list: the curve against high precision and dp-accounting, the sampler's bound, the unit."""

import json
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmerf.accounting import gaussian as budget
from dpmerf.accounting.curve import gaussian_deltas
from dpmerf.accounting.gaussian import (
    attacker_odds,
    compose,
    delta_of,
    discrete_delta,
    epsilon_of,
    mu_of,
    noise_multiplier,
    selection_range,
    total_variation,
)
from dpmerf.accounting.selection import selection_losses
from dpmerf.accounting.unit import Unit
from dpmerf.errors import BudgetError

epsilons = st.floats(-4, 3).map(lambda exponent: 10.0**exponent)
deltas = st.floats(-280, -0.01).map(lambda exponent: 10.0**exponent)
few = settings(max_examples=40, deadline=None)


def exact_delta(mu: float, epsilon: float) -> float:
    with mpmath.workdps(340):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2))


# --- the curve -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "sigma", "tolerance"), [(1.0, 3.731, 0.001), (0.2, 16.30, 0.005), (10.0, 0.500, 0.0005)]
)
def test_published_noise_multipliers(epsilon: float, sigma: float, tolerance: float) -> None:
    assert noise_multiplier(epsilon, 1e-5) == pytest.approx(sigma, abs=tolerance)


def test_two_composed_releases() -> None:
    each = mu_of(1.0, 1e-5) / math.sqrt(2)
    assert 1 / each == pytest.approx(5.28, abs=0.005)
    assert compose(each, each) == pytest.approx(mu_of(1.0, 1e-5), rel=1e-15)
    assert compose() == 0


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("releases", [1, 2])
def test_agrees_with_dp_accounting(epsilon: float, releases: int) -> None:
    sigma = noise_multiplier(epsilon, 1e-5) * math.sqrt(releases)
    pld = privacy_loss_distribution.from_gaussian_mechanism(sigma, value_discretization_interval=1e-3)
    theirs = pld.self_compose(releases).get_epsilon_for_delta(1e-5)
    # theirs is pessimistic: each release rounds the loss up by at most one interval
    assert epsilon - 1e-5 <= theirs <= epsilon + releases * 1e-3


@few
@given(epsilons, deltas)
def test_curve_to_full_precision(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert delta_of(mu, epsilon) == pytest.approx(exact_delta(mu, epsilon), rel=1e-12)


@few
@given(epsilons, deltas)
def test_mu_is_the_last_float_that_holds(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert delta_of(mu, epsilon) <= delta < delta_of(mu * (1 + 1e-12), epsilon)


@few
@given(st.floats(-5, 2).map(lambda exponent: 10.0**exponent), deltas)
def test_epsilon_is_the_inverse(mu: float, delta: float) -> None:
    epsilon = epsilon_of(mu, delta)
    assert delta_of(mu, epsilon) <= delta
    if epsilon > 0:
        assert mu_of(epsilon, delta) == pytest.approx(mu, rel=1e-9)


@few
@given(st.floats(-3, 1), st.floats(-3, 2), st.floats(1.001, 3))
def test_delta_is_monotone(log_mu: float, log_epsilon: float, factor: float) -> None:
    mu, epsilon = 10**log_mu, 10**log_epsilon
    assert delta_of(mu, epsilon) <= delta_of(mu * factor, epsilon)
    assert delta_of(mu, epsilon) >= delta_of(mu, epsilon * factor)


def test_extremes() -> None:
    assert delta_of(0.0, 1.0) == 0
    assert delta_of(1e-300, 1e3) == 0
    assert delta_of(1e200, 1.0) == 1
    assert delta_of(0.5, 0.0) == pytest.approx(2 * stats.norm.cdf(0.25) - 1, rel=1e-14)
    assert epsilon_of(1e-9, 1e-5) == 0
    assert epsilon_of(1e200, 0.1) == math.inf
    assert 0 < mu_of(1e-300, 1e-300) < 1e-299
    assert math.isfinite(mu_of(1e300, 1 - 1e-9))


# --- what is refused and what is warned about ------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "one", None, True])
def test_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(BudgetError, match=r"^epsilon is .*: write a number above 0, for example 1$"):
        mu_of(epsilon, 1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, math.nan, "1e-5"])
def test_bad_delta(delta: object) -> None:
    with pytest.raises(BudgetError, match=r"^delta is .*: write a number between 0 and 1, for example 1e-5$"):
        mu_of(1.0, delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("mu", [-1.0, math.nan, math.inf])
def test_bad_mu(mu: float) -> None:
    for use in (lambda: compose(1.0, mu), lambda: delta_of(mu, 1.0), lambda: epsilon_of(mu, 1e-5)):
        with pytest.raises(BudgetError, match=r"^mu is"):
            use()


def test_warnings() -> None:
    assert budget.warnings_for(1.0, 1e-6, rows=32_561) == []
    assert budget.warnings_for(1.0, 1e-6) == []
    (high,) = budget.warnings_for(11.0, 1e-6, rows=1000)
    assert "above 10" in high
    (low,) = budget.warnings_for(0.001, 1e-6, rows=1000)
    assert "drown" in low
    (lax,) = budget.warnings_for(1.0, 1e-3, rows=1000)
    assert "1/rows = 0.001" in lax and "1e-04 or less" in lax
    assert len(budget.warnings_for(1.0, 0.01)) == 1


# --- the discrete sampler --------------------------------------------------------------------------------------------


def true_laws(sigma: float) -> tuple[list[float], list[float]]:
    """The discrete Gaussian and the rounded continuous one, where they matter."""
    reach = math.ceil(12 * sigma) + 2
    points = range(-reach, reach + 1)
    weights = [math.exp(-x * x / (2 * sigma * sigma)) for x in points]
    total = math.fsum(weights)
    scale = sigma * math.sqrt(2)
    rounded = [(math.erfc((abs(x) - 0.5) / scale) - math.erfc((abs(x) + 0.5) / scale)) / 2 for x in points]
    return [w / total for w in weights], rounded


@pytest.mark.parametrize("sigma", [0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 3.9, 4.0, 5.0, 10.0, 50.0])
def test_total_variation_is_an_upper_bound(sigma: float) -> None:
    discrete, rounded = true_laws(sigma)
    true = math.fsum(abs(p - q) for p, q in zip(discrete, rounded, strict=True)) / 2
    bound = total_variation(1, sigma)
    assert true <= bound
    if sigma >= 2:
        assert bound < 2.2 * true  # and not a vain one


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("coordinates", [2, 3])
def test_total_variation_of_vectors(sigma: float, coordinates: int) -> None:

    one_p, one_q = map(np.array, true_laws(sigma))
    p, q = one_p, one_q
    for _ in range(coordinates - 1):
        p, q = np.multiply.outer(p, one_p), np.multiply.outer(q, one_q)
    assert np.abs(p - q).sum() / 2 <= total_variation(coordinates, sigma)


def test_total_variation_of_many_coordinates_by_its_own_proof() -> None:
    """The two inequalities of the docstring, exactly: p <= e^a q everywhere, and KL below the Pinsker constant."""
    for sigma in (4.0, 6.0, 20.0):
        pairs = [(p, q) for p, q in zip(*true_laws(sigma), strict=True) if p > 1e-290 and q > 1e-290]
        assert all(p <= q * math.exp(1 / (24 * sigma**2)) * (1 + 1e-9) for p, q in pairs[20:-20])
        kl = math.fsum(p * math.log(p / q) for p, q in pairs)
        assert math.sqrt(kl / 2) <= 0.0296 / sigma**2


def test_discrete_delta() -> None:
    sigma = 3.731 * 2 * 2**20
    assert discrete_delta(1.0, 100_000, sigma) < 1e-8
    assert discrete_delta(1.0, 10, 100.0) == pytest.approx((1 + math.e) * total_variation(10, 100.0))
    assert discrete_delta(1.0, 0, sigma) == 0
    assert discrete_delta(5000.0, 1, sigma) == 1  # no overflow
    assert discrete_delta(1.0, 1, 1e-9) == 1
    for coordinates, scale in ((-1, 1.0), (1, 0.0), (1, math.nan), (1, math.inf)):
        with pytest.raises(BudgetError):
            discrete_delta(1.0, coordinates, scale)


# --- what it means ---------------------------------------------------------------------------------------------------


def test_attacker_odds() -> None:
    odds = budget.attacker_odds(1.0, 1e-5)
    assert odds.accuracy == pytest.approx(stats.norm.cdf(mu_of(1.0, 1e-5) / 2))
    assert odds.posterior == pytest.approx(math.e / (1 + math.e))
    assert budget.attacker_odds(1.0, 1e-5, mu=0.1).accuracy < odds.accuracy
    assert budget.attacker_odds(1e3, 1e-5).posterior == 1
    assert odds.passed == pytest.approx(stats.norm.sf(1 / mu_of(1.0, 1e-5) - mu_of(1.0, 1e-5) / 2))
    assert budget.loss_above(1.0, 0.0) == budget.loss_above(1.0, 0.0, adaptive=True) == 0
    assert budget.loss_above(5e-324, 0.1, adaptive=True) == 1.0  # gaps below it vanish


def test_a_loss_above_epsilon_is_bounded_also_where_stages_adapt() -> None:
    """A second stage that stops once the first has given enough away: more often above ε than one Gaussian."""
    mu, epsilon = 1.0, 1.5
    rng = np.random.default_rng(0)
    part = mu / math.sqrt(2)
    first = rng.normal(part**2 / 2, part, 400_000)
    second = np.where(first > epsilon, 0.0, rng.normal(part**2 / 2, part, 400_000))
    seen = float((first + second > epsilon).mean())
    assert budget.loss_above(epsilon, mu) + 0.005 < seen < budget.loss_above(epsilon, mu, adaptive=True)


def test_a_choice_may_exceed_epsilon_more_often_than_its_dominating_pair_says() -> None:
    """Both ends of a window that reaches just beyond ε: the mean over the losses of the pair would be too little."""
    width, epsilon = 1.0, 0.5
    worst = (math.exp(width) - math.exp(epsilon)) / math.expm1(width)
    losses, mass = selection_losses((width,))
    assert float(mass[losses > epsilon].sum()) < worst <= budget.loss_above(epsilon, 0.0, (width,))


# --- the unit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "neighbours", "sensitivity", "public"),
    [
        ("row", "replace", 2.0, True),
        ("row", "add-remove", 1.5, False),
        ("person:patient,5", "replace", 10.0, False),
        ("person:patient,5", "add-remove", 7.5, False),
        ("person:patient,1", "replace", 2.0, False),
    ],
)
def test_unit(text: str, neighbours: str, sensitivity: float, public: bool) -> None:
    unit = Unit.parse(text, neighbours)
    assert unit.sensitivity(norm_bound=1.5, diameter=2.0) == sensitivity
    assert unit.rows_public is public
    assert Unit.from_dict(json.loads(json.dumps(unit.to_dict()))) == unit
    assert ("public" in unit.describe()) is public


def test_a_person_with_fewer_rows_costs_the_norm() -> None:
    constant = {"norm_bound": 1.0, "diameter": 0.0}
    assert Unit.parse("row").sensitivity(**constant) == 0
    assert Unit.parse("person:id,3").sensitivity(**constant) == 3


def test_unit_of_a_column_with_a_comma() -> None:
    assert Unit.parse("person:name, first,2") == Unit("name, first", 2, "replace")


def test_description_is_plain() -> None:
    assert Unit.parse("person:patient,5", "add-remove").describe() == (
        "Protected: one person (all rows with the same 'patient', at most 5 rows of them used), added or removed. "
        "The number of rows is protected."
    )


@pytest.mark.parametrize(
    "text", ["", "rows", "person", "person:", "person:id", "person:,3", "person:id,0", "person:id,-1", "person:id,x"]
)
def test_bad_unit(text: str) -> None:
    with pytest.raises(BudgetError, match="write"):
        Unit.parse(text)


def test_bad_unit_fields() -> None:
    with pytest.raises(BudgetError, match="add-remove"):
        Unit.parse("row", "both")
    with pytest.raises(BudgetError, match="person column"):
        Unit(None, 3)
    with pytest.raises(BudgetError, match="exactly the fields"):
        Unit.from_dict({"person": None})
    with pytest.raises(BudgetError, match="finite bound"):
        Unit().sensitivity(1.0, math.nan)


# --- choices ---------------------------------------------------------------------------------------------------------


def bounded_range_delta(width: float, epsilon: float) -> float:
    """The closed form of the paper: the largest delta of any pair whose losses lie in a window of this width."""
    if epsilon <= -width:
        return -math.expm1(epsilon)
    return max(math.exp(width / 2) - math.exp(min(epsilon, width) / 2), 0.0) ** 2 / math.expm1(width)


@pytest.mark.parametrize("width", [0.01, 0.4, 3.0])
def test_the_losses_of_a_choice_have_the_curve_of_bounded_range(width: float) -> None:
    found = list(zip(*selection_losses((width,)), strict=True))
    for epsilon in np.linspace(-1.2 * width, 1.2 * width, 25):
        ours = math.fsum(p * max(-math.expm1(epsilon - loss), 0.0) for loss, p in found)
        theirs = bounded_range_delta(width, epsilon)
        assert theirs - 1e-12 <= ours <= theirs + 2e-3 * math.tanh(width / 4)  # from above, and near


@pytest.mark.parametrize("ranges", [(5e-324,), (1e-15,), (1e-9,), (1e-15, 0.4), (20.0,), (1e-3,) * 300, (20.0,) * 20])
def test_no_choice_loses_its_mass(ranges: tuple[float, ...]) -> None:
    losses, mass = selection_losses(ranges)
    assert mass.sum() == pytest.approx(1, abs=1e-12) and (mass * np.exp(-losses)).sum() == pytest.approx(1, abs=1e-12)
    assert mass.min() >= 0 and losses.max() >= sum(ranges) * (1 - 1e-12)


@pytest.mark.parametrize("tiny", [5e-324, 1e-300, 1e-15, 1e-12, 1e-6])
def test_a_tiny_choice_makes_nothing_free(tiny: float) -> None:
    alone = delta_of(0.5, 1.0)
    assert alone * (1 - 1e-15) <= delta_of(0.5, 1.0, (tiny,)) <= alone * (1 + 1e-5)
    assert delta_of(3.0, 1.0, (tiny,)) >= delta_of(3.0, 1.0) * (1 - 1e-15)


def test_many_choices_together_are_counted_from_above_and_near() -> None:
    """Against a convolution of the densities on a much finer grid."""
    ranges, step, law = (0.05, 0.3, 0.38, 0.38) * 10, 2e-3, np.ones(1)
    for r in ranges:
        middles = (np.arange(-round(r / step), round(r / step)) + 0.5) * step
        law = np.convolve(law, np.exp(middles / 2) * step / (4 * math.sinh(r / 2)))
    losses = (np.arange(len(law)) - (len(law) - 1) / 2) * step
    for mu, epsilon in ((0.2, 1.0), (0.2, 4.0), (1.0, 3.0)):
        fine = float(law @ gaussian_deltas(mu, epsilon - losses))
        assert fine * (1 - 1e-4) <= delta_of(mu, epsilon, ranges) <= fine * 1.02


@pytest.mark.parametrize("mu", [1e-3, 0.2, 1.0, 3.0, 30.0])
def test_many_deltas_at_once_are_those_one_by_one(mu: float) -> None:
    at = np.linspace(-6, 6, 41)
    one = [delta_of(mu, e) if e >= 0 else -math.expm1(e) + math.exp(e) * delta_of(mu, -e) for e in at]
    assert gaussian_deltas(mu, at) == pytest.approx(one, rel=1e-12, abs=1e-300)


@few
@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=6),
    st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    st.floats(0.1, 4),
)
def test_no_exponential_mechanism_leaks_more_than_a_choice_costs(
    scores: list[float], moves: list[float], scale: float
) -> None:
    logs = []
    for u in (np.array(scores), np.array(scores) + np.array(moves[: len(scores)])):
        logs.append(u / scale - np.logaddexp.reduce(u / scale))
    for one, other in (logs, logs[::-1]):
        for epsilon in (0.0, 0.1, 0.5, 1.0):
            leaked = float(np.maximum(np.exp(one) - math.exp(epsilon) * np.exp(other), 0).sum())
            assert leaked <= delta_of(0.0, epsilon, (2 / scale,)) + 1e-12


@pytest.mark.parametrize("width", [0.1, 0.38, 1.5])
@pytest.mark.parametrize("mu", [0.1, 0.2, 1.0])
def test_a_choice_composes_with_a_gaussian_whichever_comes_first(width: float, mu: float) -> None:
    """Here the window of the choice may depend on what the Gaussian released: the worst one for every outcome."""
    from scipy.integrate import quad

    for epsilon in (0.0, 0.5, 1.0):
        density = stats.norm(mu**2 / 2, mu).pdf
        found, _ = quad(
            lambda loss, e=epsilon, f=density: f(loss) * bounded_range_delta(width, e - loss),
            mu**2 / 2 - 12 * mu,
            mu**2 / 2 + 12 * mu,
            points=[epsilon - width, epsilon + width],
            limit=500,
        )
        ours = delta_of(mu, epsilon, (width,))
        assert found * (1 - 1e-6) - 1e-14 <= ours <= found * 1.02 + 1e-12


def test_choices_agree_with_dp_accounting() -> None:
    mu, width, step = 0.2, 0.38, 1e-4
    ends = np.linspace(-width, width, 4_001)
    mass = np.diff(np.exp(ends / 2)) / (2 * math.sinh(width / 2))
    inverse = -np.diff(np.exp(-ends / 2)) / (2 * math.sinh(width / 2))
    chosen = privacy_loss_distribution.from_two_probability_mass_functions(
        dict(enumerate(np.log(inverse))), dict(enumerate(np.log(mass))), value_discretization_interval=step
    )
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=step)
    for count in (1, 3):
        theirs = gaussian.compose(chosen.self_compose(count)).get_delta_for_epsilon(1.0)
        assert delta_of(mu, 1.0, (width,) * count) == pytest.approx(theirs, rel=0.02)


def test_a_choice_uses_what_is_left_and_no_more() -> None:
    mu = mu_of(1.0, 1e-5)
    left = selection_range(1.0, 1e-5, 0.7 * mu)
    assert delta_of(0.7 * mu, 1.0, (left,)) <= 1e-5 < delta_of(0.7 * mu, 1.0, (left * (1 + 1e-9),))
    assert mu_of(1.0, 1e-5, (left,)) == pytest.approx(0.7 * mu, rel=1e-9)
    assert selection_range(1.0, 1e-5, mu) < 1e-3
    assert attacker_odds(1.0, 1e-5, 0.7 * mu, (left,)).accuracy > attacker_odds(1.0, 1e-5, 0.7 * mu).accuracy


def test_choices_of_different_ranges_add_up_in_any_order() -> None:
    assert delta_of(0.1, 0.5, (0.3, 0.1)) == pytest.approx(delta_of(0.1, 0.5, (0.1, 0.3)), rel=1e-9)
    assert delta_of(0.1, 0.5, (0.3, 0.1)) > delta_of(0.1, 0.5, (0.3,)) > delta_of(0.1, 0.5)


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf, 21.0])
def test_bad_range_of_a_choice(width: float) -> None:
    with pytest.raises(BudgetError, match="range above 0"):
        delta_of(0.1, 1.0, (width,))
