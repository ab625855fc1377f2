"""Whole files: a file appears under its name when it is complete, or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpmerf.errors import ArtefactError

_PART = re.compile(r"\.(\d+)\.part")


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A place beside `target` to write to, which becomes it at the end. Every process has its own."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    _sweep(target)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def check_free(path: Path | None, force: bool) -> None:
    """Refuse to write over a file that is there, unless that was asked for."""
    if path is not None and not force and os.path.isfile(path):
        raise ArtefactError(f"{path} exists already. Choose another name, or say --force to write over it")


def _sweep(target: Path) -> None:
    """Remove what processes that were killed left of this file."""
    for left in target.parent.glob(f".{_literal(target.name)}.*.part"):
        found = _PART.search(left.name)
        if found and not Path(f"/proc/{found[1]}").exists() and Path("/proc/self").exists():
            left.unlink(missing_ok=True)


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
