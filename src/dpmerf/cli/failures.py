"""Failures: one line for people, a document for machines under `--json`, and an exit code that tells the kind.

Exit codes follow from the kind of an error alone, and an error's kind from public structure: neighbours end alike.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

import typer

from dpmerf.cli.config import settings
from dpmerf.cli.plain_text import plain
from dpmerf.errors import EXIT_CODES, DpmerfError

MEMORY = "out of memory. Ask for fewer columns, bins or rows at a time"


def run(app: typer.Typer) -> None:
    """Run the command that was typed. Under `--json` also a wrong word on the command line becomes a document."""
    typed = sys.argv[1:]
    if typed[:2] == ["plan", "diff"]:  # two words, one command
        typed[:2] = ["plan diff"]
    if "--json" not in typed:
        app(typed, **settings(app))
        return
    ended = app(typed, standalone_mode=False, **settings(app))
    if isinstance(ended, int) and ended:
        sys.exit(ended)


def failed(problem: Exception) -> int:
    """Say what went wrong, in one line and under `--json` as one document; the exit code."""
    kind, message = _told(problem)
    print(plain(f"error: {message}"), file=sys.stderr)
    code = EXIT_CODES[kind]
    if "--json" in sys.argv[1:]:
        found = [one.to_json() for one in getattr(problem, "problems", ())]
        document = {"kind": kind, "exit_code": code, "message": message, **({"problems": found} if found else {})}
        print(json.dumps({"error": document}, ensure_ascii=False))
    return code


def _told(problem: Exception) -> tuple[str, str]:
    if isinstance(problem, DpmerfError):
        return problem.kind, str(problem)
    if isinstance(problem, MemoryError):
        return "system", MEMORY
    if isinstance(problem, OSError):
        return "system", f"the system refused ({problem.strerror}): check disks, permissions and limits"
    if (said := getattr(problem, "format_message", None)) is not None:  # a wrong word on the command line
        return "usage", str(said()).rstrip(".")
    place = traceback.extract_tb(problem.__traceback__)[-1]  # a fault of ours: say where, never what
    where = f"{Path(place.filename).name}:{place.lineno}"
    return "internal", f"internal fault ({type(problem).__name__} at {where}). Please report it"
