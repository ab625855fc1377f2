"""Bring: results of another folder into this one, for runs that were made in another clone or on another machine.

The folder may hold JSON lines, as here, or one JSON file a cell, as it was stored before.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.store import Json, Store


def lines(folder: Path) -> Iterator[Json]:
    """Every cell of a folder of results, in either form, without the results of --quick."""
    theirs = Store(folder)
    for experiment in theirs.experiments():
        yield from theirs.lines(experiment).values()
    for path in sorted(folder.rglob("*.json")):
        if path.relative_to(folder).parts[0] != "quick":
            yield json.loads(path.read_text(encoding="utf-8"))


def bring(folder: Path, store: Store, wants: Callable[[str], bool], replace: bool = False) -> list[str]:
    """Append the cells that are missing or failed here and, with `replace`, those that differ; the keys that came.

    A failure never takes the place of a result. Pictures (contact sheets) come by the same rule.
    """
    came = []
    for line in lines(folder):
        key, known = line["cell"], store.line(line["cell"])
        if not wants(f"/{key}/") or known == line or (known is not None and "error" in line["result"]):
            continue
        if known is None or "error" in known["result"] or replace:
            store.append(line)
            came.append(key)
    for path in sorted(folder.rglob("*.png")):
        inside = path.relative_to(folder)
        target = store.folder / inside
        if inside.parts[0] == "quick" or not wants(f"/{inside.as_posix()}/"):
            continue
        if not target.exists() or (replace and target.read_bytes() != path.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            came.append(inside.as_posix())
    for experiment in {key.split("/")[0] for key in came}:
        if store.path(experiment).exists():
            store.tidy(experiment)
    return came
