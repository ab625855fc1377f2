"""Histories: persons with several rows, in one table and in several. Judged against the persons of the release.

`demo`, `hospital` (100,000 patients, K = 8) and `nafld` compare synthetic with real histories; `randhie` holds a fifth
of the persons out and predicts next year's expenses from this year's row. `noise` prints, for one-way tables of rows,
the noise of a share by the mean of a person's rows against that of the unit `person:COLUMN,8`, at the same ε.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import folder as folder_of
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.accounting.unit import Unit
from dpmerf.demo.hospital import SCHEMA as HOSPITAL
from dpmerf.demo.patients import SCHEMA, patients
from dpmerf.evaluate.timelines import compare_histories
from dpmerf.features.algebra import BITS
from dpmerf.methods.person_method import make_person_plan
from dpmerf.methods.presets import make_plan
from dpmerf.person_model import train_persons
from dpmerf.private.person_measure import measure_persons
from dpmerf.schema import Schema
from dpmerf.schema.person_schema import Persons

DELTA = 1e-5
SCHEMAS = Path(__file__).parent / "schemas"
MANY = 188_000  # visits of about 100,000 patients
CELLS = (("demo", 1.0), ("hospital", 1.0), ("randhie", 1.0), ("randhie", 3.0), ("nafld", 1.0))
Tables = dict[str, pa.Table]


def run(this: Run) -> None:
    if this.wants("/histories/noise/1/1/"):
        this.store.cell("histories/noise/1/1", noise)
    for repeat in range(1, this.runs + 1):
        for name, epsilon in CELLS:
            key = f"histories/{name}/{epsilon:g}/{repeat}"
            if this.wants(f"/{key}/"):
                this.store.cell(key, partial(cell, this, name, epsilon, repeat))


def cell(this: Run, name: str, epsilon: float, repeat: int) -> dict[str, Any]:
    persons, real, test = _data(this, name, repeat)
    count = len(pc.unique(real[persons.tables[0]].column(persons.key)))
    plan = make_person_plan(persons, epsilon, DELTA, rows=count)
    release = measure_persons(real if persons.parent else next(iter(real.values())), plan)
    made = train_persons(release, seed=repeat).sample(count)
    found = {n: s.to_json() for n, s in compare_histories(real, made, persons, test).items()}
    keys = made[persons.tables[0]].column(persons.key)
    unique = len(pc.unique(keys)) == len(keys) if persons.parent else None
    return {"persons": count, "estimate": release.persons_estimate, "unique_keys": unique, "tables": found}


def _data(this: Run, name: str, repeat: int) -> tuple[Persons, Tables, Tables | None]:
    if name in ("demo", "hospital"):
        rows = 20_000 if name == "demo" or this.quick else MANY
        return Persons.load(SCHEMA), {"rows": patients(rows, seed=0)}, None
    folder = folder_of(this.data_dir)
    persons = Persons.load(SCHEMAS / ("randhie_persons.toml" if name == "randhie" else f"{name}.toml"))
    if name == "nafld":
        return persons, {t: _text_key(pq.read_table(folder / f"nafld_{t}.parquet")) for t in persons.tables}, None
    whole = _randhie(pq.read_table(folder / "randhie.parquet"))
    people = pc.unique(whole.column("zper")).to_pylist()
    held = set(np.random.default_rng(repeat).permutation(people)[: len(people) // 5].tolist())
    out = np.array([key in held for key in whole.column("zper").to_pylist()])
    return persons, {"rows": whole.filter(pa.array(~out))}, {"rows": whole.filter(pa.array(out))}


def _randhie(table: pa.Table) -> pa.Table:
    """Columns of the schema; age in the year before the study, which a person keeps."""
    age = np.floor(table.column("xage").to_numpy() - table.column("year").to_numpy() + 1e-3).clip(-1, 64)
    table = table.append_column("age_before", pa.array(age.astype(np.int64)))
    table = table.append_column("age", pa.array((age + table.column("year").to_numpy()).astype(np.int64)))
    return table.append_column("expense", pc.greater(table.column("meddol"), 0))


def _text_key(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("id"), "id", table.column("id").cast(pa.string()))


def noise() -> dict[str, Any]:
    """The noise of a share in a one-way table of rows: persons by their mean, and by the sum of at most 8 rows."""
    persons, visits = Persons.load(SCHEMA), patients(MANY, seed=0)
    count = len(pc.unique(visits.column("patient_id")))
    part = make_person_plan(persons, 1.0, DELTA, rows=count).parts["rows"]
    mean = _single_noise(part) / count
    whole = make_plan(Schema.load(HOSPITAL), 1.0, DELTA, rows=MANY, unit=Unit("patient_id", 8))
    summed = _single_noise(whole) / MANY
    return {"mean": mean, "sum of 8": summed, "ratio": mean / summed}


def _single_noise(plan: Any) -> float:
    """Of one count, in a stage's one-way tables by label: each of its own, before any are weighed together."""
    from dpmerf.plan.queries import Tables as TablesQuery

    stage = plan.stage(TablesQuery)
    block = stage.query.nominal(plan).blocks[0]
    return float(plan.price_of(stage).sigma / (block.weight * 2**BITS))


def page(store: Store) -> str:
    """Markdown. A † marks what was made from code that differs from its commit."""
    lines, uncommitted = [], set()
    for key, found in store.cells("histories"):
        line = store.line("/".join(("histories", *key)))
        made_with = line["made_with"] if line else ""
        dirty = "-dirty" in made_with
        if dirty:
            uncommitted.add(made_with)
        for name, s in found.get("tables", {}).items():
            moved = s["transitions"]
            task = s["task"]
            lines.append(
                [
                    key[0] + " †" * dirty,
                    key[1],
                    name,
                    f"{s['rows_per_person']:.3f}",
                    f"{s['one_way']:.3f}",
                    f"{s['two_way']:.3f}",
                    "–" if s["gap"] is None else f"{s['gap']:.3f}",
                    "–" if not moved else f"{np.mean(list(moved.values())):.3f}",
                    f"{s['constant']:.0%} / {s['ordered']:.0%}",
                    "–" if task is None else f"{task[1]:.3f} of {task[0]:.3f}",
                ]
            )
    names = (
        "data",
        "ε",
        "table",
        "rows a person",
        "one-way",
        "two-way",
        "gap",
        "transitions",
        "constant / ordered",
        "AUC",
    )
    ratio = store.read("histories/noise/1/1")
    words = ""
    if ratio is not None:
        words = f"\n\nNoise of a one-way share, mean against a sum of 8 rows: {ratio['ratio']:.2f}."
    if uncommitted:
        words += f"\n\n† Made from uncommitted code ({', '.join(sorted(uncommitted))}): to be run again."
    return (table(names, lines) if lines else "") + words


EXPERIMENT = Experiment(
    "histories", "persons with several rows: demo, hospital, RandHIE, NAFLD", "15 minutes", run, page
)
