"""Priced means bounded: nothing is measured whose bounds exceed those that its noise was made for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.errors import DpmerfError, PlanError
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Embedding, Known, Plan, Stage, digest
from dpmerf.plan.queries import ImageBlock, ImageEmbedding, MeanEmbedding, PairsAgain, Tables
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from fixed_noise import FixedNoise

COLUMNS = 12
WIDE = [f"w{i}" for i in range(40)]  # the pair of two such columns has more cells than all others together
TOML = 'label = "y"\n[columns.y]\nkind = "flag"\n' + "".join(
    f'[columns.c{i}]\nkind = "category"\nvalues = {WIDE if i < 2 else ["a", "b", "c"]}\n' for i in range(COLUMNS)
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    made = make_plan(Schema.parse(TOML), 1, 1e-5, rows=10_000)
    assert [s.query.kind for s in made.stages] == ["histograms", "tables", "pairs again"]
    return made


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    same = rng.choice(list("abc"), 3000)  # small columns that depend on each other, wide ones that do not
    columns = {f"c{i}": rng.choice(WIDE, 3000) if i < 2 else same for i in range(COLUMNS)}
    return pa.table({"y": rng.random(3000) < 0.5, **columns})


def twice(plan: Plan, counts: tuple[int, int]) -> tuple[Stage, ...]:
    """The attack: the first of two such stages says how many pairs are chosen, the second how much each weighs."""
    *stages, again = plan.stages
    looks = [Stage(f"look {i}", again.share / 2, PairsAgain(count=count)) for i, count in enumerate(counts)]
    return (*stages, *looks)


def test_two_second_looks_are_no_plan(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="once"):
        replace(plan, stages=twice(plan, (10, 1)))
    data = plan.to_json()
    data["stages"] = [*data["stages"][:2], *({**data["stages"][2], "name": n, "share": 0.05} for n in ("a", "b"))]
    data["stages"][1]["share"] += data["stages"][0]["share"] - 0.1
    data["stages"][0]["share"] = 1 - sum(s["share"] for s in data["stages"][1:])
    (tmp_path / "plan.json").write_text(json.dumps({"plan": data, "hash": digest(data)}))
    with pytest.raises(DpmerfError, match="once"):
        Plan.load(tmp_path / "plan.json")


def test_measure_refuses_what_was_not_priced(plan: Plan, rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if such a plan came to be, its pairs again would not be measured: no noise is drawn for it."""
    monkeypatch.setattr("dpmerf.plan.plan.check_stages", lambda stages, schema: None)
    forged = replace(plan, stages=twice(plan, (10, 1)))
    drawn: list[float] = []

    class Watched(FixedNoise):
        def add(self, sums, sigma, advance=None):  # type: ignore[no-untyped-def]
            drawn.append(sigma)
            return super().add(sums, sigma, advance)

    with pytest.raises(PlanError, match="'look 1' is larger than it was priced"):
        measure(rows, forged, noise=Watched())
    assert len(drawn) == 3  # discover, tables and the first look, which is as it was priced


def test_every_stage_is_compared_with_its_price(plan: Plan, rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights a little too large, in any stage: refused."""
    real = Known.embedding
    for name in [s.name for s in plan.stages]:
        with monkeypatch.context() as patch:

            def heavier(self: Known, stage: Stage, name: str = name) -> Embedding:
                e = real(self, stage)
                return Embedding((1.0001 if stage.name == name else 1.0) * e.phi, e.view)

            patch.setattr(Known, "embedding", heavier)
            with pytest.raises(PlanError, match=f"'{name}' is larger than it was priced"):
                measure(rows, plan, noise=FixedNoise())


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2), (0, 2), (0, 0, 1), (0, 1, 1)])
def test_stages_in_another_order_are_no_plan(plan: Plan, order: tuple[int, ...]) -> None:
    stages = [plan.stages[i] for i in order]
    whole = sum(s.share for s in stages)
    with pytest.raises(PlanError, match=r"before it|once"):
        replace(plan, stages=tuple(Stage(f"s{i}", s.share / whole, s.query) for i, s in enumerate(stages)))


def test_stages_that_do_not_fit_are_no_plan(plan: Plan) -> None:
    discover, tables, again = plan.stages
    assert isinstance(tables.query, Tables)
    pairs = tables.query.pairs
    for name in ("", "Tables", "discover", "a/b", "__metadata__", "x" * 41):
        with pytest.raises(PlanError, match="stage"):
            replace(plan, stages=(discover, replace(tables, name=name), again))
    for wrong in ((*pairs, pairs[0]), (*pairs, pairs[0][::-1]), (("c0", "c0"),), (("c0", "z"),), (("c0", "y"),)):
        recipe = tables.query.model_copy(update={"pairs": wrong})
        with pytest.raises(PlanError, match=r"twice|does not have"):
            replace(plan, stages=(discover, replace(tables, query=recipe), again))
    with pytest.raises(PlanError, match="at most as many pairs"):
        replace(plan, stages=(discover, tables, replace(again, query=PairsAgain(count=len(pairs) + 1))))
    with pytest.raises(PlanError, match="label"):
        replace(plan, schema=plan.schema.with_label(None))
    image = ImageEmbedding(
        blocks=(ImageBlock(view="pixels", dim=4, scales=(1.0,), share=1.0),), tones=0.0, seed=0, counts=0.0
    )
    with pytest.raises(PlanError, match="pictures"):
        replace(plan, stages=(Stage("embedding", 1.0, image),))


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.5), (0.1, 0.1, 0.1), (1.0, 1.0, 0.0)])
def test_the_shares_of_a_recipe_add_up(shares: tuple[float, float, float]) -> None:
    single, pair, label_pair = shares
    with pytest.raises(ValueError, match="add up to 1"):
        Tables(
            bins=4,
            parts=1,
            by_label=True,
            pairs=(),
            share_single=single,
            share_pair=pair,
            share_label_pair=label_pair,
        )
    block = ImageBlock(view="pixels", dim=4, scales=(1.0,), share=0.7)
    with pytest.raises(ValueError, match="add up to 1"):
        ImageEmbedding(blocks=(block, block), tones=0.0, seed=0, counts=0.0)


@pytest.mark.parametrize("counts", [float("inf"), float("nan"), -1.0, 1e300])
def test_weights_are_finite(counts: float) -> None:
    with pytest.raises(ValueError, match="counts"):
        MeanEmbedding(dim=2, scales=(1.0,), seed=0, by_label=False, counts=counts)
