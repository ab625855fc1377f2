"""Hunt for persons: the largest norm and distance of what random and hostile persons add, in integers."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from dpmerf.encoding.binning import Binning, FineGrid
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.features.algebra import BITS, FeatureMap, onehot, total
from dpmerf.private.histories import Histories, PersonSums
from dpmerf.progress import SILENT
from dpmerf.schema.person_schema import Persons
from dpmerf.sources.rows import open_rows

MOST = 4
DAY = dt.date(2020, 1, 1)
SCHEMA = f"""
[person]
key = "id"
table = "people"
[tables.people.columns.id]
kind = "id"
[tables.people.columns.sex]
kind = "category"
values = ["f", "m"]
[tables.visits]
order = "day"
most = {MOST}
largest = 20
[tables.visits.columns.id]
kind = "id"
[tables.visits.columns.day]
kind = "date"
first = 2020-01-01
last = 2021-12-31
[tables.visits.columns.ward]
kind = "category"
values = ["a", "b", "c"]
[tables.visits.columns.score]
kind = "number"
min = 0
max = 10
nullable = true
"""
Person = dict[str, list[dict[str, Any]]]  # table -> rows
Vector = dict[str, np.ndarray]  # table -> what the person adds


@cache
def persons() -> Persons:
    return Persons.parse(SCHEMA)


def person(rng: np.random.Generator, rows: int, **fixed: Any) -> Person:
    """A person with so many visits; `fixed` are cells that all of them share."""
    visits = [
        {
            "day": DAY + dt.timedelta(days=int(rng.integers(0, 700))),
            "ward": "abc"[rng.integers(0, 3)],
            "score": None if rng.random() < 0.2 else float(rng.random() * 10),
            **fixed,
        }
        for _ in range(rows)
    ]
    return {"people": [{"sex": "fm"[rng.integers(0, 2)]}], "visits": visits}


def hostile(seed: int = 0) -> list[Person]:
    """0, 1, K and 10 K rows, all in one cell, tied, far apart, out of bounds, without a parent, with two."""
    rng = np.random.default_rng(seed)
    found = [person(rng, n) for n in (0, 1, 1, 2, MOST, MOST, MOST + 1, 10 * MOST, 10 * MOST)]
    same = {"day": DAY, "ward": "b", "score": 1.0}
    found += [person(rng, n, **same) for n in (1, MOST, 10 * MOST)]  # all in one cell
    found += [person(rng, 10 * MOST, day=DAY)]  # tied order values
    found += [person(rng, MOST, day=None), person(rng, MOST, day=dt.date(1, 1, 1)), person(rng, MOST, ward="nowhere")]
    ends = [{"day": d, "ward": "a", "score": 0.0} for d in (DAY, dt.date(2021, 12, 31))]
    found.append({"people": [{"sex": "f"}], "visits": ends})  # a huge gap
    found.append({"people": [], "visits": person(rng, 3)["visits"]})  # rows without a parent
    found.append({"people": [{"sex": "f"}, {"sex": "m"}, {"sex": "m"}], "visits": person(rng, 2)["visits"]})
    return found


def tables(crowd: dict[Any, Person]) -> dict[str, pa.Table]:
    """All persons together, each under its name."""
    types = {
        "people": {"id": pa.string(), "sex": pa.string()},
        "visits": {"id": pa.string(), "day": pa.date32(), "ward": pa.string(), "score": pa.float64()},
    }
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in types}
    for name, one in crowd.items():
        for table, own in one.items():
            rows[table] += [{"id": name, **row} for row in own]
    return {t: pa.Table.from_pylist(rows[t], pa.schema(list(types[t].items()))) for t in types}


@cache
def maps() -> dict[str, tuple[FeatureMap, Callable[[Batch], Batch]]]:
    """For each table, one-way and two-way tables of public bins with different weights, and the view of a row."""
    found = {}
    with Histories({}, persons()) as of:
        codecs: dict[str, Codec] = {name: e.codec for name, e in of.extended.items()}
        assert of.parent is not None
        codecs["people"] = of.parent.codec
    for name, codec in codecs.items():
        bins = Binning.equal(FineGrid(codec, 16), 4)
        v = list(bins.variables.values())
        pairs = [onehot(v[i], v[j]) for i in range(len(v)) for j in range(i + 1, len(v))]
        phi = 0.31 * total([onehot(x) for x in v]) + 0.17 * total(pairs)

        def view(batch: Batch, bins: Binning = bins) -> Batch:
            return Batch(batch.numbers, {**batch.codes, **bins.codes(batch)})

        found[name] = phi, view
    return found


def sums(crowd: dict[Any, Person], key: bytes = b"k" * 32) -> Vector:
    """What all of them add to the sums of every table."""
    read = {name: open_rows(table) for name, table in tables(crowd).items()}
    found = {}
    with Histories(read, persons(), key) as histories:
        histories.read(SILENT)
        for part, (phi, view) in maps().items():
            total_of = PersonSums(phi)
            for batch, sizes in histories.batches(part):
                total_of.add(view(batch), sizes)
            found[part] = total_of.total().numpy()
    return found


def _square(vector: np.ndarray) -> int:
    return sum(int(x) ** 2 for x in vector)


def alarms(seed: int = 0) -> list[str]:
    """What is wrong with what persons add, in words; empty: nothing."""
    found: list[str] = []
    bounds = {part: phi.integer_bounds for part, (phi, _) in maps().items()}
    everyone = hostile(seed)
    alone = [sums({"x": one}) for one in everyone]
    for part, (norm, diameter) in bounds.items():
        if any(_square(a[part]) > norm**2 for a in alone):
            found.append(f"{part}: a person is longer than the bound")
        if any(_square(a[part] - b[part]) > diameter**2 for a in alone for b in alone):
            found.append(f"{part}: two persons are farther apart than the bound")
    for one, vector in zip(everyone, alone, strict=True):
        if one["people"] and one["visits"]:
            phi, _ = maps()["visits"]
            parts = np.split(vector["visits"], np.cumsum([b.dim for b in phi.blocks])[:-1])
            for block, table in zip(phi.blocks, parts, strict=True):
                weight = math.floor(block.weight * 2**BITS)
                if not weight - 10 * MOST < table.sum() <= weight:
                    found.append("visits: what a person adds is no mean of rows")
                    break
    rng = np.random.default_rng(seed + 1)
    crowd = {f"p{i}": person(rng, int(n)) for i, n in enumerate(rng.integers(0, 3 * MOST, 40))}
    base = sums(crowd)
    for one, vector in zip(everyone, alone, strict=True):
        together = sums({**crowd, "x": one})
        if any((together[part] - base[part] != vector[part]).any() for part in bounds):
            found.append("what others add depends on a person")
            break
    nameless = sums({**crowd, None: person(rng, 3 * MOST)})
    if any((nameless[part] != base[part]).any() for part in bounds):
        found.append("rows without a key are somebody's")
    return list(dict.fromkeys(found))
