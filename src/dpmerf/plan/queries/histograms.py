"""Histograms: how the rows of each column are spread, finely. Bins, quantiles and normal scores follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dpmerf.encoding.binning import FineGrid
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.query import Query, Weights, check_each, check_weights
from dpmerf.schema import Numeric

if TYPE_CHECKING:
    from torch import Tensor

    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema


@final
class Histograms(Query):
    """One-way tables over fine cells, each with weight 1 unless `weights` says otherwise.

    `columns` names those that need one; of any other column every cell is a bin of its own. Of numbers, those in
    `whole` have a cell for each value. `alike` names columns of numbers without a histogram that are cut as another.
    """

    words: ClassVar[str] = "histograms"
    once: ClassVar[bool] = True
    newer: ClassVar[tuple[str, ...]] = ("weights", "whole", "alike")

    kind: Literal["histograms"] = "histograms"
    cells: int = Field(ge=2, le=65_536)
    columns: tuple[str, ...] = Field(min_length=1)
    weights: Weights = ()
    whole: tuple[str, ...] = ()
    alike: tuple[tuple[str, str], ...] = ()

    def grid(self, codec: Codec) -> FineGrid:
        """The fine cells of every column."""
        return _grid(codec, self.cells, self.whole)

    def nominal(self, plan: Plan) -> FeatureMap:
        """The real map: it depends on the schema alone."""
        return self._map(plan.codec)

    def resolve(self, known: Known) -> Embedding:
        """The same, and the fine cells of a row."""
        grid = self.grid(known.codec)

        def view(batch: Batch) -> Batch:
            fine = {grid.variables[name].name: code for name, code in grid.encode(batch).items()}
            return Batch(batch.numbers, {**batch.codes, **fine})

        return Embedding(self._map(known.codec), view)

    def _map(self, codec: Codec) -> FeatureMap:
        variables = self.grid(codec).variables
        if unknown := [name for name in self.columns if name not in variables]:
            raise PlanError(f"there is no column '{unknown[0]}' to take a histogram of")
        maps = [onehot(variables[name]) for name in self.columns]
        return total([w * phi for w, phi in zip(self.weights, maps, strict=True)] if self.weights else maps)

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """Learned columns, each once."""
        learned = set(schema.learned)
        check_each(stage, self.columns, lambda name: name in learned)
        check_weights(stage, self.weights, self.columns)
        check_each(stage, self.whole, lambda name: name in learned and name in self.columns)
        numbers = {name for name, column in schema.learned.items() if isinstance(column, Numeric)}
        check_each(stage, [name for name, _ in self.alike], lambda name: name in numbers - set(self.columns))
        check_each(stage, [as_ for _, as_ in self.alike], lambda name: name in numbers & set(self.columns))


@lru_cache(maxsize=4)
def _grid(codec: Codec, cells: int, whole: tuple[str, ...]) -> FineGrid:
    """A plan asks for its grid a dozen times."""
    return FineGrid(codec, cells, whole)


def noisy_histograms(known: Known) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Column -> its noisy fine counts as released, and their noise."""
    measured = known.answers(known.plan.stage(Histograms))
    return {m.columns[0]: m.values for m in measured}, {m.columns[0]: m.sigma for m in measured}


def fine_counts(known: Known) -> tuple[dict[str, npt.NDArray[np.float64]], dict[str, float]]:
    """The same as arrays."""
    measured = known.answers(known.plan.stage(Histograms))
    return {m.columns[0]: m.numbers for m in measured}, {m.columns[0]: m.sigma for m in measured}
