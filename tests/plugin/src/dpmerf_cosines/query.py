"""What the plugin measures: moments of cosines of every number, and counts of every category."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import torch
from pydantic import Field
from torch import Tensor

from dpmerf.features.algebra import FeatureMap, of, onehot, total
from dpmerf.features.circle import cos_sin
from dpmerf.features.dense import Dense
from dpmerf.methods.method import Method, Request
from dpmerf.plan import Stage
from dpmerf.plan.embedding import Embedding, as_it_is
from dpmerf.plan.queries import Query


@final
@dataclass(frozen=True)
class CosineMap(Dense):
    """cos(k·π·x) for k = 1 … order and every column, divided by √(order · columns): the norm is at most 1.

    Each product and each cosine (`cos_sin` looks it up) is of one number by itself: the bits of a row are the same
    whatever rows surround it.
    """

    columns: int
    order: int

    @property
    def name(self) -> str:
        return "cosines"

    @property
    def dim(self) -> int:
        return self.columns * self.order

    def __call__(self, numbers: Tensor) -> Tensor:
        k = torch.arange(1, self.order + 1, dtype=numbers.dtype)
        angles = (math.pi * numbers[:, :, None] * k).flatten(1)  # (n, columns · order)
        return cos_sin(angles)[:, : self.dim].contiguous()


@final
class Cosines(Query):
    """Cosine moments of the numbers beside one-hots of the categories."""

    words: ClassVar[str] = "cosine moments"

    kind: Literal["cosines"] = "cosines"
    order: int = Field(default=8, ge=1, le=256)

    def _map(self, codec: Any) -> FeatureMap:
        parts = [of(CosineMap(len(codec.numeric), self.order))] if codec.numeric else []
        if codec.variables:
            parts.append(1 / math.sqrt(len(codec.variables)) * total([onehot(v) for v in codec.variables]))
        return total(parts)

    def nominal(self, plan: Any) -> FeatureMap:
        """The real map: it depends on the schema alone."""
        return self._map(plan.codec)

    def resolve(self, known: Any) -> Embedding:
        """The same; rows are taken as they are encoded."""
        return Embedding(self._map(known.codec), as_it_is)


def stages(asked: Request) -> tuple[Stage, ...]:
    """One stage, with as many cosines as the noise allows."""
    return (Stage("cosines", 1.0, Cosines(order=max(2, min(32, round(math.sqrt(asked.rows / asked.noise)))))),)


METHOD = Method("cosines", "cosine moments of every number, and counts", stages, "cosine-series")
