"""Methods: by name or by what suits, with settings as data; what has no effect is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dpmerf
from dpmerf.errors import PlanError, TrainError
from dpmerf.generators.elliptic.elliptic_settings import EllipticSettings
from dpmerf.generators.network import Settings as NetworkSettings
from dpmerf.generators.registry import GENERATORS, suited
from dpmerf.methods.presets import METHODS, make_plan
from dpmerf.methods.settings import MethodSettings
from dpmerf.plan.queries import ColumnSelection, Directions, MeanEmbedding, Tables
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.schema import Schema
from fixed_noise import FixedNoise
from golden.test_golden import few, wide

PICTURES = 'label = "y"\n[columns.x]\nkind = "image"\nheight = 8\nwidth = 8\n[columns.y]\nkind = "flag"\n'
KINDS = {"tables": Tables, "few-rows": ColumnSelection, "wide": Directions, "paper": MeanEmbedding}


@pytest.mark.parametrize("name", KINDS)
def test_every_method_by_name(mixed_schema: Schema, name: str) -> None:
    schema = Schema.parse(wide(10)[0]) if name == "wide" else mixed_schema
    made = make_plan(schema, 1.0, 1e-5, rows=2_000, method=name)
    assert made.method == name and made.has(KINDS[name])
    assert GENERATORS[METHODS[name].generator].reads in {type(s.query) for s in made.stages}


def test_auto_takes_what_suits(mixed_schema: Schema) -> None:
    assert make_plan(mixed_schema, 1.0, 1e-5, rows=20_000).method == "tables"
    assert make_plan(Schema.parse(wide(10)[0]), 1.0, 1e-5, rows=1_200).method == "wide"
    assert make_plan(Schema.parse(few(10)[0]), 1.0, 1e-5, rows=700).method == "few-rows"
    assert make_plan(Schema.parse(PICTURES), 1.0, 1e-5, rows=700).method == "images"
    old = make_plan(mixed_schema, 1.0, 1e-5, rows=20_000, preset="default")
    assert old == make_plan(mixed_schema, 1.0, 1e-5, rows=20_000, method="auto")
    assert make_plan(Schema.parse(PICTURES), 1.0, 1e-5, preset="paper").method == "paper"


@pytest.mark.parametrize(
    ("schema", "name", "words"),
    [
        (PICTURES, "tables", "is for tables"),
        (PICTURES, "colourful", "no method 'colourful'"),
        (few(10)[0], "images", "is for pictures"),
        ('[columns.a]\nkind = "flag"\n[columns.b]\nkind = "flag"\n', "few-rows", "needs a label"),
        ('[columns.a]\nkind = "category"\nvalues = ["a", "b", "c"]\n', "wide", "needs numbers"),
    ],
)
def test_a_method_that_does_not_fit_is_refused(schema: str, name: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        make_plan(Schema.parse(schema), 1.0, 1e-5, rows=700, method=name)


def test_settings_decide_what_is_measured(mixed_schema: Schema) -> None:
    """They are part of the plan, and so of its hash."""
    default = MethodSettings()
    coarse = replace(default, tables=replace(default.tables, bins=(4, 5), pairs=False))
    plans = [make_plan(mixed_schema, 1.0, 1e-5, rows=20_000, settings=s) for s in (default, coarse)]
    assert plans[1].query(Tables).bins <= 5 < plans[0].query(Tables).bins
    assert plans[1].query(Tables).pairs == () and plans[0].hash != plans[1].hash


@pytest.fixture(scope="module")
def wide_release() -> Release:
    text, rows = wide(300)
    return measure(rows, make_plan(Schema.parse(text), 1.0, 1e-5, rows=300), noise=FixedNoise(1))


def test_what_has_no_effect_is_said(wide_release: Release) -> None:
    assert suited(wide_release).kind == "elliptic"
    with pytest.warns(UserWarning, match="steps has no effect"):
        dpmerf.train(wide_release, steps=5)
    with pytest.warns(UserWarning, match="fast has no effect"):
        dpmerf.train(wide_release, fast=True)


def test_a_generator_takes_its_own_settings(wide_release: Release) -> None:
    with pytest.raises(TrainError, match="takes EllipticSettings"):
        dpmerf.train(wide_release, settings=NetworkSettings())
    settings = EllipticSettings(quantiles=33, moved=False, longest=2.5)
    generator = dpmerf.train(wide_release, settings=settings).generator
    state = generator.state()
    assert (
        state.tensors["quantiles"].shape[-1] == 33
        and state.settings.items() >= {"longest": 2.5, "moved": False}.items()
    )
    again = type(generator).from_state(wide_release, state)
    assert again.state().settings == state.settings
