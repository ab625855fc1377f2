"""Histories: persons with several rows, in one table and in several. Judged against the persons of the release.

`demo`, `hospital` (100,000 patients, K = 8) and `nafld` compare synthetic with real histories; `randhie` holds a fifth
of the persons out and predicts next year's expenses from this year's row. `noise` prints, for one-way tables of rows,
the noise of a share by the mean of a person's rows against that of the unit `person:COLUMN,8`, at the same ε. `memory`
releases a million rows and ten million, of ten rows a person each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import folder as folder_of
from benchmarks.history_memory import memory
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
from dpmerf.schema import Id, Schema
from dpmerf.schema.person_schema import Persons

DELTA = 1e-5
SCHEMAS = Path(__file__).parent / "schemas"
MANY = 188_000  # visits of about 100,000 patients
MEMORY = (1_000_000, 10_000_000)  # rows
CELLS = (("demo", 1.0), ("hospital", 1.0), ("randhie", 1.0), ("randhie", 3.0), ("nafld", 1.0))
Tables = dict[str, pa.Table]


def run(this: Run) -> None:
    if this.wants("/histories/noise/1/1/"):
        this.store.cell("histories/noise/1/1", noise)
    for rows in (10_000, 20_000) if this.quick else MEMORY:
        if this.wants(f"/histories/memory/{rows}/1/"):
            this.store.cell(f"histories/memory/{rows}/1", partial(memory, rows))
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
    keys = _keys(made, persons)
    return {"persons": count, "estimate": release.persons_estimate, "keys": keys, "tables": found}


def _keys(made: Tables, persons: Persons) -> dict[str, Any]:
    """Ids of the first table: are they unique, and do they match the declared pattern? `age`: does it ever fall?"""
    first, schema = made[persons.tables[0]], persons.schema_of(persons.tables[0])
    found: dict[str, Any] = {}
    for name, column in schema.columns.items():
        if isinstance(column, Id):
            ids = first.column(name).cast(pa.string()).to_pylist()
            one_each = persons.parent is not None or name != persons.key
            found[name] = {
                "unique": len(set(ids)) == len(ids) if one_each else None,
                "match": not column.pattern or all(re.fullmatch(column.pattern, key) for key in ids),
            }
    if persons.parent is None and "age" in schema.columns:
        ages = first.to_pandas().groupby(persons.key)["age"].diff()
        found["age never falls"] = bool((ages.dropna() >= 0).all())
    return found


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
    """Markdown: of each table, the mean over runs. A † marks what was made from code that differs from its commit."""
    runs: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    uncommitted = set()
    for key, found in store.cells("histories"):
        line = store.line("/".join(("histories", *key)))
        made_with = line["made_with"] if line else ""
        dirty = "-dirty" in made_with
        if dirty:
            uncommitted.add(made_with)
        for name, s in found.get("tables", {}).items():
            runs.setdefault((key[0] + " †" * dirty, key[1], name), []).append(s)
    lines = [_line(key, of) for key, of in runs.items()]
    words = "".join(f"\n\n{found}" for found in (_noise_words(store), _memory_words(store), _lag_words(runs)) if found)
    if uncommitted:
        words += f"\n\n† Made from uncommitted code ({', '.join(sorted(uncommitted))}): to be run again."
    return (table(NAMES, lines) if lines else "") + words


NAMES = (
    "data",
    "ε",
    "table",
    "runs",
    "rows a person",
    "without rows",
    "one-way",
    "two-way",
    "gap",
    "transitions",
    "constant / ordered",
    "AUC",
)


def _line(key: tuple[str, ...], runs: list[dict[str, Any]]) -> list[str]:
    def mean(of: Callable[[dict[str, Any]], Any]) -> float:
        return float(np.mean([of(s) for s in runs]))

    s, moved = runs[0], runs[0]["transitions"]
    share = [mean(lambda s, i=i: s["without_rows"][i]) for i in (0, 1)]  # type: ignore[misc]
    task = [mean(lambda s, i=i: s["task"][i]) for i in (0, 1)] if s["task"] else None  # type: ignore[misc]
    return [
        *key,
        str(len(runs)),
        f"{mean(lambda s: s['rows_per_person']):.3f}",
        f"{share[1]:.3f} ({share[0]:.3f})" if share[0] else "–",
        f"{mean(lambda s: s['one_way']):.3f}",
        f"{mean(lambda s: s['two_way']):.3f}",
        "–" if s["gap"] is None else f"{mean(lambda s: s['gap']):.3f}",
        "–" if not moved else ", ".join(f"{n} {mean(lambda s, n=n: s['transitions'][n]):.3f}" for n in moved),  # type: ignore[misc]
        f"{mean(lambda s: s['constant']):.0%} / {mean(lambda s: s['ordered']):.0%}",
        "–" if task is None else f"{task[1]:.3f} ({task[0]:.3f})",
    ]


def _noise_words(store: Store) -> str:
    ratio = store.read("histories/noise/1/1")
    return "" if ratio is None else f"Noise of a one-way share, mean against a sum of 8 rows: {ratio['ratio']:.2f}."


def _memory_words(store: Store) -> str:
    found = [store.read(f"histories/memory/{rows}/1") for rows in MEMORY]
    said = [f"{f['rows']:,} rows of {f['persons']:,} persons {f['peak_mb']:,} MB" for f in found if f]
    return f"Peak memory of `dpmerf release`: {'; '.join(said)}." if said else ""


def _lag_words(runs: dict[tuple[str, ...], list[dict[str, Any]]]) -> str:
    """Correlation with the row before, of each column of numbers: synthetic, and real in brackets."""
    said = []
    for (name, epsilon, part), of in runs.items():
        if lag := of[0]["lag"]:
            made = {n: ", ".join(f"{s['lag'][n][1]:.2f}" for s in of) for n in lag}
            columns = "; ".join(f"{n} {made[n]} ({lag[n][0]:.2f})" for n in lag)
            said.append(f"- {name}, ε = {epsilon}, {part}: {columns}")
    words = "Correlation with the row before, of each run, and of real rows in brackets:\n\n"
    return words + "\n".join(said) if said else ""


EXPERIMENT = Experiment(
    "histories", "persons with several rows: demo, hospital, RandHIE, NAFLD", "15 minutes", run, page, runs=3
)
