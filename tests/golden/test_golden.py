"""Golden files: with fixed noise, every method × unit × kind of table gives the bits it gave before.

A move of code keeps them. A change on purpose is a commit of its own that says why, and was made by
`DPMERF_GOLDEN=write python -m pytest tests/golden`, which writes golden.json anew. Sums are whole numbers and compared
everywhere; models and rows are floating point and compared where the machine computes like the one that wrote the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import dpmerf
from conftest import MIXED, mixed_rows
from dpmerf.private.measure import measure
from fixed_noise import FixedNoise

FILE = Path(__file__).with_name("golden.json")
ROWS, PERSONS = 600, 200  # three rows a person, all kept: which ones a tighter cap keeps is a secret of each run


def mixed(n: int) -> pa.Table:
    table = mixed_rows(n, seed=5)
    return table.set_column(0, "key", pa.array(np.arange(n) % PERSONS))


def wide(n: int) -> tuple[str, pa.Table]:
    rng = np.random.default_rng(3)
    common = rng.normal(size=(n, 1))
    values = np.clip(0.5 + 0.15 * (common + rng.normal(size=(n, 70))), 0, 1)
    columns = {f"v{i}": values[:, i] for i in range(70)} | {"y": common[:, 0] > 0.3}
    text = "".join(f'[columns.v{i}]\nkind = "number"\nmin = 0\nmax = 1\n' for i in range(70))
    return 'label = "y"\n' + text + '[columns.y]\nkind = "flag"\n', pa.table(columns)


def few(n: int) -> tuple[str, pa.Table]:
    rng = np.random.default_rng(4)
    y = rng.random(n) < 0.3
    columns = {f"c{i}": np.where(rng.random(n) < 0.2, y, rng.random(n) < 0.5) for i in range(30)}
    columns["c7"] = np.where(rng.random(n) < 0.9, y, ~y)
    text = "".join(f'[columns.c{i}]\nkind = "flag"\n' for i in range(30))
    return 'label = "y"\n' + text + '[columns.y]\nkind = "flag"\n', pa.table(columns | {"y": y})


def pictures(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, n)
    x = (rng.random((n, 8, 8)) * 120 + np.where(y[:, None, None] == 1, np.eye(8) * 130, 0)).astype(np.uint8)
    return x, y


def table_case(unit: str, neighbours: str, preset: str, label: str | None, n: int = ROWS) -> Callable[[], Any]:
    return lambda: _table(dpmerf.Schema.parse(MIXED).with_label(label), mixed(n), unit, neighbours, preset, n)


def _table(schema: Any, table: pa.Table, unit: str, neighbours: str, preset: str, n: int) -> tuple[Any, Any, Any]:
    protected = dpmerf.Unit.parse(unit, neighbours)
    plan = dpmerf.make_plan(schema, 1.0, 1e-5, rows=n, unit=protected, preset=preset)
    release = measure(table, plan, noise=FixedNoise(1))
    # some methods fit in closed form and have no steps
    model = dpmerf.train(release, seed=7) if "v0" in schema.columns else dpmerf.train(release, seed=7, steps=40)
    return release, model, model.sample(1_000, seed=9)


def _of(made: tuple[str, pa.Table], n: int) -> tuple[Any, Any, Any]:
    return _table(dpmerf.Schema.parse(made[0]), made[1], "row", "replace", "default", n)


def _images(preset: str) -> tuple[Any, Any, Any]:
    text = (
        'label = "y"\n[columns.x]\nkind = "image"\nheight = 8\nwidth = 8\n[columns.y]\nkind = "category"\n'
        "values = [0, 1]\n"
    )
    x, y = pictures(300)
    table = pa.table({"x": pa.array([p.tobytes() for p in x], pa.binary()), "y": y})
    plan = dpmerf.make_plan(dpmerf.Schema.parse(text), 1.0, 1e-5, rows=300, preset=preset)
    release = measure(table, plan, noise=FixedNoise(1))
    model = dpmerf.train(release, seed=7, steps=5)
    return release, model, model.sample(200, seed=9)


CASES: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "tables, row, replace": table_case("row", "replace", "default", "ill", 20_000),
    "tables, row, add-remove": table_case("row", "add-remove", "default", "ill"),
    "tables, person, replace": table_case("person:key,3", "replace", "default", "ill"),
    "tables, person, add-remove": table_case("person:key,3", "add-remove", "default", "ill"),
    "tables, no label": table_case("row", "replace", "default", None),
    "tables, numeric label": table_case("row", "replace", "default", "age", 20_000),
    "paper, row": table_case("row", "replace", "paper", "ill"),
    "paper, person, add-remove": table_case("person:key,3", "add-remove", "paper", "ill"),
    "paper, no label": table_case("row", "replace", "paper", None),
    "wide": lambda: _of(wide(1_200), 1_200),
    "few rows": lambda: _of(few(700), 700),
    "images": lambda: _images("default"),
    "images, paper": lambda: _images("paper"),
}


def machine() -> str:
    """How this machine computes: floating-point kernels differ between processors and versions of PyTorch.

    Results of a few kernels are not enough: two processors that agreed on products had other convolutions.
    """
    rng = torch.Generator().manual_seed(0)
    a, b = torch.randn(300, 257, generator=rng), torch.randn(257, 311, generator=rng)
    conv = torch.nn.functional.conv2d(a[:, :256].reshape(75, 4, 16, 16), b[:100, :4].reshape(4, 4, 5, 5))
    seen = [a @ b, torch.special.erfinv(a * 0.1), conv, a.double().exp().log_softmax(1), (a @ b).double().sum(0)]
    kind = f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()} {_processor()}"
    return _hash([kind.encode(), *(x.numpy().tobytes() for x in seen)])


def _processor() -> str:
    """Model and flags of the processor where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor()
    return " ".join(line for line in lines if line.startswith(("vendor", "cpu family", "model", "stepping", "flags")))


def _hash(parts: list[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()[:16]


def hashes(case: str) -> dict[str, str]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        release, model, rows = CASES[case]()
    finally:
        torch.set_num_threads(before)
    state = model.generator.state().tensors
    return {
        "sums": _hash([b for name, t in release.sums.items() for b in (name.encode(), t.numpy().tobytes())]),
        "model": _hash([b for name in sorted(state) for b in (name.encode(), state[name].numpy().tobytes())]),
        "rows": _hash([json.dumps(rows.to_pylist(), default=str).encode()]),
    }


@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_the_same(case: str) -> None:
    golden = json.loads(FILE.read_text(encoding="utf-8"))
    found = hashes(case)
    if os.environ.get("DPMERF_GOLDEN") == "write":
        golden = {"machine": machine(), "cases": {**golden["cases"], case: found}}
        FILE.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")
    assert found["sums"] == golden["cases"][case]["sums"]
    if machine() != golden["machine"]:
        pytest.skip("sums agree; this machine computes floating point differently from the one that wrote the file")
    assert found == golden["cases"][case]
