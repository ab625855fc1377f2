"""`dpmerf schema draft` and `dpmerf schema check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpmerf.cli.options import Channels, Classes, Images, Json, PixelRange, Quiet, Size, guard, pictures, say
from dpmerf.codec import Codec
from dpmerf.draft import draft, draft_images
from dpmerf.private.rows import open_rows
from dpmerf.schema import Schema

schema_app = typer.Typer(help="Draft and check schemas.", no_args_is_help=True)


@schema_app.command("draft", epilog="Example: dpmerf schema draft patients.csv -o schema.toml")
def schema_draft(
    data: Annotated[str, typer.Argument(help="Table: its header and stored types are read, no value.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File; standard output if left out.")] = None,
    images: Images = False,
    size: Size = None,
    channels: Channels = None,
    classes: Classes = None,
    pixel_range: PixelRange = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a schema to fill in, from column names and stored types alone."""
    if images:
        text = draft_images(pictures(data, None, size, channels, classes, pixel_range, quiet or as_json))
    else:
        text = draft(open_rows(data).fields)
    if output is not None:
        guard(output, lambda: output.write_text(text, encoding="utf-8"))
        say(
            quiet,
            as_json,
            {"schema": str(output)},
            f'Wrote {output}. Replace every "?", then: dpmerf schema check {output}',
        )
    else:
        print(json.dumps({"toml": text}) if as_json else text, end="\n" if as_json else "")


@schema_app.command("check", epilog="Example: dpmerf schema check schema.toml --data patients.csv")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    data: Annotated[str | None, typer.Option(help="Also check that this table has the columns.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a schema, and that a table has its columns (no value is read)."""
    declared = Schema.load(schema)
    Codec(declared)
    extra: list[str] = []
    if data is not None:
        rows = open_rows(data)
        rows.require(list(declared.learned))
        extra = [name for name in rows.fields if name not in declared.columns]
    found = {"columns": len(declared.columns), "label": declared.label, "undeclared": extra}
    note = f" Not declared, and so left out: {', '.join(extra)}." if extra else ""
    say(quiet, as_json, found, f"{schema} is complete: {len(declared.columns)} columns, label {declared.label}.{note}")
