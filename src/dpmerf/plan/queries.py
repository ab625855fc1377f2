"""Recipes: what one stage of a release measures, as plain data that turns into a feature map.

A recipe is public and complete: with the schema (and, after `histograms`, with the noisy histograms) it gives the
same feature map on every machine. Its blocks' weights, and so its sensitivity, never depend on what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dpmerf.encoding.binning import Binning, FineGrid
from dpmerf.encoding.codec import Batch, Codec, Variable
from dpmerf.encoding.normal_scores import LENGTHS, Scores, lengths
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap, constant, of, onehot, total
from dpmerf.features.filter_bank import FourierOf, Views
from dpmerf.features.fourier import Fourier
from dpmerf.features.moments import Moments
from dpmerf.features.tones import Tones

Scale = Annotated[float, Field(gt=1e-9, lt=1e9)]  # a length-scale of a kernel on [0, 1]
MOST_COUNTS = 4.0  # the weight of counts: squares of whole numbers stay below 2⁵³
View = Callable[[Batch], Batch]  # adds the codes that the map's cells need


class Recipe(BaseModel):
    """What every recipe is: frozen public data. Numbers are finite; where shares are named they add up to 1."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def _shares(self) -> tuple[float, ...]:
        return (1.0,)

    @model_validator(mode="after")
    def _shares_add_up(self) -> Recipe:
        if not math.isclose(math.fsum(self._shares()), 1, rel_tol=1e-9):
            raise ValueError("the shares of a recipe must add up to 1")
        return self


class Histograms(Recipe):
    """Fine histograms, each with weight 1: bins, quantiles and shapes follow as post-processing.

    `columns` names those that need one; of any other column every cell is a bin of its own.
    """

    kind: Literal["histograms"] = "histograms"
    cells: int = Field(ge=2, le=65_536)
    columns: tuple[str, ...] = Field(min_length=1)

    def grid(self, codec: Codec) -> FineGrid:
        return FineGrid(codec, self.cells)

    def feature_map(self, codec: Codec) -> FeatureMap:
        variables = self.grid(codec).variables
        if unknown := [name for name in self.columns if name not in variables]:
            raise PlanError(f"there is no column '{unknown[0]}' to take a histogram of")
        return total([onehot(variables[name]) for name in self.columns])

    def view(self, codec: Codec) -> View:
        grid = self.grid(codec)

        def add(batch: Batch) -> Batch:
            fine = {grid.variables[name].name: code for name, code in grid.encode(batch).items()}
            return Batch(batch.numbers, {**batch.codes, **fine})

        return add


class Tables(Recipe):
    """Contingency tables over bins: label × column (in parts of bins), pairs of columns, label × pairs.

    Each family has its share. A family of t tables with share s gives each of its tables the weight √(s/t), so the norm
    is 1 and the diameter √2.
    """

    kind: Literal["tables"] = "tables"
    bins: int = Field(ge=2, le=4096)
    parts: int = Field(ge=1, le=64)  # of a bin, at most
    by_label: bool  # tables are also split by the label
    pairs: tuple[tuple[str, str], ...]
    share_single: float = Field(ge=0, le=1)
    share_pair: float = Field(ge=0, le=1)
    share_label_pair: float = Field(ge=0, le=1)

    def _shares(self) -> tuple[float, ...]:
        return self.share_single, self.share_pair, self.share_label_pair

    def columns(self, codec: Codec) -> tuple[str, ...]:
        """The binned columns."""
        return _features(codec, self.by_label)

    def families(self, codec: Codec, binning: Binning) -> tuple[FeatureMap, FeatureMap, FeatureMap]:
        """Singles, pairs and label pairs, weighted; a family without tables has no blocks."""
        v = binning.variables
        by = (onehot(v[codec.schema.label]),) if self.by_label and codec.schema.label else ()
        singles = [_by(onehot(binning.parts[name]), by) for name in self.columns(codec)]
        pairs = [onehot(v[a], v[b]) for a, b in self.pairs]
        label_pairs = [_by(p, by) for p in pairs] if by else []
        shares = (self.share_single, self.share_pair, self.share_label_pair)
        weighted = [
            math.sqrt(share / len(maps)) * total(maps) if maps and share > 0 else FeatureMap(())
            for maps, share in zip((singles, pairs, label_pairs), shares, strict=True)
        ]
        return weighted[0], weighted[1], weighted[2]

    def feature_map(self, codec: Codec, binning: Binning) -> FeatureMap:
        singles, pairs, label_pairs = self.families(codec, binning)
        return singles + pairs + label_pairs

    def view(self, binning: Binning) -> View:
        def add(batch: Batch) -> Batch:
            return Batch(batch.numbers, {**batch.codes, **binning.codes(batch)})

        return add


