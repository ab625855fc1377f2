"""Preferred values: single values, round numbers and hours that rows prefer, beyond what fine cells resolve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, final

import numpy as np
from pydantic import Field

from dpmerf.encoding.codec import Batch, Codec, Variable, null_name
from dpmerf.encoding.grain import Grain
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.lazy import torch
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.histograms import Histograms
from dpmerf.plan.queries.query import Query, check_each
from dpmerf.schema import Numeric

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema


@final
class PreferredValues(Query):
    """Counts of each column's values by remainder, divisor, hour and weekday (`encoding/grain.py`), null one more.

    They are one-way tables of public functions of a cell, all of the same weight: the norm is 1 and the diameter √2.
    """

    words: ClassVar[str] = "preferred values"
    once: ClassVar[bool] = True
    after: ClassVar[type[Query] | None] = Histograms

    kind: Literal["preferred values"] = "preferred values"
    columns: tuple[str, ...] = Field(min_length=1)

    def nominal(self, plan: Plan) -> FeatureMap:
        """The real map: it depends on the schema alone."""
        return self._map(self.grains(plan.codec, plan.query(Histograms)), plan.codec)

    def resolve(self, known: Known) -> Embedding:
        """The same, and the groups of a row's numbers."""
        codec = known.codec
        grains = self.grains(codec, known.plan.query(Histograms))

        def view(batch: Batch) -> Batch:
            found = dict(batch.codes)
            for name, grain in grains.items():
                levels = grain.fine.levels(batch.numbers[:, codec.numeric.index(name)])
                for what, group in grain.groups(levels).items():
                    code = torch.from_numpy(group)
                    if codec.schema.columns[name].nullable:
                        code = torch.where(batch.codes[null_name(name)] == 1, grain.sizes[what], code)
                    found[_named(name, what)] = code
            return Batch(batch.numbers, found)

        return Embedding(self._map(grains, codec), view)

    def grains(self, codec: Codec, histograms: Histograms) -> dict[str, Grain]:
        """Column -> how its values are looked at."""
        grid = histograms.grid(codec)
        return {name: Grain(codec.schema.columns[name], grid.numeric[name]) for name in self.columns}

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """Numeric columns, each once."""
        numbers = {name for name, column in schema.learned.items() if isinstance(column, Numeric)}
        check_each(stage, self.columns, lambda name: name in numbers)

    def _map(self, grains: dict[str, Grain], codec: Codec) -> FeatureMap:
        variables = [
            Variable(_named(name, what), size + codec.schema.columns[name].nullable)
            for name, grain in grains.items()
            for what, size in grain.sizes.items()
        ]
        return math.sqrt(1 / len(variables)) * total([onehot(v) for v in variables])


def _named(column: str, what: str) -> str:
    return f"#{what} of {column}"  # of no column's own cells: such a table answers no question about it


def preferred_counts(known: Known, column: str, grain: Grain) -> tuple[dict[str, np.ndarray], float]:
    """What is counted -> noisy counts of its groups, without null; and their noise."""
    measured = {m.variables[0].name: m for m in known.answers(known.plan.stage(PreferredValues))}
    found = {what: measured[_named(column, what)] for what in grain.sizes}
    return {what: m.numbers[: grain.sizes[what]] for what, m in found.items()}, next(iter(found.values())).sigma


def worth_counting(codec: Codec, name: str, histograms: Histograms) -> bool:
    """Whether a column's fine cells hold several values, and something can be said about them."""
    fine = histograms.grid(codec).numeric.get(name)
    return fine is not None and int(fine.widths.max()) > 1 and bool(Grain(codec.schema.columns[name], fine).sizes)
