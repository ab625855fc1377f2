"""Progress: a page gets every step, a log a line now and then, a notebook a bar, and silence is silent."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from dpmerf import progress
from dpmerf.progress import Bars, Step


def test_a_watcher_sees_every_step() -> None:
    seen: list[Step] = []
    with Bars(watch=seen.append).task("training", total=4, counted="steps") as advance:
        advance(1)
        advance(3)
    assert [s.done for s in seen] == [0, 1, 4, 4] and seen[-1].over and seen[2].share == 1.0


def test_a_log_gets_a_line_only_where_work_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Bars().task("training", total=100, counted="steps") as advance:
        for _ in range(10):
            now[0] += 6
            advance(10)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "training: 20 of 100 steps (20 %), 12 s",
        "training: 70 of 100 steps (70 %), 42 s",
        "training: 100 of 100 steps (100 %), 60 s",
    ]
    with Bars().task("short"):
        now[0] += 5
    assert capsys.readouterr().err == ""


def test_a_count_that_is_not_public_is_not_in_the_words() -> None:
    assert Step("reading", 12345, None, "", 31.0).words() == "reading: 31 s"
    assert Step("noise", 1, 4, "", 1.0).words() == "noise: 25 %, 1 s"


def test_a_notebook_gets_one_bar_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, thing: Any) -> None:
            shown.append(thing)

    def display(thing: Any, display_id: bool) -> Handle:
        shown.append(thing)
        return Handle()

    kernel = type("ZMQInteractiveShell", (), {})()
    python = types.ModuleType("IPython")
    python.get_ipython = lambda: kernel  # type: ignore[attr-defined]
    parts = types.ModuleType("IPython.display")
    parts.HTML, parts.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    with Bars().task("training <b>", total=2, counted="steps") as advance:
        advance(1)
        advance(1)
    assert "<progress value" in shown[0] and shown[-1] == "<small>training &lt;b&gt;: 2 of 2 steps (100 %), 0 s</small>"


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.SILENT.task("training", total=2) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")
