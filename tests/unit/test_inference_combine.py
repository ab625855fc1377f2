"""Pooling over copies: the rule is the right one for fully synthetic copies, and any kind of fit can be pooled."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.linear_model import LinearRegression

import dpmerf
from dpmerf.errors import AnswerError
from dpmerf.inference import student


@pytest.mark.parametrize("freedom", [1.0, 2.5, 9.0, 19.0, 400.0])
def test_student_is_student(freedom: float) -> None:
    for t in (0.0, 0.3, 1.7, -4.0, 60.0):
        assert student.tail(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9)
    for confidence in (0.5, 0.95, 0.999):
        assert student.quantile(confidence, freedom) == pytest.approx(stats.t.ppf((1 + confidence) / 2, freedom), 1e-8)


def test_the_formula_by_hand() -> None:
    found = dpmerf.combine([(1.0, 0.02), (1.4, 0.03), (1.5, 0.01), (0.9, 0.02)], names=["slope"])["slope"]
    b, v, m = np.var([1.0, 1.4, 1.5, 0.9], ddof=1), 0.02, 4
    total = (1 + 1 / m) * b - v
    assert found.estimate == pytest.approx(1.2) and found.error == pytest.approx(math.sqrt(total))
    assert found.freedom == pytest.approx((m - 1) * (1 - v / ((1 + 1 / m) * b)) ** 2)
    half = stats.t.ppf(0.975, found.freedom) * math.sqrt(total)
    assert (found.low, found.high) == pytest.approx((1.2 - half, 1.2 + half))
    assert found.p_value == pytest.approx(2 * stats.t.sf(1.2 / math.sqrt(total), found.freedom))


@pytest.mark.parametrize("noise", [0.5, 3.0])
def test_intervals_cover_where_copies_come_from_a_posterior(noise: float) -> None:
    """A mean with sampling variance 1 and privacy noise. Rubin's rule and rows as if real miss."""
    rng, runs, m = np.random.default_rng(0), 2_000, 20
    hits = {"ours": 0, "as if real": 0}
    widths = {"ours": 0.0, "missing values": 0.0}
    for _ in range(runs):
        seen = rng.normal(0, math.sqrt(1 + noise))  # the truth is 0
        copies = rng.normal(rng.normal(seen, math.sqrt(1 + noise), m), 1.0)
        found = dpmerf.combine([(q, 1.0) for q in copies])["0"]
        hits["ours"] += found.low <= 0 <= found.high
        hits["as if real"] += abs(copies[0]) <= 1.96
        widths["ours"] += found.error**2 / runs
        widths["missing values"] += (1 + (1 + 1 / m) * copies.var(ddof=1)) / runs
    assert 0.935 < hits["ours"] / runs < 0.985
    assert hits["as if real"] / runs < 0.85
    assert widths["missing values"] > widths["ours"] + 1.8  # it counts the sampling of rows twice more


def test_a_negative_variance_is_replaced() -> None:
    found = dpmerf.combine([(1.0, 0.5), (1.01, 0.5), (0.99, 0.5)])["0"]
    assert found.error == pytest.approx(math.sqrt(0.5)) and found.freedom == 2


def copies(m: int = 5) -> list[pd.DataFrame]:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(m):
        x = rng.normal(size=(300, 2))
        y = x @ [1.0 + rng.normal(0, 0.2), 0.0] + rng.normal(size=300)
        found.append(pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}))
    return found


def test_fits_of_any_kind() -> None:
    tables = copies()
    by_statsmodels = dpmerf.analyse(tables, lambda t: sm.OLS(t["y"], sm.add_constant(t[["a", "b"]])).fit())
    assert [c.name for c in by_statsmodels.coefficients] == ["const", "a", "b"]
    a = by_statsmodels["a"]
    assert a.low < 1 < a.high and a.p_value < 0.05 < by_statsmodels["b"].p_value
    assert "a " in str(by_statsmodels) and by_statsmodels.to_json()["copies"] == 5
    of_arrays = dpmerf.analyse(tables, lambda t: sm.OLS(t["y"].to_numpy(), t[["a", "b"]].to_numpy()).fit())
    assert [c.name for c in of_arrays.coefficients] == ["x1", "x2"]
    by_sklearn = dpmerf.analyse(tables, lambda t: LinearRegression().fit(t[["a", "b"]], t["y"]))
    assert by_sklearn["a"].estimate == pytest.approx(a.estimate) and by_sklearn["a"].error >= a.error
    assert by_sklearn["intercept"] and "no standard errors" in by_sklearn.notes[0]
    mean = dpmerf.analyse(tables, lambda t: {"y": (t["y"].mean(), t["y"].var() / len(t))})
    assert mean["y"].low < 0 < mean["y"].high
    assert dpmerf.analyse(tables, lambda t: (t["y"].mean(), None)).coefficients[0].name == "0"


@pytest.mark.parametrize(
    ("do", "says"),
    [
        (lambda: dpmerf.combine([(1.0, 0.1)]), "1 copies cannot be pooled"),
        (lambda: dpmerf.combine([(1.0, 0.1), ([1.0, 2.0], 0.1)]), "different numbers"),
        (lambda: dpmerf.combine([(1.0, -0.1), (1.0, 0.1)]), "negative"),
        (lambda: dpmerf.combine([(math.nan, 0.1), (1.0, 0.1)]), "not finite"),
        (lambda: dpmerf.combine([(1.0, 0.1), (1.1, 0.1)], confidence=95), "between 0 and 1"),
        (lambda: dpmerf.combine([(1.0, 0.1), (1.1, 0.1)], names=["a", "b"]), "2 names for 1"),
        (lambda: dpmerf.combine([(1.0, 0.1), (1.1, 0.1)])["slope"], "there is no 'slope'"),
        (lambda: dpmerf.analyse([], lambda t: t), "no copy"),
        (lambda: dpmerf.analyse([1, 2], lambda t: "text"), "nothing that can be pooled"),
        (lambda: dpmerf.analyse([1, 2], lambda t: {f"c{t}": (1.0, 1.0)}), "different coefficients"),
        (lambda: dpmerf.analyse([1, 2], lambda t: SimpleNamespace(params=[1.0], bse=[math.inf])), "not finite"),
    ],
)
def test_what_cannot_be_pooled_is_one_clear_error(do, says: str) -> None:
    with pytest.raises(AnswerError, match=says):
        do()
