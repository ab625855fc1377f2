"""Training and sampling, for every variant of table and both presets: plausible, legal, reproducible."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpmerf
from conftest import mixed_rows
from dpmerf.errors import ArtefactError, DpmerfError, TrainError
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.plan import noisy_tables as counts
from dpmerf.plan.queries import Tables
from dpmerf.plan.queries.pairs_again import picked_pairs
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.release.verify import verify
from dpmerf.schema import Schema
from dpmerf.train import train

STEPS = {"default": 60, "paper": 150}
LONGER = {"default": 60, "tables": 60, "paper": 400}


def _subset(schema: Schema, names: list[str], label: str | None) -> Schema:
    return Schema(columns={n: schema.columns[n] for n in names}).with_label(label)


VARIANTS = {
    "unlabelled": (["age", "dose", "ward", "seen", "ill"], None, False),
    "labelled and balanced": (["age", "dose", "ward"], "ward", True),
    "labelled and imbalanced": (["age", "dose", "ill"], "ill", False),
    "heterogeneous": (["key", "age", "dose", "ward", "seen", "ill"], "ill", False),
    "all numeric": (["age", "dose", "seen"], None, False),
    "all categorical": (["ward", "ill"], "ill", False),
    "numeric label": (["age", "dose", "ward"], "age", False),
    "one column": (["ward"], None, False),
    "only a label": (["ill"], "ill", False),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return mixed_rows(4_000)


@pytest.mark.parametrize("preset", STEPS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_legal_rows(mixed_schema: Schema, table: pa.Table, variant: str, preset: str) -> None:
    names, label, balanced = VARIANTS[variant]
    schema = _subset(mixed_schema, names, label)
    plan = make_plan(schema, 5, 1e-5, rows=4_000, preset=preset, balanced=balanced)
    model = train(measure(table, plan), seed=3, steps=STEPS[preset])
    rows = model.sample(1_000)
    assert rows.column_names == names and rows.num_rows == 1_000
    codec = model.release.codec
    assert (
        codec.decode(codec.encode(rows))
        .select([n for n in names if n != "key"])
        .equals(rows.select([n for n in names if n != "key"]))
    )  # every cell is a declared one
    if balanced:
        assert np.allclose(np.unique(rows["ward"].to_numpy(), return_counts=True)[1][:3], 250, atol=90)
    if "ill" in names and not balanced:
        assert abs(pc.mean(rows["ill"].cast(pa.int8())).as_py() - pc.mean(table["ill"].cast(pa.int8())).as_py()) < 0.1
    if "dose" in names:
        assert 0.02 < rows["dose"].null_count / 1_000 < 0.25


@pytest.fixture(scope="module", params=STEPS)
def model(request, mixed_schema: Schema, table: pa.Table) -> Model:
    plan = make_plan(mixed_schema, 5, 1e-5, rows=4_000, preset=request.param)
    return train(measure(table, plan), seed=1, steps=LONGER[request.param])


def test_the_same_seed_gives_the_same_rows(model: Model) -> None:
    again = train(model.release, seed=1, steps=LONGER[model.release.plan.method])
    assert again.sample(300).equals(model.sample(300))
    assert again.history == model.history
    assert not model.sample(300, seed=5).equals(model.sample(300, seed=6))


def test_a_saved_model_draws_the_same_rows(model: Model, tmp_path) -> None:
    model.save(tmp_path / "model")
    again = Model.load(tmp_path / "model")
    assert again.sample(200, seed=9).equals(model.sample(200, seed=9))
    assert verify(tmp_path / "model").release.plan == model.release.plan
    whole = (tmp_path / "model" / "weights.safetensors").read_bytes()
    for damaged in (whole[:-8], whole[:100] + b"?" + whole[101:], b""):
        (tmp_path / "model" / "weights.safetensors").write_bytes(damaged)
        with pytest.raises(ArtefactError, match="weights"):
            Model.load(tmp_path / "model")


def test_what_is_given_is_kept(model: Model) -> None:
    assert model.sample(200, given={"ill": True})["ill"].to_pylist() == [True] * 200
    assert set(model.sample(50, given={"ward": "c", "ill": "no"})["ward"].to_pylist()) == {"c"}
    for wrong in ({"ward": "zzz"}, {"nobody": 1}, {"key": 1}, {"age": 1000}):
        with pytest.raises(DpmerfError):
            model.sample(10, given=wrong)
    with pytest.raises(TrainError):
        model.sample(0)


def test_given_columns_shift_the_others(mixed_schema: Schema, table: pa.Table) -> None:
    model = train(measure(table, make_plan(mixed_schema, 10, 1e-5, rows=4_000)), seed=0)
    dose = {w: pc.mean(model.sample(500, given={"ward": w})["dose"]).as_py() for w in ("a", "c")}
    assert dose["c"] - dose["a"] > 3
    age = {i: pc.mean(model.sample(500, given={"ill": i})["age"]).as_py() for i in (True, False)}
    assert age[True] - age[False] > 15
    exact = model.sample(20, given={"dose": 3.3, "age": 44})
    assert set(exact["dose"].to_pylist()) == {3.3} and set(exact["age"].to_pylist()) == {44}


def test_columns_that_imply_each_other_keep_their_shares() -> None:
    """No Gibbs step leads from one block to the other, so the chains must not keep the shares that they began with."""
    values, names = [f"v{i}" for i in range(6)], [f"c{j}" for j in range(6)]
    block = np.random.default_rng(0).choice(values, size=20_000, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    schema = Schema.parse("".join(f'[columns.{n}]\nkind = "category"\nvalues = {values}\n' for n in names))
    rows = pa.table(dict.fromkeys(names, block))
    model = train(measure(rows, make_plan(schema, 10, 1e-5, rows=20_000)), seed=1)
    drawn = model.sample(20_000)
    for name in names:
        gap = [np.mean(drawn[name].to_numpy() == v) - np.mean(block == v) for v in values]
        assert np.abs(gap).sum() / 2 < 0.008


def test_the_one_call_api_returns_what_it_was_given(mixed_schema: Schema, table: pa.Table) -> None:
    import pandas as pd
    import polars as pl

    frame = table.to_pandas()
    options = {"epsilon": 2.0, "delta": 1e-5, "n": 100}
    assert isinstance(dpmerf.synthesize(frame, mixed_schema, **options), pd.DataFrame)
    assert isinstance(dpmerf.synthesize(pl.from_arrow(table), mixed_schema, label="ward", **options), pl.DataFrame)
    fitted = dpmerf.Synthesizer(epsilon=2.0, schema=mixed_schema, label=None).fit(table)
    assert isinstance(fitted.sample(50), pa.Table) and fitted.sample().num_rows == 4_000


def test_training_reaches_the_noise_floor(model: Model) -> None:
    assert model.history.loss[-1] < model.history.loss[0]
    if model.release.plan.method == "paper":
        assert len(model.history.held_out) == len(model.history.loss) == 4
    else:
        assert model.history.loss[-1] < 3 * model.history.floor


def test_the_default_looks_twice_at_the_pairs_that_depend_most(tmp_path: Path) -> None:
    """Nine columns of four values, of which two are nearly copies of others: those pairs are seen again, sharper."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (8_000, 9))
    for copy, of in ((5, 1), (8, 2)):
        values[:, copy] = np.where(rng.random(8_000) < 0.9, values[:, of], values[:, copy])
    table = pa.table({f"c{j}": pa.array([f"v{v}" for v in values[:, j]]) for j in range(9)})
    text = "".join(f'[columns.{n}]\nkind = "category"\nvalues = ["v0", "v1", "v2", "v3"]\n' for n in table.column_names)
    plan = make_plan(Schema.parse(text), 1.0, 1e-5, rows=8_000)
    assert [s.name for s in plan.stages] == ["discover", "tables", "pairs again"]
    assert math.isclose(sum(p.mu**2 for p in plan.prices), plan.mu**2, rel_tol=1e-9)  # one budget for all three
    release = measure(table, plan)
    assert set(picked_pairs(release)[:2]) == {("c1", "c5"), ("c2", "c8")} and len(picked_pairs(release)) == 12
    first, second = (counts.noisy_tables(r) for r in (_without_last_stage(release), release))
    i, j = (first.layout.names.index(name) for name in picked_pairs(release)[0])
    # a fifth of the budget for a third of the pairs
    assert second.pair_variance[i, j] < 0.35 * first.pair_variance[i, j]
    assert int((first.pair_variance != second.pair_variance).sum()) == 2 * len(picked_pairs(release))
    release.save(tmp_path / "r")
    assert picked_pairs(verify(tmp_path / "r").release) == picked_pairs(release)
    rows = train(release, seed=1).sample(4_000)
    assert np.mean(np.array(rows["c1"]) == np.array(rows["c5"])) > 0.8


