"""`dpmerf resume`: finish a run that was stopped after its release was paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmerf.cli.options import Json, Quiet, say


def resume_command(
    folder: Annotated[Path, typer.Argument(help="The folder that was given to synth with -o.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Finish a stopped `synth` from its release: train, sample and report. No rows, no cost."""
    from dpmerf import person_run, pipeline
    from dpmerf.progress import Bars

    persons = (folder / "release" / "persons.json").exists()
    paths = (person_run.resume_persons if persons else pipeline.resume)(folder, Bars(not (quiet or as_json)))
    made = {what: str(path) for what, path in paths.items()}
    words = "\n".join(f"  {what:<10} {path}" for what, path in made.items())
    say(quiet, as_json, made, f"Done, from the release that was already paid for:\n{words}")
