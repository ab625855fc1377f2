"""Preferred values: single values, round numbers and hours come back, and what finds them sees one cell at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
from benchmarks.suite_simulated import clocks, round_numbers, spikes

from dpmerf.encoding.codec import Codec
from dpmerf.encoding.grain import PRIMES, Grain
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.preferred import Preference, preferred
from dpmerf.methods.presets import make_plan
from dpmerf.plan.queries import Histograms, PreferredValues
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train


def _made(schema: Schema, rows: pa.Table) -> pa.Table:
    release = measure(rows, make_plan(schema, 1.0, 1e-5, rows=rows.num_rows))
    return train(release, seed=1, steps=60).sample(rows.num_rows)


def test_values_that_many_rows_share_come_back() -> None:
    schema, rows = spikes(20_000, 4)
    made = _made(schema, rows)
    for name, value in (("fee", 37.25), ("price", 499.99), ("weight", 70.0)):
        real, ours = (np.isclose(t[name].to_numpy(), value, rtol=1e-9).mean() for t in (rows, made))
        assert ours == pytest.approx(real, rel=0.25), name


def test_round_numbers_come_back() -> None:
    schema, rows = round_numbers(20_000, 4)
    made = _made(schema, rows)
    for name, divisor in (("rent", 100), ("income", 1_000), ("age", 5)):
        real, ours = ((t[name].to_numpy() % divisor == 0).mean() for t in (rows, made))
        assert ours == pytest.approx(real, abs=0.1), name


def test_hours_and_weekdays_come_back() -> None:
    schema, rows = clocks(20_000, 4)
    made = _made(schema, rows)
    for part in ("h", "D"):
        real, ours = (t["at"].to_numpy().astype("datetime64[s]").astype(f"datetime64[{part}]") for t in (rows, made))
        size = 24 if part == "h" else 7
        shares = [np.bincount(x.astype(np.int64) % size, minlength=size) / len(x) for x in (real, ours)]
        assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.05, part


def test_a_column_without_favourites_gets_none() -> None:
    grain = Grain(*_number())
    level = np.random.default_rng(0).integers(0, 100_001, 20_000)
    counts = {what: np.bincount(g, minlength=grain.sizes[what]) for what, g in grain.groups(level).items()}
    noisy = {what: c + np.random.default_rng(1).normal(0, 60, len(c)) for what, c in counts.items()}
    cells = np.bincount(np.searchsorted(grain.fine.edges, level, side="right") - 1, minlength=grain.fine.size)
    found = Preference.of(grain, noisy, 60.0, cells.astype(float), 40.0, 20_000.0, Settings())
    assert not found.share.any()
    drawn = found(np.repeat(np.arange(grain.fine.size), 20), torch.Generator().manual_seed(0))
    assert (np.rint(drawn * 100) % 100 == 0).mean() < 0.05


def test_every_group_of_a_value_is_a_function_of_that_value() -> None:
    grain = Grain(*_number())
    levels = np.arange(0, 100_001, 7)
    together, alone = grain.groups(levels), [grain.groups(levels[i : i + 1]) for i in range(0, len(levels), 97)]
    for what in grain.sizes:
        assert [int(one[what][0]) for one in alone] == together[what][::97].tolist()
        assert together[what].min() >= 0 and together[what].max() < grain.sizes[what]
    assert set(grain.sizes) == {f"remainder by {PRIMES[0]}", f"remainder by {PRIMES[1]}", "divisor"}


def test_few_rows_spend_nothing_on_it() -> None:
    schema, _ = spikes(10, 0)
    assert make_plan(schema, 1.0, 1e-5, rows=20_000).has(PreferredValues)
    assert not make_plan(schema, 1.0, 1e-5, rows=1_000).has(PreferredValues)


def test_the_map_has_norm_one_and_sees_each_row_alone() -> None:
    schema, rows = spikes(500, 0)
    plan = make_plan(schema, 1.0, 1e-5, rows=20_000)
    phi = plan.query(PreferredValues).nominal(plan)
    assert phi.norm_bound == pytest.approx(1) and phi.diameter == pytest.approx(2**0.5)
    release = measure(rows, plan)
    view = release.embedding(plan.stage(PreferredValues)).view
    batch = Codec(schema).encode(rows)
    whole, part = view(batch), view(batch.rows(slice(100, 120)))
    for name, code in part.codes.items():
        assert torch.equal(code, whole.codes[name][100:120]), name


def _number() -> tuple[object, object]:
    schema = Schema.parse('[columns.x]\nkind = "number"\nmin = 0\nmax = 1000\ndecimals = 2')
    return schema.columns["x"], Histograms(cells=256, columns=("x",)).grid(Codec(schema)).numeric["x"]


FEW = """
[columns.age]
kind = "number"
min = 15
max = 60
decimals = 1
[columns.married]
kind = "number"
min = 0
max = 40
[columns.smooth]
kind = "number"
min = 0
max = 1000
decimals = 1
"""


def test_a_column_of_few_values_holds_their_roundest_where_nothing_was_counted() -> None:
    """Too few rows for counts of preferred values: lone cells tell it, and smooth columns stay as they are."""
    rng, schema, n = np.random.default_rng(2), Schema.parse(FEW), 4_000
    ages, years = [17.5, 22.0, 27.0, 32.0, 37.0, 42.0], [0.5, 2.5, 6.0, 9.0, 13.0, 16.5, 23.0]
    columns = {"age": rng.choice(ages, n), "married": rng.choice(years, n), "smooth": rng.normal(400, 90, n).round(1)}
    release = measure(pa.table(columns), make_plan(schema, 1.0, 1e-5, rows=n))
    assert not release.plan.has(PreferredValues)
    assert set(preferred(release, Settings())) == {"age", "married"}
    made = train(release, seed=1).sample(n)
    assert np.isin(made["age"].to_numpy(), ages).mean() > 0.9
    assert np.isin(made["married"].to_numpy(), years).mean() > 0.9
