"""The documents say what the program does: every number of the proof is recomputed, as a reader would."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.accounting.gaussian import attacker_odds, delta_of, mu_of, noise_multiplier, selection_range
from dpmerf.encoding.codec import Codec
from dpmerf.methods.presets import make_plan
from dpmerf.methods.settings import FewRowsSettings
from dpmerf.plan.queries import Directions
from dpmerf.private.measure import measure
from dpmerf.report.sections import guarantee
from dpmerf.schema import Schema

DOCS = Path(__file__).parents[2] / "docs"
PROOF = (DOCS / "proof.md").read_text(encoding="utf-8")
SCHEMA = Schema.parse(re.search(r"```toml\n(.*?)```", PROOF, re.S)[1])  # type: ignore[index]
ROWS = pa.table({"age": [3, 50], "ward": ["a", "c"], "ill": [True, False]})


def said(pattern: str) -> float:
    """A number of the proof."""
    found = re.search(pattern, PROOF)
    assert found, f"proof.md no longer says {pattern}"
    return float(found[1].replace(",", ""))


def upper_tail(z: float) -> float:
    """As on the page: a continued fraction of six steps."""
    fraction = z
    for k in range(6, 0, -1):
        fraction = z + k / fraction
    return math.exp(-z * z / 2) / 2.506628 / fraction


def test_the_example_with_a_pocket_calculator() -> None:
    mu, delta_s = said(r"claim \*\*μ = ([\d.]+)"), said(r"Δ = √6 = ([\d.]+)")
    assert delta_s == pytest.approx(math.sqrt(6), abs=5e-7)
    x = 1 / mu - mu / 2
    assert x == pytest.approx(said(r"− μ/2 = ([\d.]+) and"), abs=2e-6)
    assert x + mu == pytest.approx(said(r"x \+ μ = ([\d.]+)\. For"), abs=2e-6)
    q = (upper_tail(x), upper_tail(x + mu))
    assert q[0] == pytest.approx(said(r"Q\(3\.\d+\) = ([\d.e-]+),"), rel=1e-4)
    assert q[1] == pytest.approx(said(r"Q\(3\.86\d+\) = (\d\.\d+e-\d)"), rel=1e-4)
    assert q[0] - math.e * q[1] == pytest.approx(1e-5, rel=1e-3)
    sigma = said(r"= \*\*(\d\.\d{4})\*\*; the noise")
    assert sigma == pytest.approx(delta_s / mu, abs=1e-4)
    assert said(r"1/μ = \*\*([\d.]+)") == pytest.approx(1 / mu, abs=1e-4)
    assert said(r"= \*\*(\d{4})\*\* coordinates") == 2000 * 2 + 3 * 2 + 2
    variation = 0.03 * math.sqrt(4008) / (sigma * 2**24) ** 2
    assert variation == pytest.approx(said(r"/ s² = ([\d.e-]+);"), rel=1e-2)
    assert (1 + math.e) * variation == pytest.approx(said(r"TV = \*\*([\d.e-]+)"), rel=2e-2)


def test_the_example_of_a_choice() -> None:
    whole = mu_of(1.0, 1e-5)
    mu = whole * 0.6**0.5  # as in the default's plans that choose
    assert FewRowsSettings().selection == 0.4
    best = attacker_odds(1.0, 1e-5, mu, (selection_range(1.0, 1e-5, mu),)).accuracy
    assert f"the best guess at ε = 1 is {best:.1%}".replace("%", " %") in (DOCS / "promise.md").read_text("utf-8")
    assert round(mu, 6) == said(r"they have μ = ([\d.]+) and the selection")
    assert round(selection_range(1.0, 1e-5, mu), 4) == said(r"the selection has r = ([\d.]+\d)")
    p = NormalDist().cdf(whole * 0.4**0.5 / 2)  # a window of both ends of this width is μ-GDP, and no wider one
    assert round(2 * math.log(p / (1 - p)), 4) == said(r"as its μ it would have ([\d.]+\d)")


PROMISE = (DOCS / "promise.md").read_text(encoding="utf-8")


def bound_on_the_tail(curve: Callable[[float], float], epsilon: float) -> float:
    """By the formula of the proof, on a grid of our own."""
    return min(curve(e) / (1 - math.exp(e - epsilon)) for e in np.linspace(0, epsilon, 4000, endpoint=False))


def test_how_often_belief_passes_its_bound() -> None:
    """Not δ: the probability that the loss exceeds ε is larger."""
    mu, normal = mu_of(1.0, 1e-5), NormalDist()
    one_stage = 1 - normal.cdf(1 / mu - mu / 2)
    assert one_stage == pytest.approx(said(r"Q\(3\.596608\) = ([\d.e-]+), sixteen"), rel=1e-5)
    assert round(one_stage / 1e-5) == 16
    several = bound_on_the_tail(lambda e: delta_of(mu, e), 1.0)
    assert several == pytest.approx(said(r"on the card: ([\d.e-]+) at"), rel=5e-3)
    chosen = mu * 0.6**0.5
    with_choice = bound_on_the_tail(lambda e: delta_of(chosen, e, (selection_range(1.0, 1e-5, chosen),)), 1.0)
    for words, value in (
        (r"of at most ([\d.e-]+), or [\d.e-]+ for a plan of one", several),
        (r"or ([\d.e-]+) for a plan of one stage: that is more than δ", one_stage),
        (r"passes 73\.1 % with a probability of at most\n([\d.e-]+)\.", with_choice),
    ):
        found = re.search(words, PROMISE)
        assert found and value <= float(found[1]) <= value * 1.01, words
    assert f"cannot pass {100 / (1 + math.exp(-1)):.1f} %" in PROMISE
    at_delta = [
        _smallest(lambda e: bound_on_the_tail(lambda x: delta_of(mu, x), e) <= 1e-5),
        _smallest(lambda e: 1 - normal.cdf(e / mu - mu / 2) <= 1e-5),
    ]
    beliefs = [f"{100 / (1 + math.exp(-e)):.1f} %" for e in at_delta]
    assert f"passes {beliefs[0]}, or {beliefs[1]} for a plan of one stage" in PROMISE.replace("\n", " ")


def _smallest(holds: Callable[[float], bool]) -> float:
    low, high = 1.0, 2.0
    for _ in range(12):
        low, high = (low, (low + high) / 2) if holds((low + high) / 2) else ((low + high) / 2, high)
    return high


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_the_card_and_the_report_say_how_often(preset: str) -> None:
    release = measure(ROWS, make_plan(SCHEMA, 1.0, 1e-5, rows=1000, preset=preset))
    said_there = re.findall(r"except with a\s+probability of at most ([\d.e-]+\d)", release.card() + guarantee(release))
    assert said_there == ["1.62e-04" if preset == "paper" else "4.14e-04"] * 2
    assert release.guarantee()["attacker_posterior_passed"] == pytest.approx(float(said_there[0]), rel=1e-2)


def test_the_numbers_of_the_proof_are_on_the_card() -> None:
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=1000, preset="paper")
    card = measure(ROWS, plan).card()
    for text in ("mu = 0.268051", "3.7306", "2.449490", "9.1381", "4,008", "3.0e-16"):
        assert text in card and text in PROOF.replace("δ₀ = (1 + 2.718) · TV = **", "")


def test_sigma_of_every_stage_follows_from_the_card_alone() -> None:
    """Share, sensitivity and μ off the card give the card's σ."""
    card = measure(ROWS, make_plan(SCHEMA, 1.0, 1e-5, rows=1000)).card()
    mu = float(re.search(r"mu = ([\d.]+);", card)[1])  # type: ignore[index]
    stages = re.findall(r"\| (\w+) \| ([\d.]+)% \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| [\d,]+ \|", card)
    assert len(stages) == 2
    for _, share, multiplier, sensitivity, sigma in stages:
        assert float(sigma) == pytest.approx(float(multiplier) * float(sensitivity), rel=1e-4)
        assert float(sigma) == pytest.approx(float(sensitivity) / (mu * math.sqrt(float(share) / 100)), rel=5e-3)


