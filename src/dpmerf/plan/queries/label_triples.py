"""Label × triples: tables of three small columns in each class, where rows are many enough to show them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding.binning import Binning
from dpmerf.encoding.codec import Codec
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.query import Query, check_each, find
from dpmerf.plan.queries.tables import Tables, bins_of, in_bins

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.measurements import Measurement
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema

Triple = tuple[str, str, str]


@final
class LabelTriples(Query):
    """Label × three columns, over bins. Each of t tables has the weight √(1/t): the norm is 1 and the diameter √2."""

    words: ClassVar[str] = "label × triples"
    once: ClassVar[bool] = True
    after: ClassVar[type[Query] | None] = Tables

    kind: Literal["label triples"] = "label triples"
    triples: tuple[Triple, ...] = Field(min_length=1, max_length=10_000)

    def nominal(self, plan: Plan) -> FeatureMap:
        """With as many bins as there can be."""
        return self._map(plan.codec, plan.query(Tables).most_bins(plan))

    def expected(self, plan: Plan) -> FeatureMap:
        """With as many as are asked for."""
        return self._map(plan.codec, plan.query(Tables).expected_bins(plan))

    def resolve(self, known: Known) -> Embedding:
        """Over the bins that were cut."""
        binning = bins_of(known)
        return Embedding(self._map(known.codec, binning), in_bins(binning))

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """Tables by label before them, and three different binned columns each."""
        tables = find(before, Tables)
        if tables is None or not tables.by_label or schema.label is None:
            raise PlanError(f"{self.words} need tables by label before them: move or drop stage '{stage}'")
        binned = set(schema.learned) - {schema.label}
        check_each(stage, [tuple(sorted(t)) for t in self.triples], lambda t: len(set(t)) == 3 and set(t) <= binned)

    def _map(self, codec: Codec, binning: Binning) -> FeatureMap:
        v = binning.variables
        if codec.schema.label is None:
            raise PlanError(f"{self.words} need a label")
        label = onehot(v[codec.schema.label])
        tables = [label * onehot(v[a], v[b], v[c]) for a, b, c in self.triples]
        return math.sqrt(1 / len(tables)) * total(tables)


def noisy_triples(known: Known) -> tuple[tuple[Triple, Measurement], ...]:
    """The triples and their noisy tables, label first; none in most plans."""
    if not known.plan.has(LabelTriples):
        return ()
    label = known.codec.schema.label
    found = zip(known.plan.query(LabelTriples).triples, known.answers(known.plan.stage(LabelTriples)), strict=True)
    return tuple((triple, m.along([str(label), *triple])) for triple, m in found)
