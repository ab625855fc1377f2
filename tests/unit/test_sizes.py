"""Sizes: what a plan costs, and whether a release can be true, is known without drawing or counting anything large."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest

from dpmerf.errors import ArtefactError
from dpmerf.methods.presets import make_plan
from dpmerf.plan import digest
from dpmerf.private.measure import measure
from dpmerf.release.verify import verify
from dpmerf.schema import Schema

SCHEMA = 'label = "y"\n[columns.y]\nkind = "flag"\n[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n'


def test_the_plan_of_two_thousand_categories() -> None:
    columns = "".join(f'[columns.c{i}]\nkind = "category"\nvalues = ["a", "b", "c"]\n' for i in range(2_000))
    start = time.process_time()
    plan = make_plan(Schema.parse(SCHEMA + columns), 1.0, 1e-5, rows=5_000)
    assert plan.coordinates < 1_000_000
    assert time.process_time() - start < 20


def test_a_release_that_claims_a_million_features_is_refused_at_once(tmp_path: Path) -> None:
    """Nothing as long as it claims to be is drawn before the claim is compared with the rest of the file."""
    plan = make_plan(Schema.parse(SCHEMA), 1.0, 1e-5, rows=100, preset="paper")
    measure(pa.table({"x": [0.5], "y": [True]}), plan).save(tmp_path / "r")
    file = tmp_path / "r" / "release.json"
    document = json.loads(file.read_text())
    document["plan"]["stages"][0]["recipe"]["dim"] = 1_000_000
    document["plan_hash"] = digest(document["plan"])
    document["hash"] = digest({k: v for k, v in document.items() if k != "hash"})
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    start = time.process_time()
    with pytest.raises(ArtefactError, match="does not follow from the plan"):
        verify(tmp_path / "r")
    assert time.process_time() - start < 4
