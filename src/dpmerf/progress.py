"""Progress: a bar in a terminal or a notebook, a line now and then in a log, a call for a page, or nothing.

What is shown must be public: a count of rows only where their number is.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Advance = Callable[[int], object]
FIRST_LINE, NEXT_LINE = 10.0, 30.0  # seconds until a log gets its first line, and between lines
REDRAWN = 0.25  # seconds between two drawings in a notebook


@final
@dataclass(frozen=True)
class Step:
    """How far a piece of work is. `counted` names what is counted (rows, steps); empty: only time may be shown."""

    what: str
    done: float
    total: float | None
    counted: str
    seconds: float
    over: bool = False

    @property
    def share(self) -> float | None:
        """Of the work, from 0 to 1; None where the total is not known or not public."""
        return min(self.done / self.total, 1.0) if self.total else None

    def words(self) -> str:
        """In one line.

        >>> Step("training", 50, 200, "steps", 3.2).words()
        'training: 50 of 200 steps (25 %), 3 s'
        """
        count = f"{self.done:,.0f}" + (f" of {self.total:,.0f}" if self.total else "")
        parts = [f"{count} {self.counted}"] if self.counted else []
        percent = "" if self.share is None else f"{self.share:.0%}".replace("%", " %")
        told = " ".join([*parts, f"({percent})" if parts and percent else percent]).strip()
        return f"{self.what}: {told}, {self.seconds:.0f} s" if told else f"{self.what}: {self.seconds:.0f} s"


@final
class Bars:
    """Bars on standard error. `Bars(shown=False)` is silent; `watch` is called with every step in a bar's place."""

    def __init__(self, shown: bool = True, watch: Callable[[Step], object] | None = None) -> None:
        self._shown, self._watch = shown, watch

    @contextmanager
    def task(self, what: str, total: float | None = None, counted: str = "") -> Iterator[Advance]:
        """`counted` names the unit of the counter (rows, steps); empty: only time is shown, for counts not public."""
        if self._watch is not None:
            shown = self._watch
        elif not self._shown:
            yield lambda count: None
            return
        elif _in_notebook():
            shown = _Drawn()
        elif Console(stderr=True).is_terminal:
            with _terminal(what, total, counted) as advance:
                yield advance
            return
        else:
            shown = _Lines()
        start, done = time.monotonic(), 0.0
        public = bool(counted) or total is not None  # else not even a page is told how much was done

        def step(count: float, over: bool = False) -> None:
            nonlocal done
            done += count if public else 0
            shown(Step(what, done, total, counted, time.monotonic() - start, over))

        step(0)
        yield step
        step(0, over=True)


@contextmanager
def _terminal(what: str, total: float | None, counted: str) -> Iterator[Advance]:
    columns = [SpinnerColumn(), TextColumn("{task.description}")]
    if total is not None:
        columns += [BarColumn(), TimeRemainingColumn()]
    if counted:
        columns += [TextColumn(f"{{task.completed:,.0f}} {counted}"), TextColumn("{task.fields[rate]}")]
    columns.append(TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(count: int) -> None:
            bar.update(task, advance=count)
            speed = bar.tasks[0].speed
            if counted and speed:
                bar.update(task, rate=f"{speed:,.0f}/s")

        yield advance


@final
class _Lines:
    """For a log file: nothing for the first seconds, then a line now and then, and one at the end if there were any."""

    def __init__(self) -> None:
        self._next = FIRST_LINE

    def __call__(self, step: Step) -> None:
        if step.seconds < self._next and not (step.over and self._next > FIRST_LINE):
            return
        self._next = step.seconds + NEXT_LINE
        print(step.words(), file=sys.stderr, flush=True)


@final
class _Drawn:
    """For a notebook: one bar that is drawn anew in its place, and its last words when it is done."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = 0.0

    def __call__(self, step: Step) -> None:
        now = time.monotonic()
        if self._handle is not None and now - self._drawn < REDRAWN and not step.over:
            return
        from IPython.display import HTML, display

        self._drawn = now
        words = html.escape(step.words())
        share = "" if step.share is None else f' value="{step.share:.3f}"'
        shown = HTML(f"<small>{words}</small>" if step.over else f"<progress{share}></progress> <small>{words}</small>")
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


def _in_notebook() -> bool:
    """A kernel of Jupyter and the like; not a terminal of IPython."""
    shell = sys.modules.get("IPython")
    here = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return type(here).__name__ in ("ZMQInteractiveShell", "Shell")


SILENT = Bars(shown=False)
