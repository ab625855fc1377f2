"""The audit of persons: tight, never above the claim, and above it where a person counts twice."""

from pathlib import Path

import pytest

from dpmerf.accounting.gaussian import epsilon_of
from dpmerf.audit import person_audit
from dpmerf.audit.person_audit import audit_persons, person_neighbours, person_sums
from dpmerf.demo.patients import SCHEMA
from dpmerf.methods.person_method import make_person_plan
from dpmerf.private.person_measure import measure_persons
from dpmerf.schema.person_schema import Persons
from unit.test_person_release import SCHEMA as SEVERAL

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "schemas"
SCHEMAS = {
    "patients": Persons.load(SCHEMA),
    "several": Persons.parse(SEVERAL),
    "randhie": Persons.load(BENCHMARKS / "randhie_persons.toml"),
    "nafld": Persons.load(BENCHMARKS / "nafld.toml"),
}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_the_hardest_persons_reach_the_claim_and_never_pass_it(name: str, neighbours: str) -> None:
    plan = make_person_plan(SCHEMAS[name], 1.0, 1e-5, rows=1_000, neighbours=neighbours)
    out, inside = person_neighbours(plan)
    sums = person_sums(plan, measure_persons(out, plan), out, inside)
    mu = sum(float((((b - a).double() / sigma) ** 2).sum()) for a, b, sigma in sums) ** 0.5
    assert mu <= plan.mu * (1 + 1e-9)
    assert epsilon_of(mu, plan.delta) >= 0.8 * plan.epsilon


def test_an_audit_reaches_four_fifths_of_the_claim() -> None:
    plan = make_person_plan(SCHEMAS["several"], 1.0, 1e-5, rows=1_000)
    found = audit_persons(plan, 0.1)
    assert found.holds and found.noise_epsilon >= 0.8 * plan.epsilon
    assert found.attack.lower <= plan.mu


def test_a_person_who_counts_twice_contradicts_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_person_plan(SCHEMAS["several"], 1.0, 1e-5, rows=1_000)
    true = person_audit.person_sums
    monkeypatch.setattr(
        person_audit, "person_sums", lambda *a: [(x, x + 2 * (y - x), sigma) for x, y, sigma in true(*a)]
    )
    assert not audit_persons(plan, 0.1).holds
