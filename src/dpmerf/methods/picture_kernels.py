"""Pictures: what to measure of them, from their declared size alone (docs/adr/0004 tells what was tried)."""

from __future__ import annotations

import math
from typing import Literal

from dpmerf.errors import PlanError
from dpmerf.features.filter_bank import Views
from dpmerf.methods.method import Request
from dpmerf.plan import Stage
from dpmerf.plan.queries import ImageBlock, ImageEmbedding
from dpmerf.schema import Image


def stages(asked: Request) -> tuple[Stage, ...]:
    """Pixels, edges of the whole picture and edges in windows, each at two length-scales; and the tones."""
    return _embedding(asked, _views(asked), asked.settings.images.tones)


def paper_stages(asked: Request) -> tuple[Stage, ...]:
    """The paper's: one Gaussian kernel on all pixels."""
    s = asked.settings.paper
    scale = math.sqrt(_image(asked).pixels * s.image_spread)
    return _embedding(asked, (ImageBlock(view="pixels", dim=s.image_dim, scales=(scale,), share=1.0),), 0.0)


def _embedding(asked: Request, blocks: tuple[ImageBlock, ...], tones: float) -> tuple[Stage, ...]:
    """One stage: the embedding of the pictures, by label, with the class counts (free where rows are public)."""
    known = (
        asked.schema.label is None or asked.balanced
    )  # how many pictures each class has, once their number is public
    counts = asked.settings.images.protected_counts if not asked.unit.rows_public else 0.0 if known else 1.0
    return (Stage("embedding", 1.0, ImageEmbedding(blocks=blocks, tones=tones, seed=asked.seed, counts=counts)),)


def _image(asked: Request) -> Image:
    schema = asked.schema
    if schema.image is None or len(schema.learned) != 1 + (schema.label is not None):
        raise PlanError("a schema for pictures has an image column and at most a label: remove the other columns")
    return schema.image[1]


def _views(asked: Request) -> tuple[ImageBlock, ...]:
    s, image = asked.settings.images, _image(asked)
    seen = Views(image.channels, image.height, image.width)
    view: Literal["pixels", "coarse"] = "pixels" if image.height * image.width <= s.most_pixels else "coarse"
    scale = math.sqrt(seen.numbers(view)) * s.pixel_scale
    share = (1 - s.tones) / len(s.views)
    blocks = {
        "pixels": ImageBlock(view=view, dim=s.pixel_dim, scales=(scale, 2 * scale), share=share),
        "edges": ImageBlock(view="edges", dim=s.edge_dim, scales=s.edge_scales, share=share),
        "windows": ImageBlock(view="windows", dim=s.window_dim, scales=s.window_scales, share=share),
    }
    return tuple(blocks[name] for name in s.views)
