"""The steps one by one: plan, release, train, sample, verify. Commands import what computes when they run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmerf.cli.discover_command import verify_discovery
from dpmerf.cli.options import (
    Balanced,
    Dataset,
    Delta,
    Device,
    Fast,
    Force,
    GoOn,
    Json,
    Label,
    LedgerFile,
    MethodName,
    Neighbours,
    Quiet,
    Read,
    RowsHint,
    Seed,
    SigningKey,
    Steps,
    UnitText,
    guard,
    labelled,
    noted,
    say,
    size_of,
    told_reading,
)
from dpmerf.cli.person_commands import persons_of, plan_persons, sample_persons, verify_person_release
from dpmerf.cli.plain_text import PlainConsole, plain
from dpmerf.errors import PlanError, SchemaError
from dpmerf.folders import check_writable, keep
from dpmerf.output.whole_files import check_free

if TYPE_CHECKING:
    from dpmerf.model import Model
    from dpmerf.plan import Plan
    from dpmerf.schema import Schema


def plan(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget ε, above 0.")] = None,
    delta: Delta = None,
    label: Label = None,
    rows: RowsHint = None,
    unit: UnitText = "row",
    neighbours: Neighbours = "replace",
    method: MethodName = "auto",
    balanced: Balanced = False,
    want: Annotated[
        str | None, typer.Option(help="In place of ε: how sharp answers shall be, for example 'share ± 0.5 points'.")
    ] = None,
    read: Read = None,
    readable: Annotated[
        bool, typer.Option(help="First ask, for 2 % of the budget, whether columns can be read as declared.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write the plan; '-': standard output.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Price a release before any row is read: shares, noise, bytes, expected error, how sharp answers will be."""
    from dpmerf.accounting.unit import Unit
    from dpmerf.inference.predict import in_words, sharpness
    from dpmerf.inference.want import Want, least_epsilon
    from dpmerf.methods.presets import make_plan
    from dpmerf.methods.readable_first import in_doubt, readable_first
    from dpmerf.schema import Schema

    if (persons := persons_of(schema)) is not None:
        plan_persons(persons, epsilon, delta, rows, neighbours, output, quiet, as_json)
        return
    declared, protected = (
        labelled(Schema.load(schema), label).with_reading(told_reading(read)),
        Unit.parse(unit, neighbours),
    )

    def make(at: float) -> Plan:
        made = make_plan(declared, at, delta, rows=rows, unit=protected, method=method, balanced=balanced)
        return readable_first(made, in_doubt(declared, None, False)) if readable else made

    if (epsilon is None) == (want is None):
        raise PlanError("name the budget with --epsilon, or how sharp answers shall be with --want")
    made = make(epsilon) if epsilon is not None else least_epsilon(Want.parse(want or ""), make)
    if str(output) == "-":
        print(made.document(), end="")
        return
    if output is not None:
        guard(output, lambda: made.save(output))
    if as_json:
        print(json.dumps({**made.summary(), "half_widths": sharpness(made).to_json()}, ensure_ascii=False))
    elif not quiet:
        _print_plan(made, in_words(sharpness(made)), output)


def release(
    data: Annotated[str, typer.Argument(help="Table: CSV, Parquet, Arrow, or a folder of them.")],
    plan: Annotated[Path, typer.Option(help="Plan from `dpmerf plan`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the release.")],
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
    from dpmerf.api import UNCOUNTED, dataset_name, open_ledger, unread_notes
    from dpmerf.plan import Plan
    from dpmerf.private.measure import measure
    from dpmerf.progress import Bars
    from dpmerf.release.signature import Key
    from dpmerf.sources.pictures import open_data
    from dpmerf.sources.spark_table import open_spark

    priced = Plan.load(plan)
    if engine not in ("local", "spark"):
        raise PlanError(f"there is no engine '{engine}'. Choose local or spark")
    source = open_spark(data, master) if engine == "spark" else open_data(data, priced.schema)
    source.require(list(priced.schema.learned))
    check_writable(output, size_of(priced))
    key = None if sign is None else Key.load(sign)
    charged = open_ledger(ledger, priced, dataset_name(data) if dataset is None else dataset, noted(quiet))
    made = measure(source, priced, ledger=charged, bars=Bars(not quiet and not as_json), go_on=go_on)
    keep(lambda place: made.save(place, key), output)
    if made.charge is None:
        noted(quiet)(f"{UNCOUNTED}. Name a file with --ledger")
    for note in unread_notes(made):
        noted(quiet)(note)
    say(
        quiet,
        as_json,
        {"release": str(output), **made.guarantee(), "ledger_entry": made.charge and made.charge.entry},
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
    return f" Its loss is {ratio:.2f} times the noise floor (1 is as good as the release allows)."


def _print_plan(made: Plan, sharp: list[str], output: Path | None) -> None:
    from rich.table import Table

    found = made.summary()
    console = PlainConsole()
    table = Table("stage", "share", "what is measured", "coordinates", "noise per count", title="What the budget buys")
    for stage in found["stages"]:
        for i, block in enumerate(stage["blocks"]):
            first = (stage["name"], f"{stage['share']:.0%}") if i == 0 else ("", "")
            table.add_row(*first, block["name"], f"{block['coordinates']:,}", f"±{block['noise']:.1f}")
    console.print(table)
    error = found["expected_error"]
    print(f"(ε, δ) = ({made.epsilon:g}, {made.delta:g}), μ = {made.mu:.4f}, noise multiplier σ/Δ = {1 / made.mu:.4f}")
    for loss_range in made.selections:
        print(f"A column is chosen by noisy scores, loss range {loss_range:.4f}; composed with μ it makes up (ε, δ).")
    print(f"δ added by the discrete sampler, included: {made.discrete_delta:.1e}")
    print(f"{made.unit.describe()} Planned for {made.rows:,} rows.")
    print(f"Size: {found['coordinates']:,} coordinates, {found['bytes']:,} bytes.")
    if error is not None:
        print(
            f"Proposition 1 for {error['dim']:,} Fourier features: error at most {error['tight_bound']:.3g} "
            f"(the paper's bound: {error['paper_bound']:.3g}); recommended D = {error['recommended_dim']:,}."
        )
    for line in sharp:
        print(line)
    for warning in found["warnings"]:
        print(f"Note: {warning}.")
    if output is not None:
        print(f"Plan written to {output}.")
