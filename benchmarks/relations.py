"""Relations: do declared ones hold in every row, what do they cost in time, and what do they give?"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from benchmarks import data
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.demo import hospital
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.evaluate.marginals import marginals
from dpmerf.evaluate.possible import broken_shares
from dpmerf.evaluate.views import Rows
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

EPSILON, DELTA = 1.0, 1e-5
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
DRAWN, MANY, TRAINED = 1_000_000, 10_000_000, 20_000  # rows; of the ten relations: drawn, and released
WAYS = ("declared", "not declared")


def run(this: Run) -> None:
    for repeat in range(1, this.runs + 1):
        for way in WAYS:
            for name in ("hospital", "randhie"):
                key = f"relations/{name}/{way.replace(' ', '-')}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, way, repeat))
    if this.wants("/relations/ten/"):
        this.store.cell("relations/ten", partial(ten, this))


def _table(name: str, this: Run, seed: int) -> tuple[Schema, pa.Table]:
    if name == "hospital":
        return Schema.load(hospital.SCHEMA), hospital.hospital(2_000 if this.quick else 20_000, seed)
    schema = Schema.load(data.HERE / "schemas" / "randhie.toml")
    frame = data.read("randhie", "https://cran.r-project.org/package=sampleSelection", this.data_dir)
    rows = pa.Table.from_pandas(frame[list(schema.columns)], preserve_index=False)
    return schema, rows.slice(0, 2_000) if this.quick else rows


def _model(schema: Schema, rows: pa.Table, seed: int) -> Model:
    plan = make_plan(schema, EPSILON, DELTA, rows=rows.num_rows, seed=seed)
    return train(measure(rows, plan), seed=seed)


def cell(this: Run, name: str, way: str, seed: int) -> dict[str, Any]:
    schema, rows = _table(name, this, seed)
    used = schema if way == WAYS[0] else schema.without_relations()
    model = _model(used, rows, seed)
    made = model.sample(rows.num_rows)
    free = [c for c in schema.measured.learned if c in schema.columns]  # neither derived nor learned otherwise
    ours, theirs = ([c for c in Rows.read(t, schema).all_coded() if c.name in free] for t in (made, rows))
    result: dict[str, Any] = {f"tv{k}": round(marginals(ours, theirs, None, k, 5_000, 0).mean, 5) for k in (1, 2)}
    result["broken"] = {words: share for words, share in broken_shares(made, schema) if share > 0}
    if name == "hospital":
        result["stay"] = {"synthetic": _stay(made), "real": _stay(rows)}
    elif way == WAYS[0] and seed == 1:
        result["drawn"] = 10_000 if this.quick else DRAWN
        parts = model.stream(result["drawn"], seed=seed)
        result["broken rows of these"] = sum(_broken(part, schema) for part in parts)
    return result


def _stay(rows: pa.Table) -> list[float]:
    """Quantiles of the stay, in days."""
    hours = pc.seconds_between(
        pc.cast(rows["admitted"], pa.timestamp("s")), pc.cast(rows["discharged_at"], pa.timestamp("s"))
    )
    return [round(float(q) / 86_400, 3) for q in np.quantile(hours.drop_null().to_numpy(), QUANTILES)]


def _broken(part: pa.Table, schema: Schema) -> int:
    return sum(round(share * part.num_rows) for _, share in broken_shares(part, schema))


def ten(this: Run) -> dict[str, Any]:
    """Rows of a table with more than ten relations of all kinds; then the same without them, by the clock."""
    schema = Schema.load(data.HERE / "schemas" / "ten_relations.toml")
    codec, rng = Codec(schema), np.random.default_rng(0)
    codes = {v.name: torch.from_numpy(rng.integers(0, v.size, TRAINED)) for v in codec.variables}
    numbers = torch.from_numpy(rng.random((TRAINED, codec.width)))
    rows = codec.decode(codec.with_label(Batch(numbers, codes)))
    many = 20_000 if this.quick else MANY
    result: dict[str, Any] = {"relations": len(schema.relations), "rows": many, "broken rows": 0}
    for way in WAYS:
        model = _model(schema if way == WAYS[0] else schema.without_relations(), rows, 1)
        drawing = 0.0
        for part in range(0, many, 200_000):
            began = time.process_time()
            made = model.sample(min(200_000, many - part), seed=part)
            drawing += time.process_time() - began
            if way == WAYS[0]:
                result["broken rows"] += _broken(made, schema)
        result[f"seconds, {way}"] = round(drawing, 1)
    result["ratio"] = round(result[f"seconds, {WAYS[0]}"] / result[f"seconds, {WAYS[1]}"], 3)
    return result


def page(store: Store) -> str:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    parts = []
    for key, result in store.cells("relations"):
        if key == ("ten",):
            parts.append(
                f"{result['relations']} relations of all kinds, {result['rows']:,} rows drawn: {result['broken rows']} "
                f"break one; CPU seconds {result['seconds, declared']} with them, "
                f"{result['seconds, not declared']} without: {result['ratio']} times."
            )
        else:
            found.setdefault((key[0], key[1]), []).append(result)
    rows = []
    for (name, way), cells in sorted(found.items()):
        most = max((share for c in cells for share in c["broken"].values()), default=0.0)
        tv = "/".join(f"{np.mean([c[f'tv{k}'] for c in cells]):.4f}" for k in (1, 2))
        stays = "; ".join("–".join(f"{x:g}" for x in np.mean([c["stay"][who] for c in cells], axis=0).round(2))
                          for who in ("synthetic", "real")) if "stay" in cells[0] else ""  # fmt: skip
        drawn = [c for c in cells if "drawn" in c]
        more = f"{drawn[0]['broken rows of these']} of {drawn[0]['drawn']:,}" if drawn else ""
        rows.append([name, way.replace("-", " "), f"{most:.2%}", more, tv, stays, str(len(cells))])
    if rows:
        heads = ["table", "relations", "most broken", "rows broken of many", "TV 1-/2-way, free columns",
                 "stay, days (1, 25, 50, 75, 99 %): synthetic; real", "runs"]  # fmt: skip
        parts.insert(0, table(heads, rows))
    return "\n\n".join(parts)


EXPERIMENT = Experiment(
    "relations",
    "Relations declared or not: rows that break one, distances of the free columns, drawing time",
    "about 15 CPU minutes a run; --quick 1 minute",
    run,
    page,
    runs=3,
)
