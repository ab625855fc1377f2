"""Image facts: what a container of pictures states without a value being read, and a schema from it.

An array's shape and type and the names of class folders are public structure, like a table's header. The number of
classes is not in an array's header, so it is declared: it is never the largest label.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from dpmerf.errors import DataError, SchemaError
from dpmerf.schema import Category, Image, Schema
from dpmerf.sources.npz import Header, Npz

IMAGE, LABEL = "image", "label"  # names of the two columns
DEFAULT_CLASSES = 10
HIGHEST = {"u1": 255.0, "u2": 65_535.0, "b1": 1.0, "f2": 1.0, "f4": 1.0, "f8": 1.0}  # by type; else 255


@final
@dataclass(frozen=True)
class Facts:
    """What a container states; None: it does not."""

    height: int | None = None
    width: int | None = None
    channels: int | None = None
    high: float | None = None
    classes: tuple[str, ...] | None = None


@final
@dataclass(frozen=True)
class Declared:
    """A schema for pictures, and what was assumed for it, in words."""

    schema: Schema
    notes: tuple[str, ...]


def declare(
    data: Any,
    *,
    size: str | tuple[int, int] | None = None,
    channels: int | None = None,
    classes: int | Sequence[str] | None = None,
    pixel_range: tuple[float, float] | None = None,
    labelled: bool = True,
) -> Declared:
    """The schema of a set of pictures: what is declared first, what the container states second."""
    facts, notes = stored_facts(data), []
    height, width = _size(size) if size is not None else (facts.height, facts.width)
    if height is None or width is None:
        raise SchemaError("this container does not state the size of its images: declare it, for example --size 28x28")
    channels = channels or facts.channels or 1
    low, high = pixel_range or (0.0, facts.high or 255.0)
    if pixel_range is None and high != 255.0:
        notes.append(f"pixels are taken to lie between {low:g} and {high:g}, by their stored type")
    columns: dict[str, Any] = {
        IMAGE: {"kind": "image", "height": height, "width": width, "channels": channels, "low": low, "high": high}
    }
    if labelled:
        if classes is None and facts.classes is not None:
            notes.append("classes are the names of the folders, which are then public")
        elif classes is None:
            notes.append(f"the classes are taken to be 0 to {DEFAULT_CLASSES - 1}. Declare others with --classes")
        columns[LABEL] = {"kind": "category", "values": _classes(classes or facts.classes or DEFAULT_CLASSES)}
    return Declared(Schema.from_json({"label": LABEL if labelled else None, "columns": columns}), tuple(notes))


def stored_facts(data: Any) -> Facts:
    """From an array's shape and type, or from the names of class folders."""
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if path.is_dir():
            return Facts(classes=tuple(p.name for p in class_folders(path)) or None)
        return array_facts(images_of(Npz(path))) if path.suffix.lower() == ".npz" else Facts()
    if isinstance(data, tuple) and isinstance(data[0], np.ndarray):
        return array_facts(Header("x", data[0].shape, data[0].dtype, False))
    return Facts()


def images_of(file: Npz) -> Header:
    """The array of images of an .npz file."""
    header = file.header("x", "x_train")
    if header is None:
        raise DataError(f"{file.path} has no array 'x' or 'x_train': save the images under one of these names")
    return header


def array_facts(header: Header) -> Facts:
    """Size and channels from the shape, the pixel range from the type."""
    shape, dtype = header.shape, header.dtype
    if dtype.kind not in "uifb":
        raise DataError(f"the array of images has the type {dtype}: save numbers (uint8, or floats with a known range)")
    high = HIGHEST.get(dtype.str[1:], 255.0)
    if len(shape) == 3:
        return Facts(shape[1], shape[2], 1, high)
    if len(shape) == 4 and shape[3] in (1, 3):
        return Facts(shape[1], shape[2], shape[3], high)
    if len(shape) == 4 and shape[1] in (1, 3):
        return Facts(shape[2], shape[3], shape[1], high)
    raise DataError(
        f"the array of images has the shape (n, {', '.join(map(str, shape[1:]))}). Save (n, height, width) for grey, "
        "(n, height, width, 3) or (n, 3, height, width) for colour"
    )


def check_shape(header: Header, image: Image) -> None:
    """An array's shape is structure: refused when it is not as declared."""
    facts = array_facts(header)
    stored, declared = (facts.height, facts.width, facts.channels), (image.height, image.width, image.channels)
    if stored != declared:
        raise DataError(
            "the images are {}x{} with {} channel(s); declared are {}x{} with {}. Declare their true size, "
            "or resize them first".format(*stored, *declared)
        )


def check_labels(shape: tuple[int, ...] | None, count: int) -> None:
    """One label for each image."""
    if shape is None:
        raise DataError("there are no labels: save them as the array 'y' (or 'y_train'), or say --label none")
    if shape not in ((count,), (count, 1)):
        raise DataError("the array of labels does not fit the images: write one label for each of them, in one axis")


def check_folders(folders: Sequence[Path], schema: Schema) -> None:
    """A class folder's name is structure: refused when it is not declared."""
    declared = schema.columns[schema.label] if schema.label else None
    known = {str(v) for v in declared.levels} if isinstance(declared, Category) else None
    for folder in folders:
        if known is not None and folder.name not in known:
            raise DataError(f"the folder '{folder.name}' is none of the declared classes: declare it, or move it away")


def class_folders(path: Path) -> list[Path]:
    """The folders of a folder, by name."""
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def _size(size: str | tuple[int, int]) -> tuple[int, int]:
    if isinstance(size, str):
        found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", size.strip().lower())
        if not found:
            raise SchemaError(f"the size is '{size}': write HEIGHTxWIDTH, for example 28x28")
        return int(found[1]), int(found[2])
    return size


def _classes(classes: int | Sequence[str]) -> list[int] | list[str]:
    if isinstance(classes, int):
        if not 1 <= classes <= 10_000:
            raise SchemaError(f"the number of classes is {classes}: write 1 to 10000, or their names")
        return list(range(classes))
    return list(classes)
