"""The command `dpmerf evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmerf.cli.person_commands import evaluate_persons, persons_of
from dpmerf.cli.plain_text import PlainConsole
from dpmerf.errors import DataError


def evaluate_command(
    synthetic: Annotated[Path, typer.Argument(help="Synthetic rows: Parquet or CSV.")],
    real: Annotated[Path, typer.Option("--real", help="Real rows to test against, best held back from the release.")],
    schema: Annotated[Path, typer.Option("--schema", help="The schema of the table.")],
    train: Annotated[
        Path | None, typer.Option("--train", help="Real rows of the release: ceiling and real-against-real baseline.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="Column to predict; default: the schema's.")] = None,
    release: Annotated[
        Path | None, typer.Option("--release", help="Release folder: do its intervals hold what the real rows say?")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and marginals: about a minute.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Equal inputs and seeds give equal scores.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the JSON result here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (evaluation.schema.json) only.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Is the synthetic data useful, and where is it weak? Scores on real rows: NOT COVERED by the guarantee.

    Examples:

      dpmerf evaluate synthetic.parquet --real test.parquet --schema schema.toml --label income --quick

      dpmerf evaluate synthetic.csv --real test.csv --train train.csv --schema schema.toml --json > scores.json
    """
    from dpmerf.evaluate.compare import evaluate
    from dpmerf.evaluate.files import read_table
    from dpmerf.evaluate.text import show
    from dpmerf.release import Release
    from dpmerf.schema import Schema

    if (persons := persons_of(schema)) is not None:
        evaluate_persons(synthetic, real, train, persons, output)
        return
    declared = Schema.load(schema)
    result = evaluate(
        read_table(synthetic),
        read_table(real, declared),
        declared.as_written,
        train=None if train is None else read_table(train, declared),
        label=label,
        quick=quick,
        seed=seed,
        quiet=quiet or as_json,
        release=None if release is None else Release.load(release),
    )
    if output is not None:
        try:
            output.write_text(result.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise DataError(f"cannot write {output}: {error.strerror}") from None
    if as_json:
        typer.echo(result.to_json())
    else:
        show(result, PlainConsole())
