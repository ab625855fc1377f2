"""The notebooks in examples/ run from top to bottom in a real kernel, with progress and rich output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
BOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("notebooks")]


def _outputs(book: Any, kind: str) -> str:
    found = [o["data"] for cell in book.cells if cell.cell_type == "code" for o in cell.outputs if "data" in o]
    return "\n".join("".join(data.get(kind, "")) for data in found)


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in BOOKS])
def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(__file__).parents[2] / "src"
    monkeypatch.setenv("PYTHONPATH", f"{source}:{os.environ.get('PYTHONPATH', '')}")
    book = nbformat.read(path, as_version=4)
    assert not [cell for cell in book.cells if cell.get("outputs")], "notebooks are kept without their outputs"
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = _outputs(book, "text/html")
    if path.stem == "own_table":
        for name in ("Schema", "Plan", "Release", "Report"):
            assert f"<b>{name}</b>" in shown, name
        assert "<small>training" in shown and "reading" in shown  # the bars' last words
        assert (tmp_path / "report.html").exists()


def test_there_is_a_notebook_a_capability() -> None:
    told = {"own_table", "answers", "estimator", "relations", "verify", "histories", "copies", "discover", "images"}
    assert told | {"signing", "resume", "metadata"} <= {path.stem for path in BOOKS}