def test_a_label_that_only_a_pair_shows_is_found() -> None:
    """Six fair coins and a label that is the parity of two of them: no pair shows it, label × that pair does."""
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (16_000, 6)).astype(bool)
    table = pa.table({"y": coins[:, 1] ^ coins[:, 4], **{f"c{j}": coins[:, j] for j in range(6)}})
    flags = "".join(f'[columns.{name}]\nkind = "flag"\n' for name in table.column_names)
    plan = make_plan(Schema.parse(f'label = "y"\n{flags}'), 1.0, 1e-5, rows=16_000)
    rows = train(measure(table, plan), seed=1).sample(4_000)
    y, a, b = (np.array(rows[name]) for name in ("y", "c1", "c4"))
    assert np.mean(y == (a ^ b)) > 0.9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_the_second_look_is_for_noise_that_limits_the_bins(epsilon: float) -> None:
    columns = "".join(f'[columns.c{j}]\nkind = "number"\nmin = 0\nmax = 1\n' for j in range(8))
    plan = make_plan(Schema.parse(columns), epsilon, 1e-5, rows=20_000)
    assert ("pairs again" in [s.name for s in plan.stages]) == (plan.query(Tables).bins < 20)


def _without_last_stage(release: Release) -> Release:
    return replace(release, sums={name: s for name, s in release.sums.items() if name != "pairs again"})
