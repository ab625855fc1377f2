"""The steps one by one: release, train, sample, verify. Commands import what computes when they run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmerf.cli.discover_command import verify_discovery
from dpmerf.cli.options import (
    Dataset,
    Device,
    Fast,
    Force,
    GoOn,
    Json,
    LedgerFile,
    Quiet,
    Seed,
    SigningKey,
    Steps,
    TableFiles,
    noted,
    say,
    size_of,
)
from dpmerf.cli.person_commands import release_persons, sample_persons, train_person_model, verify_person_release
from dpmerf.cli.plain_text import PlainConsole, plain
from dpmerf.errors import DataError, PlanError, SchemaError
from dpmerf.folders import check_writable, keep
from dpmerf.output.whole_files import check_free

if TYPE_CHECKING:
    from dpmerf.model import Model
    from dpmerf.schema import Schema


def release(
    plan: Annotated[Path, typer.Option(help="Plan from `dpmerf plan`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the release.")],
    data: Annotated[str | None, typer.Argument(help="Table: CSV, Parquet, Arrow, or a folder of them.")] = None,
    table: TableFiles = None,
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    sign: SigningKey = None,
    engine: Annotated[str, typer.Option(help="'local', or 'spark' for a Parquet path or a table that Spark reads.")] = (
        "local"
    ),
    master: Annotated[str | None, typer.Option(help="Spark master, for example 'local[2]'.")] = None,
    go_on: GoOn = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The only private step: spend the budget, read the rows, publish noisy sums."""
    from dpmerf.api import UNCOUNTED, bought_json, bought_notes, dataset_name, open_ledger
    from dpmerf.plan.person_plan import PersonPlan, load_plan
    from dpmerf.private.measure import measure
    from dpmerf.progress import Bars
    from dpmerf.release.signature import Key
    from dpmerf.sources.pictures import open_data
    from dpmerf.sources.spark_table import open_spark

    priced = load_plan(plan)
    if engine not in ("local", "spark"):
        raise PlanError(f"there is no engine '{engine}'. Choose local or spark")
    if isinstance(priced, PersonPlan):
        on_spark = (lambda path: open_spark(path, master)) if engine == "spark" else None
        release_persons(data, table, priced, output, ledger, dataset, sign, on_spark, quiet, as_json)
        return
    if data is None or table:
        raise DataError("the plan is for one table: name its file after `release`, without --table")
    source = open_spark(data, master) if engine == "spark" else open_data(data, priced.schema)
    source.require(list(priced.schema.learned))
    check_writable(output, size_of(priced))
    key = None if sign is None else Key.load(sign)
    charged = open_ledger(ledger, priced, dataset_name(data) if dataset is None else dataset, noted(quiet))
    made = measure(source, priced, ledger=charged, bars=Bars(not quiet and not as_json), go_on=go_on)
    keep(lambda place: made.save(place, key), output)
    if made.charge is None:
        noted(quiet)(f"{UNCOUNTED}. Name a file with --ledger")
    for note in bought_notes(made):
        noted(quiet)(note)
    say(
        quiet,
        as_json,
        {
            "release": str(output),
            **made.guarantee(),
            **bought_json(made),
            "ledger_entry": made.charge and made.charge.entry,
        },
        f"Release written to {output}. Read {output}/CARD.md",
    )


