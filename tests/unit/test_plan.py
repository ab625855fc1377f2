"""Plans: exact prices, before any row is read."""

import json
import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpmerf.accounting.unit import Unit
from dpmerf.cli.plan_command import _print_plan
from dpmerf.errors import ArtefactError, DpmerfError, PlanError
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan, Stage
from dpmerf.schema import Schema


@pytest.mark.parametrize(("epsilon", "multiplier"), [(1, 3.731), (0.2, 16.30), (10, 0.500)])
def test_noise_multipliers_are_exact(mixed_schema: Schema, epsilon: float, multiplier: float) -> None:
    plan = make_plan(mixed_schema, epsilon, 1e-5, preset="paper")
    assert plan.summary()["noise_multiplier"] == pytest.approx(multiplier, abs=1e-3 if epsilon == 1 else 5e-3)
    curve = pld.from_gaussian_mechanism(1 / plan.mu)
    assert curve.get_epsilon_for_delta(1e-5) == pytest.approx(epsilon, rel=2e-3)


def test_stages_compose_to_the_whole(mixed_schema: Schema) -> None:
    plan = make_plan(mixed_schema, 1, 1e-5)
    assert math.hypot(*(p.mu for p in plan.prices)) == pytest.approx(plan.mu, rel=1e-12)
    assert 0 < plan.discrete_delta < 1e-10
    curve = pld.from_gaussian_mechanism(1 / plan.prices[0].mu)
    for price in plan.prices[1:]:
        curve = curve.compose(pld.from_gaussian_mechanism(1 / price.mu))
    assert curve.get_epsilon_for_delta(1e-5) == pytest.approx(1, rel=2e-3)


def test_two_equal_stages_need_the_known_noise(mixed_schema: Schema) -> None:
    one = make_plan(mixed_schema, 1, 1e-5, preset="paper")
    recipe = one.stages[0].query
    two = Plan(
        mixed_schema, 1.0, 1e-5, Unit(), 10_000, "paper", False, (Stage("a", 0.5, recipe), Stage("b", 0.5, recipe))
    )
    assert [p.noise_multiplier for p in two.prices] == pytest.approx([5.28, 5.28], abs=5e-3)


def test_diameters_by_code(mixed_schema: Schema) -> None:
    diameter = lambda schema, **kw: make_plan(schema, 1, 1e-5, preset="paper", **kw).summary()["diameter"]  # noqa: E731
    numbers = Schema.parse('[columns.a]\nkind = "number"\nmin = 0\nmax = 1\n[columns.y]\nkind = "flag"\n')
    assert diameter(mixed_schema) == pytest.approx(math.sqrt(6))
    assert diameter(numbers.with_label("y")) == pytest.approx(2)
    assert diameter(numbers.with_label("y"), balanced=True) == pytest.approx(2)
    assert make_plan(mixed_schema, 1, 1e-5).prices[1].diameter == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_sensitivity_follows_the_unit(mixed_schema: Schema, preset: str) -> None:
    price = lambda text, near: make_plan(mixed_schema, 1, 1e-5, unit=Unit.parse(text, near), preset=preset).prices[0]  # noqa: E731
    row, added = price("row", "replace"), price("row", "add-remove")
    assert row.sensitivity == row.diameter and added.sensitivity == added.norm_bound
    person = price("person:key,3", "replace")
    assert person.sensitivity == pytest.approx(3 * max(row.diameter, row.norm_bound))
    assert person.sigma == pytest.approx(person.noise_multiplier * person.sensitivity * 2**24, rel=1e-5)


