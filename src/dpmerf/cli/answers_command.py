"""dpmerf answer: a question of a release, in words or SQL, with error bars."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmerf.cli.options import Json, Quiet
from dpmerf.cli.plain_text import PlainConsole

if TYPE_CHECKING:
    from pyarrow import Table

    from dpmerf.inference.answers import Answer


def answer(
    release: Annotated[
        Path, typer.Argument(help="Release folder, or a model's: what no released table holds then rests on the model.")
    ],
    questions: Annotated[
        list[str],
        typer.Argument(
            help="WHAT of COLUMN by COLUMN, … where COLUMN = VALUE and …, or SELECT … . WHAT is count, share, mean, "
            "sum, variance, median, quantile Q or crosstab."
        ),
    ],
    population: Annotated[
        bool, typer.Option("--population", help="About the population the rows were drawn from, not this table alone.")
    ] = False,
    confidence: Annotated[float, typer.Option(help="Of the intervals: 0.9, 0.95 or 0.99.")] = 0.95,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Answer questions from the released tables, with error bars. No rows, no cost."""
    from dpmerf.inference import sql_questions as sql
    from dpmerf.inference import words
    from dpmerf.inference.ask import respond
    from dpmerf.inference.by_model import needs_model, respond_by_model
    from dpmerf.inference.evidence import evidence
    from dpmerf.release import Release

    known = evidence(Release.load(release))
    schema = known.codec.schema
    asked = []
    for text in questions:
        select = text.lstrip().lower().startswith("select")
        asked += sql.parse(schema, text) if select else [words.parse(schema, text)]
    copies = _copies(release) if any(needs_model(known, q) for q in asked) else []
    found = []
    for q in asked:
        if copies and needs_model(known, q):
            found.append(respond_by_model(known, copies, q, confidence=confidence))
        else:
            found.append(respond(known, q, population=population, confidence=confidence))
    if as_json:
        print(json.dumps([a.to_json() for a in found], ensure_ascii=False, default=str))
    elif not quiet:
        for one in found:
            _print(one)


def _copies(folder: Path) -> list[Table]:
    """Copies of the model in a folder; none if it holds a release alone."""
    from dpmerf.inference.by_model import COPIES
    from dpmerf.model import DOCUMENT, Model

    return list(Model.load(folder).copies(COPIES)) if (folder / DOCUMENT).exists() else []


def _print(found: Answer) -> None:
    from rich.table import Table as Lines

    keys = list(found.lines[0].group) if found.lines else []
    level = f"{found.confidence:.0%}"
    table = Lines(*keys, "estimate", f"{level} interval", "± privacy", "± inside cells", "± sampling", title=None)
    for line in found.lines:
        group = [str(line.group[k]) for k in keys]
        if line.estimate is None or line.low is None or line.high is None:
            table.add_row(*group, "–", line.note)
            continue
        numbers = [_short(v) for v in (line.privacy_error, line.inside_error)]
        sampling = "" if line.sampling_error is None else _short(line.sampling_error)
        table.add_row(*group, _short(line.estimate), f"{_short(line.low)} … {_short(line.high)}", *numbers, sampling)
    print(f"{found.question} (about {found.about})")
    PlainConsole().print(table)
    tables = "; ".join(found.tables[:4]) + (f" and {len(found.tables) - 4} more" if len(found.tables) > 4 else "")
    more = f", sharpened by margins of {found.margins} others" if found.margins else ""
    print(f"Rests on {found.rests_on}{': ' if tables else ''}{tables}{more}.")
    for note in found.notes:
        print(f"Note: {note}.")


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:,.4g}"
