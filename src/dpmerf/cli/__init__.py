"""The command line. Every command prints one clear line on failure and exits with 2; `--json` is for machines."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from dpmerf.audit.cli import audit_command
from dpmerf.cli.ledgers import ledger_app
from dpmerf.cli.schemas import schema_app
from dpmerf.cli.steps import plan, release, sample, train, verify
from dpmerf.cli.whole import demo, demo_data_command, synth
from dpmerf.errors import DpmerfError
from dpmerf.evaluate.cli import evaluate_command
from dpmerf.report.cli import report_command

app = typer.Typer(
    name="dpmerf",
    help="Differentially private synthetic data: touch the data once, release one noisy vector, the rest is free.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(schema_app, name="schema")
app.command(epilog="Example: dpmerf plan schema.toml --epsilon 1 --rows 30000 -o plan.json")(plan)
app.command(epilog="Example: dpmerf release patients.parquet --plan plan.json --ledger study.ledger -o release/")(
    release
)
app.command(epilog="Example: dpmerf train release/ -o model/ --seed 7")(train)
app.command(epilog="Example: dpmerf sample model/ -n 10000 --given outcome=yes -o synthetic.parquet")(sample)
app.command(epilog="Example: dpmerf verify release/")(verify)
app.add_typer(ledger_app, name="ledger")
app.command(
    epilog="Examples: dpmerf synth patients.csv --schema schema.toml --label outcome --epsilon 1 -o out/ · "
    "dpmerf synth mnist.npz --images --epsilon 1 --delta 1e-5 -o out/"
)(synth)
app.command(epilog="Example: dpmerf demo -o demo-out")(demo)
app.command("demo-data", epilog="Example: dpmerf demo-data hospital.parquet")(demo_data_command)
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


def main() -> None:
    """Entry point: one line per failure, never a traceback, never a cell."""
    warnings.simplefilter("ignore")
    warnings.showwarning = lambda message, *rest, **named: print(f"note: {message}", file=sys.stderr)
    warnings.filterwarnings("always", category=UserWarning, module="dpmerf")
    try:
        with _stoppable():
            app()
    except _Stopped as end:  # all is taken back; a thread that still hangs in a read may crash Python's own farewell
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(str(end.code)))
    except DpmerfError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)
    except MemoryError:
        print("error: out of memory. Ask for fewer columns, bins or rows at a time", file=sys.stderr)
        sys.exit(2)
    except Exception as problem:  # a fault of ours: say where, never what (a message may quote a cell)
        place = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        print(f"error: internal fault ({type(problem).__name__} at {where}). Please report it", file=sys.stderr)
        sys.exit(3)
