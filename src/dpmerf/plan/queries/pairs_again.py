"""Pairs measured again: those whose noisy tables depart most from independence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding.binning import Binning
from dpmerf.errors import ArtefactError, PlanError
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.plan.dependence import most_dependent
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.query import Query, find
from dpmerf.plan.queries.tables import Tables, bins_of, in_bins

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema

Pair = tuple[str, str]


@final
@dataclass(frozen=True)
class Picked:
    """Pairs of columns."""

    pairs: tuple[Pair, ...]

    def to_json(self) -> dict[str, Any]:
        """As release.json keeps it."""
        return {"chosen": [list(pair) for pair in self.pairs]}


@final
class PairsAgain(Query):
    """Tables of a few pairs once more. They are picked from released tables, so picking costs nothing.

    Each of the `count` tables has the weight √(1/count), whichever they are: the norm is 1 and the diameter √2.
    """

    words: ClassVar[str] = "pairs measured again"
    once: ClassVar[bool] = True
    after: ClassVar[type[Query] | None] = Tables
    derives: ClassVar[tuple[str, ...]] = ("chosen",)
    recounts: ClassVar[bool] = True

    kind: Literal["pairs again", "second look"] = "pairs again"  # the second in older files
    count: int = Field(ge=1, le=100_000)

    def nominal(self, plan: Plan) -> FeatureMap:
        """With the pairs that have the most cells."""
        return self._largest(plan, plan.query(Tables).most_bins(plan))

    def expected(self, plan: Plan) -> FeatureMap:
        """The same over as many bins as are asked for."""
        return self._largest(plan, plan.query(Tables).expected_bins(plan))

    def resolve(self, known: Known) -> Embedding:
        """With the pairs that were picked."""
        binning = bins_of(known)
        return Embedding(self._map(binning, picked_pairs(known)), in_bins(binning))

    def derive(self, known: Known) -> Picked:
        """The pairs, from the noisy tables: post-processing."""
        return Picked(tuple(most_dependent(known, self.count)))

    def read_derived(self, plan: Plan, data: dict[str, Any]) -> Picked:
        """Stored pairs."""
        return Picked(tuple((str(a), str(b)) for a, b in data["chosen"]))

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """No more pairs than were measured."""
        tables = find(before, Tables)
        measured = len(tables.pairs) if tables and tables.share_pair > 0 else 0
        if self.count > measured:
            raise PlanError(f"{self.words} are at most as many pairs as the tables before them have")

    def _largest(self, plan: Plan, binning: Binning) -> FeatureMap:
        sizes = {name: v.size for name, v in binning.variables.items()}
        pairs = plan.query(Tables).pairs
        most = sorted(pairs, key=lambda pair: -sizes[pair[0]] * sizes[pair[1]])[: self.count]
        return self._map(binning, tuple(most))

    def _map(self, binning: Binning, pairs: tuple[Pair, ...]) -> FeatureMap:
        v = binning.variables
        return math.sqrt(1 / self.count) * total([onehot(v[a], v[b]) for a, b in pairs])


def picked_pairs(known: Known) -> tuple[Pair, ...]:
    """The pairs that are measured again; none in most plans."""
    picked = known.derived_by(PairsAgain)
    if picked is None:
        return ()
    if not isinstance(picked, Picked):
        raise ArtefactError("the release measures pairs again but does not say which: it is damaged")
    return picked.pairs
