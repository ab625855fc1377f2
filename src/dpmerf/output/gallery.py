"""Gallery: synthetic pictures as arrays, as an .npz file and as a contact sheet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image as Pil

from dpmerf.encoding import pixels
from dpmerf.errors import ArtefactError, SchemaError
from dpmerf.model import Model
from dpmerf.output.table_files import synthetic_note
from dpmerf.output.whole_files import appearing
from dpmerf.progress import SILENT, Bars
from dpmerf.schema import AnyColumn, Category, Image, Schema

MOST_CLASSES = 24  # rows of a contact sheet
COLUMNS = 16
SHEET_WIDTH = 900  # pixels, about


def arrays(table: pa.Table, schema: Schema) -> tuple[np.ndarray, np.ndarray | None]:
    """uint8 pictures (n, height, width) or (n, height, width, 3), and labels if the schema has them."""
    name, image = image_of(schema)
    x = pixels.unpack(table.column(name), image)
    y = None if schema.label is None else _labels(table.column(schema.label).to_pylist(), schema.columns[schema.label])
    return (x[..., 0] if image.channels == 1 else x), y


def write_npz(
    parts: Iterator[pa.Table],
    path: str | Path,
    schema: Schema,
    total: int,
    guarantee: dict[str, object],
    bars: Bars = SILENT,
) -> int:
    """Write x (uint8) and y, part by part; the file appears whole or not at all. Returns the number of pictures.

    The archive's comment says that they are synthetic, and what is promised.
    """
    _, image = image_of(schema)
    target = Path(path)
    shape = (total, image.height, image.width) + ((3,) if image.channels == 3 else ())
    labels: list[np.ndarray] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            appearing(target) as temporary,
            bars.task("writing", total=total, counted="pictures") as advance,
            zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            archive.comment = synthetic_note(guarantee).encode()
            with archive.open("x.npy", "w", force_zip64=True) as file:
                header = {"descr": "|u1", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(file, header)
                for part in parts:
                    x, y = arrays(part, schema)
                    file.write(np.ascontiguousarray(x).tobytes())
                    labels += [] if y is None else [y]
                    advance(part.num_rows)
            if schema.label is not None:
                with archive.open("y.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.concatenate(labels), allow_pickle=False)
    except OSError as problem:
        raise ArtefactError(f"cannot write {target}: {problem.strerror or 'the disk refused'}") from None
    return total


def contact_sheet(model: Model, columns: int = COLUMNS, seed: int | None = None) -> bytes:
    """A PNG with one row of synthetic pictures per class."""
    schema = model.release.plan.schema
    rows = []
    for given in _rows(schema):
        x, _ = arrays(model.sample(columns, given, seed), schema)
        rows.append(np.concatenate(list(np.pad(x, _margin(x), constant_values=128)), axis=1))
    sheet = Pil.fromarray(np.concatenate(rows))
    zoom = max(1, round(SHEET_WIDTH / sheet.width))
    out = io.BytesIO()
    sheet.resize((sheet.width * zoom, sheet.height * zoom), Pil.Resampling.NEAREST).save(out, "PNG")
    return out.getvalue()


def class_names(schema: Schema) -> tuple[str, ...]:
    """What the classes are called, in the order of their codes."""
    column = schema.columns[schema.label] if schema.label else None
    if column is None:
        return ()
    names = [str(v) for v in column.levels] if isinstance(column, Category) else ["false", "true"]
    return tuple(names + (["(null)"] if column.nullable else []))


def image_of(schema: Schema) -> tuple[str, Image]:
    """The image column, or an error that says what this needs."""
    if schema.image is None:
        raise SchemaError("this model makes a table, not pictures: write .csv or .parquet")
    return schema.image


def _rows(schema: Schema) -> list[dict[str, object] | None]:
    column = schema.columns[schema.label] if schema.label else None
    if schema.label is None or column is None:
        return [None] * 8
    levels = column.levels if isinstance(column, Category) else (False, True)
    return [{schema.label: value} for value in levels[:MOST_CLASSES]]


def _margin(x: np.ndarray) -> list[tuple[int, int]]:
    return [(0, 0), (1, 1), (1, 1)] + [(0, 0)] * (x.ndim - 3)


def _labels(values: list[object], column: AnyColumn) -> np.ndarray:
    """Labels in one type, the same in every part: small numbers as bytes, text as text, null as the empty text."""
    listed = column.values if isinstance(column, Category) else (0, 1)
    if not column.nullable and all(isinstance(v, int) and 0 <= v < 256 for v in listed):
        return np.array(values, np.uint8)
    return np.array(["" if v is None else v for v in values])
