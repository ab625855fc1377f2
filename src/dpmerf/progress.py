"""Progress: a bar for people, nothing for machines. What it shows must be public."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Advance = Callable[[int], object]


@final
class Bars:
    """Bars on standard error. `Bars(shown=False)` is silent."""

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown

    @contextmanager
    def task(self, what: str, total: float | None = None, counted: str = "") -> Iterator[Advance]:
        """`counted` names the unit of the counter (rows, steps); empty: only time is shown, for counts not public."""
        columns = [SpinnerColumn(), TextColumn("{task.description}")]
        if total is not None:
            columns += [BarColumn(), TimeRemainingColumn()]
        if counted:
            columns += [TextColumn(f"{{task.completed:,.0f}} {counted}"), TextColumn("{task.fields[rate]}")]
        columns.append(TimeElapsedColumn())
        console = Console(stderr=True)
        hidden = not self._shown or not console.is_terminal  # a log file wants no bar
        bar = Progress(*columns, console=console, transient=True, disable=hidden)
        with bar:
            task = bar.add_task(what, total=total, rate="")

            def advance(count: int) -> None:
                bar.update(task, advance=count)
                speed = bar.tasks[0].speed
                if counted and speed:
                    bar.update(task, rate=f"{speed:,.0f}/s")

            yield advance


SILENT = Bars(shown=False)
