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
    from dpmerf.schema import Schema


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
    from dpmerf.inference.questions import NoColumn
    from dpmerf.inference.units import explained
    from dpmerf.release import Release

    known = evidence(Release.load(release))
    schema = known.codec.schema
    asked = []
    for text in questions:
        select = text.lstrip().lower().startswith("select")
        try:
            asked += sql.parse(schema, text) if select else [words.parse(schema, text)]
        except NoColumn as problem:
            raise explained(known.codec.declared, problem) from None
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
            _print(one, schema)


def _copies(folder: Path) -> list[Table]:
    """Copies of the model in a folder; none if it holds a release alone."""
    from dpmerf.inference.by_model import COPIES
    from dpmerf.model import DOCUMENT, Model

    return list(Model.load(folder).copies(COPIES)) if (folder / DOCUMENT).exists() else []


def _print(found: Answer, schema: Schema) -> None:
    from rich.table import Table as Lines

    from dpmerf.inference.units import writing
    from dpmerf.schema import Numeric

    column = schema.columns.get(found.question.column or "")
    largest = max((abs(x.estimate) for x in found.lines if x.estimate is not None), default=0.0)
    told = writing(found.unit, found.question.what, column if isinstance(column, Numeric) else None, largest)
    unit, error = (f" ({one})" if one else "" for one in (told.unit, told.error_unit))
    keys = list(found.lines[0].group) if found.lines else []
    level = f"{found.confidence:.0%}"
    heads = (f"estimate{unit}", f"{level} interval", f"± privacy{error}", "± inside cells", "± sampling")
    table = Lines(*keys, *heads, title=None)
    for line in found.lines:
        group = [str(line.group[k]) for k in keys]
        if line.estimate is None or line.low is None or line.high is None:
            table.add_row(*group, "–", line.note)
            continue
        numbers = [told.error(v) for v in (line.privacy_error, line.inside_error)]
        sampling = "" if line.sampling_error is None else told.error(line.sampling_error)
        interval = f"{told.value(line.low)} … {told.value(line.high)}"
        table.add_row(*group, told.value(line.estimate), interval, *numbers, sampling)
    print(f"{found.question} (about {found.about})")
    PlainConsole().print(table)
    tables = "; ".join(found.tables[:4]) + (f" and {len(found.tables) - 4} more" if len(found.tables) > 4 else "")
    more = f", sharpened by margins of {found.margins} others" if found.margins else ""
    print(f"Rests on {found.rests_on}{': ' if tables else ''}{tables}{more}.")
    for note in found.notes:
        print(f"Note: {note}.")
