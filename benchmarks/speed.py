"""Speed: the release and the training step against what the machine can do, their growth, memory, sampling, Spark.

Every ratio is of figures from one run. CPU seconds are compared, since other programs may share the machine; wall
times are stored beside them.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from benchmarks import speed_before, speed_data, speed_whole
from benchmarks.registry import Experiment, Run
from benchmarks.speed_mixing import mixing
from benchmarks.speed_page import page
from benchmarks.speed_tables import COLUMNS, REAL, pair_cells, tables_model
from dpmerf.features.circle_means import mean_cos_sin
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan
from dpmerf.private.local import sum_locally
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.progress import SILENT
from dpmerf.release import Release
from dpmerf.sources.rows import open_rows

Json = dict[str, Any]
LIMIT_ROWS = (32, 64, 128, 256)  # rows at a time, of which the fastest counts as the limit
STEPS = ((500, 784, 10_000, 10), (1000, 100, 2000, 2))  # batch, columns, D, classes
CHILD = """
import json, resource, sys, time
sys.path[:0] = [{root!r}, {tests!r}]
from benchmarks import speed
start, cpu = time.perf_counter(), time.process_time()
found = getattr(speed, {name!r})(*{arguments!r})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
spent = {{"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}}
print(json.dumps({{**found, "peak_mb": round(peak), **spent}}))
"""


def run(this: Run) -> None:
    scale = 10 if this.quick else 1
    cells: dict[str, Callable[[], Json]] = {}
    for dim, rows in ((1_000, 200_000 // scale), (10_000, 30_000 // scale)):
        cells[f"release/{dim}"] = partial(release_against_limit, dim, rows)
    cells["release/default"] = lambda: release_default(300_000 // scale)
    for shape in STEPS:
        cells[f"step/{'-'.join(map(str, shape))}"] = partial(step, *shape)
    for what, values in {
        "rows": (10_000, 30_000, 100_000, 300_000),
        "columns": (5, 10, 20, 40, 80),
        "D": (250, 1_000, 4_000, 16_000),
        "classes": (2, 10, 50, 250),
    }.items():
        for value in values:
            cells[f"growth/{what}/{value}"] = partial(growth, what, value, scale)
    for millions in (1, 20):
        n = millions * 1_000_000 // (20 if this.quick else 1)
        cells[f"memory/{millions}"] = partial(in_child, "release_many", n)
    for preset in ("default", "paper"):
        for rows in (1_000_000 // scale, 10_000_000 // scale):
            cells[f"sampling/{preset}/{rows}"] = partial(in_child, "sample_many", preset, rows)
    for what in (*REAL, *map(str, COLUMNS[:1] if this.quick else COLUMNS)):
        cells[f"tables/{what}"] = partial(in_child, tables_model.__name__, what, this.quick)
        cells[f"pairs/{what}"] = partial(in_child, pair_cells.__name__, what, this.quick)
    cells["mixing/adult"] = partial(in_child, mixing.__name__, "adult", 1_000_000 // scale, this.quick)
    cells["startup"] = partial(speed_whole.startup, this.quick)
    cells["threads"] = partial(speed_whole.threads, this.quick)
    for rows in (1_000_000 // scale, 10_000_000 // scale):
        cells[f"drawn/{rows}"] = partial(speed_whole.drawn, rows, this.quick)
    for name in speed_whole.WHOLE[:1] if this.quick else speed_whole.WHOLE:
        cells[f"whole/{name}"] = partial(speed_whole.whole, name, this.quick)
    for rows in (1_000_000, 30_000_000):
        cells[f"engines/{rows}"] = partial(speed_whole.spark, rows, this.quick)
    cells |= speed_before.cells(this.against or speed_before.BEFORE, this.quick)
    cells["wide"] = lambda: in_child("wide", 8_000 // scale)
    cells["spark"] = lambda: in_child("spark_against_local", 200_000 // scale)
    for key, make in cells.items():
        if this.wants(f"/speed/{key}/"):
            this.store.cell(f"speed/{key}", make)


def cpu(action: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    start, wall = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - start, time.perf_counter() - wall


def _repeatedly(action: Callable[[], object], times: int) -> None:
    for _ in range(times):
        action()


def limit(numbers: Tensor, dim: int, repeats: int = 3) -> float:
    """CPU seconds per row of a bare matrix product, cosine and sine in float64, into buffers, at the best chunk."""
    weights = torch.randn(numbers.shape[1], dim // 2, dtype=torch.float64)
    best = math.inf
    for rows in LIMIT_ROWS:
        chunk = numbers[:rows].contiguous()
        angles = torch.empty(rows, dim // 2, dtype=torch.float64)
        out = torch.empty_like(angles)

        def once(x: Tensor = chunk, a: Tensor = angles, o: Tensor = out) -> None:
            torch.mm(x, weights, out=a)
            torch.cos(a, out=o)
            torch.sin(a, out=o)

        times = max(1, 4_000_000 // (rows * dim))
        for _ in range(repeats):
            best = min(best, cpu(partial(_repeatedly, once, times))[0] / (times * rows))
    return best


def summed(data: Any, plan: Plan) -> tuple[float, float]:
    """CPU and wall seconds of the sums of a plan's first stage."""
    source, stage = open_rows(data), plan.stages[0]
    release = Release(plan, {}, None, "none", {})
    phi, view = release.embedding(stage).phi, release.embedding(stage).view
    return cpu(lambda: sum_locally(source, plan, phi, view, SILENT, ""))


def release_against_limit(dim: int, rows: int) -> Json:
    """One thread each, turn by turn; medians."""
    torch.set_num_threads(1)
    declared = speed_data.schema()
    plan = speed_data.embedding_plan(declared, dim, rows)
    with tempfile.TemporaryDirectory() as place:
        file = speed_data.write(Path(place) / "rows.parquet", rows)
        numbers = plan.codec.encode(speed_data.table(1_000, 0)).numbers
        summed(speed_data.table(2_000, 0), plan)  # tables and caches are warm
        found: dict[str, list[float]] = {"limit": [], "release": [], "release_wall": [], "reading": []}
        for _ in range(5):
            found["limit"].append(limit(numbers, dim))
            spent, wall = summed(file, plan)
            found["release"].append(spent / rows)
            found["release_wall"].append(wall / rows)
            reading = cpu(lambda: [b for b in pq.ParquetFile(file).iter_batches(16_384)])[0]
            found["reading"].append(reading / rows)
    middle = {name: statistics.median(values) for name, values in found.items()}
    ratio = statistics.median(a / b for a, b in zip(found["limit"], found["release"], strict=True))
    return {"dim": dim, "rows": rows, "columns": 20, "seconds_per_row": middle, "share_of_limit": ratio}


def release_default(rows: int) -> Json:
    """The default preset's two passes against reading the same file twice."""
    torch.set_num_threads(1)
    from dpmerf.private.measure import measure
    from fixed_noise import FixedNoise  # type: ignore[import-not-found]  # of the tests: no privacy

    plan = make_plan(speed_data.schema(), 1.0, 1e-5, rows=rows)
    with tempfile.TemporaryDirectory() as place:
        file = speed_data.write(Path(place) / "rows.parquet", rows)
        reading = min(cpu(lambda: [b for b in pq.ParquetFile(file).iter_batches(16_384)])[0] for _ in range(3))
        spent, wall = cpu(lambda: measure(file, plan, noise=FixedNoise()))
    return {"rows": rows, "coordinates": plan.coordinates, "reading": reading, "release": spent, "release_wall": wall}


def growth(what: str, value: int, scale: int) -> Json:
    """CPU seconds per row with everything but one thing fixed: 20 columns, D = 1,000, 12 classes, 30,000 rows."""
    torch.set_num_threads(1)
    at = {"rows": 30_000, "columns": 20, "D": 1_000, "classes": 12} | {what: value}
    rows = max(1_000, at["rows"] // scale)
    table = speed_data.table(rows, 0, at["columns"], at["classes"])
    plan = speed_data.embedding_plan(speed_data.schema(at["columns"], at["classes"]), at["D"], rows)
    summed(table.slice(0, 1_000), plan)
    release = min(summed(table, plan)[0] for _ in range(2)) / rows
    batch, columns, dim, classes = 500, at["columns"], at["D"], at["classes"]
    per = max(1, batch // classes)
    training = step(per * classes, columns, dim, classes, straightforward=False)
    return {"what": what, "value": value, "release": release, "step": training["ours"], "step_limit": training["limit"]}


def step(batch: int, columns: int, dim: int, classes: int, straightforward: bool = True) -> Json:
    """Loss and gradient of one training step (the embedding; the network before it costs its own products)."""
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    frequencies = torch.randn(columns, dim // 2, generator=rng)
    x = torch.rand(batch, columns, generator=rng).requires_grad_()
    target = torch.randn(classes, dim, generator=rng) * 0.01
    labels = torch.arange(classes).repeat_interleave(batch // classes)
    angles, cosines, sines = (torch.empty(batch, dim // 2) for _ in range(3))
    back = torch.empty(batch, columns)

    @torch.no_grad()
    def bare() -> None:  # both products, one cosine, one sine
        torch.mm(x, frequencies, out=angles)
        torch.cos(angles, out=cosines)
        torch.sin(angles, out=sines)
        torch.mm(angles, frequencies.T, out=back)

    def ours() -> None:
        x.grad = None
        (mean_cos_sin(x @ frequencies, classes) - target).square().sum().backward()

    def outer() -> None:  # the n × D × C form
        x.grad = None
        turned = x @ frequencies
        waves = torch.cat([turned.cos(), turned.sin()], dim=1) / math.sqrt(dim // 2)
        onehot = nn.functional.one_hot(labels, classes).float()
        means = torch.einsum("nd,nc->ndc", waves, onehot).sum(dim=0).T / (batch // classes)
        (means - target).square().sum().backward()

    ways = {"limit": bare, "ours": ours} | ({"outer": outer} if straightforward else {})
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(7):
        for name, way in ways.items():
            found[name].append(cpu(way)[0])
    return {name: min(values) for name, values in found.items()}


def in_child(name: str, *arguments: object) -> Json:
    """Run in a fresh process, whose peak memory is then its own."""
    root = Path(__file__).parents[1]
    code = CHILD.format(root=str(root), tests=str(root / "tests"), name=name, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def release_many(rows: int) -> Json:
    """The default preset over a folder of files, both passes."""
    from dpmerf.private.measure import measure
    from fixed_noise import FixedNoise

    with tempfile.TemporaryDirectory() as place:
        file = speed_data.write(Path(place) / "part.parquet", min(rows, 500_000))
        data = speed_data.folder(Path(place) / "many", file, max(1, rows // 500_000))
        made = measure(data, make_plan(speed_data.schema(), 1.0, 1e-5, rows=1_000_000), noise=FixedNoise())
    return {"rows": made.rows}


def sample_many(preset: str, rows: int) -> Json:
    """A model, hardly trained, writes Parquet."""
    from dpmerf.output import table_files as tables
    from dpmerf.private.measure import measure
    from dpmerf.train import train
    from fixed_noise import FixedNoise

    plan = make_plan(speed_data.schema(), 1.0, 1e-5, rows=20_000, preset=preset)
    model = train(measure(speed_data.table(20_000, 0), plan, noise=FixedNoise()), steps=5)
    with tempfile.TemporaryDirectory() as place:
        spent, wall = cpu(
            lambda: tables.write(model.stream(rows), Path(place) / "rows.parquet", model.release.guarantee(), rows)
        )
        size = (Path(place) / "rows.parquet").stat().st_size
    print(f"{rows:,} rows, {rows / wall:,.0f} rows/s", file=sys.stderr)
    speed = {"rows_per_second": rows / wall, "rows_per_cpu_second": rows / spent}
    return {"preset": preset, "rows": rows, **speed, "bytes": size}


def wide(rows: int) -> Json:
    """CPU seconds per row of each part of a release of 100 columns, and its coordinates: for docs/scale.md."""
    from dpmerf.private.measure import measure
    from dpmerf.private.persons import PersonCap, tags
    from fixed_noise import FixedNoise

    torch.set_num_threads(1)
    columns, declared, table = 100, speed_data.schema(100), speed_data.table(rows, 0, 100)
    plan = make_plan(declared, 1.0, 1e-5, rows=1_000_000)
    encoded = plan.codec.encode(table)
    found: Json = {"rows": rows, "columns": columns}
    found["encoding"] = cpu(lambda: plan.codec.encode(table))[0] / rows
    cap = PersonCap(5)
    found["person_tags"] = cpu(lambda: tags(table.column("c15"), encoded, cap.key))[0] / rows
    for dim in (1_000, 10_000):
        embedding = speed_data.embedding_plan(declared, dim, rows)
        found[f"embedding_{dim}"] = summed(table, embedding)[0] / rows
    found["coordinates"] = {s.name: s.query.nominal(plan).dim for s in plan.stages[:1]}
    release = measure(table, plan, noise=FixedNoise())
    for stage in plan.stages:
        phi, view = release.embedding(stage).phi, release.embedding(stage).view
        found["coordinates"][stage.name] = phi.dim
        few, many = (
            min(cpu(partial(sum_locally, open_rows(t), plan, phi, view, SILENT, ""))[0] for _ in range(2))
            for t in (table, pa.concat_tables([table] * 5))
        )
        found[stage.name] = (many - few) / (4 * rows)  # without setting up the sums
    noise = torch.zeros(50_000, dtype=torch.int64)
    found["noise_per_coordinate"] = cpu(lambda: OpenDPGaussian().add(noise, plan.prices[-1].sigma))[0] / len(noise)
    return found


def spark_against_local(rows: int) -> Json:
    """The same file, one embedding of D = 1,000; then the same with persons capped, which shuffles."""
    from dataclasses import replace

    from dpmerf.accounting.unit import Unit
    from dpmerf.private.spark import sum_on_spark
    from dpmerf.sources.spark_table import open_spark

    declared = speed_data.schema()
    plan = speed_data.embedding_plan(declared, 1_000, rows)
    found: Json = {"rows": rows}
    with tempfile.TemporaryDirectory() as place:
        file = speed_data.write(Path(place) / "rows.parquet", rows)
        table = open_spark(str(file), "local[2]")
        table.frame = table.frame.repartition(4).cache()
        table.frame.count()
        for name, unit in (("", Unit()), ("_capped", Unit("c15", 5))):
            priced = replace(plan, unit=unit)
            release = Release(priced, {}, None, "none", {})
            phi, view = release.embedding(plan.stages[0]).phi, release.embedding(plan.stages[0]).view
            sum_on_spark(table, priced, phi, view, SILENT, "")  # workers are up
            found[f"spark{name}"] = cpu(partial(sum_on_spark, table, priced, phi, view, SILENT, ""))[1]
            found[f"local{name}"] = cpu(partial(sum_locally, open_rows(file), priced, phi, view, SILENT, ""))[1]
    return found


EXPERIMENT = Experiment(
    "speed",
    "Release and training step against the machine's limit; growth, memory, start-up, whole runs, Spark",
    "about 75 CPU minutes; --quick 5 minutes",
    run,
    page,
)
