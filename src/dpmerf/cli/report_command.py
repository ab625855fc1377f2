"""The command `dpmerf report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmerf.cli.person_commands import report_persons
from dpmerf.errors import ArtefactError, PlanError

if TYPE_CHECKING:
    from dpmerf.evaluate.results import Evaluation


def report_command(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page.")],
    synthetic: Annotated[
        Path | None,
        typer.Option("--synthetic", help="Rows to show; default: those `synth` wrote beside the model, or new ones."),
    ] = None,
    real: Annotated[
        Path | None, typer.Option("--real", help="Real rows to compare with: marked NOT COVERED on the page.")
    ] = None,
    train: Annotated[Path | None, typer.Option("--train", help="Real rows of the release, for the ceiling.")] = None,
    evaluation: Annotated[
        Path | None, typer.Option("--evaluation", help="A result of `dpmerf evaluate -o`, instead of scoring again.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Score real rows in full instead of quickly.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Equal inputs and seeds give the same page.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print where the page is as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """One self-contained HTML page: the promise in plain words, pictures, and (with --real) scores.

    Examples:

      dpmerf report release/ model/ -o report.html

      dpmerf report release/ model/ --synthetic synthetic.parquet --real test.parquet -o report.html
    """
    from dpmerf.evaluate.files import read_table
    from dpmerf.model import Model
    from dpmerf.pipeline import written_rows
    from dpmerf.release import Release
    from dpmerf.report.make import make_report

    if (release / "persons.json").exists():
        told = (synthetic, real, train, evaluation)
        if any(path is not None for path in told) or full:
            raise PlanError("the page of persons is drawn from the model alone: score real rows with `dpmerf evaluate`")
        report_persons(release, model, output, seed, quiet, as_json)
        return
    noisy = Release.load(release)
    declared = noisy.plan.schema
    made = make_report(
        noisy,
        Model.load(model),
        synthetic=written_rows(model) if synthetic is None else read_table(synthetic),
        real=None if real is None else read_table(real, declared),
        train=None if train is None else read_table(train, declared),
        evaluation=None if evaluation is None else _evaluation(evaluation),
        quick=not full,
        seed=seed,
        quiet=quiet or as_json,
    )
    size = made.write(output)
    if as_json:
        typer.echo(json.dumps({"report": str(output), "bytes": size, "covered": made.evaluation is None}))
    elif not quiet:
        typer.echo(f"{output} ({size / 1e6:.1f} MB): open it in a browser")


def _evaluation(path: Path) -> Evaluation:
    from pydantic import ValidationError

    from dpmerf.evaluate.results import Evaluation

    try:
        return Evaluation.model_validate_json(path.read_bytes())
    except OSError as problem:
        raise ArtefactError(f"cannot read {path}: {problem.strerror}") from None
    except ValidationError:
        raise ArtefactError(f"{path} is not an evaluation. Make one with `dpmerf evaluate … -o {path.name}`") from None
