"""Neighbouring tables of every type, each through every reader, and all that an onlooker sees of a release."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq

import dpmerf
from command import dpmerf as run
from dpmerf.accounting.unit import Unit
from dpmerf.plan.plan import Plan, Stage
from dpmerf.plan.queries import ImageBlock, ImageEmbedding, MeanEmbedding
from dpmerf.schema import Schema
from privacy.matrix import LISTED, arrow_columns

UNLIKE = LISTED.replace(', "1"', "")  # "1" reads as "True" does
KINDS = [
    'kind = "number"\nmin = -10\nmax = 2000\nnullable = true\n',
    'kind = "date"\nfirst = 1900-01-01\nlast = 2100-01-01\n',
    'kind = "timestamp"\nfirst = 1900-01-01T00:00:00\nlast = 2100-01-01T00:00:00\nnullable = true\n',
    'kind = "flag"\n',
    f'kind = "category"\nvalues = {UNLIKE}\nother = "other"\nnullable = true\n',
    'kind = "category"\nvalues = [1, 1234, -5]\n',
]
ROW, ROW_ADD = Unit(), Unit(neighbours="add-remove")
PERSON, PERSON_ADD = Unit("who", 2), Unit("who", 2, "add-remove")
UNITS = {"row": ROW, "row, add-remove": ROW_ADD, "person": PERSON, "person, add-remove": PERSON_ADD}
Seen = tuple[int, str, dict[str, int]]  # exit code or kind of error, all words, file names and sizes


def columns(all_kinds: bool) -> dict[str, tuple[pa.Array, str]]:
    """Column name -> cells of one type, and what is declared: every type, under one kind or under each."""
    found = {}
    for i, (name, array) in enumerate(arrow_columns().items()):
        for j, kind in enumerate(KINDS):
            if all_kinds or j == i % len(KINDS):
                found[f"{name} {j}"] = array, kind
    return found


def plan_of(names: dict[str, tuple[pa.Array, str]], unit: Unit) -> Plan:
    text = "".join(f'[columns."{name}"]\n{kind}' for name, (_, kind) in names.items())
    return small_plan(Schema.parse(text + '[columns.who]\nkind = "id"\n'), unit)


def small_plan(schema: Schema, unit: Unit) -> Plan:
    """The paper's embedding with few features."""
    recipe: MeanEmbedding | ImageEmbedding
    if schema.image:
        blocks = (ImageBlock(view="pixels", dim=4, scales=(1.0,), share=1.0),)
        recipe = ImageEmbedding(blocks=blocks, tones=0.0, seed=1, counts=1.0)
    else:
        recipe = MeanEmbedding(dim=4, scales=(0.5,), seed=1, by_label=schema.label is not None, counts=1.0)
    return Plan(schema, 1.0, 1e-5, unit, 5, "paper", False, (Stage("embedding", 1.0, recipe),))


def table_of(names: dict[str, tuple[pa.Array, str]], cells: list[int], persons: list[str | None]) -> pa.Table:
    """Row i has, in every column, the cell number cells[i] of that column's type."""
    found = {"who": pa.array(persons, pa.string())}
    for name, (array, _) in names.items():
        parts = [array[cell % len(array) :][:1] for cell in cells]
        if pa.types.is_run_end_encoded(array.type):
            parts = [pc.run_end_decode(part) for part in parts]
        whole = pa.concat_arrays([array[:0] if not pa.types.is_run_end_encoded(array.type) else parts[0][:0], *parts])
        found[name] = pc.run_end_encode(whole) if pa.types.is_run_end_encoded(array.type) else whole
    return pa.table(found)


def _csv(table: pa.Table, path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _file(ending: str, write: Callable[[pa.Table, Path], object]) -> Callable[[pa.Table, Path], Path]:
    def made(table: pa.Table, folder: Path) -> Path:
        path = folder / f"data{ending}"
        write(table, path)
        return path

    return made


def _storable(table: pa.Table) -> pa.Table:
    """The columns that Parquet has a type for."""
    kept = []
    for name in table.column_names:
        with contextlib.suppress(pa.ArrowException):
            pq.write_table(table.select([name]), io.BytesIO())
            kept.append(name)
    return table.select(kept)


def _pandas(table: pa.Table, _: Path) -> pd.DataFrame:
    """As pandas itself chooses the types, by the cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.DataFrame({n: pd.Series(table[n].to_pylist()) for n in table.column_names})


def _polars(table: pa.Table, _: Path) -> pl.DataFrame:
    found = {}
    for name in table.column_names:
        try:
            found[name] = pl.Series(name, pl.from_arrow(table[name]))
        except BaseException as refusal:  # a panic of Polars is no Exception
            if isinstance(refusal, KeyboardInterrupt):
                raise
    return pl.DataFrame(found)


def _duckdb(table: pa.Table, _: Path) -> Any:
    import duckdb

    connection = duckdb.connect()
    kept = []
    for name in table.column_names:
        with contextlib.suppress(Exception):
            connection.from_arrow(table.select([name])).fetchall()
            kept.append(name)
    return connection.from_arrow(table.select(kept))


READERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "csv": _file(".csv", _csv),
    "parquet": _file(".parquet", lambda t, p: pq.write_table(_storable(t), p)),
    "arrow": _file(".arrow", lambda t, p: feather.write_feather(t, p, compression="uncompressed")),
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": lambda table, _: table,
    "duckdb": _duckdb,
}


def released(data: Any, plan: Plan, folder: Path) -> Seen:
    """Make a release, by the command where the data is a file; everything that can be seen of it from outside."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    said, errors, code = io.StringIO(), io.StringIO(), 0
    if isinstance(data, Path):
        plan.save(folder / "plan.json")
        done = run("release", data, "--plan", folder / "plan.json", "--ledger", folder / "ledger", "-o", out)
        (folder / "ledger").unlink(missing_ok=True)
        code, words = done.returncode, done.stdout + done.stderr
    else:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(errors),
            warnings.catch_warnings(record=True) as found,
        ):
            warnings.simplefilter("always")
            try:
                dpmerf.release(data, plan).save(out)
            except BaseException as error:
                code, found = 3, [*found, error]  # type: ignore[list-item]
        words = said.getvalue() + errors.getvalue() + "".join(f"{type(w).__name__}: {w}" for w in found)
    files = {p.relative_to(out).as_posix(): _size(p) for p in sorted(out.rglob("*")) if p.is_file()}
    return code, words.replace(str(folder), "FOLDER"), files


def _size(path: Path) -> int:
    """In bytes; of the card without its figures, for it shows the noisy number of rows and the ledger's random id."""
    if path.name != "CARD.md":
        return path.stat().st_size
    return len(re.sub(r"\b[0-9a-f]{12,}\b|[0-9][0-9.,]*", "", path.read_text()))