def test_a_plan_survives_its_file_and_notices_changes(mixed_schema: Schema, tmp_path) -> None:
    plan = make_plan(mixed_schema, 1, 1e-5, rows=500, unit=Unit.parse("person:key,2"))
    plan.save(tmp_path / "plan.json")
    again = Plan.load(tmp_path / "plan.json")
    assert again == plan and again.hash == plan.hash
    document = json.loads((tmp_path / "plan.json").read_text())
    for change in (("epsilon", 2.0), ("rows", 7), ("format", 9), ("stages", []), ("schema", {})):
        changed = {**document, "plan": {**document["plan"], change[0]: change[1]}}
        (tmp_path / "changed.json").write_text(json.dumps(changed))
        with pytest.raises(DpmerfError):
            Plan.load(tmp_path / "changed.json")
    for text in ("", "[]", "{}", "{" * 100_000, '{"plan": 3, "hash": ""}'):
        (tmp_path / "changed.json").write_text(text)
        with pytest.raises(ArtefactError):
            Plan.load(tmp_path / "changed.json")


def test_shares_must_add_up(mixed_schema: Schema) -> None:
    recipe = make_plan(mixed_schema, 1, 1e-5, preset="paper").stages[0].query
    for shares in ((0.6, 0.6), (0.5, 0.4), (1.5, -0.5)):
        with pytest.raises(PlanError):
            Plan(
                mixed_schema, 1.0, 1e-5, Unit(), 100, "paper", False,
                tuple(Stage(str(i), s, recipe) for i, s in enumerate(shares)),
            )  # fmt: skip


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_a_budget_that_is_none_is_refused(mixed_schema: Schema, epsilon: float) -> None:
    with pytest.raises(DpmerfError, match="epsilon"):
        make_plan(mixed_schema, epsilon, 1e-5)


def test_other_refusals(mixed_schema: Schema) -> None:
    for delta in (0, 1, 2, math.nan):
        with pytest.raises(DpmerfError, match="delta"):
            make_plan(mixed_schema, 1, delta)
    with pytest.raises(
        PlanError, match=r"no method 'best'\. Choose one of auto, tables, few-rows, wide, paper, images"
    ):
        make_plan(mixed_schema, 1, 1e-5, preset="best")
    with pytest.raises(PlanError, match="person column"):
        make_plan(mixed_schema, 1, 1e-5, unit=Unit.parse("person:nobody,2"))
    with pytest.raises(PlanError, match="label"):
        make_plan(mixed_schema.with_label(None), 1, 1e-5, balanced=True)
    with pytest.raises(PlanError, match="rows"):
        make_plan(mixed_schema, 1, 1e-5, rows=0)


def test_tiny_budgets_and_tables_still_get_a_plan(mixed_schema: Schema) -> None:
    for epsilon, rows in ((1e-3, 10), (0.01, 100), (5, 10**9)):
        plan = make_plan(mixed_schema, epsilon, rows=rows)
        assert plan.coordinates > 0 and plan.summary()["expected_error"] is None  # no Fourier features
        paper = make_plan(mixed_schema, epsilon, rows=rows, preset="paper")
        assert paper.summary()["expected_error"]["tight_bound"] > 0


def test_wide_tables_stay_within_bounds() -> None:
    columns = "".join(f'[columns.c{i}]\nkind = "number"\nmin = 0\nmax = 1\n' for i in range(600))
    plan = make_plan(Schema.parse(columns + '[columns.y]\nkind = "flag"\n').with_label("y"), 1, 1e-5, rows=6_000)
    assert plan.summary()["bytes"] < 200_000_000
    values = ", ".join(f'"v{i}"' for i in range(1000))
    wide = Schema.parse("".join(f'[columns.c{i}]\nkind = "category"\nvalues = [{values}]\n' for i in range(5)))
    assert make_plan(wide, 1, 1e-5, rows=100_000).summary()["bytes"] < 200_000_000


def test_proposition_1_is_said_of_fourier_features_alone(mixed_schema: Schema, capsys: pytest.CaptureFixture) -> None:
    for preset, said in (("paper", True), ("default", False)):
        plan = make_plan(mixed_schema, 1, 1e-5, preset=preset)
        assert (plan.summary()["expected_error"] is not None) == said
        _print_plan(plan, [], None)
        assert ("Proposition 1" in capsys.readouterr().out) == said