class SecondLook(Recipe):
    """A second look at a few pairs of the tables before it, chosen from what was released.

    Each of the `count` tables has the weight √(1/count), whichever they are: the norm is 1 and the diameter √2.
    """

    kind: Literal["second look"] = "second look"
    count: int = Field(ge=1, le=100_000)

    def feature_map(self, binning: Binning, chosen: tuple[tuple[str, str], ...]) -> FeatureMap:
        v = binning.variables
        return math.sqrt(1 / self.count) * total([onehot(v[a], v[b]) for a, b in chosen])

    def largest(self, binning: Binning, tables: Tables) -> tuple[tuple[str, str], ...]:
        """The pairs with the largest tables: what a plan is priced with."""
        sizes = {name: v.size for name, v in binning.variables.items()}
        return tuple(sorted(tables.pairs, key=lambda pair: -sizes[pair[0]] * sizes[pair[1]])[: self.count])


class Choice(Recipe):
    """One column, the one that tells the classes most, chosen by noisy scores (`private/choose.py`): no sums come out.

    What is summed, in the room, are the exact label × column tables that the scores are computed from.
    """

    kind: Literal["choice"] = "choice"

    def feature_map(self, codec: Codec, binning: Binning, columns: tuple[str, ...]) -> FeatureMap:
        return total([class_table(codec, binning, name) for name in columns])


class CloserLook(Recipe):
    """The label × column table of the column that was chosen, by itself: the norm is 1 and the diameter √2."""

    kind: Literal["closer look"] = "closer look"


def class_table(codec: Codec, binning: Binning, column: str) -> FeatureMap:
    """Label × column, over bins."""
    if codec.schema.label is None:
        raise PlanError("a choice among columns needs a label")
    return onehot(binning.variables[codec.schema.label]) * onehot(binning.variables[column])


class Directions(Recipe):
    """Means and products of rows of normal scores, as directions, and a table of their lengths; each by label.

    For tables with more columns than pairs can be paid for. The shares add up to 1. Class counts beside them are free
    where a row is replaced: two rows of one class may lie further apart than √2, two of different classes do not, and
    the counts use up the difference.
    """

    kind: Literal["moments"] = "moments"
    group: int = Field(ge=1, le=65_536)  # neighbouring columns whose mean enters the products
    by_label: bool
    share_mean: float = Field(gt=0, lt=1)
    share_products: float = Field(gt=0, lt=1)
    share_length: float = Field(gt=0, lt=1)

    def _shares(self) -> tuple[float, ...]:
        return self.share_mean, self.share_products, self.share_length

    def columns(self, codec: Codec) -> tuple[str, ...]:
        """The scored columns."""
        return _features(codec, self.by_label)

    def moments(self, codec: Codec) -> Moments:
        return Moments(
            len(self.columns(codec)), self.group, self.share_products / (self.share_mean + self.share_products)
        )

    def feature_map(self, codec: Codec) -> FeatureMap:
        by = (onehot(codec.label),) if self.by_label and codec.label else ()
        share, moments = self.share_mean + self.share_products, self.moments(codec)
        length = math.sqrt(self.share_length) * onehot(Variable("#length", len(LENGTHS) + 1))
        counts = [math.sqrt(share * (moments.apart / 2 - 1)) * phi for phi in by]
        return total([*(_by(phi, by) for phi in (math.sqrt(share) * of(moments), length)), *counts])

    def view(self, scores: Scores) -> View:
        def add(batch: Batch) -> Batch:
            values = scores(batch)
            return Batch(values, {**batch.codes, "#length": lengths(values)})

        return add


