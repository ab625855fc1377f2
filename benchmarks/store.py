"""Store: results as one small JSON file per cell, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, final

RESULTS = Path(__file__).parent / "results"
Json = dict[str, Any]


@final
@dataclass(frozen=True)
class Store:
    """A folder of cells. A key is a path without its ending, for example `table1/honest/adult/default/1`."""

    folder: Path = RESULTS
    redo: bool = False

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def read(self, key: str) -> Json | None:
        """A cell's result, or None if it is not there."""
        path = self.path(key)
        return json.loads(path.read_text(encoding="utf-8"))["result"] if path.exists() else None

    def cell(self, key: str, make: Callable[[], Json]) -> Json:
        """The stored result, or a new one. A failure is stored too, as {"error": …}, and tried again next time."""
        known = self.read(key)
        if known is not None and not self.redo and "error" not in known:
            return known
        print(f"{datetime.now(UTC):%H:%M:%S} {key} …", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            result = make()
        except Exception as problem:
            result = {"error": f"{type(problem).__name__}: {str(problem)[-2000:]}"}
        self.write(key, result, time.monotonic() - start)
        note = f"failed: {result['error'][-300:]}" if "error" in result else f"{time.monotonic() - start:.0f} s"
        print(f"{datetime.now(UTC):%H:%M:%S} {key}: {note}", file=sys.stderr, flush=True)
        return result

    def write(self, key: str, result: Json, seconds: float = 0.0) -> None:
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"cell": key, "made_with": version(), "seconds": round(seconds, 1), "result": result}
        temporary = path.with_suffix(".part")
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(temporary, path)

    def cells(self, prefix: str) -> Iterator[tuple[tuple[str, ...], Json]]:
        """(parts of the key after the prefix, result) of every finished cell below the prefix."""
        root = self.folder / prefix
        for path in sorted(root.rglob("*.json")):
            parts = path.relative_to(root).with_suffix("").parts
            yield parts, json.loads(path.read_text(encoding="utf-8"))["result"]


@cache
def version() -> str:
    """The package's version and the commit that it was run from."""
    import dpmerf

    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=RESULTS.parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return f"dpmerf {dpmerf.__version__}"
    return f"dpmerf {dpmerf.__version__} ({done.stdout.strip()})"
