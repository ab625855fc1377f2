"""One cell, one row or one person is another: exit codes, words, file names and sizes are the same.

Every type × every reader × every unit of privacy. The quick run flips a row with all its cells at once; the full run
flips every cell by itself, under every kind of declared column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from PIL import Image

from dpmerf.schema import Schema
from dpmerf.sources.pictures import open_data
from dpmerf.sources.rows import open_rows
from privacy.flips import READERS, UNITS, Seen, columns, plan_of, released, small_plan, table_of
from privacy.variants import FULL

pytestmark = pytest.mark.privacy
NAMES = columns(all_kinds=FULL)
CELLS, PERSONS = [0, 1, 2, 3, 1], ["a", "a", "b", None, "c"]


def fitting(reader: str, folder: Path) -> dict[str, Any]:
    """The columns that the reader has a type for."""
    there = open_rows(READERS[reader](table_of(NAMES, CELLS, PERSONS), folder)).fields
    return {name: column for name, column in NAMES.items() if name in there}


def tables(names: dict[str, Any], unit: str) -> dict[str, tuple[pa.Table, ...]]:
    """Pairs of neighbours (a, b)."""
    base = table_of(names, CELLS, PERSONS)
    found = {}
    if unit == "row":
        for cell in range(4, 12) if FULL else (4, 7):
            found[f"row 0 is cell {cell}"] = base, table_of(names, [cell, *CELLS[1:]], PERSONS)
        if FULL:
            for name in names:
                flipped = table_of(names, [3, *CELLS[1:]], PERSONS)
                at = base.column_names.index(name)
                found[f"cell of {name}"] = base, base.set_column(at, name, flipped[name])
    elif unit == "row, add-remove":
        found["a row more"] = base, table_of(names, [*CELLS, 7], [*PERSONS, "a"])
        found["the first row"] = base[:0], base[:1]
    else:
        found["a person with many rows"] = base, table_of(names, [*CELLS, *range(9)], [*PERSONS, *["c"] * 9])
        found["a person without a name"] = base, table_of(names, CELLS, [*PERSONS[:-1], None])
        found["the only person"] = base[:0], base[:1]
        found["the only person, many rows"] = base[:0], table_of(names, list(range(9)), ["a"] * 9)
    return found


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("reader", READERS)
def test_neighbours_look_alike(reader: str, unit: str, tmp_path: Path) -> None:
    if reader == "duckdb":
        pytest.importorskip("duckdb")
    names = fitting(reader, tmp_path)
    plan = plan_of(names, UNITS[unit])
    seen: dict[int, Seen] = {}
    for what, pair in tables(names, unit).items():
        looks = []
        for table in pair:
            if id(table) not in seen:
                seen[id(table)] = released(READERS[reader](table, tmp_path), plan, tmp_path)
            looks.append(seen[id(table)])
        assert looks[0][0] == 0, f"{what}: {looks[0][1]}"
        assert looks[0] == looks[1], what


# --- cells that only a file can hold ---------------------------------------------------------------------------------


def raw(kind: pa.DataType, *cells: bytes) -> pa.Array:
    return pa.Array.from_buffers(kind, len(cells), [None, pa.py_buffer(b"".join(cells))])


ODD_VALUES = {
    "date64 not at midnight": raw(pa.date64(), (86_400_000).to_bytes(8, "little"), (7).to_bytes(8, "little")),
    "time32 of 90,000 s": raw(pa.time32("s"), (5).to_bytes(4, "little"), (90_000).to_bytes(4, "little")),
    "wide decimal": raw(pa.decimal128(5, 2), (5).to_bytes(16, "little"), (10**38).to_bytes(16, "little")),
    "boundless date": raw(pa.date32(), (5).to_bytes(4, "little"), (2**31 - 1).to_bytes(4, "little")),
    "boundless moment": raw(pa.timestamp("us"), (5).to_bytes(8, "little"), (2**63 - 1).to_bytes(8, "little")),
    "broken text": pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes()), pa.py_buffer(b"1\xff\xfe")]
    ),
}


@pytest.mark.parametrize("name", ODD_VALUES)
def test_odd_values_of_a_file_are_cells_like_any_others(name: str, tmp_path: Path) -> None:
    """Structure may be refused, values never: Arrow, Feather and Parquet files, before and after one cell is odd."""
    array = ODD_VALUES[name]
    kinds = columns(all_kinds=True)
    names = {f"c{i}": (array, kind) for i, (_, kind) in enumerate(list(kinds.values())[:6])}
    plan = plan_of(names, UNITS["row"])
    tables = [table_of(names, cells, ["a", "b"]) for cells in ([0, 0], [0, 1])]
    for ending in (".arrow", ".feather", ".parquet"):
        looks = []
        for table in tables:
            write = pq.write_table if ending == ".parquet" else feather.write_feather
            write(table, tmp_path / f"data{ending}")
            looks.append(released(tmp_path / f"data{ending}", plan, tmp_path))
        assert looks[0] == looks[1] and looks[0][0] == 0, f"{ending}: {looks[1][1]}"


# --- pictures --------------------------------------------------------------------------------------------------------

PICTURES = Schema.parse(
    'label = "label"\n[columns.image]\nkind = "image"\nheight = 4\nwidth = 4\n'
    '[columns.label]\nkind = "category"\nvalues = ["0", "1", "2"]\n'
)
WHOLE = np.arange(5 * 16, dtype=np.uint8).reshape(5, 4, 4)
LABELS: dict[str, np.ndarray] = {
    "int": np.array([0, 1, 2, 1, 0]),
    "out of range": np.array([7, 1, 2, 1, 0]),
    "float": np.array([np.nan, 1, 2, 1, 0]),
    "object": np.array(["?", 1, 2, 1, 0], object),
    "text": np.array(["zero", "1", "2", "1", "0"]),
    "bytes": np.array([b"0", b"1", b"2", b"1", b"0"]),
    "moment": np.array(["2020-01-01", "NaT", "NaT", "NaT", "NaT"], "M8[ns]"),
}


def picture_sets(folder: Path) -> dict[str, list[Any]]:
    """Reader -> sets of five pictures in which the first is another one."""
    black = WHOLE.copy()
    black[0] = 0
    found: dict[str, list[Any]] = {
        "arrays": [(WHOLE, y) for y in LABELS.values()] + [(black, LABELS["int"])],
        "items": [
            [(Image.fromarray(p), int(y)) for p, y in zip(WHOLE, LABELS["int"], strict=True)],
            [("no picture", object()), *[(p, y) for p, y in zip(WHOLE, LABELS["int"], strict=True)][1:]],
            [(np.zeros((9, 9)), "?"), *[(p, y) for p, y in zip(WHOLE, LABELS["object"], strict=True)][1:]],
        ],
        "npz": [],
        "folders": [],
    }
    for i, y in enumerate(label for name, label in LABELS.items() if name != "object"):
        np.savez(folder / f"{i}.npz", x=WHOLE, y=y)
        found["npz"].append(folder / f"{i}.npz")
    for i, odd in enumerate((None, b"", b"\x89PNG broken", b"P5 9 9 255\n" + bytes(81))):
        for j in range(5):
            place = folder / f"set{i}" / str(j % 3)
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(WHOLE[j]).save(place / f"{j}.png")
        if odd is not None:
            (folder / f"set{i}" / "0" / "0.png").write_bytes(odd)
        found["folders"].append(folder / f"set{i}")
    return found


@pytest.mark.parametrize("unit", ["row", "row, add-remove"])
@pytest.mark.parametrize("reader", ["arrays", "items", "npz", "folders"])
def test_neighbouring_sets_of_pictures_look_alike(reader: str, unit: str, tmp_path: Path) -> None:
    plan = small_plan(PICTURES, UNITS[unit])
    looks = []
    for data in picture_sets(tmp_path)[reader][: None if FULL else 4]:
        source = data if isinstance(data, Path) else open_data(data, PICTURES)
        code, words, files = released(source, plan, tmp_path)
        name = Path(str(data)).stem  # public
        named = words.replace(str(data), "DATA").replace(f"'{name}'", "'NAME'")
        looks.append((code, named if isinstance(data, Path) else words, files))
    assert looks[0][0] == 0, looks[0][1]
    for look in looks:
        assert look == looks[0]