class Embedding(Recipe):
    """The paper's mean embedding: (Fourier + one-hots ÷ √q) ⊗ label + counts · label, as one map."""

    kind: Literal["embedding"] = "embedding"
    dim: int = Field(ge=2, le=1_000_000)
    scales: tuple[Scale, ...] = Field(min_length=1)
    seed: int = Field(ge=0, lt=2**62)
    by_label: bool
    counts: float = Field(ge=0, le=MOST_COUNTS)  # weight of class counts (or of the row count); 0: neither is measured

    def fourier(self, codec: Codec) -> Fourier | None:
        columns = len(codec.numeric)
        return Fourier.draw(columns, self.dim, self.scales, self.seed) if columns else None

    def onehots(self, codec: Codec) -> tuple[Variable, ...]:
        """The discrete variables besides the label."""
        label = codec.label if self.by_label else None
        return tuple(v for v in codec.variables if label is None or v.name != label.name)

    def feature_map(self, codec: Codec) -> FeatureMap:
        fourier, discrete = self.fourier(codec), self.onehots(codec)
        parts = [of(fourier)] if fourier else []
        if discrete:
            parts.append(1 / math.sqrt(len(discrete)) * total([onehot(v) for v in discrete]))
        phi = total(parts)
        label = codec.label if self.by_label else None
        if label is not None:
            phi = phi * onehot(label)
        if self.counts > 0:
            phi = phi + self.counts * (onehot(label) if label is not None else constant())
        return phi

    def view(self, codec: Codec) -> View:
        return lambda batch: batch


class ImageBlock(Recipe):
    """Fourier features of one view of the pictures, with its share of the squared norm."""

    view: Literal["pixels", "coarse", "edges", "windows"]
    dim: int = Field(ge=2, le=1_000_000)
    scales: tuple[Scale, ...] = Field(min_length=1)
    share: float = Field(gt=0, le=1)


class ImageEmbedding(Recipe):
    """The mean embedding of pictures: (Σ √share · Fourier of a view + √tones · histogram) ⊗ label + counts · label.

    Shares and tones add up to 1, so the norm of the embedding is 1; beside it class counts of weight up to 1 are free.
    """

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
        return sum(b.dim for b in self.blocks)

    def dense(self, codec: Codec) -> tuple[FourierOf, ...]:
        """One map per block."""
        if codec.schema.image is None:
            raise PlanError('this plan measures pictures, and the schema has no column of kind = "image"')
        image = codec.schema.image[1]
        shape = (image.channels, image.height, image.width)
        return tuple(_drawn(shape, b, self.seed + i) for i, b in enumerate(self.blocks))

    def feature_map(self, codec: Codec) -> FeatureMap:
        maps = zip(self.blocks, self.dense(codec), strict=True)
        parts = [math.sqrt(b.share) * of(dense) for b, dense in maps]
        if self.tones > 0 and codec.schema.image is not None:
            image = codec.schema.image[1]
            parts.append(math.sqrt(self.tones) * of(Tones(image.channels, image.height * image.width)))
        phi, label = total(parts), codec.label
        if label is not None:
            phi = phi * onehot(label)
        if self.counts > 0:
            phi = phi + self.counts * (onehot(label) if label is not None else constant())
        return phi

    def view(self, codec: Codec) -> View:
        return lambda batch: batch


AnyRecipe = Annotated[
    Histograms | Tables | SecondLook | Choice | CloserLook | Directions | Embedding | ImageEmbedding,
    Field(discriminator="kind"),
]


@lru_cache(maxsize=8)
def _drawn(shape: tuple[int, int, int], block: ImageBlock, seed: int) -> FourierOf:
    """Drawn once per process: plans, releases and generators ask for the same map again and again."""
    return FourierOf.draw(Views(*shape), block.view, block.dim, block.scales, seed)


def _features(codec: Codec, by_label: bool) -> tuple[str, ...]:
    """The learned columns, without the label where rows are split by it."""
    label = codec.schema.label if by_label else None
    return tuple(name for name in codec.schema.learned if name != label)


def _by(phi: FeatureMap, label: tuple[FeatureMap, ...]) -> FeatureMap:
    return label[0] * phi if label else phi
