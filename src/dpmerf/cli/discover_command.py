"""`dpmerf discover`: buy bounds, categories and the like, and write them as a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmerf.cli.options import (
    Dataset,
    Delta,
    Force,
    Json,
    LedgerFile,
    Neighbours,
    Quiet,
    Read,
    RowsHint,
    UnitText,
    guard,
    labelled,
    noted,
    reading_of,
    say,
)
from dpmerf.cli.plain_text import PlainConsole, plain
from dpmerf.errors import ArtefactError, PlanError, SchemaError
from dpmerf.folders import check_writable, keep
from dpmerf.output.whole_files import check_free

if TYPE_CHECKING:
    from dpmerf.accounting.unit import Unit
    from dpmerf.schema import Schema
    from dpmerf.schema.notation import Reading
    from dpmerf.sources.rows import Rows

SHARE = 0.1  # of a budget (of μ²), for the schema of `synth --discover`


def discover_command(
    data: Annotated[str, typer.Argument(help="Table: CSV, Parquet, Arrow, a database, or a folder of files.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget ε of the discovery, above 0: 0.1 is usual.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Schema file; what was bought goes beside it.")],
    columns: Annotated[str | None, typer.Option(help="Only these, separated by commas; all if left out.")] = None,
    delta: Delta = None,
    rows: RowsHint = None,
    unit: UnitText = "row",
    neighbours: Neighbours = "replace",
    read: Read = None,
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Buy what nobody can declare: kinds, bounds, digits, nulls and frequent values. Spends budget."""
    from dpmerf.accounting.unit import Unit
    from dpmerf.api import UNCOUNTED, dataset_name, open_ledger
    from dpmerf.discovery import Purchase
    from dpmerf.private.discover import discover, public_fields
    from dpmerf.progress import Bars
    from dpmerf.sources.rows import open_rows

    reading, protected = reading_of(read), Unit.parse(unit, neighbours)
    source = open_rows(data, reading)
    count = _count(source, protected, ledger, rows)
    wanted = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    purchase = Purchase.of(public_fields(source), wanted, epsilon, delta, protected, count, reading)
    place = output.with_suffix(".discovery")
    check_free(output, force)
    check_writable(place)
    charged = open_ledger(ledger, purchase, dataset_name(data) if dataset is None else dataset, noted(quiet))
    if charged is not None and delta is None:
        purchase = purchase.within(charged.epsilon)
    found = discover(source, purchase, ledger=charged, bars=Bars(not quiet and not as_json))
    keep(found.save, place)
    guard(output, lambda: output.write_text(found.schema_text(), encoding="utf-8"))
    if found.charge is None:
        noted(quiet)(f"{UNCOUNTED}. Name a file with --ledger")
    say(
        quiet,
        as_json,
        {"schema": str(output), "discovery": str(place), **found.guarantee()},
        f"Wrote {output}, bought at ({epsilon:g}, {purchase.delta:g}); {place}/CARD.md says what that means. "
        f"Check it, then: dpmerf plan {output} --epsilon …",
    )


def buy(
    data: str,
    reading: Reading,
    unit: Unit,
    rows: int | None,
    epsilon: float,
    delta: float | None,
    label: str | None,
    output: Path,
    ledger: Path | None,
    dataset: str,
    quiet: bool,
    as_json: bool,
) -> tuple[Schema, Rows, int, float, float]:
    """The schema of `synth --discover` into OUTPUT/discovery: with it the rows, their number, and what is left to
    spend. The release that follows and this together are (epsilon, delta)-DP."""
    from dpmerf.api import open_ledger
    from dpmerf.discovery import Purchase
    from dpmerf.private.discover import discover, public_fields
    from dpmerf.progress import Bars
    from dpmerf.sources.rows import open_rows

    source = open_rows(data, reading)
    count = _count(source, unit, ledger, rows)
    whole = Purchase.of(public_fields(source), None, epsilon, delta, unit, count, reading)
    if label is not None and label not in whole.columns and label != "none":
        raise SchemaError(f"the label '{label}' is not a column of the table")
    check_writable(output)
    purchase = whole.at_most(SHARE)
    left = purchase.rest(whole.epsilon, whole.delta)
    charged = open_ledger(ledger, whole, dataset, noted(quiet))
    found = discover(source, purchase, ledger=charged, bars=Bars(not quiet and not as_json))
    keep(found.save, output / "discovery")
    schema = labelled(found.schema(), label)
    unknown = ", ".join(name for name, facts in found.facts.columns.items() if facts.kind == "id")
    if unknown:
        noted(quiet)(f"never learned, since nothing frequent was found there: {unknown}")
    return schema, source, count, left, whole.delta


def _count(source: Rows, unit: Unit, ledger: Path | None, told: int | None) -> int:
    from dpmerf.api import existing_ledger
    from dpmerf.private.count import public_rows

    count = public_rows(source, unit, existing_ledger(ledger)) or told
    if count is None:
        raise PlanError("the number of rows is protected: say how many to expect, about, with --rows")
    return count


def verify_discovery(folder: Path, signed_by: Path | None, ledger: Path | None, quiet: bool, as_json: bool) -> None:
    """Bought facts: the guarantee, the schema and the card follow from the purchase and its noisy numbers."""
    from rich.markdown import Markdown

    from dpmerf.discovery import Discovery
    from dpmerf.private.ledger import Ledger

    if signed_by is not None:
        raise ArtefactError(f"{folder} is a discovery, and these are not signed: leave --signed-by out")
    found = Discovery.load(folder)
    if ledger is not None:
        Ledger.load(ledger).entry(found.charge.entry if found.charge else "", found.purchase.hash)
    if as_json:
        entry = found.charge and found.charge.entry
        print(json.dumps({"valid": True, **found.guarantee(), "ledger_entry": entry}, ensure_ascii=False))
    elif not quiet:
        PlainConsole().print(Markdown(plain(found.card())))
        print(f"{folder} is whole: its guarantee, schema and card follow from its purchase and its noisy numbers.")
