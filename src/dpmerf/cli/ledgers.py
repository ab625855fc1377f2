"""`dpmerf ledger show` and `dpmerf ledger init`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpmerf.cli.options import Epsilon, Json, Quiet, say
from dpmerf.cli.plain_text import PlainConsole

ledger_app = typer.Typer(help="Open and read ledgers of what was spent.", no_args_is_help=True)


@ledger_app.command("show", epilog="Example: dpmerf ledger show study.ledger")
def ledger_show(
    file: Annotated[Path, typer.Argument(help="Ledger file.")], quiet: Quiet = False, as_json: Json = False
) -> None:
    """Show what was spent and what is left."""
    from rich.table import Table

    from dpmerf.accounting.unit import Unit
    from dpmerf.private.ledger import Ledger

    found = Ledger.load(file).summary()
    if as_json:
        print(json.dumps(found))
    elif not quiet:
        title = f"{file}: limit ({found['epsilon']:g}, {found['delta']:g})"
        table = Table("time (UTC)", "who", "purpose", "mu", "plan", "entry", title=title)
        for entry in found["entries"]:
            price = "".join([f"{entry['mu']:.4f}", *(f" and a selection, {r:.4f}" for r in entry["choices"])])
            table.add_row(
                entry["time"][:16].replace("T", " "),
                entry["who"] or "–",
                entry["purpose"],
                price,
                entry["plan"][:12],
                entry["hash"][:12],
            )
        PlainConsole().print(table)
        if found["opened"]:
            print(
                f"Opened {found['opened']} for the data set '{found['dataset']}'."
                if found["dataset"]
                else f"Opened {found['opened']}."
            )
        for said in dict.fromkeys(Unit.from_dict(e["unit"]).describe() for e in found["entries"] if e["unit"]):
            print(said)
        print(f"Left: epsilon {found['remaining_epsilon']:.4g} at delta {found['delta']:g}.")


@ledger_app.command(
    "init", epilog="Example: dpmerf ledger init study.ledger --epsilon 3 --delta 1e-5 --dataset patients"
)
def ledger_init(
    file: Annotated[Path, typer.Argument(help="Ledger file to open.")],
    epsilon: Epsilon,
    delta: Annotated[float, typer.Option(help="δ of the whole ledger.")],
    dataset: Annotated[str, typer.Option(help="What the data set is called; releases of another are refused.")] = "",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Open a ledger with a total budget, which releases then share."""
    from dpmerf.private.ledger import Ledger

    Ledger.open(file, epsilon, delta, dataset)
    say(quiet, as_json, {"ledger": str(file)}, f"{file} allows ({epsilon:g}, {delta:g}) in total.")
