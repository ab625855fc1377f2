"""All of it in one line: synth, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmerf import demo_data, gallery, tables
from dpmerf.api import open_ledger, public_rows
from dpmerf.budget import Unit
from dpmerf.cli.options import (
    Balanced,
    Channels,
    Classes,
    Delta,
    Device,
    Epsilon,
    Fast,
    Images,
    Json,
    Label,
    LedgerFile,
    Neighbours,
    PixelRange,
    Preset,
    Quiet,
    RowsHint,
    Seed,
    Size,
    Steps,
    UnitText,
    guard,
    labelled,
    pictures,
    say,
)
from dpmerf.errors import PlanError, SchemaError
from dpmerf.folders import check_writable
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.presets import make_plan
from dpmerf.private.images import open_data
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.private.rows import Csv, Rows, open_rows
from dpmerf.progress import Bars
from dpmerf.report import make_report
from dpmerf.schema import Schema
from dpmerf.train import train as train_model


def synth(
    data: Annotated[str, typer.Argument(help="Table (CSV, Parquet, Arrow, a folder of them), or pictures.")],
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for everything that is made.")],
    schema: Annotated[Path | None, typer.Option(help="Schema file; may be left out with --images.")] = None,
    delta: Delta = None,
    label: Label = None,
    rows: RowsHint = None,
    unit: UnitText = "row",
    neighbours: Neighbours = "replace",
    preset: Preset = "default",
    balanced: Balanced = False,
    n: Annotated[int | None, typer.Option("-n", help="Synthetic rows; as many as the data has if left out.")] = None,
    seed: Seed = 0,
    steps: Steps = None,
    fast: Fast = False,
    device: Device = "cpu",
    ledger: LedgerFile = None,
    images: Images = False,
    size: Size = None,
    channels: Channels = None,
    classes: Classes = None,
    pixel_range: PixelRange = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """All of it in one line: plan, release, train, sample and report."""
    if schema is not None:
        declared = labelled(Schema.load(schema), label)
    elif images:
        declared = pictures(data, label, size, channels, classes, pixel_range, quiet or as_json)
    else:
        raise SchemaError("name the schema with --schema FILE (`dpmerf schema draft` begins one); pictures: --images")
    source = open_data(data, declared)
    source.require(list(declared.learned))
    protected = Unit.parse(unit, neighbours)
    count = rows if rows is not None else public_rows(source, protected)
    priced = make_plan(declared, epsilon, delta, rows=count, unit=protected, preset=preset, balanced=balanced)
    made = run(source, priced, output, n, seed, steps, device, open_ledger(ledger, priced), quiet or as_json, fast)
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    say(quiet, as_json, made, f"Done, ({priced.epsilon:g}, {priced.delta:g})-differentially private:\n{words}")


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for everything that is made.")] = Path(
        "demo-out"
    ),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run the main job end to end on a simulated hospital table that ships with the program."""
    check_writable(output)
    declared = Schema.load(demo_data.SCHEMA)
    source = open_rows(demo_data.hospital())
    priced = make_plan(declared, 1.0, 1e-5, rows=source.stored_count)
    if not (quiet or as_json):
        print(
            f"A simulated hospital table: {source.stored_count:,} visits, {len(declared.columns)} columns. "
            "Budget: (1, 1e-5)."
        )
    made = run(source, priced, output, None, seed, None, "cpu", None, quiet or as_json)
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    say(quiet, as_json, made, f"Done. What was made:\n{words}")


def demo_data_command(
    output: Annotated[Path, typer.Argument(help="Parquet file; the schema goes beside it as .toml.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the simulated hospital table and its schema, for trying things out."""
    table, schema = guard(output, lambda: demo_data.write(output))
    say(quiet, as_json, {"table": str(table), "schema": str(schema)}, f"Wrote {table} and {schema}.")


def run(
    source: Rows,
    priced: Plan,
    output: Path,
    n: int | None,
    seed: int,
    steps: int | None,
    device: str,
    ledger: Ledger | None,
    silent: bool,
    fast: bool = False,
) -> dict[str, str]:
    """Release, train, sample into one folder. Each part is on disk before the next begins."""
    check_writable(output)
    if n is not None and n < 1:
        raise PlanError(f"n is {n}: ask for 1 row or more")
    bars = Bars(not silent)
    paths = {"release": output / "release", "model": output / "model"}
    noisy = measure(source, priced, ledger=ledger, bars=bars)
    noisy.save(paths["release"])
    model = train_model(noisy, seed=seed, steps=steps, device=device, fast=fast, bars=bars)
    model.save(paths["model"])
    rows = n or round(noisy.rows_estimate)
    if priced.schema.image is not None:
        paths |= _write_pictures(model, rows, output, bars)
        return {what: str(path) for what, path in paths.items()}
    paths["synthetic"] = output / ("synthetic.csv" if isinstance(source, Csv) else "synthetic.parquet")
    tables.write(model.stream(rows), paths["synthetic"], noisy.guarantee(), rows, bars)
    paths["report"] = output / "report.html"
    make_report(noisy, model).write(paths["report"])
    return {what: str(path) for what, path in paths.items()}


def _write_pictures(model: Model, n: int, output: Path, bars: Bars) -> dict[str, Path]:
    """synthetic.npz, contact_sheet.png and report.html."""
    paths = {"synthetic": output / "synthetic.npz", "sheet": output / "contact_sheet.png"}
    gallery.write_npz(model.stream(n), paths["synthetic"], model.release.plan.schema, n, bars)
    guard(paths["sheet"], lambda: paths["sheet"].write_bytes(gallery.contact_sheet(model)))
    paths["report"] = output / "report.html"
    make_report(model.release, model).write(paths["report"])
    return paths
