"""Options that several commands share, and how a command speaks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmerf.cli.plain_text import plain
from dpmerf.errors import DataError, SchemaError

if TYPE_CHECKING:
    from dpmerf.plan import Plan
    from dpmerf.schema import Schema
    from dpmerf.schema.notation import Reading

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget ε, above 0.")]
Delta = Annotated[float | None, typer.Option(help="δ; the smaller of 1e-5 and 1/(10 rows) if left out.")]
Label = Annotated[str | None, typer.Option(help="Label column; the schema's own if left out, 'none' for unlabelled.")]
RowsHint = Annotated[int | None, typer.Option(help="Expected number of rows: a public fact or a guess.")]
TableFiles = Annotated[
    list[str] | None, typer.Option(help="NAME=FILE, for each table of a schema of persons. May be repeated.")
]
UnitText = Annotated[str, typer.Option(help="What is protected: 'row' or 'person:COLUMN,ROWS'.")]
Neighbours = Annotated[str, typer.Option(help="'replace' (rows public) or 'add-remove'.")]
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        "--preset",
        help="What is measured and modelled: auto, tables, few-rows, wide, paper or images. --preset is its old name.",
    ),
]
Balanced = Annotated[bool, typer.Option(help="Classes are known to be equally frequent: do not measure them.")]
Seed = Annotated[int, typer.Option(help="Seed for everything but the noise.")]
Steps = Annotated[int | None, typer.Option(help="Training steps; a good number if left out.")]
Device = Annotated[str, typer.Option(help="PyTorch device for networks: the paper's and those of pictures.")]
Images = Annotated[bool, typer.Option("--images", help="The data are pictures: .npz, or a folder of class folders.")]
Size = Annotated[str | None, typer.Option(help="Pictures: HEIGHTxWIDTH, where the container does not state it.")]
Channels = Annotated[int | None, typer.Option(help="Pictures: 1 (grey) or 3 (colour).")]
Classes = Annotated[str | None, typer.Option(help="Pictures: how many classes (0, 1, …), or their names: cat,dog.")]
PixelRange = Annotated[str | None, typer.Option(help="Pictures: LOW,HIGH; by the stored type if left out.")]
Fast = Annotated[bool, typer.Option("--fast", help="Pictures: train for a third of the steps.")]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        help="How the file is written, KEY=VALUE, repeatable: delimiter, encoding, decimal, thousands, unit, date, "
        "zone, missing, sheet, table, query. As below [reading] in a schema, and before it.",
    ),
]
GoOn = Annotated[bool, typer.Option("--go-on", help="Release all the same where columns cannot be read as declared.")]
CountBroken = Annotated[
    list[str] | None,
    typer.Option(
        "--count-broken",
        help="Buy the share of rows that break a relation, by its name or words; 'all' for every one. May be repeated.",
    ),
]
LedgerFile = Annotated[Path | None, typer.Option("--ledger", help="Ledger to charge before any row is measured.")]
Dataset = Annotated[
    str | None, typer.Option(help="What the data set is called, as its ledger knows it; its file's name if left out.")
]
SigningKey = Annotated[Path | None, typer.Option("--sign", help="Private key (Ed25519, PEM) that signs the release.")]


def say(quiet: bool, as_json: bool, found: dict[str, Any], words: str) -> None:
    """The result: JSON for machines, words for people, nothing when quiet."""
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    elif not quiet:
        print(plain(words))


def noted(quiet: bool) -> Callable[[str], None]:
    """How a command says what is worth knowing: one line beside the result."""
    return lambda words: None if quiet else print(f"note: {words}", file=sys.stderr)


def labelled(schema: Schema, label: str | None) -> Schema:
    """The schema with the label that was asked for."""
    if label is None:
        return schema
    return schema.with_label(None if label == "none" and "none" not in schema.columns else label)


def told_reading(told: list[str] | None) -> dict[str, Any]:
    """`--read` as the keys of a reading; a key that stands several times is a list.

    >>> told_reading(["decimal=,", "missing=NA", "missing=-"])
    {'decimal': ',', 'missing': ['NA', '-']}
    """
    from dpmerf.schema.notation import Reading

    found: dict[str, Any] = {}
    for one in told or ():
        key, equals, value = one.partition("=")
        if not equals or key not in Reading.model_fields:
            raise SchemaError(f"--read {one}: write KEY=VALUE with one of {', '.join(Reading.model_fields)}")
        if key in ("unit", "date", "missing"):
            found[key] = [*found.get(key, []), value]
        else:
            found[key] = value
    return found


def reading_of(told: list[str] | None) -> Reading:
    """`--read` where there is no schema."""
    from pydantic import ValidationError

    from dpmerf.schema.explain import faults
    from dpmerf.schema.notation import Reading

    try:
        return Reading.model_validate(told_reading(told))
    except ValidationError as error:
        raise SchemaError(f"--read: {faults(error, '')[0].sentence}") from None


def pictures(
    data: str,
    label: str | None,
    size: str | None,
    channels: int | None,
    classes: str | None,
    pixel_range: str | None,
    silent: bool,
) -> Schema:
    """The schema of pictures from flags and the container's structure; what is assumed is said."""
    from dpmerf.sources.picture_facts import declare

    try:
        low, high = map(float, pixel_range.split(",")) if pixel_range else (None, None)
    except ValueError:
        raise SchemaError(f"--pixel-range is '{pixel_range}': write LOW,HIGH, for example 0,1") from None
    named = None if classes is None else int(classes) if classes.isdecimal() else classes.split(",")
    found = declare(
        data,
        size=size,
        channels=channels,
        classes=named,
        pixel_range=None if low is None or high is None else (low, high),
        labelled=label != "none",
    )
    for note in () if silent else found.notes:
        print(plain(f"note: {note}"), file=sys.stderr)
    return found.schema


def write_text(text: str, output: Path | None) -> bool:
    """To a file; to standard output where there is none or it is '-'. Whether it was a file."""
    if output is None or str(output) == "-":
        sys.stdout.write(text)
        return False
    guard(output, lambda: output.write_text(text, encoding="utf-8"))
    return True


def guard(path: Path, action: Any) -> Any:
    """Do something that writes to a path; DataError if the system does not let it."""
    try:
        return action()
    except OSError as problem:
        raise DataError(f"cannot write {path}: {problem.strerror}") from None


def size_of(plan: Plan) -> int:
    """Bytes that a release of this plan takes on disk, at most: asked for before the budget is spent."""
    return 8 * plan.coordinates + 2**20 + 4 * len(json.dumps(plan.to_json()))
