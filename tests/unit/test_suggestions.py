"""Suggestions: what a release alone raises as a question. Where nothing goes together, nothing is suggested."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpmerf.demo import hospital
from dpmerf.evaluate.suggestions import suggestions
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema

ROWS = 20_000


def test_the_demo_without_its_relations_suggests_them() -> None:
    schema = Schema.load(hospital.SCHEMA).without_relations()
    release = measure(hospital.hospital(ROWS, 1), make_plan(schema, 1.0, 1e-5, rows=ROWS))
    found = {hint.declare for hint in suggestions(release)}
    assert any(words.startswith('learn = "discharged_at - admitted"') for words in found), found
    assert 'rule = \'never ward = "maternity" and sex = "male"\'' in found


def test_what_is_declared_is_not_suggested_again() -> None:
    schema = Schema.load(hospital.SCHEMA)
    release = measure(hospital.hospital(ROWS, 1), make_plan(schema, 1.0, 1e-5, rows=ROWS))
    pairs = {frozenset(hint.columns) for hint in suggestions(release)}
    assert not {frozenset(("admitted", "discharged_at")), frozenset(("ward", "sex"))} & pairs


def test_independent_columns_suggest_nothing() -> None:
    draw = np.random.default_rng(0)
    table = pa.table({name: draw.choice(["a", "b", "c"], ROWS) for name in "uvw"})
    columns = "".join(f'[columns.{name}]\nkind = "category"\nvalues = ["a", "b", "c"]\n' for name in "uvw")
    assert suggestions(measure(table, make_plan(Schema.parse(columns), 1.0, 1e-5, rows=ROWS))) == []
