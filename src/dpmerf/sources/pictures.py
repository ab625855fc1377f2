"""Images: one way to read labelled pictures from arrays, .npz files, folders of class folders and torch datasets.

They come as a table of two columns, a cell of bytes and a label, so that everything after is as for tables. Structure
that is not as declared is refused; no picture is: a file that cannot be read is a black picture of its class, a file
of another size is resampled.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from PIL import Image as Pil

from dpmerf.encoding import pixels
from dpmerf.errors import DataError, SchemaError
from dpmerf.schema import Image, Schema
from dpmerf.sources.frames import objects
from dpmerf.sources.npz import Header, Npz
from dpmerf.sources.picture_facts import check_folders, check_labels, check_shape, class_folders, images_of
from dpmerf.sources.rows import Rows, open_rows

PIXELS = 2**22  # in memory at a time
LARGEST = 2**26  # pixels of one file: one that says it has more is not unpacked
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")  # no other decoder is started, whatever a file holds
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def open_data(data: Any, schema: Schema) -> Rows:
    """The reader that the schema asks for: pictures if it declares an image, a table otherwise."""
    if schema.image is None or isinstance(data, Rows):
        return open_rows(data, schema.reading)
    if isinstance(data, tuple):
        return Arrays(schema, *data)
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if path.suffix.lower() == ".npz":
            return NpzImages(schema, path)
        if path.is_dir() and class_folders(path):
            return ClassFolders(schema, path)
        return open_rows(data, schema.reading)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "columns"):
        return Items(schema, data)
    return open_rows(data, schema.reading)


class Pictures(Rows):
    """Pictures and labels in batches of bounded size."""

    def __init__(self, schema: Schema, count: int) -> None:
        if schema.image is None:
            raise SchemaError('the schema declares no image: add a column with kind = "image"')
        self._name, self._image = schema.image
        self._label = schema.label
        self._schema = schema
        self._count = count

    @property
    def fields(self) -> dict[str, pa.DataType | None]:
        label = {self._label: None} if self._label else {}
        return {self._name: pa.binary(self._image.pixels), **label}

    @property
    def stored_count(self) -> int | None:
        return self._count

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        self.require(columns)
        for pictures, labels in self._parts(max(1, PIXELS // self._image.pixels)):
            found = {self._name: pixels.pack(pictures), self._label: labels}
            yield pa.RecordBatch.from_arrays([found[c] for c in columns], names=columns)

    @abstractmethod
    def _parts(self, step: int) -> Iterator[tuple[np.ndarray, pa.Array | None]]:
        """(n, height, width, channels) uint8 and n labels, at most `step` at a time."""


@final
class Arrays(Pictures):
    """NumPy arrays in memory."""

    def __init__(self, schema: Schema, x: Any, y: Any = None) -> None:
        self._x = np.asarray(x)
        super().__init__(schema, len(self._x) if self._x.ndim else 0)
        check_shape(Header("x", self._x.shape, self._x.dtype, False), self._image)
        self._y = None if self._label is None or y is None else np.asarray(y)
        if self._label is not None:
            check_labels(None if self._y is None else self._y.shape, self._count)

    def _parts(self, step: int) -> Iterator[tuple[np.ndarray, pa.Array | None]]:
        for i in range(0, self._count, step):
            labels = None if self._y is None else _labels(self._y[i : i + step])
            yield _arranged(self._x[i : i + step], self._image), labels


@final
class NpzImages(Pictures):
    """Arrays x and y, or x_train and y_train, of an .npz file. No other array of the file is read."""

    def __init__(self, schema: Schema, path: Path) -> None:
        self._file = Npz(path)
        self._x = images_of(self._file)
        super().__init__(schema, self._x.shape[0])
        check_shape(self._x, self._image)
        name = "y_train" if self._x.name == "x_train" else "y"
        self._y = self._file.header(name) if self._label is not None else None
        if self._label is not None:
            check_labels(None if self._y is None else self._y.shape, self._count)

    def _parts(self, step: int) -> Iterator[tuple[np.ndarray, pa.Array | None]]:
        parts = self._file.parts(self._x, step)
        if self._y is None:
            yield from ((_arranged(x, self._image), None) for x in parts)
            return
        for x, y in zip(parts, self._file.parts(self._y, step), strict=True):
            yield _arranged(x, self._image), _labels(y)


@final
class ClassFolders(Pictures):
    """A folder with one folder of image files per class. A class without files, or without a folder, is empty."""

    def __init__(self, schema: Schema, path: Path) -> None:
        folders = class_folders(path)
        check_folders(folders, schema)
        self._files = [(f, folder.name) for folder in folders for f in _image_files(folder)]
        super().__init__(schema, len(self._files))

    def _parts(self, step: int) -> Iterator[tuple[np.ndarray, pa.Array | None]]:
        for i in range(0, self._count, step):
            files = self._files[i : i + step]
            pictures = np.stack([_read(path, self._image) for path, _ in files])
            yield pictures, pa.array([name for _, name in files], pa.large_string())


@final
class Items(Pictures):
    """A torch dataset, or any sequence of (picture, label): PIL images, arrays or tensors."""

    def __init__(self, schema: Schema, items: Any) -> None:
        self._items = items
        super().__init__(schema, len(items))

    def _parts(self, step: int) -> Iterator[tuple[np.ndarray, pa.Array | None]]:
        for i in range(0, self._count, step):
            pictures, labels = [], []
            for j in range(i, min(i + step, self._count)):
                try:
                    item = self._items[j]
                except Exception:
                    raise DataError("the dataset itself raised an error while it was read") from None
                picture, label = item[:2] if isinstance(item, tuple | list) and len(item) > 1 else (item, None)
                pictures.append(_convert(picture, self._image))
                labels.append(_label(label))
            yield np.stack(pictures), objects(labels)


def _arranged(x: np.ndarray, image: Image) -> np.ndarray:
    """(n, h, w), (n, h, w, c) or (n, c, h, w) of any number type -> (n, h, w, c) uint8."""
    x = pixels.levels(x, image)
    if x.ndim == 3:
        return x[..., None]
    return x if x.shape[3] == image.channels and x.shape[1] == image.height else x.transpose(0, 2, 3, 1)


def _labels(y: np.ndarray) -> pa.Array:
    """Labels of any type, each by itself; what means nothing is null, and so takes the declared place."""
    y = y.reshape(-1)
    return pa.array(y.astype(np.float64)) if y.dtype.kind in "iuf" else objects(list(y))


def _label(label: Any) -> Any:
    """A tensor of one number is that number."""
    return label.item() if getattr(label, "ndim", None) == 0 and not isinstance(label, np.generic) else label


def _image_files(folder: Path) -> list[Path]:
    return sorted(
        p for p in folder.iterdir() if p.suffix.lower() in ENDINGS and not p.name.startswith(".") and p.is_file()
    )


def _read(path: Path, image: Image) -> np.ndarray:
    """One file as (h, w, c) uint8; black if it cannot be read."""
    try:
        with warnings.catch_warnings(action="ignore"), Pil.open(path, formats=FORMATS) as picture:
            if picture.width * picture.height > LARGEST:
                raise ValueError("too many pixels")
            return _fit(picture, image)
    except Exception:  # whatever the decoder says of a file is content
        return np.zeros((image.height, image.width, image.channels), np.uint8)


def _fit(picture: Pil.Image, image: Image) -> np.ndarray:
    picture = picture.convert("L" if image.channels == 1 else "RGB")
    if picture.size != (image.width, image.height):
        picture = picture.resize((image.width, image.height), Pil.Resampling.BILINEAR)
    return np.asarray(picture, np.uint8).reshape(image.height, image.width, image.channels)


def _convert(picture: Any, image: Image) -> np.ndarray:
    """A PIL image, array or tensor as (h, w, c) uint8; black if it is none of these."""
    try:
        if isinstance(picture, Pil.Image):
            return _fit(picture, image)
        array = pixels.levels(np.asarray(picture), image)
        if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
            array = array.transpose(1, 2, 0)
        if array.ndim == 3 and array.shape[2] == 1:
            array = array[..., 0]
        return _fit(Pil.fromarray(np.ascontiguousarray(array)), image)
    except Exception:  # likewise
        return np.zeros((image.height, image.width, image.channels), np.uint8)
