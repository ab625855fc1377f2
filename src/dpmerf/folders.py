"""Folders: artefacts are written in one step, and read with limits. What is not whole is refused."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmerf.errors import ArtefactError

MAX_BYTES = 2**32


def write_folder(path: str | Path, files: dict[str, bytes]) -> None:
    """Write files into a new or an empty folder: all of them, or none.

    A new folder is made beside its place and then renamed. An empty one that is there already (the working folder, a
    mount point, the target of a link) cannot be replaced: it is filled, and the first of the files, without which the
    others mean nothing, gets its name last.
    """
    target = check_writable(path)
    try:
        if target.exists():
            _fill(target, files)
            return
        with tempfile.TemporaryDirectory(prefix=".dpmerf-", dir=target.parent) as temporary:
            whole = Path(temporary) / "whole"
            whole.mkdir()
            for name, data in files.items():
                (whole / name).parent.mkdir(exist_ok=True)
                _write_through(whole / name, data)
            os.replace(whole, target)
    except OSError as problem:
        raise ArtefactError(f"cannot write {target}: {problem.strerror or 'the disk refused'}") from None


def _fill(target: Path, files: dict[str, bytes]) -> None:
    done: list[Path] = []
    try:
        for name, data in files.items():
            (target / name).parent.mkdir(exist_ok=True)
            done.append(_unfinished(target / name))
            _write_through(done[-1], data)
        for name in reversed(files):
            os.replace(_unfinished(target / name), target / name)
            done.append(target / name)
    except OSError:
        for made in done:
            made.unlink(missing_ok=True)
        raise


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _write_through(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def check_writable(path: str | Path, size: int = 0) -> Path:
    """The target folder, known to be free and writable, with room for `size` bytes: asked before any budget is spent.

    It is tried out, with a file of that size and a rename, and taken back.
    """
    target = Path(path)
    try:
        if target.is_symlink() and not target.exists():
            raise ArtefactError(f"{target} is a link to nothing. Choose another place, or remove it first")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ArtefactError(f"{target} exists already. Choose another place, or remove it first")
        there = target.exists()
        if not there:
            target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".dpmerf-", dir=target if there else target.parent) as temporary:
            if size:
                with open(Path(temporary) / "room", "wb") as file:
                    os.posix_fallocate(file.fileno(), 0, size)
            if not there:
                trial = Path(temporary) / "trial"
                trial.mkdir()
                os.replace(trial, target)
                target.rmdir()
    except OSError as problem:
        raise ArtefactError(f"cannot write {target}: {problem.strerror or 'the disk refused'}") from None
    return target


def keep(save: Callable[[Path], None], path: Path) -> None:
    """Save what has been paid for. Where its place fails all the same, save it elsewhere and say where."""
    try:
        save(path)
        return
    except (ArtefactError, MemoryError) as problem:
        said = str(problem) or f"cannot write {path}: out of memory"
    for place in (path.parent, Path.cwd(), Path.home(), Path(tempfile.gettempdir())):
        other = place / f"{path.name or 'release'}-rescued-{os.getpid()}"
        try:
            save(other)
        except (ArtefactError, MemoryError):
            continue
        raise ArtefactError(f"{said}. What was made is not lost: it is in {other.resolve()}")
    raise ArtefactError(f"{said}. Nor could it be saved anywhere else: the budget is spent and the release is lost")


def read_bytes(path: Path, kind: str) -> bytes:
    """A file of an artefact, or ArtefactError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ArtefactError(f"{path} is larger than any {kind} this program writes")
        return path.read_bytes()
    except OSError as problem:
        raise ArtefactError(f"cannot read {path}: {problem.strerror}. Is {path.parent} a {kind}?") from None


def read_json(path: Path, kind: str) -> dict[str, Any]:
    """A JSON document of an artefact, or ArtefactError."""
    try:
        document = json.loads(read_bytes(path, kind).decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ArtefactError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(document, dict):
        raise ArtefactError(f"{path} is damaged: it is not a {kind}")
    return document


def _no_constant(name: str) -> Callable[..., Any]:
    raise ValueError(f"{name} is not JSON")
