"""release.distance: one loss for every method. True rows lie at 1, by the noise alone; generated ones near it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import dpmerf
from dpmerf.plan import Plan
from dpmerf.private.measure import measure
from fixed_noise import SeededNoise
from golden.test_golden import few, mixed, pictures, wide

from conftest import MIXED  # isort: skip

Case = tuple[Plan, pa.Table]


def _mixed(unit: str, preset: str, label: str | None, n: int, neighbours: str = "replace") -> Case:
    schema = dpmerf.Schema.parse(MIXED).with_label(label)
    made = dpmerf.make_plan(schema, 1.0, 1e-5, rows=n, unit=dpmerf.Unit.parse(unit, neighbours), preset=preset)
    return made, mixed(n)


def _images() -> Case:
    picture = '[columns.x]\nkind = "image"\nheight = 8\nwidth = 8\n'
    text = f'label = "y"\n{picture}[columns.y]\nkind = "category"\nvalues = [0, 1]\n'
    x, y = pictures(300)
    table = pa.table({"x": pa.array([p.tobytes() for p in x], pa.binary()), "y": y})
    return dpmerf.make_plan(dpmerf.Schema.parse(text), 8.0, 1e-5, rows=300), table


def _of(made: tuple[str, pa.Table], n: int) -> Case:
    return dpmerf.make_plan(dpmerf.Schema.parse(made[0]), 1.0, 1e-5, rows=n), made[1]


CASES: dict[str, Callable[[], Case]] = {
    "tables": lambda: _mixed("row", "default", "ill", 20_000),
    "tables, add-remove": lambda: _mixed("row", "default", None, 5_000, "add-remove"),
    "paper": lambda: _mixed("row", "paper", "ill", 2_000),
    "wide": lambda: _of(wide(1_200), 1_200),
    "few rows": lambda: _of(few(700), 700),
    "images": _images,
}


@pytest.mark.parametrize("case", CASES)
def test_the_rows_that_were_measured_lie_at_one(case: str) -> None:
    """What is left is noise of known size: a χ² divided by its degrees of freedom."""
    plan, rows = CASES[case]()
    release = measure(rows, plan, noise=SeededNoise(3))
    numbers = sum(len(s) for s in release.sums.values())
    found = release.distance(rows)
    assert abs(found - 1) < 6 * math.sqrt(2 / numbers) + 0.01, found


@pytest.mark.parametrize("case", ["tables", "paper", "wide", "few rows", "images"])
def test_generated_rows_lie_near_one_and_others_do_not(case: str) -> None:
    plan, rows = CASES[case]()
    release = measure(rows, plan, noise=SeededNoise(4))
    steps = {"images": 5, "paper": 60, "tables": 40}.get(case)
    model = dpmerf.train(release, seed=1) if steps is None else dpmerf.train(release, seed=1, steps=steps)
    drawn = release.distance(model.sample(max(rows.num_rows, 5_000), seed=2))
    rng = np.random.default_rng(0)
    one = rows.take(rng.integers(0, 3, rows.num_rows))  # three rows, again and again
    other = release.distance(one)
    assert 0.5 < drawn < 2.0 and other - 1 > 1.2 * (drawn - 1), (drawn, other)
