"""Steps: one progress bar over the steps of a long evaluation, or silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[str], None]


def silent(what: str) -> None:
    """Say nothing."""


@contextmanager
def bar(total: int, quiet: bool = False) -> Iterator[Step]:
    """A progress bar on standard error; each call names the step that begins."""
    if quiet:
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<44.44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        first = True

        def step(what: str) -> None:
            nonlocal first
            progress.update(task, description=what, advance=0 if first else 1)
            first = False

        yield step
        progress.update(task, completed=total)
