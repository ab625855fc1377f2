"""Cores: workers follow what the user says, then a container's quota, then the machine; mathematics has one thread."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
import torch

import dpmerf
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.private.cores import VARIABLES, usable_cores
from dpmerf.private.measure import measure


@pytest.mark.parametrize(
    ("text", "most"),
    [("max 100000", 1024), ("150000 100000", 2), ("50000 100000", 1), ("rubbish", 1024), ("1 0", 1024)],
)
def test_a_quota_limits_the_workers(text: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    (tmp_path / "cpu.max").write_text(text)
    assert usable_cores(tmp_path / "cpu.max") == min(64, most)


def test_what_the_user_says_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("DPMERF_THREADS", raising=False)
    assert usable_cores(tmp_path / "none") == 3
    monkeypatch.setenv("DPMERF_THREADS", "5")
    assert usable_cores(tmp_path / "none") == 5
    monkeypatch.setenv("DPMERF_THREADS", "many")
    assert usable_cores(tmp_path / "none") == 3


def test_training_and_drawing_start_no_threads_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait at barriers cost ten times the time beside a busy process."""
    monkeypatch.delenv("DPMERF_THREADS", raising=False)
    seen: set[int] = set()
    sweep = Chains.sweep

    def watched(self: Chains, *arguments: object, **named: object) -> None:
        seen.add(torch.get_num_threads())
        sweep(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Chains, "sweep", watched)
    schema = dpmerf.Schema.parse('[columns.a]\nkind = "flag"\n[columns.b]\nkind = "flag"\n')
    table = pa.table({"a": [True, False] * 500, "b": [True, True, False, False] * 250})
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = dpmerf.train(measure(table, dpmerf.make_plan(schema, 1.0, 1e-5, rows=1_000)), seed=0, steps=2)
        model.sample(100)
        assert seen == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
