"""Spill: rows parted by person, in memory while they are few, else in files that only this process's user can read.

Every person's rows lie in one part, whatever their order and number; memory holds one part at a time. The folder is
removed when the release ends, also when it fails.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import final

import numpy as np

from dpmerf.errors import DataError

PARTS = 256  # by the first byte of a person's name, which is a keyed digest
HELD_BYTES = 2**26  # of rows, over all parts, before they are written out


@final
class Parted:
    """Rows of one table: (n, 2) names of persons and (n, width) numbers, by part."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows = np.zeros(PARTS, np.int64)
        self._held: list[list[np.ndarray]] = [[] for _ in range(PARTS)]
        self._bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Parted:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, high: np.ndarray, low: np.ndarray, numbers: np.ndarray) -> None:
        """Rows of persons (high, low), 64 bits each."""
        words = np.concatenate([np.stack([high, low], axis=1), np.ascontiguousarray(numbers).view(np.uint64)], axis=1)
        part = (high >> np.uint64(56)).astype(np.int64)
        order = np.argsort(part, kind="stable")
        sizes = np.bincount(part, minlength=PARTS)
        self.rows += sizes
        for i, own in enumerate(np.split(words[order], np.cumsum(sizes)[:-1])):
            if len(own):
                self._held[i].append(own)
        self._bytes += words.nbytes
        if self._bytes > HELD_BYTES:
            self._write()

    def part(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Names (high, low) and numbers of the rows of one part, in no particular order."""
        found = list(self._held[i])
        if self._folder is not None and (path := self._path(i)).exists():
            found.append(np.fromfile(path, np.uint64).reshape(-1, 2 + self.width))
        words = np.concatenate(found) if found else np.empty((0, 2 + self.width), np.uint64)
        return words[:, 0], words[:, 1], np.ascontiguousarray(words[:, 2:]).view(np.float64)

    def _write(self) -> None:
        try:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="dpmerf-")  # readable by its owner alone
            for i, held in enumerate(self._held):
                if held:
                    with self._path(i).open("ab") as file:
                        np.concatenate(held).tofile(file)
        except OSError as problem:
            raise DataError(
                f"cannot write the rows, parted by person, to {tempfile.gettempdir()}: {problem.strerror}. "
                "Name a folder with room in TMPDIR"
            ) from None
        self._held = [[] for _ in range(PARTS)]
        self._bytes = 0

    def _path(self, i: int) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / f"{i}.rows"
