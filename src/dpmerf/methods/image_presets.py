"""Image presets: what to measure of pictures, from their declared size alone.

Every length-scale is a constant times the size, the same for every data set. The constants were chosen on MNIST,
which is public, and checked on FashionMNIST (docs/adr/0004-images.md tells what was tried).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from dpmerf.accounting.unit import Unit
from dpmerf.errors import PlanError
from dpmerf.features.filter_bank import Views
from dpmerf.plan import Stage
from dpmerf.plan.queries import ImageBlock, ImageEmbedding
from dpmerf.schema import Image, Schema

PAPER_DIM = 10_000
PAPER_SPREAD = 1 / 7  # squared length-scale per pixel: 112 for 28×28 (the paper: 105 and 127, taken from the data)
PROTECTED_COUNTS = 0.3  # weight of counts where the number of rows is protected: the norm grows from 1 to 1.04
MOST_PIXELS = 1024  # a larger picture is averaged first
TONES = 0.04  # share of the squared norm: at ε = 1 and 6,000 pictures a class, each tone is known to ± 0.6 %


def image_stages(schema: Schema, preset: str, balanced: bool, unit: Unit, seed: int) -> tuple[Stage, ...]:
    """One stage: the embedding of the pictures, by label, with the class counts (free where rows are public)."""
    if schema.image is None or len(schema.learned) != 1 + (schema.label is not None):
        raise PlanError("a schema for pictures has an image column and at most a label: remove the other columns")
    if preset not in _BLOCKS:
        raise PlanError(f"there is no preset '{preset}' for pictures. Choose one of {', '.join(_BLOCKS)}")
    known = schema.label is None or balanced  # how many pictures each class has, once their number is public
    counts = PROTECTED_COUNTS if not unit.rows_public else 0.0 if known else 1.0
    tones = TONES if preset == "default" else 0.0
    query = ImageEmbedding(blocks=_BLOCKS[preset](schema.image[1]), tones=tones, seed=seed, counts=counts)
    return (Stage("embedding", 1.0, query),)


def _paper(image: Image) -> tuple[ImageBlock, ...]:
    """One Gaussian kernel on all pixels."""
    scale = math.sqrt(image.pixels * PAPER_SPREAD)
    return (ImageBlock(view="pixels", dim=PAPER_DIM, scales=(scale,), share=1.0),)


def _default(image: Image) -> tuple[ImageBlock, ...]:
    """Pixels, edges of the whole picture and edges in windows, each at two length-scales; what is left are the tones.

    The scales lie around a third to a half of the typical distance of two pictures in each view. Edge vectors have
    length 1, so theirs hold for any size; pixels are as far apart as the root of their number.
    """
    views = Views(image.channels, image.height, image.width)
    view: Literal["pixels", "coarse"] = "pixels" if image.height * image.width <= MOST_PIXELS else "coarse"
    scale = math.sqrt(views.numbers(view)) / 7  # 4 for 28×28
    share = (1 - TONES) / 3
    return (
        ImageBlock(view=view, dim=3_000, scales=(scale, 2 * scale), share=share),
        ImageBlock(view="edges", dim=6_000, scales=(0.2, 0.4), share=share),
        ImageBlock(view="windows", dim=9_000, scales=(0.2, 0.35), share=share),
    )


_BLOCKS: dict[str, Callable[[Image], tuple[ImageBlock, ...]]] = {"default": _default, "paper": _paper}
