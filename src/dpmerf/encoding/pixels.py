"""Pixels: pictures <-> bytes <-> numbers in [0, 1]. Pure functions of the declared image facts; nothing raises.

In a table a picture is one cell of height · width · channels bytes (0 is `low`, 255 is `high`). For features and
generators it is a row of numbers, channel by channel. Any other cell (null, wrong length, wrong type) is black.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpmerf.encoding import cells
from dpmerf.schema import Image

TOP = 255


def levels(values: np.ndarray, image: Image) -> np.ndarray:
    """Numbers in the declared range -> uint8, each pixel by itself: clipped, rounded, NaN is `low`."""
    if values.dtype == np.uint8 and (image.low, image.high) == (0.0, 255.0):
        return values
    x = np.nan_to_num(values.astype(np.float64), nan=image.low, posinf=image.high, neginf=image.low)
    x = (np.clip(x, image.low, image.high) - image.low) / (image.high - image.low)
    return np.floor(x * TOP + 0.5).astype(np.uint8)


def pack(pictures: np.ndarray) -> pa.Array:
    """(n, height, width, channels) uint8 -> one cell of bytes each."""
    n, size = len(pictures), int(np.prod(pictures.shape[1:]))
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), n, [None, pa.py_buffer(np.ascontiguousarray(pictures))]
    )


def unpack(column: pa.Array | pa.ChunkedArray, image: Image) -> np.ndarray:
    """Cells -> (n, height, width, channels) uint8."""
    array = cells.plain(column)
    n, size = len(array), image.pixels
    if n and array.type == pa.binary(size) and array.null_count == 0:
        flat = np.frombuffer(array.buffers()[1], np.uint8, n * size, array.offset * size)
    else:
        black = bytes(size)
        found = (c.encode() if isinstance(c, str) else c for c in array.to_pylist())  # a text is its bytes
        flat = np.frombuffer(b"".join(c if isinstance(c, bytes) and len(c) == size else black for c in found), np.uint8)
    return flat.reshape(n, image.height, image.width, image.channels)


def encode(column: pa.Array | pa.ChunkedArray, image: Image) -> np.ndarray:
    """Cells -> (n, channels · height · width) float64 in [0, 1]."""
    pictures = unpack(column, image)
    return pictures.transpose(0, 3, 1, 2).reshape(len(pictures), -1) / float(TOP)


def decode(numbers: np.ndarray, image: Image) -> pa.Array:
    """The way back: (n, channels · height · width) in [0, 1] -> cells."""
    whole = np.floor(np.clip(numbers, 0.0, 1.0) * TOP + 0.5).astype(np.uint8)
    return pack(whole.reshape(-1, image.channels, image.height, image.width).transpose(0, 2, 3, 1))
