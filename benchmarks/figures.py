"""Figures: small SVG files beside the JSON they come from, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.store import Store

STRONG, MUTED, THIRD = "#0b6e4f", "#8a8a8a", "#c8553d"


@contextmanager
def figure(store: Store, name: str, width: float, height: float, **grid: Any) -> Iterator[tuple[str, Any]]:
    """(the path that a page writes, the axes); the file appears when the block ends.

    Saved without a date and with a fixed salt for its ids: a page that is regenerated does not change.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(
        {"svg.hashsalt": "dpmerf", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        drawing, axes = plt.subplots(figsize=(width, height), **grid)
        try:
            yield f"results/{name}", axes
            path = store.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            drawing.tight_layout()
            drawing.savefig(path, metadata={"Date": None}, dpi=110)
        finally:
            plt.close(drawing)
