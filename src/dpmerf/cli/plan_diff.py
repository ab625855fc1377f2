"""`dpmerf plan diff`: two plans side by side."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmerf.cli.options import Json, Quiet
from dpmerf.cli.plain_text import PlainConsole


def plan_diff(
    first: Annotated[Path, typer.Argument(help="Plan from `dpmerf plan -o`.")],
    second: Annotated[Path, typer.Argument(help="The other one.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show in what two plans differ: promise, noise, columns, and how sharp answers will be. No row is read."""
    from rich.table import Table

    from dpmerf.inference.predict import in_words, sharpness
    from dpmerf.plan import Plan
    from dpmerf.plan.difference import difference

    plans = {first: Plan.load(first), second: Plan.load(second)}
    changes = difference(*plans.values()) if first != second else []
    if as_json:
        sharp = [sharpness(made).to_json() for made in plans.values()]
        print(json.dumps({"changes": [asdict(c) for c in changes], "half_widths": sharp}, ensure_ascii=False))
        return
    if quiet:
        return
    if not changes:
        print("The plans are the same.")
        return
    table = Table("", str(first), str(second))
    for change in changes:
        table.add_row(change.what, _short(change.first), _short(change.second))
    PlainConsole().print(table)
    for path, made in plans.items():
        for line in in_words(sharpness(made)):
            print(f"{path}: {line}")


def _short(value: Any) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
