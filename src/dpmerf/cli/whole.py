"""All of it in one line: synth, and the demo. What computes is imported by the command that needs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmerf.cli.discover_command import buy
from dpmerf.cli.options import (
    Balanced,
    Channels,
    Classes,
    CountBroken,
    Dataset,
    Delta,
    Device,
    Epsilon,
    Fast,
    Force,
    GoOn,
    Images,
    Json,
    Label,
    LedgerFile,
    MethodName,
    Neighbours,
    PixelRange,
    Quiet,
    Read,
    RowsHint,
    Seed,
    SigningKey,
    Size,
    Steps,
    TableFiles,
    UnitText,
    guard,
    labelled,
    noted,
    pictures,
    reading_of,
    say,
    size_of,
    told_reading,
)
from dpmerf.cli.person_commands import demo_histories, given_tables, persons_of, synth_persons
from dpmerf.errors import DataError, SchemaError
from dpmerf.folders import check_writable
from dpmerf.output.whole_files import check_free

if TYPE_CHECKING:
    from dpmerf.pipeline import Asked
    from dpmerf.plan import Plan
    from dpmerf.private.ledger import Ledger
    from dpmerf.release.signature import Key
    from dpmerf.sources.rows import Rows


def synth(
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for everything that is made.")],
    data: Annotated[
        str | None, typer.Argument(help="Table (CSV, Parquet, Arrow, a folder of them), or pictures.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema file; may be left out with --images.")] = None,
    delta: Delta = None,
    label: Label = None,
    rows: RowsHint = None,
    unit: UnitText = "row",
    neighbours: Neighbours = "replace",
    method: MethodName = "auto",
    balanced: Balanced = False,
    n: Annotated[int | None, typer.Option("-n", help="Synthetic rows; as many as the data has if left out.")] = None,
    seed: Seed = 0,
    steps: Steps = None,
    fast: Fast = False,
    device: Device = "cpu",
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    sign: SigningKey = None,
    table: TableFiles = None,
    images: Images = False,
    size: Size = None,
    channels: Channels = None,
    classes: Classes = None,
    pixel_range: PixelRange = None,
    read: Read = None,
    discover: Annotated[
        bool, typer.Option("--discover", help="Buy the schema too, for a tenth of the budget: declare nothing.")
    ] = False,
    count_broken: CountBroken = None,
    go_on: GoOn = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """All of it in one line: plan, release, train, sample and report."""
    from dpmerf.accounting.unit import Unit
    from dpmerf.api import UNCOUNTED, bought_notes, dataset_name, existing_ledger, open_ledger
    from dpmerf.methods import broken_counted
    from dpmerf.methods.presets import make_plan
    from dpmerf.methods.readable_first import in_doubt, readable_first
    from dpmerf.pipeline import Asked
    from dpmerf.private.count import public_rows
    from dpmerf.release import Release
    from dpmerf.release.signature import Key
    from dpmerf.schema import Schema
    from dpmerf.sources.pictures import open_data

    protected = Unit.parse(unit, neighbours)
    asked = Asked(n, seed, steps, device, fast)
    persons = None if images or discover else persons_of(schema)
    if persons is not None:
        tables = given_tables(data, table, persons)
        synth_persons(
            tables, persons, epsilon, delta, rows, neighbours, output, asked, ledger, dataset, sign, quiet, as_json
        )
        return
    if data is None or table:
        raise DataError("name the table's file after `synth`; --table is for schemas with [tables.NAME]")
    key = None if sign is None else Key.load(sign)
    named = dataset_name(data) if dataset is None else dataset
    spent = epsilon
    count: int | None
    if discover:
        if schema is not None or images:
            raise SchemaError("--discover buys the schema of a table: leave --schema and --images out")
        bought = buy(
            data, reading_of(read), protected, rows, epsilon, delta, label, output, ledger, named, quiet, as_json
        )
        declared, source, count, epsilon, delta = bought
    else:
        if schema is not None:
            declared = labelled(Schema.load(schema), label).with_reading(told_reading(read))
        elif images:
            declared = pictures(data, label, size, channels, classes, pixel_range, quiet or as_json)
        else:
            raise SchemaError(
                "name the schema with --schema FILE (`dpmerf schema draft` begins one), or buy it with --discover; "
                "pictures: --images"
            )
        source = open_data(data, declared)
        source.require(list(declared.learned))
        count = rows if rows is not None else public_rows(source, protected, existing_ledger(ledger))
    priced = make_plan(declared, epsilon, delta, rows=count, unit=protected, method=method, balanced=balanced)
    priced = broken_counted.count_broken(priced, count_broken or ())
    if not discover:
        priced = readable_first(priced, in_doubt(declared, source.fields, source.guessed_types))
    check_writable(output / "release" if discover else output, size_of(priced))
    charged = open_ledger(ledger, priced, named, noted(quiet))
    made = _run(source, priced, output, asked, charged, quiet or as_json, key, discover, go_on)
    if charged is None:
        noted(quiet)(f"{UNCOUNTED}. Name a file with --ledger")
    if count_broken:
        for note in bought_notes(Release.load(output / "release")):
            noted(quiet)(note)
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    bought_too = ", the bought schema included" if discover else ""
    say(quiet, as_json, made, f"Done, ({spent:g}, {priced.delta:g})-differentially private{bought_too}:\n{words}")


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for everything that is made.")] = Path(
        "demo-out"
    ),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run the main job end to end on a simulated hospital table that ships with the program."""
    from dpmerf.demo import hospital as demo_data
    from dpmerf.methods.presets import make_plan
    from dpmerf.pipeline import Asked
    from dpmerf.schema import Schema
    from dpmerf.sources.rows import open_rows

    check_writable(output)
    declared = Schema.load(demo_data.SCHEMA)
    source = open_rows(demo_data.hospital())
    priced = make_plan(declared, 1.0, 1e-5, rows=source.stored_count)
    if not (quiet or as_json):
        print(
            f"A simulated hospital table: {source.stored_count:,} visits, {len(declared.columns)} columns. "
            "Budget: (1, 1e-5)."
        )
    made = _run(source, priced, output, Asked(seed=seed), None, quiet or as_json)
    if not (quiet or as_json):
        print("The same visits once more, as histories of patients: a patient with all visits is protected.")
    made["histories"] = str(demo_histories(output / "histories", seed, quiet or as_json))
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    say(quiet, as_json, made, f"Done. What was made:\n{words}")


