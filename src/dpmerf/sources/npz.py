"""Npz: arrays of an .npz file, header first, then part by part in constant memory. Pickle is never read."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, final

import numpy as np

from dpmerf.errors import DataError

MOST_WHOLE = 2**29  # bytes of an array that must be read whole, since it is stored last axis first


@final
@dataclass(frozen=True)
class Header:
    """What the file states of an array before its values begin."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool

    @property
    def size(self) -> int:
        """Bytes of its values."""
        return math.prod(self.shape) * self.dtype.itemsize


@final
class Npz:
    """One file. Only the arrays that are asked for are opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def header(self, *names: str) -> Header | None:
        """The header of the first of these arrays that the file has."""
        with self._readable(), zipfile.ZipFile(self.path) as archive:
            name = next((n for n in names if f"{n}.npy" in archive.namelist()), None)
            if name is None:
                return None
            with archive.open(f"{name}.npy") as file:
                header = self._header(name, file)
                self._check(header, archive.getinfo(f"{name}.npy").file_size - file.tell())
                return header

    def parts(self, header: Header, step: int) -> Iterator[np.ndarray]:
        """The array's values, `step` entries of its first axis at a time."""
        with self._readable(), zipfile.ZipFile(self.path) as archive, archive.open(f"{header.name}.npy") as file:
            if self._header(header.name, file) != header:
                raise DataError(f"{self.path} changed while it was read")
            rest, n = header.shape[1:], header.shape[0]
            if header.fortran and rest:  # stored last axis first: cannot be cut along the first
                values = np.frombuffer(file.read(header.size), header.dtype)
                whole = values.reshape(header.shape, order="F")
                yield from (whole[i : i + step] for i in range(0, n, step))
                return
            size = int(np.prod(rest, dtype=np.int64))
            for start in range(0, n, step):
                count = min(step, n - start)
                data = file.read(count * size * header.dtype.itemsize)
                yield np.frombuffer(data, header.dtype, count * size).reshape(count, *rest)

    def _header(self, name: str, file: IO[bytes]) -> Header:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise ValueError("unknown version")
        try:
            shape, fortran, dtype = readers[version](file)
        except Exception:  # it is parsed as Python's literals, with all the errors of a parser
            raise ValueError("not a header") from None
        if dtype.hasobject:
            raise DataError(
                f"{self.path}: the array '{name}' holds Python objects, which are never read. "
                "Save one array of numbers: all images of one size"
            )
        return Header(name, shape, dtype, fortran)

    def _check(self, header: Header, stored: int) -> None:
        """What the shape states is there, and no more than a machine can hold is read at once."""
        if not header.shape or min(header.shape) < 0 or header.size != stored:
            raise DataError(f"{self.path}: the array '{header.name}' is not as large as its header says: it is damaged")
        if header.fortran and header.shape[1:] and header.size > MOST_WHOLE:
            raise DataError(
                f"{self.path}: the array '{header.name}' is stored last axis first (Fortran order) and too large to be "
                "turned in memory. Save np.ascontiguousarray of it"
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise DataError(f"there is no file {self.path}") from None
        except PermissionError:
            raise DataError(f"the file {self.path} may not be read: check its permissions") from None
        except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error):
            raise DataError(f"{self.path} is damaged or not an .npz file") from None
