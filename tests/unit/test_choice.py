"""Few rows and many columns: one column is chosen by noisy scores, looked at closely, and heard above the noise."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmerf.accounting.events import Gaussian, Selection, delta
from dpmerf.accounting.gaussian import delta_of
from dpmerf.accounting.unit import Unit
from dpmerf.errors import ArtefactError, BudgetError, LedgerError, PlanError
from dpmerf.generators.maxent.consistent import _beside, class_shrinkage
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan
from dpmerf.plan.noisy_tables import Layout, noisy_tables
from dpmerf.plan.queries import Tables
from dpmerf.plan.queries.column_selection import selected_column
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.release.verify import verify
from dpmerf.schema import Schema
from dpmerf.train import train
from fixed_noise import FixedNoise

ROWS, FLAGS, TOLD_BY = 700, 30, "c17"
STAGES = ["discover", "tables", "column selection", "selected table"]


def schema(flags: int = FLAGS) -> Schema:
    names = [*(f"c{j}" for j in range(flags)), "y"]
    return Schema.parse('label = "y"\n' + "".join(f'[columns.{name}]\nkind = "flag"\n' for name in names))


def table(seed: int = 0, rows: int = ROWS) -> pa.Table:
    """A rare label that one of thirty flags nearly gives away; the others say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < 0.08
    columns = {f"c{j}": rng.random(rows) < 0.2 for j in range(FLAGS)}
    columns[TOLD_BY] = np.where(y, rng.random(rows) < 0.9, rng.random(rows) < 0.03)
    return pa.table({**columns, "y": y})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(schema(), 1.0, 1e-5, rows=ROWS)


def test_the_rule_looks_at_public_facts_alone() -> None:
    def stages(rows: int, flags: int = FLAGS, **more: object) -> list[str]:
        return [s.name for s in make_plan(schema(flags), 1.0, 1e-5, rows=rows, **more).stages]  # type: ignore[arg-type]

    assert stages(ROWS) == STAGES
    assert "column selection" not in stages(300)  # too few to find a column
    assert "column selection" not in stages(3_000)  # enough for tables of all of them
    assert "column selection" not in stages(200, flags=5)
    assert stages(500, unit=Unit(neighbours="add-remove")) == STAGES  # less noise, so fewer rows
    unlabelled = Schema.parse("".join(f'[columns.c{j}]\nkind = "flag"\n' for j in range(FLAGS)))
    assert "column selection" not in [s.name for s in make_plan(unlabelled, 1.0, 1e-5, rows=ROWS).stages]


def test_the_choice_and_the_gaussian_stages_use_up_the_budget(plan: Plan) -> None:
    gaussian = [p for p in plan.prices if p.stage != "column selection"]
    assert math.isclose(math.fsum(p.mu**2 for p in gaussian), plan.mu**2, rel_tol=1e-9)
    spent = delta_of(plan.mu, plan.epsilon, plan.selections) + plan.discrete_delta
    assert 0.999 * plan.delta < spent <= plan.delta
    assert plan.summary()["choices"] == list(plan.selections)
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))).hash == plan.hash


def test_the_column_that_tells_the_label_is_found_and_heard(plan: Plan) -> None:
    """Nineteen of twenty releases find it, says the law of the choice; sixteen are asked for."""
    releases = [measure(table(seed), plan) for seed in range(20)]
    assert sum(selected_column(r) == TOLD_BY for r in releases) >= 16
    release = next(r for r in releases if selected_column(r) == TOLD_BY)
    first = noisy_tables(replace(release, sums={n: s for n, s in release.sums.items() if n in STAGES[:2]}))
    second = noisy_tables(release)
    at = second.layout.span(int(second.layout.names.index(TOLD_BY)))
    assert float((second.single_variance[at] / first.single_variance[at]).max()) < 0.1
    assert int((second.single_variance != first.single_variance).sum()) == at.stop - at.start
    gaps = {name: [] for name in (TOLD_BY, "c3")}
    for r in releases:
        if selected_column(r) == TOLD_BY:
            rows = train(r, seed=1).sample(4_000)
            y = np.array(rows["y"])
            for name, found in gaps.items():
                of = np.array(rows[name])
                found.append(abs(of[y].mean() - of[~y].mean()))
    assert np.mean(gaps[TOLD_BY]) > 0.5  # really 0.87
    assert np.mean(gaps["c3"]) < 0.15  # really 0; before, as much as any other column


def test_a_saved_choice_is_verified_and_an_impossible_one_refused(plan: Plan, tmp_path: Path) -> None:
    release = measure(table(), plan)
    release.save(tmp_path / "r")
    assert selected_column(verify(tmp_path / "r").release) == selected_column(release)
    card = (tmp_path / "r" / "CARD.md").read_text()
    assert f"(range {plan.selections[0]:.6f})" in card and "| column selection | 40%" in card
    for index in (-1, FLAGS):
        with pytest.raises(ArtefactError, match="damaged"):
            selected_column(replace(release, sums={**release.sums, "column selection": torch.tensor([index])}))
    document = json.loads((tmp_path / "r" / "release.json").read_text())
    document["guarantee"]["choices"] = [plan.selections[0] / 2]
    (tmp_path / "r" / "release.json").write_text(json.dumps(document))
    with pytest.raises(ArtefactError, match="guarantee was changed"):
        Release.load(tmp_path / "r")


