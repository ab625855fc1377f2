"""Config: options that need not be typed each time, from a file or from the environment.

`dpmerf.toml` in the working folder, or the file that DPMERF_CONFIG names (empty: none), has a section a command:

    [synth]
    epsilon = 1
    ledger = "study.ledger"

    [schema.check]
    data = "patients.csv"

A variable is DPMERF_, command and option in capitals: DPMERF_SYNTH_EPSILON=1. What is typed comes first,
then the environment, then the file. A word that no command knows is refused: it may be a misspelt budget.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from dpmerf.errors import PlanError

FILE, VARIABLE, PREFIX = "dpmerf.toml", "DPMERF_CONFIG", "DPMERF"


def settings(app: typer.Typer) -> dict[str, Any]:
    """What is handed to the command: defaults from the file, and the prefix of environment variables."""
    found = _read()
    return {"default_map": _checked(get_command(app), found, "") if found else {}, "auto_envvar_prefix": PREFIX}


def _read() -> dict[str, Any]:
    named = os.environ.get(VARIABLE)
    path = Path(FILE if named is None else named)
    if named == "" or (named is None and not path.is_file()):
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise PlanError(f"cannot read the config {path}: {why}") from None
    except (ValueError, RecursionError):
        raise PlanError(f"the config {path} is not valid TOML: mend it, or set {VARIABLE}= to go without") from None


def _checked(command: Any, found: dict[str, Any], place: str) -> dict[str, Any]:
    """The sections of a command and of those below it; keys as the options are written, as their parameters."""
    known = {_bare(o): p.name for p in command.params for o in p.opts if o.startswith("--")}
    below = getattr(command, "commands", {})
    made: dict[str, Any] = {}
    for key, value in found.items():
        if key in below and isinstance(value, dict):
            made[key] = _checked(below[key], value, f"{place} {key}".strip())
        elif key in known and not isinstance(value, dict):
            made[known[key]] = value
        else:
            choices = ", ".join(sorted([*below, *known]))
            raise PlanError(f"the config does not know '{key}' in [{place}]. It knows: {choices}")
    return made


def _bare(option: str) -> str:
    return option.removeprefix("--")
