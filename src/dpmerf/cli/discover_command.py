"""`dpmerf discover`: buy bounds, categories and the like, and write them as a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmerf.accounting.unit import Unit
from dpmerf.api import UNCOUNTED, existing_ledger, open_ledger
from dpmerf.cli.options import (
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
    noted,
    reading_of,
    say,
)
from dpmerf.discovery import Purchase
from dpmerf.errors import PlanError
from dpmerf.folders import check_writable, keep
from dpmerf.output.whole_files import check_free
from dpmerf.private.count import public_rows
from dpmerf.private.discover import discover, public_fields
from dpmerf.progress import Bars
from dpmerf.sources.rows import open_rows


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
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Buy what nobody can declare: kinds, bounds, digits, nulls and frequent values. Spends budget."""
    reading, protected = reading_of(read), Unit.parse(unit, neighbours)
    source = open_rows(data, reading)
    count = public_rows(source, protected, existing_ledger(ledger)) or rows
    if count is None:
        raise PlanError("the number of rows is protected: say how many to expect, about, with --rows")
    wanted = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    purchase = Purchase.of(public_fields(source), wanted, epsilon, delta, protected, count, reading)
    place = output.with_suffix(".discovery")
    check_free(output, force)
    check_writable(place)
    charged = open_ledger(ledger, purchase, noted(quiet))
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
