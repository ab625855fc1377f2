"""Lines: the records of a CSV stream as columns of text, fast where the text is plain and careful where it is not.

The csv module defines what a record is. A block of whole lines goes to Arrow's parser only if both must read it alike:
no quotation mark but around whole cells, no line break inside them, no stray carriage return, valid UTF-8. Lines with
too few or too many cells are handed back by Arrow and read by the csv module, one record each.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

FIRST, BLOCK = 2**16, 2**22  # bytes read at a time: few for the header, then many
RECORDS, CHARACTERS = 16_384, 64_000_000  # of one careful batch, whichever is reached first
LONGEST = 2**27  # bytes of one line, characters of one record
_QUOTE, _LINE, _MARK = 34, 10, b"\xef\xbb\xbf"


@final
class Records:
    """The header and then the wanted columns of a delimited byte stream."""

    def __init__(self, stream: BinaryIO, delimiter: str) -> None:
        self._blocks = _blocks(stream)
        self._lines = _Lines(self._blocks)
        self._delimiter = delimiter
        self._reader = csv.reader(self._lines, delimiter=delimiter)
        self.header: list[str] = self._next() or []

    def _next(self) -> list[str] | None:
        """The next record."""
        self._lines.start()
        with long_fields():
            return next(self._reader, None)

    def columns(self, places: list[int]) -> Iterator[list[pa.Array]]:
        """Batches of the cells at these places, as text; an empty or absent cell is null."""
        width = len(self.header)
        yield from self._careful(places)
        for block in self._blocks:
            found = _fast(block, self._delimiter, width, places) if width > 1 else None
            if found is not None:
                yield found
            else:
                self._lines.feed(block)
                yield from self._careful(places)

    def _careful(self, places: list[int]) -> Iterator[list[pa.Array]]:
        """Records that begin in the block at hand; the last may reach into the blocks after it."""
        records: list[list[str]] = []
        weight = 0
        while not self._lines.finished:
            record = self._next()
            if record is None:
                break
            if not record and len(self.header) > 1:
                continue  # an empty line; in a table of one column it is an empty cell
            records.append(record)
            weight += sum(map(len, record))
            if len(records) >= RECORDS or weight > CHARACTERS:
                yield _columns(records, places)
                records, weight = [], 0
        if records:
            yield _columns(records, places)


@final
class _Lines:
    """The lines of the block at hand, and of the next ones while a record goes on."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._text = io.StringIO()
        self._length = 0
        self._taken = 0  # characters of the record that is being read

    def start(self) -> None:
        self._taken = 0

    def feed(self, block: bytes) -> None:
        text = block.decode("utf-8", "replace")
        self._text, self._length = io.StringIO(text, newline=""), len(text)

    @property
    def finished(self) -> bool:
        return self._text.tell() >= self._length

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while self.finished:
            self.feed(next(self._blocks))
        line = self._text.readline()
        self._taken += len(line)
        if self._taken > LONGEST:
            raise csv.Error("a record without an end")
        return line


@contextmanager
def long_fields() -> Iterator[None]:
    """The csv module's limit belongs to the process: it is put back."""
    before = csv.field_size_limit(LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Blocks of whole lines; a line longer than a block makes the block longer, up to a limit.

    Lines end with a line feed; where a block has none, with a carriage return that is surely alone.
    """
    size, parts, length = FIRST, [b""], 0
    while data := stream.read(size):
        cut = data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, -1) + 1
        if cut:
            yield b"".join([*parts, data[:cut]])
            parts, length = [data[cut:]], len(data) - cut
        else:
            parts.append(data)
            length += len(data)
            if length > LONGEST:
                raise csv.Error("a line without an end")
        size = BLOCK
    if rest := b"".join(parts):
        yield rest


def _columns(records: list[list[str]], places: list[int]) -> list[pa.Array]:
    return [
        pa.array([(record[i] or None) if i < len(record) else None for record in records], pa.large_string())
        for i in places
    ]


def _fast(block: bytes, delimiter: str, width: int, places: list[int]) -> list[pa.Array] | None:
    """The block by Arrow's parser; None where only the csv module can tell what it says."""
    if not _is_plain(block, ord(delimiter)):
        return None
    odd: list[str] = []

    def keep(row: Any) -> str:
        odd.append(row.text)
        return "skip"

    names = [str(i) for i in range(width)]
    try:
        table = pc.read_csv(
            pa.BufferReader(block),
            pc.ReadOptions(column_names=names, block_size=max(len(block), 1), use_threads=False),
            pc.ParseOptions(delimiter=delimiter, quote_char='"', double_quote=False, invalid_row_handler=keep),
            pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.large_string()),
                include_columns=[str(i) for i in places],
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except pa.ArrowException:
        return None
    with long_fields():
        rest = _columns([record for record in csv.reader(odd, delimiter=delimiter) if record], places)
    return [pa.concat_arrays([*column.chunks, more]) for column, more in zip(table.columns, rest, strict=True)]


def _is_plain(block: bytes, delimiter: int) -> bool:
    """Does every parser read this block alike?"""
    if b"\0" in block or block.startswith(_MARK) or block.count(b"\r") != block.count(b"\r\n"):
        return False
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if b'"' not in block:
        return True
    data = np.frombuffer(block, np.uint8)
    marks = np.flatnonzero(data == _QUOTE)
    if len(marks) % 2:
        return False
    opens, closes = marks[::2], marks[1::2]
    before = data[opens - 1][opens > 0]
    after = data[np.minimum(closes + 1, len(data) - 1)][closes + 1 < len(data)]
    around = np.isin(before, (delimiter, _LINE)).all() and np.isin(after, (delimiter, _LINE, 13)).all()
    lines = np.flatnonzero(data == _LINE)
    return bool(around and (np.searchsorted(lines, opens) == np.searchsorted(lines, closes)).all())
