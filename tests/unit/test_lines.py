"""CSV: the fast and the careful reader agree on every byte, and no cell can change how another row is read."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpmerf.sources import csv_records as lines
from dpmerf.sources.csv_records import Records


def _read(raw: bytes) -> list[tuple[str | None, ...]]:
    records = Records(io.BytesIO(raw), ",")
    batches = records.columns(list(range(len(records.header))))
    tables = [pa.table({str(i): column for i, column in enumerate(batch)}) for batch in batches]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def _defined(raw: bytes) -> list[tuple[str | None, ...]]:
    """What the csv module says."""
    reader = csv.reader(io.StringIO(raw.decode("utf-8", "replace"), newline=""))
    width = len(next(reader))
    found = []
    for record in reader:
        if record or width == 1:
            found.append(tuple((cell or None) for cell in (record + [""] * width)[:width]))
    return found


CELLS = st.one_of(
    st.sampled_from(["", "1", "-2.5", "a b", " ", "é", "\N{PILE OF POO}", '"x"', '"a,b"', '""', '"', 'a"b', '"a""b"']),
    st.sampled_from(['"two\nlines"', "\r", "a\rb", "\0", "NA", "null", "'", "\\", '"a"b', "\ufeff"]),
    st.text(alphabet='ab,"\n\r é', max_size=6),
)
BODIES = st.lists(st.lists(CELLS, min_size=0, max_size=4).map(",".join), max_size=30)


@given(BODIES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 40))
@example(["1,2,3", "1,2", "1,2,3,4", "", '"a",b,"c,d"', "x,y,z"], "\n", True, 5)
@settings(max_examples=400, deadline=None)
def test_both_readers_agree(body: list[str], end: str, last: bool, block: int) -> None:
    raw = (end.join(["a,b,c", *body]) + (end if last else "")).encode("utf-8", "surrogatepass")
    first, size = lines.FIRST, lines.BLOCK
    try:
        lines.FIRST, lines.BLOCK = 6, block  # many blocks, cut anywhere
        assert sorted(_read(raw), key=str) == sorted(_defined(raw), key=str)
    finally:
        lines.FIRST, lines.BLOCK = first, size


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_rows(raw: bytes) -> None:
    raw = b"a,b\n" + raw.replace(b'"', b"")
    first = lines.FIRST
    try:
        lines.FIRST = 4
        assert sorted(_read(raw), key=str) == sorted(_defined(raw), key=str)
    finally:
        lines.FIRST = first


@pytest.mark.parametrize("plain", [True, False])
def test_a_huge_cell_is_a_cell(plain: bool) -> None:
    huge = "x" * 10_000_000
    body = [f"{huge},1", "2,3"] if plain else [f'"{huge}""",1', "2,3"]
    raw = ("a,b\n" + "\n".join(body * 2) + "\n").encode()
    assert [len(row[0] or "") for row in _read(raw)] == [10_000_000 + (not plain), 1] * 2


def test_plain_blocks_take_the_fast_way() -> None:
    found = lines._fast(b'1,"a,b"\n2,c\n3\n', ",", 2, [1, 0])
    assert found is not None
    assert [column.to_pylist() for column in found] == [["a,b", "c", None], ["1", "2", "3"]]
    assert lines._fast(b'1,"a""b"\n', ",", 2, [1]) is None
    assert lines._fast(b'1,"a\nb"\n', ",", 2, [1]) is None
    assert lines._fast(b"1,\xff\n", ",", 2, [1]) is None
