"""What the plugin reads: text files with columns of fixed width, as old registers keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmerf.sources.table import BATCH, Rows, distinct


class FixedWidth(Rows):
    """The first line names the columns; each begins where its name begins. No cell can raise an error."""

    def __init__(self, path: Path, reading: Any) -> None:
        self._path, self.name = path, path.name
        with path.open(encoding="utf-8", errors="replace") as file:
            header = file.readline().rstrip("\n")
        starts = [match.start() for match in re.finditer(r"\S+", header)]
        self._spans = {header[a:b].strip(): (a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)}
        distinct(header.split(), path.name)

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return {name: None for name in self._spans}

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        with self._path.open(encoding="utf-8", errors="replace") as file:
            next(file)
            while lines := [line.rstrip("\n") for _, line in zip(range(BATCH), file, strict=False)]:
                cells = {n: [line[slice(*self._spans[n])].strip() or None for line in lines] for n in columns}
                yield pa.RecordBatch.from_pydict({n: pa.array(c, pa.string()) for n, c in cells.items()})