def test_the_table_of_bounds() -> None:
    from dpmerf.encoding.codec import Variable
    from dpmerf.features.algebra import FeatureMap, of, onehot
    from dpmerf.features.fourier import Fourier

    label, ward = Variable("label", 2), Variable("ward", 3)
    fourier = of(Fourier.draw(1, 4, (1.0,), seed=0))
    wide = Codec(
        Schema.parse('label = "y"\n[columns.y]\nkind = "flag"\n[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n')
    )
    shares = {"share_mean": 0.45, "share_products": 0.45, "share_length": 0.1}
    assert "a²/2b = 0.225" in PROOF and "2.225" in PROOF
    maps: list[tuple[FeatureMap, float, float]] = [
        (fourier, 1, 4),
        (onehot(ward) + onehot(label), 2, 4),
        (0.5**0.5 * onehot(ward) + 0.5**0.5 * onehot(label), 1, 2),
        (fourier * onehot(label) + onehot(label), 2, 4),
        ((fourier + onehot(ward)) * onehot(label) + onehot(label), 3, 6),
        (Directions(group=1, by_label=True, **shares).feature_map(wide), 1.1125, 2.225),
    ]
    for phi, norm, diameter in maps:
        assert phi.norm_bound**2 == pytest.approx(norm) and phi.diameter**2 == pytest.approx(diameter)


def test_the_table_of_the_promise() -> None:
    text = (DOCS / "promise.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([\d.]+) \| ([\d.]+) % \| ([\d.]+) \|$", text, re.M)
    assert len(lines) == 4
    for epsilon, accuracy, sigma in lines:
        assert 100 * attacker_odds(float(epsilon), 1e-5).accuracy == pytest.approx(float(accuracy), abs=0.051)
        assert noise_multiplier(float(epsilon), 1e-5) == pytest.approx(float(sigma), rel=1e-3)


def test_links_and_files_that_the_documents_name_exist() -> None:
    root = DOCS.parent
    for name in ("docs/promise.md", "docs/proof.md", "docs/pitfalls.md", "SECURITY.md"):
        text = (root / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([\w./-]+)\)", text):
            assert ((root / name).parent / target).exists(), f"{name} links to {target}"
        for test in re.findall(r"(tests/[\w/]+\.py)", text):
            assert (root / test).exists(), f"{name} names {test}"
