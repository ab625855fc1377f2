"""Harness: one run of the product with all that it lets out, and noise that can be watched or replayed."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final
from unittest import mock

import pyarrow as pa
import pytest
import torch

from dpmerf import cli
from dpmerf.audit.artefact import Artefact
from dpmerf.errors import DpmerfError
from dpmerf.plan import Plan
from dpmerf.private import measure
from dpmerf.private.noise import OpenDPGaussian, check_sampler
from dpmerf.progress import Bars, Step

Advance = Callable[[int], object] | None
check_sampler()  # once, before anything is planted: of some bugs it would be the end


class Terminal(io.StringIO):
    """A screen that remembers all that was ever shown on it."""

    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def terminal() -> Iterator[Terminal]:
    """What is printed goes to a terminal."""
    screen = Terminal()
    screened = mock.patch.dict(os.environ, {"TERM": "xterm", "COLUMNS": "100"})
    with screened, contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        yield screen


def publish(rows: pa.Table, plan: Plan) -> Artefact:
    """One release, in this process: its files, and every step of its progress as a page would be told."""
    steps: list[str] = []

    def told(step: Step) -> None:
        steps.append(f"{step.what}={step.done:g}/{step.total}{step.counted}".replace(" ", "_"))

    with terminal() as screen:
        try:
            release = measure.measure(rows, plan, bars=Bars(watch=told))
        except DpmerfError as error:
            return Artefact({}, " ".join([*steps, screen.getvalue(), str(error)]), 2)
    return Artefact(release.files(), " ".join([*steps, screen.getvalue()]))


def command(rows: pa.Table, plan: Plan, folder: Path) -> Artefact:
    """One release by the command line, on a terminal: the folder with all that is in it, the words, the exit code."""
    folder.mkdir()
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)  # a batch for each of its pieces
    (folder / "plan.json").touch()
    arguments = ["release", folder / "rows.arrow", "--plan", folder / "plan.json", "-o", folder / "out" / "release"]
    code = 0
    with (
        terminal() as screen,
        mock.patch.object(sys, "argv", ["dpmerf", *map(str, arguments)]),
        mock.patch.object(Plan, "load", staticmethod(lambda path: plan)),  # priced once, not in every run
    ):
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
    made = folder / "out"
    files = {str(p.relative_to(made)): p.read_bytes() for p in made.rglob("*") if p.is_file()} if made.exists() else {}
    return Artefact(files, screen.getvalue().replace("\n", " ").replace(str(folder), "FOLDER"), code)


@final
@dataclass
class Call:
    """One use of the noise: what was to be hidden, and by how much."""

    what: str  # "add" or "choose"
    exact: torch.Tensor
    scale: float
    answer: Any = None

    @property
    def public(self) -> tuple[str, tuple[int, ...], float]:
        """What must not depend on rows."""
        return self.what, tuple(self.exact.shape), self.scale


@final
@dataclass
class Script:
    """Stands in for the noise of a whole run: draws answers the first time, and gives the same ones ever after.

    With the same noisy answers everything else that is let out must be the same, whatever the rows.
    """

    calls: list[Call] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def add(self, sums: torch.Tensor, sigma: float, advance: Advance = None) -> torch.Tensor:
        if advance is not None:
            advance(sums.numel())
        noise = torch.randn(sums.shape, generator=self._rng(), dtype=torch.float64) * sigma
        return self._answer(Call("add", sums.clone(), sigma), lambda: sums + noise.round().long())

    def choose(self, scores: list[int], scale: float) -> int:
        gumbel = -torch.empty(len(scores), dtype=torch.float64).exponential_(generator=self._rng()).log()
        exact = torch.tensor(scores)
        return self._answer(Call("choose", exact, scale), lambda: int((exact / scale + gumbel).argmax()))

    def replayed(self) -> Script:
        return Script(answers=[call.answer for call in self.calls])

    def _rng(self) -> torch.Generator:
        return torch.Generator().manual_seed(len(self.calls))

    def _answer(self, call: Call, draw: Callable[[], Any]) -> Any:
        at = len(self.calls)
        known = self.answers[at] if at < len(self.answers) else None
        fits = known is not None and (call.what == "choose" or known.shape == call.exact.shape)
        call.answer = known if fits else draw()
        self.calls.append(call)
        return call.answer

    @contextlib.contextmanager
    def playing(self) -> Iterator[None]:
        """Inside, the production source answers by the script."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                OpenDPGaussian, "add", lambda source, sums, sigma, advance=None: self.add(sums, sigma, advance)
            )
            patch.setattr(OpenDPGaussian, "choose", lambda source, scores, scale: self.choose(scores, scale))
            yield


@contextlib.contextmanager
def watched() -> Iterator[list[Call]]:
    """Inside, the production source (or what a bug made of it) works as ever, and its calls are noted."""
    calls: list[Call] = []
    with pytest.MonkeyPatch.context() as patch:
        add = OpenDPGaussian.add

        def noted(source: OpenDPGaussian, sums: torch.Tensor, sigma: float, advance: Advance = None) -> torch.Tensor:
            answer = add(source, sums, sigma, advance)
            calls.append(Call("add", sums.clone(), sigma, answer))
            return answer

        patch.setattr(OpenDPGaussian, "add", noted)
        yield calls


def replay(rows: list[pa.Table], plan: Plan) -> list[tuple[Artefact, list[Call]]]:
    """The command on several tables, with the noisy answers that the first one got."""
    script, found = Script(), []
    with tempfile.TemporaryDirectory(prefix="dpmerf-test-") as folder:
        for i, table in enumerate(rows):
            script = script.replayed() if i == 1 else Script(answers=script.answers)
            with script.playing():
                artefact = command(table, plan, Path(folder) / "run")
            found.append((artefact, script.calls))
            (Path(folder) / "run").rename(Path(folder) / f"done{i}")
    return found
