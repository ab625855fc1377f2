"""A plugin in a package of its own is found by its entry points, priced, hunted for its bound, and used to the end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import dpmerf
from command import dpmerf as command
from conftest import MIXED, mixed_rows
from dpmerf import plugins
from dpmerf.errors import ArtefactError, PlanError
from dpmerf.features.dense import Dense
from dpmerf.plan import Plan, Stage
from privacy.hunt import check, climb, illegal, rows_of

CELLS: list[object] = [
    None,
    "",
    "NaN",
    "inf",
    "-1e308",
    "0",
    "-0.0",
    "true",
    "☃",
    "2020-02-30",
    "9" * 70,
    "\x00",
    "1,5",
]
HOME = Path(__file__).parents[1] / "plugin"
pytestmark = [pytest.mark.filterwarnings("ignore:no ledger was charged"), pytest.mark.xdist_group("plugin")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin, installed by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("plugin")
    offline = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q"]
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder / "site"), str(HOME)]
    subprocess.run(install, check=True, capture_output=True)
    return folder


@pytest.fixture
def installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(place / "site")
    forget = plugins.offered.cache_clear
    forget()
    yield place
    forget()


def _plan(epsilon: float = 1.0) -> Plan:
    return dpmerf.make_plan(dpmerf.Schema.parse(MIXED), epsilon, 1e-5, rows=4_000, method="cosines")


def test_it_is_found_and_priced(installed: Path, tmp_path: Path) -> None:
    assert plugins.home("cosines", "queries") == "dpmerf-cosines 0.1"
    plan = _plan()
    price = plan.prices[0]
    assert price.sigma == plan.unit.sensitivity(*plan.stages[0].query.nominal(plan).integer_bounds) / price.mu
    assert price.diameter == pytest.approx(6**0.5)  # a dense map of norm 1 (4), and one-hots of norm 1 (2)
    assert _plan(2.0).prices[0].sigma < price.sigma
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").hash == plan.hash


def test_the_bound_hunter_covers_it(installed: Path) -> None:
    plan = _plan()
    query = plan.stages[0].query
    phi = query.nominal(plan)
    check(phi, illegal(plan, CELLS))
    batch = rows_of(plan, 60, seed=1)
    check(phi, batch)
    norm, distance = check(phi, climb(phi, lambda b: b, batch))
    assert norm > 0.99 and distance > 0.7  # the hunt gets close: the bound is not slack


def test_the_bound_hunter_catches_a_plugin_that_lies(installed: Path) -> None:
    from dpmerf_cosines.query import CosineMap

    @dataclass(frozen=True)
    class Liar(Dense):
        inner: Any

        @property
        def apart(self) -> int:
            return 1  # claims that any two rows are near each other

        @property
        def name(self) -> str:
            return "liar"

        @property
        def dim(self) -> int:
            return int(self.inner.dim)

        def __call__(self, numbers: torch.Tensor) -> torch.Tensor:
            return self.inner(numbers)

    from dpmerf.features.algebra import of

    plan = _plan()
    phi = of(Liar(CosineMap(len(plan.codec.numeric), 8)))
    with pytest.raises(AssertionError, match="farther apart than their bound"):
        check(phi, climb(phi, lambda b: b, rows_of(plan, 60, seed=1)))


def test_a_row_that_is_too_long_is_clipped_to_what_was_priced(installed: Path) -> None:
    from dpmerf_cosines.query import CosineMap

    from dpmerf.features.algebra import of

    class TooLong(Dense):
        name, dim = "long", 16

        def __call__(self, numbers: torch.Tensor) -> torch.Tensor:
            return 3 * CosineMap(2, 8)(numbers[:, :2])

    check(of(TooLong()), rows_of(_plan(), 30, seed=1))  # contributions are clipped in integers, row by row


def test_it_is_used_from_the_shell_to_the_end(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(MIXED)
    table = mixed_rows(4_000)
    texts = {name: [str(v) if v is not None else "" for v in table[name].to_pylist()] for name in table.column_names}
    wide = {name: max(12, *(len(v) for v in values)) + 1 for name, values in texts.items()}
    lines = ["".join(n.ljust(wide[n]) for n in texts)]
    lines += ["".join(texts[n][i].ljust(wide[n]) for n in texts) for i in range(table.num_rows)]
    (tmp_path / "visits.fwf").write_text("\n".join(lines) + "\n")
    made = command(
        "synth", "visits.fwf", "--schema", "schema.toml", "--method", "cosines", "--epsilon", 2, "--delta", 1e-5,
        "--ledger", "l.ledger", "-o", "out", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert command("verify", "out/release", "-q", cwd=tmp_path).returncode == 0
    model = dpmerf.Model.load(tmp_path / "out" / "model")
    assert "generator=cosine-series" in repr(model)
    rows = model.sample(4_000)
    real, drawn = (np.mean(t["age"].to_numpy()) for t in (table, rows))
    assert abs(real - drawn) < 5  # of 100 years
    wards = [np.mean(np.asarray(t["ward"].to_pylist()) == "a") for t in (table, rows)]
    assert abs(wards[0] - wards[1]) < 0.05
    assert set(model.sample(50, given={"ward": "c"})["ward"].to_pylist()) == {"c"}
    assert isinstance(rows, pa.Table) and rows.num_rows == 4_000


def test_without_it_a_plan_and_a_release_say_what_to_install(installed: Path, tmp_path: Path, monkeypatch: Any) -> None:
    plan = _plan()
    plan.save(tmp_path / "plan.json")
    dpmerf.release(mixed_rows(500), plan).save(tmp_path / "release")
    monkeypatch.setattr(plugins, "offered", lambda group: {})
    with pytest.raises(ArtefactError, match="the plugin 'cosines', which is not installed"):
        Plan.load(tmp_path / "plan.json")
    with pytest.raises(ArtefactError, match="the plugin 'cosines', which is not installed"):
        dpmerf.Release.load(tmp_path / "release")
    with pytest.raises(PlanError, match="there is no method 'cosines'"):
        _plan()


def test_two_packages_with_one_name_are_refused(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    twice = [EntryPoint("x", f"package{i}:thing", "dpmerf.queries") for i in range(2)]
    monkeypatch.setattr(plugins, "entry_points", lambda group: twice)
    plugins.offered.cache_clear()
    with pytest.raises(PlanError, match="two packages offer 'x'"):
        plugins.offered("queries")


def test_a_kind_that_is_no_query_is_refused(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan()
    plan.save(tmp_path / "plan.json")
    monkeypatch.setattr(plugins, "load", lambda group, name: dict)
    with pytest.raises(ArtefactError, match="is no query"):
        Plan.load(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["plan"]["stages"][0]["recipe"]["kind"] == "cosines"
    assert Stage("cosines", 1.0, plan.stages[0].query) == plan.stages[0]
