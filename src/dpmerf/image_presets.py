"""Image presets: what to measure of pictures, from their declared size alone.

Every length-scale is a constant times the size; none was fitted to a data set (docs/adr tells what was tried).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpmerf.budget import Unit
from dpmerf.errors import PlanError
from dpmerf.features.views import Views
from dpmerf.plan import Stage
from dpmerf.recipes import ImageBlock, ImageEmbedding
from dpmerf.schema import Image, Schema

PAPER_DIM = 10_000
PROTECTED_COUNTS = 0.3  # weight of counts where the number of rows is protected: the norm grows from 1 to 1.04
PAPER_SPREAD = 1 / 7  # squared length-scale per pixel: 112 for 28×28 (the paper: 105 and 127, taken from the data)


def image_stages(schema: Schema, preset: str, balanced: bool, unit: Unit, seed: int) -> tuple[Stage, ...]:
    """One stage: the embedding of the pictures, by label, with the class counts (free where rows are public)."""
    if schema.image is None or len(schema.learned) != 1 + (schema.label is not None):
        raise PlanError("a schema for pictures has an image column and at most a label: remove the other columns")
    if preset not in _BLOCKS:
        raise PlanError(f"there is no preset '{preset}' for pictures. Choose one of {', '.join(_BLOCKS)}")
    known = schema.label is None or balanced  # how many pictures each class has, once their number is public
    counts = PROTECTED_COUNTS if not unit.rows_public else 0.0 if known else 1.0
    recipe = ImageEmbedding(blocks=_BLOCKS[preset](schema.image[1]), seed=seed, counts=counts)
    return (Stage("embedding", 1.0, recipe),)


def _paper(image: Image) -> tuple[ImageBlock, ...]:
    """One Gaussian kernel on all pixels."""
    scale = math.sqrt(image.pixels * PAPER_SPREAD)
    return (ImageBlock(view="pixels", dim=PAPER_DIM, scales=(scale,), share=1.0),)


def _default(image: Image) -> tuple[ImageBlock, ...]:
    """Coarse pixels, edges of the whole picture and edges in windows, each at two length-scales an octave apart.

    The scales lie around a third to a half of the typical distance of two pictures in each view. Edge vectors have
    length 1, so theirs hold for any size; coarse pixels are as far apart as the grid is wide.
    """
    views = Views(image.channels, image.height, image.width)
    cells = image.height * image.width / 4 ** (views.octaves - 1)  # of the coarse view: 196 for 28×28
    coarse = math.sqrt(cells * image.channels) / 7
    return (
        ImageBlock(view="coarse", dim=3_000, scales=(coarse, 2 * coarse), share=1 / 3),
        ImageBlock(view="edges", dim=6_000, scales=(0.2, 0.4), share=1 / 3),
        ImageBlock(view="windows", dim=9_000, scales=(0.2, 0.35), share=1 / 3),
    )


_BLOCKS: dict[str, Callable[[Image], tuple[ImageBlock, ...]]] = {"default": _default, "paper": _paper}
