"""The command line. Every failure is one clear line and an exit code that tells its kind; `--json` is for machines."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated

import typer

import dpmerf
from dpmerf.cli import quiet_blas as quiet_blas  # before NumPy is loaded

# isort: split
from dpmerf.cli.answers_command import answer
from dpmerf.cli.app_command import app_command
from dpmerf.cli.audit_command import audit_command
from dpmerf.cli.discover_command import discover_command
from dpmerf.cli.evaluate_command import evaluate_command
from dpmerf.cli.failures import failed, run
from dpmerf.cli.keys import keys_app
from dpmerf.cli.ledgers import ledger_app
from dpmerf.cli.pack_command import pack
from dpmerf.cli.plain_text import plain
from dpmerf.cli.plan_command import plan
from dpmerf.cli.plan_diff import plan_diff
from dpmerf.cli.report_command import report_command
from dpmerf.cli.resume_command import resume_command
from dpmerf.cli.schemas import schema_app
from dpmerf.cli.steps import release, sample, train, verify
from dpmerf.cli.whole import demo, demo_data_command, synth

app = typer.Typer(
    name="dpmerf",
    help="Differentially private synthetic data: one private step releases noisy sums, the rest is free.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dpmerf {dpmerf.__version__}")
        raise typer.Exit()


@app.callback()
def _dpmerf(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


app.add_typer(schema_app, name="schema")
app.command(
    "discover", epilog="Example: dpmerf discover patients.csv --epsilon 0.1 --ledger study.ledger -o schema.toml"
)(discover_command)
app.command(epilog="Example: dpmerf plan schema.toml --epsilon 1 --rows 30000 -o plan.json")(plan)
app.command("plan diff", epilog="Example: dpmerf plan diff one.json two.json")(plan_diff)
app.command(epilog="Example: dpmerf release patients.parquet --plan plan.json --ledger study.ledger -o release/")(
    release
)
app.command(epilog="Example: dpmerf train release/ -o model/ --seed 7")(train)
app.command(epilog="Example: dpmerf sample model/ -n 10000 --given outcome=yes -o synthetic.parquet")(sample)
app.command(epilog="Example: dpmerf verify release/ --signed-by institute.key.pub")(verify)
app.command(epilog='Example: dpmerf answer release/ "share of readmitted by ward" --population')(answer)
app.add_typer(ledger_app, name="ledger")
app.add_typer(keys_app, name="keys")
app.command(
    epilog="Examples: dpmerf synth patients.csv --schema schema.toml --label outcome --epsilon 1 -o out/ · "
    "dpmerf synth mnist.npz --images --epsilon 1 --delta 1e-5 -o out/"
)(synth)
app.command("resume", epilog="Example: dpmerf resume out/")(resume_command)
app.command("app", epilog="Example: dpmerf app patients.csv")(app_command)
app.command(epilog="Example: dpmerf demo -o demo-out")(demo)
app.command("demo-data", epilog="Example: dpmerf demo-data hospital.parquet")(demo_data_command)
app.command(epilog="Example: dpmerf pack out/release --ledger study.ledger --name 'Hospital 2024'")(pack)
app.command("evaluate")(evaluate_command)
app.command("report")(report_command)
app.command("audit", epilog="Example: dpmerf audit --plan plan.json --minutes 5")(audit_command)


class _Stopped(SystemExit):
    """A signal ended the program."""


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C and a polite kill end the program in order: open files are taken back, and it says what holds."""

    def stop(number: int, frame: object) -> None:
        print("error: stopped. A budget that was spent stays spent; nothing half-made was left", file=sys.stderr)
        raise _Stopped(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _drop_output() -> None:
    """What cannot be written is not tried once more at the end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def main() -> None:
    """Entry point: one line per failure, never a traceback, never a cell."""
    warnings.simplefilter("ignore")
    warnings.showwarning = lambda message, *rest, **named: print(plain(f"note: {message}"), file=sys.stderr)
    warnings.filterwarnings("always", category=UserWarning, module="dpmerf")
    for stream in (sys.stdout, sys.stderr):  # an alphabet without ε is no fault
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _stoppable():
            try:
                run(app)
            finally:
                sys.stdout.flush()
    except _Stopped as end:  # all is taken back; a thread that still hangs in a read may crash Python's own farewell
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(str(end.code)))
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except Exception as problem:
        if isinstance(problem, OSError):  # standard output, where nobody else answers for it
            _drop_output()
        sys.exit(failed(problem))