def train(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    seed: Seed = 0,
    steps: Steps = None,
    fast: Fast = False,
    device: Device = "cpu",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a generator to a release. No rows, no cost, as often as you like."""
    from dpmerf.progress import Bars
    from dpmerf.release import Release
    from dpmerf.train import train as train_model

    if (release / "persons.json").exists():
        train_person_model(release, output, seed, steps, fast, device, quiet, as_json)
        return
    source = Release.load(release)
    check_writable(output)
    model = train_model(source, seed=seed, steps=steps, device=device, fast=fast, bars=Bars(not quiet and not as_json))
    model.save(output)
    h = model.history
    found = {"model": str(output), "loss": h.loss[-1:] and h.loss[-1], "noise_floor": h.floor}
    say(quiet, as_json, found, f"Model written to {output}.{_fit_words(model)}")


def sample(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="File: .csv or .parquet; .npz for pictures; '-': CSV to standard output."),
    ],
    n: Annotated[
        int | None, typer.Option("-n", help="Number of rows; of copies, as many as the data had if left out.")
    ] = None,
    copies: Annotated[
        int | None,
        typer.Option(
            help="So many tables, as Parquet files in the folder --output, whose spread tells what is unsure."
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(help="Hold a column fixed: COLUMN=VALUE, or COLUMN=null for a missing one. May be repeated."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed; the model's own if left out.")] = None,
    formulas: Annotated[
        bool, typer.Option("--formulas", help="CSV: leave texts that a spreadsheet would run (=, +, -, @) as they are.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw synthetic rows."""
    from dpmerf.model import Model
    from dpmerf.output import gallery
    from dpmerf.output import table_files as tables
    from dpmerf.progress import Bars

    if str(output) == "-" and as_json:
        raise PlanError("standard output can hold the rows or a JSON document: leave out --json, or name a file")
    check_free(output, force)
    if copies is None and n is None:
        raise PlanError("say how many rows with -n")
    if (model / "persons.json").exists():
        if n is None or copies is not None:
            raise PlanError("say how many persons with -n; copies are made of single tables")
        sample_persons(model, n, output, seed, quiet, as_json)
        return
    source = Model.load(model)
    schema, guarantee = source.release.plan.schema, source.release.guarantee()
    if copies is not None:
        if given:
            raise PlanError("copies are whole tables: leave out --given, and select rows in the analysis")
        made = _write_copies(source, copies, n, seed, output)
        words = f"{made} copies written to {output}. Pool what they say with dpmerf.analyse (docs/inference.md)"
        say(quiet, as_json, {"copies": str(output), "tables": made}, words)
        return
    assert n is not None
    parts = source.stream(n, _pairs(given or [], schema), seed)
    bars = Bars(not quiet and not as_json)
    if str(output) == "-":
        tables.write_csv(parts, sys.stdout, guarantee, formulas)
        return
    if output.suffix.lower() == ".npz":
        count = gallery.write_npz(parts, output, schema, n, guarantee, bars)
    else:
        count = tables.write(parts, output, guarantee, n, bars, formulas)
    say(quiet, as_json, {"synthetic": str(output), "rows": count}, f"{count:,} synthetic rows written to {output}")


def _write_copies(source: Model, copies: int, n: int | None, seed: int | None, folder: Path) -> int:
    """copy-01.parquet, copy-02.parquet, … in a folder that must be new or empty."""
    from dpmerf.output import table_files as tables

    check_writable(folder)
    guarantee, made = source.release.guarantee(), 0
    for made, table in enumerate(source.copies(copies, n, seed), 1):
        tables.write(iter([table]), folder / f"copy-{made:0{len(str(copies))}}.parquet", guarantee, table.num_rows)
    return made


def verify(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    signed_by: Annotated[Path | None, typer.Option(help="Public key (PEM) that must have signed it.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="Ledger that must have been charged for it.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a release: what follows from its plan and its sums, whether its noise is plausible, and who signed it."""
    from rich.markdown import Markdown

    from dpmerf.private.ledger import Ledger
    from dpmerf.release.verify import verify as verify_release

    if (release / "discovery.json").exists():
        verify_discovery(release, signed_by, ledger, quiet, as_json)
        return
    if (release / "persons.json").exists():
        verify_person_release(release, signed_by, ledger, quiet, as_json)
        return
    checked = verify_release(release, signed_by)
    found = checked.release
    if ledger is not None:
        Ledger.load(ledger).entry(found.charge.entry if found.charge else "", found.plan.hash)
    if as_json:
        tests = {test.what: test.numbers for test in checked.tests}
        more = {"tests": tests, "signed_by": checked.signed_by, "cannot_be_known": checked.unknown}
        entry = found.charge and found.charge.entry
        print(json.dumps({"valid": True, **found.guarantee(), "ledger_entry": entry, **more}, ensure_ascii=False))
    elif not quiet:
        PlainConsole().print(Markdown(plain(found.card())))
        print(f"{release} is whole: its guarantee, bins and card follow from its plan and its noisy sums.")
        for test in checked.tests:
            print(f"  plausible: {test.what} ({test.numbers:,} numbers)")
        if checked.signed_by is not None:
            print(f"  signed by the key {checked.signed_by}" + ("" if signed_by else ": whose it is, you must know"))
        print("What its files cannot show:")
        for words in checked.unknown:
            print(f"  - {words}")


def _pairs(given: list[str], schema: Schema) -> dict[str, str | None]:
    """COLUMN=VALUE by column; `null` is a missing one, unless the column declares a value of that name."""
    found: dict[str, str | None] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            raise SchemaError(f"--given is '{item}': write it as COLUMN=VALUE")
        found[name] = None if value == "null" and not _lists_null(schema, name) else value
    return found


def _lists_null(schema: Schema, name: str) -> bool:
    return "null" in getattr(schema.columns.get(name), "levels", ())


def _fit_words(model: Model) -> str:
    if not model.history.loss:
        return ""
    ratio = model.history.loss[-1] / model.history.floor if model.history.floor else 0.0
    return f" Its loss is {ratio:.2f} times the noise floor: how closely it follows the release, noise included."