@pytest.mark.parametrize("kept", [[2, 0, 1, 3], [0, 1, 3], [0, 2, 3], [0, 1, 2, 3, 3], [0, 1, 2, 2]])
def test_stages_in_another_order_are_refused(plan: Plan, kept: list[int]) -> None:
    stages = [plan.stages[i] for i in kept]
    whole = sum(s.share for s in stages)
    with pytest.raises(PlanError, match=r"(needs .* before it|is one too many)"):
        replace(plan, stages=tuple(replace(s, name=f"{i}", share=s.share / whole) for i, s in enumerate(stages)))


def test_the_ledger_counts_choices(plan: Plan, tmp_path: Path) -> None:
    exact = Ledger.open(tmp_path / "one.ledger", plan.epsilon, plan.delta)
    measure(table(), plan, ledger=exact, noise=FixedNoise())
    assert exact.summary()["spent_choices"] == list(plan.selections)
    assert exact.remaining_epsilon() < 0.01
    with pytest.raises(LedgerError, match="budget is spent"):
        measure(table(), plan, ledger=exact)
    more = Ledger.open(tmp_path / "two.ledger", 2.0, 1e-5)
    events = (Gaussian(plan.mu), *(Selection(r) for r in plan.selections))
    first = more.spend("a", "release", events, plan.unit)
    assert more.entries() == (first,) and first.events == events
    without = Ledger.open(tmp_path / "three.ledger", 2.0, 1e-5)
    without.spend("a", "release", [Gaussian(plan.mu)], plan.unit)
    assert more.remaining_epsilon() < without.remaining_epsilon() < 2.0
    more.spend("b", "release", events, plan.unit)
    with pytest.raises(LedgerError, match="overspend"):
        for _ in range(20):
            more.spend("c", "release", events, plan.unit)
    entries = more.entries()
    assert delta([event for e in entries for event in e.events], 2.0) <= 1e-5 * (1 + 1e-9)


@pytest.mark.parametrize("range", [0.0, -0.1, math.nan, 21.0, "a", 1])
def test_impossible_selections_are_no_events(range: Any) -> None:
    with pytest.raises(BudgetError, match="a selection has a range above 0 and at most 20"):
        Selection(range)


def test_beside_a_column_that_stands_out_impossible_differences_are_dropped() -> None:
    """Thirty columns of two values; a class of 50 among 700 rows; noise of 60 rows, and of 12 in one column."""
    layout = Layout(tuple(f"c{j}" for j in range(30)), (2,) * 30)
    classes, totals = torch.tensor([650.0, 50.0]), torch.tensor([560.0, 140.0]).repeat(30)
    variance = torch.full((60,), 60.0**2)
    variance[:2] = 12.0**2
    rng = torch.Generator().manual_seed(0)
    draw = (60 * torch.randn(30, generator=rng)).repeat_interleave(2) * torch.tensor([1.0, -1.0]).repeat(30)
    for signal, drowned in ((36.0, False), (6.0, True)):
        apart = draw.clone()
        apart[:2] = torch.tensor([signal, -signal])
        apart = torch.stack([apart, -apart])
        usual = class_shrinkage(apart, variance, layout, Settings())
        found = _beside(usual, apart, variance, totals, classes, layout, 0, Settings())
        if drowned:  # nothing stands out: the others are left as they were
            assert torch.equal(found[:, 1:], usual[:, 1:])
        else:
            assert float(found[:, 0].min()) > 0.8
            assert float(found[:, 1:].max()) < 0.05 < float(usual[:, 1:].max())


def test_the_same_on_added_or_removed_rows_persons_and_several_classes() -> None:
    names = "".join(
        f'[columns.c{j}]\nkind = "category"\nvalues = ["a", "b", "c"]\nnullable = true\n' for j in range(20)
    )
    text = f'label = "y"\n{names}[columns.who]\nkind = "id"\n[columns.y]\nkind = "category"\nvalues = ["p", "q", "r"]\n'
    rng = np.random.default_rng(1)
    columns = {f"c{j}": rng.choice(["a", "b", "c", None], 900).tolist() for j in range(20)}
    rows = pa.table(
        {**columns, "who": [f"w{i % 450}" for i in range(900)], "y": rng.choice(["p", "q", "r"], 900).tolist()}
    )
    for unit, expected in ((Unit("who", 2), 1_200), (Unit(neighbours="add-remove"), 450)):
        plan = make_plan(Schema.parse(text), 1.0, 1e-5, rows=expected, unit=unit)
        assert [s.name for s in plan.stages] == STAGES
        release = measure(rows, plan)
        assert selected_column(release) in plan.query(Tables).columns(plan.codec)
        drawn = train(release, seed=1).sample(200)
        assert drawn.num_rows == 200 and set(drawn.column_names) == set(rows.column_names)
