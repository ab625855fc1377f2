"""Broken relations: how many rows break those that a person declared? Asked by name, and priced like any count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding import broken
from dpmerf.encoding.codec import Variable
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.query import Query, check_each

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema


@final
class BrokenRelations(Query):
    """A table of two answers (kept, broken) for each of some relations, each with weight 1."""

    words: ClassVar[str] = "broken relations"
    once: ClassVar[bool] = True
    drawn: ClassVar[bool] = False

    kind: Literal["broken relations"] = "broken relations"
    relations: tuple[int, ...] = Field(min_length=1)  # by their places in the schema

    def nominal(self, plan: Plan) -> FeatureMap:
        """The real map: one place of each relation, B² = relations and d² = 2 · relations."""
        if not all(0 <= i < len(plan.schema.relations) for i in self.relations):
            raise PlanError("a plan counts rows that break a relation which the schema does not have")
        return total([onehot(Variable(broken.variable_name(i), 2)) for i in self.relations])

    def resolve(self, known: Known) -> Embedding:
        """The same. The codec says of each row which answer it is."""
        return Embedding(self.nominal(known.plan), lambda batch: batch)

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """Each relation once."""
        check_each(stage, self.relations, lambda i: i >= 0)


@final
@dataclass(frozen=True)
class BrokenShare:
    """What a release says about one relation: the noisy share of rows that break it, and its standard deviation."""

    relation: str
    share: float
    noise: float

    @property
    def words(self) -> str:
        """For people, with a 95 % interval.

        >>> BrokenShare("a <= b", 0.0312, 0.002).words
        "relation 'a <= b': about 3.1 % of the rows break it (± 0.4)"
        """
        share = min(max(self.share, 0.0), 1.0)
        return f"relation '{self.relation}': about {share:.1%} of the rows break it (± {196 * self.noise:.1f})".replace(
            "%", " %"
        )


def broken_shares(known: Known) -> tuple[BrokenShare, ...]:
    """What the stage said about each of its relations; none where there was no such stage."""
    if not known.plan.has(BrokenRelations):
        return ()
    stage, relations, rows = known.plan.stage(BrokenRelations), known.plan.schema.relations, known.rows_estimate
    named = [relations[i].name or relations[i].words for i in known.plan.query(BrokenRelations).relations]
    answers = zip(named, known.answers(stage), strict=True)
    return tuple(BrokenShare(name, float(m.numbers[1]) / rows, m.sigma / rows) for name, m in answers)
