"""`dpmerf schema`: draft, check, import and export."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpmerf import metadata
from dpmerf.cli.options import (
    Channels,
    Classes,
    Force,
    Images,
    Json,
    PixelRange,
    Quiet,
    Read,
    Size,
    pictures,
    reading_of,
    say,
    write_text,
)
from dpmerf.cli.person_commands import persons_of
from dpmerf.errors import SchemaError
from dpmerf.output.whole_files import check_free
from dpmerf.schema import Schema

schema_app = typer.Typer(help="Draft, check, import and export schemas.", no_args_is_help=True)
Output = Annotated[Path | None, typer.Option("-o", "--output", help="File; standard output if left out or '-'.")]


@schema_app.command("draft", epilog="Example: dpmerf schema draft patients.csv -o schema.toml")
def schema_draft(
    data: Annotated[str, typer.Argument(help="Table: its header and stored types are read, no value.")],
    output: Output = None,
    force: Force = False,
    images: Images = False,
    size: Size = None,
    channels: Channels = None,
    classes: Classes = None,
    pixel_range: PixelRange = None,
    read: Read = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a schema to fill in, from column names and stored types alone."""
    from dpmerf.schema.draft import draft, draft_images
    from dpmerf.sources.rows import open_rows

    check_free(output, force)
    if images:
        text = draft_images(pictures(data, None, size, channels, classes, pixel_range, quiet or as_json))
    else:
        reading = reading_of(read)
        text = draft(open_rows(data, reading).fields, reading)
    _hand_out(text, output, quiet, as_json)


@schema_app.command("check", epilog="Example: dpmerf schema check schema.toml --data patients.csv")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    data: Annotated[str | None, typer.Option(help="Also check that this table has the columns.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a schema, and that a table has its columns (no value is read). Shows all problems at once."""
    from dpmerf.encoding.codec import Codec
    from dpmerf.sources.rows import open_rows

    try:
        persons = persons_of(schema)
        if persons is not None:
            names = ", ".join(persons.tables)
            say(quiet, as_json, {"tables": list(persons.tables), "problems": []}, f"{schema} is complete: {names}.")
            return
        declared = Schema.load(schema)
    except SchemaError as problem:
        _show_all(problem, str(schema), as_json)
        raise
    Codec(declared)
    extra: list[str] = []
    if data is not None:
        rows = open_rows(data, declared.reading)
        rows.require(list(declared.learned))
        extra = [name for name in rows.fields if name not in declared.columns]
    found = {"columns": len(declared.columns), "label": declared.label, "undeclared": extra, "problems": []}
    note = f" Not declared, and so left out: {', '.join(extra)}." if extra else ""
    say(quiet, as_json, found, f"{schema} is complete: {len(declared.columns)} columns, label {declared.label}.{note}")


def _show_all(problem: SchemaError, source: str, as_json: bool) -> None:
    """Every problem on a line of its own; the error that ends the command says how many they were."""
    if as_json:
        return  # the error document holds them
    if len(problem.problems) > 1:
        for one in problem.problems:
            print(one.message(source), file=sys.stderr)
        raise SchemaError(f"{source} has {len(problem.problems)} problems: mend the lines above", problem.problems)


@schema_app.command("import", epilog="Example: dpmerf schema import metadata.json -o schema.toml")
def schema_import(
    source: Annotated[str, typer.Argument(help="A file that describes a table, or package.module:Model.")],
    output: Output = None,
    force: Force = False,
    form: Annotated[
        str | None, typer.Option("--format", help=f"Recognised if left out: {', '.join(metadata.READABLE)}.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Which table, where it describes several.")] = None,
    dialect: Annotated[str | None, typer.Option(help="SQL: postgres, mysql, tsql, oracle, sqlite, …")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a schema from other people's metadata; what it does not say is left for a person."""
    check_free(output, force)
    _hand_out(metadata.imported(source, form, table, dialect), output, quiet, as_json)


@schema_app.command("export", epilog="Example: dpmerf schema export schema.toml --format frictionless -o table.json")
def schema_export(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    form: Annotated[str, typer.Option("--format", help=f"{', '.join(metadata.WRITABLE)}.")],
    output: Output = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a schema in another tool's format. SDV has no place for bounds and categories; Frictionless has."""
    if form not in metadata.WRITABLE:
        raise SchemaError(f"there is no format '{form}' to write. Choose from: {', '.join(metadata.WRITABLE)}")
    check_free(output, force)
    made = metadata.WRITABLE[form](Schema.load(schema), schema.stem)
    text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    if write_text(text, output):
        say(quiet, as_json, {"exported": str(output), "format": form}, f"Wrote {output}.")


def _hand_out(text: str, output: Path | None, quiet: bool, as_json: bool) -> None:
    if output is None and as_json:
        print(json.dumps({"toml": text}, ensure_ascii=False))
    elif write_text(text, output):
        open_ones = text.count('= "?"') + text.count('= ["?"]')
        words = f'Wrote {output}. Replace every "?" ({open_ones}), then: dpmerf schema check {output}'
        say(quiet, as_json, {"schema": str(output), "gaps": open_ones}, words)
