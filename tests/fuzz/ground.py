"""The ground: whole files of every kind, made once, of which cases are broken copies. Every table holds the marker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

MARKER = "Zq7Planted"
LEDGER = "study.ledger"
SCHEMA = """label = "ill"
[columns.key]
kind = "id"
[columns.age]
kind = "integer"
min = 0
max = 100
[columns.dose]
kind = "number"
min = 0
max = 10
decimals = 1
nullable = true
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
other = "else"
[columns.seen]
kind = "date"
first = 2020-01-01
last = 2020-12-31
[columns.at]
kind = "timestamp"
first = 2020-01-01T00:00:00
last = 2020-12-31T00:00:00
[columns.ill]
kind = "flag"
"""
IMAGES = """label = "label"
[columns.image]
kind = "image"
height = 8
width = 8
[columns.label]
kind = "category"
values = ["a", "b"]
"""
PICTURE_ROWS = 12


@final
@dataclass(frozen=True)
class Ground:
    """Folders and files that cases copy from."""

    folder: Path

    def read(self, name: str) -> bytes:
        return _bytes(self.folder / name)

    def json(self, name: str) -> Any:
        return json.loads(self.read(name))


@cache
def _bytes(path: Path) -> bytes:
    return path.read_bytes()


def rows(n: int = 40) -> pa.Table:
    """Rows that fit the schema, but for the marker."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "key": np.arange(n),
            "age": rng.integers(0, 101, n),
            "dose": pa.array(rng.random(n).round(1) * 10, mask=rng.random(n) < 0.1),
            "ward": rng.choice(["a", "b", MARKER], n),
            "seen": pa.array(np.datetime64("2020-01-01") + rng.integers(0, 366, n).astype("timedelta64[D]")),
            "at": pa.array(np.datetime64("2020-01-01T00:00:00") + rng.integers(0, 10**7, n).astype("timedelta64[s]")),
            "ill": rng.random(n) < 0.3,
        }
    )


def lay(folder: Path) -> Ground:
    """Make everything once."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "images.toml").write_text(IMAGES)
    schema = Schema.parse(SCHEMA)
    plan = make_plan(schema, 1.0, 1e-5, rows=40)
    plan.save(folder / "plan.json")
    make_plan(schema, 1.0, 1e-5, rows=40, preset="paper").save(folder / "paper.json")
    _picture_plan().save(folder / "images.json")
    release = measure(rows(), plan)
    release.save(folder / "release")
    train(release, seed=0, steps=3).save(folder / "model")
    ledger = Ledger.open(folder / LEDGER, 3.0, 1e-5)
    for _ in range(2):
        measure(rows(), plan, ledger=ledger)
    (folder / "schema.json").write_text(json.dumps(schema.to_json()))
    return Ground(folder)


def _picture_plan() -> Plan:
    plan = make_plan(Schema.parse(IMAGES), 1.0, 1e-5, rows=PICTURE_ROWS)
    data = plan.to_json()
    for stage in data["stages"]:  # the same map, smaller: cases are many
        for block in stage["recipe"].get("blocks", []):
            block["dim"] = min(block["dim"], 40)
    return Plan.from_json(data)
