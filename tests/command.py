"""The command's own entry point, in this process: a new one would spend its time on imports."""

import contextlib
import io
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from unittest import mock

import typer.main

from dpmerf.cli import main

built = cache(typer.main.get_command)  # options of thirty commands are read from their signatures: once is enough


def dpmerf(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `dpmerf ARGUMENTS` (in the folder `cwd`) and collect what it prints and how it ends."""
    words = ["dpmerf", *map(str, arguments)]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", words),
        mock.patch.object(typer.main, "get_command", built),
        warnings.catch_warnings(),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
