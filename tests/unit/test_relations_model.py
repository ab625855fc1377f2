"""Relations through whole models: every generator keeps them, the tables model by zeros of its own, also when asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

import dpmerf
from dpmerf.accounting.unit import Unit
from dpmerf.encoding.atoms import refined
from dpmerf.encoding.binning import Binning, FineGrid
from dpmerf.encoding.broken import broken
from dpmerf.encoding.codec import Codec
from dpmerf.encoding.projection import settled
from dpmerf.encoding.reading import read
from dpmerf.errors import SchemaError, TrainError
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.plan.queries import Directions, Histograms
from dpmerf.plan.stages import Stage
from dpmerf.schema import Schema

TEXT = """
label = "ok"
[columns.ward]
kind = "category"
values = ["surgery", "maternity", "children"]
[columns.sex]
kind = "category"
values = ["female", "male"]
[columns.age]
kind = "integer"
min = 0
max = 110
[columns.day]
kind = "date"
first = 2020-01-01
last = 2023-12-31
[columns.left]
kind = "date"
first = 2020-01-01
last = 2024-12-31
nullable = true
[columns.price]
kind = "number"
min = 0
max = 100
decimals = 2
[columns.gross]
kind = "number"
min = 0
max = 120
decimals = 2
[columns.code]
kind = "integer"
min = 1
max = 9
[columns.ok]
kind = "flag"
[[relations]]
rule = 'if ward = "maternity" then sex = "female"'
[[relations]]
rule = 'if ward = "children" then age <= 17'
[[relations]]
rule = 'never ward = "surgery" and sex = "male" and age < 40'
[[relations]]
rule = 'if ok then ward != "children"'
[[relations]]
name = "stay"
learn = "left - day"
min = "0d"
max = "60d"
[[relations]]
rule = "gross = price * 1.2"
[[relations]]
lookup = "code"
by = "ward"
table = { surgery = 3, maternity = 5, children = 1 }
"""
SCHEMA = Schema.parse(TEXT)


def real(n: int = 3_000, seed: int = 0) -> pa.Table:
    """Rows that keep the relations, but for a few."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(["surgery", "maternity", "children"], n, p=[0.5, 0.2, 0.3])
    sex = np.where(ward == "maternity", "female", rng.choice(["female", "male"], n))
    age = np.where(ward == "children", rng.integers(0, 18, n), rng.integers(18, 90, n))
    age = np.where((ward == "surgery") & (sex == "male"), np.maximum(age, 40), age)
    age[:10], sex[:10] = 80, "male"
    day = np.datetime64("2020-01-01") + rng.integers(0, 1400, n)
    left = day + rng.geometric(0.2, n).clip(0, 60)
    price = rng.gamma(2, 10, n).clip(0, 100).round(2)
    ok = (rng.random(n) < 0.4) & (ward != "children")
    return pa.table(
        {
            "ward": ward,
            "sex": sex,
            "age": age,
            "day": pa.array(day.astype("datetime64[D]")),
            "left": pa.array(left.astype("datetime64[D]"), mask=rng.random(n) < 0.1),
            "price": price,
            "gross": (price * 1.2).round(2),
            "code": np.select([ward == "surgery", ward == "maternity"], [3, 5], 1),
            "ok": ok,
        }
    )


def directions_plan() -> Plan:
    scored = tuple(n for n in SCHEMA.measured.learned if n != "ok")
    recipe = Directions(group=1, by_label=True, share_mean=0.35, share_products=0.6, share_length=0.05)
    stages = (Stage("discover", 0.4, Histograms(cells=16, columns=scored)), Stage("directions", 0.6, recipe))
    return Plan(SCHEMA, 5.0, 1e-5, Unit(), 3_000, "default", False, stages)


def trained(kind: str) -> Model:
    if kind == "elliptic":
        plan = directions_plan()
    else:
        plan = make_plan(SCHEMA, 5.0, 1e-5, rows=3_000, preset="paper" if kind == "network" else "default")
    steps = {"maxent": 60, "network": 20, "elliptic": None}[kind]
    return dpmerf.train(dpmerf.release(real(), plan), seed=1, steps=steps)


@pytest.fixture(scope="module")
def model() -> Model:
    return trained("maxent")


def violations(table: pa.Table) -> dict[str, int]:
    found = broken(read(table, SCHEMA), SCHEMA.program)
    return {SCHEMA.program.title(i): int(rows.sum()) for i, rows in found.items() if rows.any()}


@pytest.mark.parametrize("kind", ["maxent", "elliptic", "network"])
def test_every_generator_keeps_the_relations(kind: str) -> None:
    assert violations(trained(kind).sample(4_000, seed=2)) == {}


def test_zeros_leave_nothing_to_settle(model: Model) -> None:
    codec = model.release.codec
    batch = model.generator.draw(20_000, None, torch.Generator().manual_seed(3))
    values = codec.values(batch)
    after = settled(values, SCHEMA.program)
    moved = {n: int((values[n] != after[n]).sum()) for n in ("ward", "sex", "age")}
    assert max(moved.values()) <= 5, moved
    shares = {w: float((values["ward"] == k).mean()) for k, w in enumerate(["surgery", "maternity", "children"])}
    assert abs(shares["maternity"] - 0.2) < 0.05


def test_models_with_relations_survive_their_files(model: Model, tmp_path: object) -> None:
    model.save(f"{tmp_path}/m")
    assert Model.load(f"{tmp_path}/m").sample(500, seed=9).equals(model.sample(500, seed=9))


def test_given_respects_relations_or_says_why_not(model: Model) -> None:
    males = model.sample(800, given={"sex": "male"}, seed=4)
    assert set(males["sex"].to_pylist()) == {"male"}
    assert "maternity" not in males["ward"].to_pylist()
    looked_up = model.sample(300, given={"code": 5}, seed=4)  # follows from the ward: rows are chosen
    assert set(looked_up["ward"].to_pylist()) == {"maternity"}
    assert violations(males) == violations(looked_up) == {}
    with pytest.raises(SchemaError, match=r"relation 1 .*forbids it"):
        model.sample(10, given={"ward": "maternity", "sex": "male"})
    with pytest.raises(SchemaError, match=r"relation 7 .*forbids it"):
        model.sample(10, given={"ward": "maternity", "code": 3})
    with pytest.raises(SchemaError, match=r"learned in place of 'left'.*give 'left'"):
        model.sample(10, given={"stay": 3 * 86_400})
    with pytest.raises(SchemaError, match=r"'ward' cannot be null: .*nullable"):
        model.sample(10, given={"ward": None})
    with pytest.raises(TrainError, match="no row met"):
        model.sample(10, given={"gross": 119.99, "ward": "children"})


def test_bins_end_where_rules_cut() -> None:
    grid = FineGrid(Codec(SCHEMA), 16)
    binning = Binning.equal(grid, 4, 2)
    fine = grid.numeric["age"]
    for b in range(int(binning.bin_of["age"].max()) + 1):
        cells = (binning.bin_of["age"] == b).numpy()
        first, last = fine.edges[:-1][cells].min(), fine.edges[1:][cells].max() - 1
        assert not first <= 17 < last, "17 and 18 share a bin"
        assert not first < 40 <= last, "39 and 40 share a bin"
    assert refined(np.array([0, 0, 1, 1]), [np.array([1, 0, 0, 0])]).tolist() == [0, 1, 2, 2]
