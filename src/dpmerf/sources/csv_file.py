"""CSV files. Delimiter and encoding are declared, or guessed from the header line alone and said aloud."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, final

import pyarrow as pa

from dpmerf.errors import DataError
from dpmerf.schema.notation import Reading
from dpmerf.sources.csv_records import BLOCK, Records, long_fields
from dpmerf.sources.object_store import FilePath
from dpmerf.sources.table import Rows, changed, check_same, distinct, readable, seen

LONGEST_HEADER = 2**20  # bytes
_CANDIDATES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"}
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@final
class Csv(Rows):
    """One CSV file, plain, gzip or zstd. Every cell is read as text and every record is one row: a short record is
    filled with empty cells and a long one cut, so that no cell can change how another row is read. A quotation mark
    that is opened and never closed swallows the lines after it: that is a damaged file, not a cell."""

    def __init__(self, path: FilePath, reading: Reading | None = None) -> None:
        self._path, self.name = path, path.name
        self._seen = seen(path)
        told = reading or Reading()
        with readable(path, "CSV"), ExitStack() as stack:
            line = first_line(opened(path, stack), path)
        self._encoding = told.encoding or self._guess_encoding(line)
        header = line.decode(self._encoding, "replace").lstrip("\ufeff")
        if "\0" in header:
            raise DataError(f"{path} is not a CSV: its header line holds zero bytes")
        self._delimiter = told.delimiter or self._guess_delimiter(header)
        self._check_single(header)
        with self._open() as records:
            self._header = records.header

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        return dict.fromkeys(self._header)

    @property
    def stored_count(self) -> int | None:
        return None

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        check_same(self._path, self._seen)
        places = [self._header.index(name) for name in columns]
        with self._open() as records:
            if records.header != self._header:
                raise changed(self._path)
            for arrays in records.columns(places):
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    @contextmanager
    def _open(self) -> Iterator[Records]:
        with readable(self._path, "CSV"), ExitStack() as stack:
            stream = opened(self._path, stack)
            if codecs.lookup(self._encoding).name not in ("utf-8", "ascii"):
                stream = Recoded(stream, self._encoding)
            records = Records(stream, self._delimiter)
            if not records.header:
                raise DataError(f"{self._path} is empty: it has no header line")
            records.header = [name.removeprefix("\ufeff") for name in records.header]
            distinct(records.header, str(self._path))
            yield records

    def _guess_encoding(self, line: bytes) -> str:
        """By a byte order mark, or by whether the header is UTF-8: no other line is looked at."""
        for mark, name in _MARKS.items():
            if line.startswith(mark):
                return name
        try:
            line.decode("utf-8")
            return "utf-8"
        except UnicodeDecodeError:
            pass
        found = "cp1252"
        try:  # Japanese: two bytes a sign, and its signs lie in blocks of their own
            text = line.decode("cp932")
            if any("\u3040" <= c <= "\u30ff" or "\u4e00" <= c <= "\u9fff" for c in text):
                found = "cp932"
        except UnicodeDecodeError:
            pass
        _note(f"the header of {self.name} is not UTF-8: the file is read as {found}. Declare it: encoding = '{found}'")
        return found

    def _guess_delimiter(self, header: str) -> str:
        """The mark that splits the header most often, outside of quotation marks; a draw must be declared."""
        usual = "\t" if ".tsv" in self.name.lower() else ","
        counts = {mark: len(_split(header, mark)) - 1 for mark in _CANDIDATES}
        most = max(counts.values())
        best = [mark for mark, count in counts.items() if count == most]
        if most == 0 or best == [usual]:
            return usual
        if len(best) > 1:
            names = " or ".join(_CANDIDATES[mark] for mark in best)
            raise DataError(f"the header of {self._path} can be split at {names}: declare one, as in delimiter = ';'")
        _note(f"the header of {self.name} is split at {_CANDIDATES[best[0]]}. Declare it: delimiter = {best[0]!r}")
        return best[0]

    def _check_single(self, header: str) -> None:
        """A header that is one column as declared, and several otherwise, was declared wrongly."""
        if len(_split(header, self._delimiter)) > 1:
            return
        for mark, name in _CANDIDATES.items():
            if len(_split(header, mark)) > 1:
                raise DataError(
                    f"{self._path} would be a single column: its header has {name}, and the delimiter is declared as "
                    f"{self._delimiter!r}. Declare delimiter = {mark!r}, or put the name in quotation marks"
                )


@final
class Recoded(io.RawIOBase):
    """A byte stream of another encoding as UTF-8; what cannot be decoded is replaced, cell by cell."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder(encoding)("replace")
        self._left = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes of UTF-8; all of it if negative."""
        while not self._ended and (size < 0 or len(self._left) < size):
            data = self._stream.read(BLOCK if size < 0 else size)
            self._ended = not data
            text = self._decode.decode(data, final=self._ended)
            self._left += text.encode("utf-8", "replace")
        cut = len(self._left) if size < 0 else size
        found, self._left = self._left[:cut], self._left[cut:]
        return found


def opened(path: FilePath, stack: ExitStack) -> Any:
    """The file's bytes, unpacked by its last ending."""
    file = stack.enter_context(path.open("rb"))
    if path.suffix.lower() == ".gz":
        return stack.enter_context(gzip.open(file, "rb"))
    if path.suffix.lower() == ".zst":
        return stack.enter_context(pa.CompressedInputStream(pa.PythonFile(file), "zstd"))
    return file


def first_line(stream: BinaryIO, path: FilePath) -> bytes:
    """The header's bytes: to the first line break outside of quotation marks."""
    line = b""
    while len(line) < LONGEST_HEADER:
        more = stream.read(4096)
        line += more
        if not more:
            break
        wide = 2 if line[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else 1
        at = line.find(b"\n")
        while at >= 0 and line.count(b'"', 0, at) % 2:
            at = line.find(b"\n", at + 1)
        if at >= 0:
            return line[: at + wide - at % wide] if wide == 2 else line[:at]
    if not line.strip():
        raise DataError(f"{path} is empty: it has no header line")
    if len(line) >= LONGEST_HEADER and b"\r" not in line:
        raise DataError(f"the first line of {path} does not end within a megabyte: it is no header")
    return line


def _split(header: str, mark: str) -> list[str]:
    with long_fields():  # a wide header is one long name where it is split at another mark
        return next(csv.reader(io.StringIO(header, newline=""), delimiter=mark), [])


def _note(words: str) -> None:
    warnings.warn(words, stacklevel=2)
