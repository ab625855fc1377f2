"""Jobs: the long work behind the page, one at a time, in a thread that says how far it is."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from dpmerf.errors import DpmerfError, UnreadableError
from dpmerf.progress import Bars, Step

Work = Callable[[Bars], dict[str, Path]]


@final
class Job:
    """One run: what is done at the moment, and in the end what was made or why not."""

    def __init__(self, work: Work) -> None:
        self._lock = threading.Lock()
        self._step: Step | None = None
        self._done: list[str] = []
        self._made: dict[str, Path] | None = None
        self._problem = ""
        self._unreadable = False
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Work) -> None:
        try:
            made = work(Bars(watch=self._watch))
            with self._lock:
                self._made = made
        except DpmerfError as problem:
            self._unreadable = isinstance(problem, UnreadableError)
            self._fail(str(problem).replace("with --go-on", "by the tick below"))
        except MemoryError:
            self._fail("out of memory: ask for fewer columns or rows")
        except Exception as problem:  # a fault of ours: say where, never what (a message may quote a cell)
            place = traceback.extract_tb(problem.__traceback__)[-1]
            self._fail(f"internal fault ({type(problem).__name__} at {Path(place.filename).name}:{place.lineno})")

    def _watch(self, step: Step) -> None:
        with self._lock:
            self._step = step
            if step.over and step.what not in self._done:
                self._done.append(step.what)

    def _fail(self, words: str) -> None:
        with self._lock:
            self._problem = words

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def made(self) -> dict[str, Path] | None:
        return self._made

    def wait(self, seconds: float) -> None:
        """Until it is over, or for so long."""
        self._thread.join(seconds)

    def state(self) -> dict[str, Any]:
        """For the page: public words only."""
        with self._lock:
            return {
                "running": self.running and self._made is None and not self._problem,
                "now": "" if self._step is None or self._step.over else self._step.words(),
                "share": None if self._step is None else self._step.share,
                "done": list(self._done),
                "problem": self._problem,
                "stopped": self._unreadable,
                "made": self._made is not None,
            }
