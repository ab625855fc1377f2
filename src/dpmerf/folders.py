"""Folders: artefacts are written in one step, and read with limits. What is not whole is refused."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmerf.errors import ArtefactError

MAX_BYTES = 2**32


def write_folder(path: str | Path, files: dict[str, bytes]) -> None:
    """Write files into a new folder through a temporary one beside it."""
    target = check_writable(path)
    try:
        with tempfile.TemporaryDirectory(prefix=".dpmerf-", dir=target.parent) as temporary:
            whole = Path(temporary) / "whole"
            whole.mkdir()
            for name, data in files.items():
                with open(whole / name, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            if target.exists():
                shutil.rmtree(target)
            os.replace(whole, target)
    except OSError as problem:
        raise ArtefactError(f"cannot write {target}: {problem.strerror or 'the disk refused'}") from None


def check_writable(path: str | Path) -> Path:
    """The target folder, known to be free and writable: asked before any budget is spent."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArtefactError(f"{target} exists already. Choose another place, or remove it first")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as problem:
        raise ArtefactError(f"cannot write to {target.parent}: {problem.strerror}") from None
    return target


def read_bytes(path: Path, kind: str) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ArtefactError(f"{path} is larger than any {kind} this program writes")
        return path.read_bytes()
    except OSError as problem:
        raise ArtefactError(f"cannot read {path}: {problem.strerror}. Is {path.parent} a {kind}?") from None


def read_json(path: Path, kind: str) -> dict[str, Any]:
    try:
        document = json.loads(read_bytes(path, kind).decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ArtefactError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(document, dict):
        raise ArtefactError(f"{path} is damaged: it is not a {kind}")
    return document


def _no_constant(name: str) -> Callable[..., Any]:
    raise ValueError(f"{name} is not JSON")
