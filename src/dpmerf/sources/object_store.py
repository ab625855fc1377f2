"""Object stores: a file that lies elsewhere (`s3://`, `gs://`, `abfs://`, …), by Arrow's file systems or by fsspec.

Arrow's own come first; what it does not know, or was built without, is left to fsspec where it is installed. Keys come
from the environment, as the store's own tools take them, or stand in the address; an address is never shown whole.
"""

from __future__ import annotations

import io
import os
import re
import urllib.parse
import urllib.request
from pathlib import Path, PurePosixPath
from typing import Any, final

import pyarrow as pa
from pyarrow import fs

from dpmerf.errors import DataError

_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_OF_ARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_EXTRA = 'pip install "dpmerf[stores]", and the package that fsspec names for this kind of store'


def is_address(source: str) -> bool:
    """Does a text name a place in a store, rather than a path?

    >>> is_address("s3://bucket/visits.csv"), is_address("visits.csv"), is_address("C:/visits.csv")
    (True, False, False)
    """
    return bool(_ADDRESS.match(source))


def shown_address(address: str) -> str:
    """An address as it may be shown: without keys, passwords and tokens.

    >>> shown_address("s3://KEY:secret@bucket/visits.csv?endpoint_override=host")
    's3://bucket/visits.csv'
    >>> shown_address("abfs://container:secret@account.dfs.core.windows.net/visits.csv?sig=secret")
    'abfs://container@account.dfs.core.windows.net/visits.csv'
    """
    parts = urllib.parse.urlsplit(address)
    user, _, place = parts.netloc.rpartition("@")
    holder = user.partition(":")[0]  # of Azure, where the container stands before the account
    kept = f"{holder}@" if holder and parts.scheme.lower() in ("abfs", "abfss") else ""
    return f"{parts.scheme}://{kept}{place}{parts.path}"


@final
class StoredFile:
    """A file of a store, in as much of the manner of a `Path` as readers of tables need."""

    def __init__(self, system: fs.FileSystem, path: str, shown: str) -> None:
        self._system, self._path, self._shown = system, path, shown
        self.name = PurePosixPath(path).name
        self.suffix = PurePosixPath(path).suffix

    def __str__(self) -> str:
        return self._shown

    def arrow(self) -> pa.NativeFile:
        """Its bytes, for Arrow's readers."""
        return self._system.open_input_file(self._path)

    def open(self, mode: str = "rb") -> io.BufferedReader:
        """Its bytes, for Python's readers."""
        return io.BufferedReader(self.arrow())

    def seen(self) -> tuple[int, int, int]:
        """What the store says of it: another length or another time is another table."""
        said = self._system.get_file_info(self._path)
        if said.type != fs.FileType.File:
            raise FileNotFoundError(self._shown)
        return 0, said.size or 0, said.mtime_ns or 0


FilePath = Path | StoredFile


def arrow_file(path: FilePath) -> pa.NativeFile:
    """A file's bytes for Arrow's readers, wherever it lies."""
    return pa.OSFile(str(path)) if isinstance(path, Path) else path.arrow()


def stored(address: str) -> Path | StoredFile | list[StoredFile]:
    """The file that an address names, or the files of the folder it names, in the order of their names."""
    shown = shown_address(address)
    if address.lower().startswith("file://"):
        parts = urllib.parse.urlsplit(address)
        if parts.netloc not in ("", "localhost"):
            raise DataError(f"{shown}: a file:// address has three slashes, as in file:///data/visits.csv")
        return Path(urllib.request.url2pathname(parts.path))
    try:
        system, path = _system(address, shown)
        said = system.get_file_info(path)
        if said.type == fs.FileType.File:
            return StoredFile(system, path, shown)
        if said.type == fs.FileType.Directory:
            found = system.get_file_info(fs.FileSelector(path))
            files = sorted((f for f in found if f.type == fs.FileType.File), key=lambda f: f.base_name)
            return [StoredFile(system, f.path, f"{shown.rstrip('/')}/{f.base_name}") for f in files]
    except DataError:
        raise
    except Exception as problem:  # a store's own words may quote the address with its keys
        raise DataError(
            f"{shown}: the store could not be asked ({type(problem).__name__}). Check the address, the region and the "
            "keys, which the store's own environment variables give; its own words may quote keys and are not shown"
        ) from None
    raise DataError(f"there is no file {shown}")


def _system(address: str, shown: str) -> tuple[fs.FileSystem, str]:
    if address.partition("://")[0].lower() in _OF_ARROW:
        try:
            return fs.FileSystem.from_uri(address)  # type: ignore[no-any-return]
        except (pa.ArrowNotImplementedError, ImportError):
            pass  # Arrow was built without it
    return _by_fsspec(address, shown)


def _by_fsspec(address: str, shown: str) -> tuple[fs.FileSystem, str]:
    kind = shown.partition("://")[0]
    try:
        import fsspec
    except ImportError:
        raise DataError(f"{shown}: Arrow does not read {kind}:// here. {_EXTRA}") from None
    handler: Any
    try:
        handler, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError):
        raise DataError(
            f"{shown}: neither Arrow nor fsspec reads {kind}:// here. Use s3://, gs://, abfs:// or file://, or {_EXTRA}"
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(handler)), os.fspath(path)
