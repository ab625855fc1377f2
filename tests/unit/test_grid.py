"""Grid: fine cells, bins of them, and parts of bins."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmerf.encoding.binning import Binning, FineGrid
from dpmerf.encoding.codec import Codec
from dpmerf.encoding.cuts import support
from dpmerf.encoding.places import draw_inside, place_of
from dpmerf.generators.maxent.consistent import consistent
from dpmerf.generators.maxent.inside import _split, fine_shares
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.methods.presets import make_plan
from dpmerf.plan.noisy_tables import noisy_tables
from dpmerf.plan.queries import Histograms
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train
from fixed_noise import FixedNoise

SCHEMA = Schema.parse("""
label = "y"
[columns.x]
kind = "number"
min = 0
max = 1
nullable = true
[columns.c]
kind = "category"
values = ["a", "b", "c"]
[columns.y]
kind = "flag"
""")


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), parts=st.integers(1, 9), noise=st.floats(0.1, 300))
def test_parts_are_runs_inside_bins_and_never_more_than_asked(seed: int, parts: int, noise: float) -> None:
    grid = FineGrid(Codec(SCHEMA), 64)
    rng = np.random.default_rng(seed)
    mass = rng.exponential(size=grid.variables["x"].size) ** 3 * 100
    found = Binning.cut(grid, {"x": mass}, {"x": 5.0}, float(mass.sum()), 6, frozenset(), parts, noise)
    part_of, bin_of = found.part_of["x"], found.bin_of["x"]
    assert sorted(set(part_of.tolist())) == list(range(found.parts["x"].size))
    assert (part_of.diff() >= 0).all() and (part_of.diff() <= 1).all()
    assert found.bin_of_part("x")[part_of].tolist() == bin_of.tolist()
    assert int(np.bincount(found.bin_of_part("x")).max()) <= parts
    assert found.parts["x"].size <= Binning.equal(grid, 12, parts).parts["x"].size or parts == 1
    again = Binning.from_json(grid, json.loads(json.dumps(found.to_json())))
    assert torch.equal(again.part_of["x"], part_of) and torch.equal(again.bin_of["x"], bin_of)


def test_a_cell_has_its_place_in_its_bin_and_a_place_its_cell() -> None:
    rng = torch.Generator().manual_seed(2)
    bin_of, shares = torch.tensor([0, 0, 0, 1, 2, 2, 3, 3]), torch.tensor([0.5, 0.0, 0.5, 1.0, 0.1, 0.9, 0.0, 0.0])
    cells = torch.tensor([0, 2, 3, 4, 5, 6, 7]).repeat(200)
    place = place_of(bin_of, shares, cells, rng)
    assert torch.equal(draw_inside(bin_of, shares, bin_of[cells], place, rng, evened=False), cells)
    assert 0.4 < float(place[cells == 0].max()) <= 0.5 <= float(place[cells == 2].min())
    assert float(place[cells == 4].max()) <= 0.1 <= float(place[cells == 5].min())
    assert float(place[cells == 6].max()) <= 0.5  # nothing is known of a bin without any share: its cells are alike


def test_named_columns_have_a_cell_for_each_value() -> None:
    schema = Schema.parse(
        '[columns.n]\nkind = "integer"\nmin = 0\nmax = 900\n[columns.m]\nkind = "integer"\nmin = 0\nmax = 900'
    )
    grid = FineGrid(Codec(schema), 64, ("n",))
    assert grid.variables["n"].size == 901 and grid.variables["m"].size <= 80


def test_columns_without_a_histogram_keep_every_cell() -> None:
    plan = make_plan(SCHEMA, 1.0, 1e-5, rows=5000)
    assert plan.query(Histograms).columns == ("x",)
    rng = np.random.default_rng(0)
    rows = pa.table({"x": rng.random(500), "c": rng.choice(list("abc"), 500), "y": rng.random(500) < 0.5})
    release = measure(rows, plan, noise=FixedNoise())
    assert release.binning is not None and release.binning.variables["c"].size == 3
    noisy = noisy_tables(release)
    shares = fine_shares(release, release.binning, noisy, consistent(noisy, Settings()), Settings())
    for name, share in shares.items():
        bin_of = release.binning.bin_of[name]
        sums = torch.zeros(2, int(bin_of.max()) + 1, dtype=torch.float64).index_add(1, bin_of, share)
        assert torch.allclose(sums, torch.ones_like(sums)) and bool((share >= 0).all())


def test_parts_of_a_bin_are_split_by_class_only_as_far_as_noise_allows() -> None:
    share, classes = torch.tensor([0.5, 0.5]).double(), torch.tensor([1000.0, 1000.0]).double()
    apart = torch.tensor([[900.0, 100.0], [100.0, 900.0]]).double()
    clear = _split(apart, classes, share, sigma=10.0, rounds=5)
    assert torch.allclose(clear, torch.tensor([[0.9, 0.1], [0.1, 0.9]]).double(), atol=0.01)
    drowned = _split(apart, classes, share, sigma=2000.0, rounds=5)
    assert torch.allclose(drowned, torch.full((2, 2), 0.5).double(), atol=1e-3)


@pytest.mark.slow
def test_a_label_that_changes_inside_bins_is_learned() -> None:
    """Stripes of width 1/32 alternate between the classes; bins are wider than a stripe."""
    rng = np.random.default_rng(1)
    n = 40_000
    x = rng.random(n)
    stripe = (x * 32).astype(int) % 2
    rows = pa.table({"x": x, "c": rng.choice(list("abc"), n), "y": rng.random(n) < np.where(stripe, 0.9, 0.1)})
    release = measure(rows, make_plan(SCHEMA, 2.0, 1e-5, rows=n))
    assert release.binning is not None and release.binning.variables["x"].size < 32
    made = train(release, seed=0).sample(20_000)
    values = made.column("x").to_numpy(zero_copy_only=False)
    label = made.column("y").to_numpy(zero_copy_only=False).astype(float)
    inside = np.isfinite(values)
    seen = np.where(inside, values * 32, 0).astype(int) % 2
    assert label[inside & (seen == 1)].mean() - label[inside & (seen == 0)].mean() > 0.4


def test_an_end_with_nothing_but_noise_is_no_support() -> None:
    true = np.r_[np.full(20, 500.0), np.zeros(30)]
    noise = [30 * np.random.default_rng(seed).standard_normal(50) for seed in range(100)]
    found = [support(true + n, 30.0) for n in noise]
    assert sum(s == slice(0, 20) for s in found) >= 95  # else one cell of noise passed four deviations


def test_a_spike_at_the_far_end_keeps_the_range() -> None:
    counts = np.r_[np.full(20, 500.0), np.zeros(29), 400.0]
    assert support(counts, 30.0) == slice(0, 50)


def test_thin_rows_show_together() -> None:
    true = np.r_[np.full(4, 2_500.0), np.full(46, 60.0)]  # each of them no more than its noise
    noise = [60 * np.random.default_rng(seed).standard_normal(50) for seed in range(100)]
    assert sum(support(true + n, 60.0).stop > 25 for n in noise) >= 85


def test_a_column_of_noise_keeps_its_range() -> None:
    assert support(np.zeros(50), 30.0) == slice(0, 50)


def test_a_generous_bound_does_not_put_rows_near_it() -> None:
    schema = Schema.parse("""
    label = "y"
    [columns.x]
    kind = "integer"
    min = 0
    max = 1_000_000_000
    log = true
    [columns.y]
    kind = "flag"
    """)
    rng = np.random.default_rng(0)
    x = np.rint(np.exp(rng.normal(5, 1, 20_000))).astype(np.int64)
    table = pa.table({"x": x, "y": pa.array(rng.random(20_000) < 0.5)})
    release = measure(table, make_plan(schema, 1.0, 1e-5, rows=20_000), noise=FixedNoise(1))
    made = train(release, seed=0, steps=1).sample(20_000)["x"].to_numpy()
    assert 0.5 < made.std() / x.std() < 2
    assert made.max() < 100_000
