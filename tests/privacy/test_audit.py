"""`dpmerf audit`: sees correct noise as correct, and half the noise as broken, in plain words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dpmerf import cli
from dpmerf.audit import audit, neighbours
from dpmerf.cli.audit_command import words
from dpmerf.errors import PlanError
from dpmerf.plan.queries import Directions, Tables
from dpmerf.private.measure import measure
from dpmerf.private.noise import OpenDPGaussian
from privacy.bugs.noise import half_the_noise
from privacy.variants import FULL, LABEL, NUMBERS, ROW, VARIANTS, preset

pytestmark = pytest.mark.privacy
MINUTES = 2.0 if FULL else 0.02


def test_the_product_passes() -> None:
    plan = VARIANTS["discover + tables, add/remove"](1.0)
    found = audit(plan, minutes=MINUTES)
    assert found.holds and found.reached > 0.99  # one row more in every table, whatever the bins
    assert found.noise_epsilon > 0.8 and 0.9 < found.noise_ratio < 1.1
    text = words(found)
    assert "Nothing contradicts the claim" in text and "never prove it" in text
    assert json.loads(json.dumps(found.to_json()))["holds"] is True
    if FULL:
        assert found.attack_epsilon > 0.5
        assert found.rows is not None and found.attribute is not None
        assert not found.rows.exceeds_claim and "honest baseline" in text


def test_half_the_noise_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    half_the_noise(monkeypatch)
    found = audit(VARIANTS["labelled, imbalanced"](1.0), minutes=0.01)
    assert not found.holds and found.noise_ratio < 0.6
    assert "CONTRADICTED" in words(found)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plan = preset(NUMBERS + LABEL, "y", ROW, "default", 1.0)
    plan.save(tmp_path / "plan.json")

    def run(*more: str) -> int:
        monkeypatch.setattr(
            sys, "argv", ["dpmerf", "audit", "--plan", str(tmp_path / "plan.json"), "--minutes", "0.01", *more]
        )
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    assert run("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"] and found["epsilon"] == 1.0
    add = OpenDPGaussian.add
    monkeypatch.setattr(
        OpenDPGaussian, "add", lambda self, sums, sigma, advance=None: add(self, sums, sigma / 3, advance)
    )
    assert run() == 1
    assert "CONTRADICTED" in capsys.readouterr().out


@pytest.mark.parametrize("variant", VARIANTS)
def test_canaries_use_what_the_claim_allows(variant: str) -> None:
    """The pair that the audit makes up comes close to the sensitivity; noisy bins and scores may put both rows near."""
    plan = VARIANTS[variant](1.0)
    pair = neighbours(plan)
    reached = pair.true_mu(measure(pair.out, plan)) / plan.mu
    floor = 0.2 if any(isinstance(s.query, Tables | Directions) for s in plan.stages) else 0.85
    assert floor < reached <= 1 + 1e-9


def test_bad_minutes() -> None:
    with pytest.raises(PlanError, match="minutes"):
        audit(VARIANTS["vanilla"](1.0), minutes=0)
