"""Mean embedding: the paper's φ, random Fourier features of numbers and one-hots of categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding.codec import Codec, Variable
from dpmerf.features.algebra import FeatureMap, constant, of, onehot, total
from dpmerf.features.fourier import Fourier
from dpmerf.plan.embedding import Embedding, as_it_is
from dpmerf.plan.queries.query import MOST_COUNTS, Query, Scale, check_label

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema


@final
class MeanEmbedding(Query):
    """(Fourier + one-hots ÷ √q) ⊗ label + counts · label, as one map."""

    words: ClassVar[str] = "a mean embedding"

    kind: Literal["embedding"] = "embedding"
    dim: int = Field(ge=2, le=1_000_000)
    scales: tuple[Scale, ...] = Field(min_length=1)
    seed: int = Field(ge=0, lt=2**62)
    by_label: bool
    counts: float = Field(ge=0, le=MOST_COUNTS)  # weight of class counts (or of the row count); 0: neither is measured

    def label(self, codec: Codec) -> Variable | None:
        """The label, where rows are split by it."""
        return codec.label if self.by_label else None

    def fourier(self, codec: Codec) -> Fourier | None:
        """The features of numbers; None if there are none."""
        columns = len(codec.numeric)
        return Fourier.draw(columns, self.dim, self.scales, self.seed) if columns else None

    def onehots(self, codec: Codec) -> tuple[Variable, ...]:
        """The discrete variables besides the label."""
        label = self.label(codec)
        return tuple(v for v in codec.variables if label is None or v.name != label.name)

    def feature_map(self, codec: Codec) -> FeatureMap:
        """The map: it depends on the schema alone."""
        fourier, discrete = self.fourier(codec), self.onehots(codec)
        parts = [of(fourier)] if fourier else []
        if discrete:
            parts.append(1 / math.sqrt(len(discrete)) * total([onehot(v) for v in discrete]))
        return counted(total(parts), self.label(codec), self.counts)

    @property
    def fourier_features(self) -> int:
        """Those of all scales together."""
        return self.dim

    def nominal(self, plan: Plan) -> FeatureMap:
        """The real map."""
        return self.feature_map(plan.codec)

    def resolve(self, known: Known) -> Embedding:
        """The same; rows are taken as they are encoded."""
        return Embedding(self.feature_map(known.codec), as_it_is)

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """A label where it is needed."""
        check_label(stage, self.by_label, schema)


def counted(phi: FeatureMap, label: Variable | None, weight: float) -> FeatureMap:
    """The map in each class, and how many rows each class has, or all, if `weight` is above 0."""
    if label is not None:
        phi = phi * onehot(label)
    if weight > 0:
        phi = phi + weight * (onehot(label) if label is not None else constant())
    return phi
