"""Few rows for many columns: what is measured of pairs must not cost more than it shows."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
from benchmarks.suite_simulated import few_strong_pairs

from dpmerf.accounting.gaussian import mu_of
from dpmerf.accounting.unit import Unit
from dpmerf.evaluate.marginals import marginals
from dpmerf.evaluate.views import Rows
from dpmerf.methods.presets import make_plan
from dpmerf.methods.settings import MethodSettings, TablesSettings
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import Histograms, PairsAgain, Tables
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

ROWS, COLUMNS = 4_000, 32


def independent(schema: Schema, rows: int) -> Plan:
    """Every column alone, and nothing else."""
    names = tuple(schema.learned)
    alone = Tables(bins=20, parts=1, by_label=False, pairs=(), share_single=1.0, share_pair=0.0, share_label_pair=0.0)
    stages = Stage("discover", 0.5, Histograms(cells=64, columns=names)), Stage("tables", 0.5, alone)
    return Plan(schema, 1.0, 1e-5, Unit(), rows, "default", False, stages)


def test_pairs_do_not_cost_what_columns_alone_would_show() -> None:
    schema, rows = few_strong_pairs(2 * ROWS, 5, COLUMNS)
    learned, judges = rows.slice(0, ROWS), Rows.read(rows.slice(ROWS), schema).all_coded()

    def distance(plan: Plan, order: int) -> float:
        made: pa.Table = train(measure(learned, plan), seed=1, steps=150).sample(ROWS)
        return marginals(Rows.read(made, schema).all_coded(), judges, None, order, 2_000, 0).mean

    ours, alone = make_plan(schema, 1.0, 1e-5, rows=ROWS), independent(schema, ROWS)
    assert distance(ours, 2) < 1.05 * distance(alone, 2)


def test_pairs_are_measured_again_as_far_as_noise_lets_them_show() -> None:
    schema, _ = few_strong_pairs(10, 0, COLUMNS)
    noise = math.sqrt(2) / mu_of(1.0, 1e-5)
    for rows in (3_000, 7_500, 100_000):
        plan = make_plan(schema, 1.0, 1e-5, rows=rows)
        if plan.has(PairsAgain):
            stage = plan.stage(PairsAgain)
            count = plan.query(PairsAgain).count
            assert noise * math.sqrt(count / stage.share) <= rows / TablesSettings().again_signal * 1.05 or count == 1


def test_a_column_keeps_its_levels_where_cells_are_nearly_as_many() -> None:
    columns = {f"hours{j}": {"kind": "integer", "min": 1, "max": 99} for j in range(12)}
    schema = Schema.from_dict({"columns": columns | {"income": {"kind": "integer", "min": 0, "max": 10**6}}})
    usual = MethodSettings()
    never = replace(usual, tables=replace(usual.tables, whole_levels=1.0))
    fewer, ours, most = (
        make_plan(schema, 1.0, 1e-5, rows=rows, settings=settings).query(Histograms).cells
        for rows, settings in ((2_500, never), (2_500, usual), (1_000, usual))
    )
    assert 50 <= fewer < 99 == ours
    assert most < 50  # too few rows: 99 cells would be noise
