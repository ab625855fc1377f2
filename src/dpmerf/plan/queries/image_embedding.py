"""Image embedding: Fourier features of several views of a picture, and histograms of its tones."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding.codec import Codec
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap, of, total
from dpmerf.features.filter_bank import FourierOf, Views
from dpmerf.features.tones import Tones
from dpmerf.plan.embedding import Embedding, as_it_is
from dpmerf.plan.queries.mean_embedding import counted
from dpmerf.plan.queries.query import MOST_COUNTS, Frozen, Query, Scale

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan


@final
class ImageBlock(Frozen):
    """Fourier features of one view of the pictures, with its share of the squared norm."""

    view: Literal["pixels", "coarse", "edges", "windows"]
    dim: int = Field(ge=2, le=1_000_000)
    scales: tuple[Scale, ...] = Field(min_length=1)
    share: float = Field(gt=0, le=1)


@final
class ImageEmbedding(Query):
    """The mean embedding of pictures: (Σ √share · Fourier of a view + √tones · histogram) ⊗ label + counts · label.

    Shares and tones add up to 1, so the norm of the embedding is 1; beside it class counts of weight up to 1 are free.
    """

    words: ClassVar[str] = "a mean embedding of pictures"
    pictures: ClassVar[bool] = True

    kind: Literal["images"] = "images"
    blocks: tuple[ImageBlock, ...] = Field(min_length=1)
    tones: float = Field(default=0.0, ge=0, le=1)  # share of the histograms of pixel levels; 0: none
    seed: int = Field(ge=0, lt=2**62)
    counts: float = Field(
        ge=0, le=MOST_COUNTS
    )  # weight of class counts (or of the number of pictures); 0: not measured

    def _shares(self) -> tuple[float, ...]:
        return (self.tones, *(b.share for b in self.blocks))

    @property
    def dim(self) -> int:
        """Fourier features of all blocks."""
        return sum(b.dim for b in self.blocks)

    def dense(self, codec: Codec) -> tuple[FourierOf, ...]:
        """One map per block."""
        if codec.schema.image is None:
            raise PlanError('this plan measures pictures, and the schema has no column of kind = "image"')
        image = codec.schema.image[1]
        shape = (image.channels, image.height, image.width)
        return tuple(_drawn(shape, b, self.seed + i) for i, b in enumerate(self.blocks))

    def feature_map(self, codec: Codec) -> FeatureMap:
        """The map: it depends on the schema alone."""
        maps = zip(self.blocks, self.dense(codec), strict=True)
        parts = [math.sqrt(b.share) * of(dense) for b, dense in maps]
        if self.tones > 0 and codec.schema.image is not None:
            image = codec.schema.image[1]
            parts.append(math.sqrt(self.tones) * of(Tones(image.channels, image.height * image.width)))
        return counted(total(parts), codec.label, self.counts)

    @property
    def fourier_features(self) -> int:
        """Those of all scales together."""
        return self.dim

    def nominal(self, plan: Plan) -> FeatureMap:
        """The real map."""
        return self.feature_map(plan.codec)

    def resolve(self, known: Known) -> Embedding:
        """The same; pictures are taken as they are encoded."""
        return Embedding(self.feature_map(known.codec), as_it_is)


@lru_cache(maxsize=8)
def _drawn(shape: tuple[int, int, int], block: ImageBlock, seed: int) -> FourierOf:
    """Drawn once per process: plans, releases and generators ask for the same map again and again."""
    return FourierOf.draw(Views(*shape), block.view, block.dim, block.scales, seed)