def demo_data_command(
    output: Annotated[Path, typer.Argument(help="Parquet file, or a folder; the schema goes beside it as .toml.")],
    histories: Annotated[bool, typer.Option("--histories", help="Patients with birth dates: persons.")] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the simulated hospital table and its schema, for trying things out."""
    from dpmerf.demo.hospital import write
    from dpmerf.demo.patients import write_patients

    if output.suffix not in (".parquet", ".pq"):
        output /= "patients.parquet" if histories else "hospital.parquet"  # a folder was named
    check_free(output, force)
    check_free(output.with_suffix(".toml"), force)
    table, schema = guard(output, lambda: (write_patients if histories else write)(output))
    say(quiet, as_json, {"table": str(table), "schema": str(schema)}, f"Wrote {table} and {schema}.")


def _run(
    source: Rows,
    priced: Plan,
    output: Path,
    asked: Asked,
    ledger: Ledger | None,
    silent: bool,
    key: Key | None = None,
    begun: bool = False,
    go_on: bool = False,
) -> dict[str, str]:
    from dpmerf import pipeline
    from dpmerf.progress import Bars

    bars = Bars(not silent)
    paths = pipeline.run(source, priced, output, asked, ledger=ledger, key=key, bars=bars, begun=begun, go_on=go_on)
    if begun:
        paths = {"discovery": output / "discovery", **paths}
    return {what: str(path) for what, path in paths.items()}
