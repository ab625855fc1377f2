"""Directions: means and products of rows of normal scores, for tables with more columns than pairs can be paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding.codec import Batch, Codec, Variable
from dpmerf.encoding.normal_scores import LENGTHS, Scores, lengths
from dpmerf.errors import ArtefactError, PlanError
from dpmerf.features.algebra import FeatureMap, of, onehot, total
from dpmerf.features.moments import Moments
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.histograms import Histograms, noisy_histograms
from dpmerf.plan.queries.query import Query, check_label, features, find, label_of, split
from dpmerf.plan.queries.tables import Tables

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema

NORM = Variable("#length", len(LENGTHS) + 1)  # in which bin the norm of a row's scores lies


@final
class Directions(Query):
    """Means and products of rows of normal scores, as directions, and a table of their norms; each by label.

    The shares add up to 1. Class counts beside them are free where a row is replaced: two rows of one class may lie
    further from each other than √2, two of different classes do not, and the counts use up the difference.
    """

    words: ClassVar[str] = "directions"
    once: ClassVar[bool] = True
    after: ClassVar[type[Query] | None] = Histograms
    derives: ClassVar[tuple[str, ...]] = ("mass",)

    kind: Literal["moments"] = "moments"  # as stored
    group: int = Field(ge=1, le=65_536)  # neighbouring columns whose mean enters the products
    by_label: bool
    share_mean: float = Field(gt=0, lt=1)
    share_products: float = Field(gt=0, lt=1)
    share_length: float = Field(gt=0, lt=1)

    def _shares(self) -> tuple[float, ...]:
        return self.share_mean, self.share_products, self.share_length

    def columns(self, codec: Codec) -> tuple[str, ...]:
        """The scored columns."""
        return features(codec, self.by_label)

    def classes(self, codec: Codec) -> int:
        """How many classes rows are split into."""
        return codec.label.size if self.by_label and codec.label else 1

    def moments(self, codec: Codec) -> Moments:
        """Means and products as one dense map."""
        share = self.share_products / (self.share_mean + self.share_products)
        return Moments(len(self.columns(codec)), self.group, share)

    def feature_map(self, codec: Codec) -> FeatureMap:
        """The map: its size depends on the schema alone."""
        label = label_of(codec, self.by_label)
        share, moments = self.share_mean + self.share_products, self.moments(codec)
        norms = math.sqrt(self.share_length) * onehot(NORM)
        parts = [split(phi, label) for phi in (math.sqrt(share) * of(moments), norms)]
        return total(parts if label is None else [*parts, math.sqrt(share * (moments.apart / 2 - 1)) * label])

    def nominal(self, plan: Plan) -> FeatureMap:
        """The real map."""
        return self.feature_map(plan.codec)

    def resolve(self, known: Known) -> Embedding:
        """The same, of a row's normal scores. They are no numbers in [0, 1], so they have a place of their own."""
        scores = scores_of(known)

        def view(batch: Batch) -> Batch:
            values = scores(batch)
            return Batch(batch.numbers, {**batch.codes, NORM.name: lengths(values)}, values)

        return Embedding(self.feature_map(known.codec), view)

    def derive(self, known: Known) -> Scores:
        """Normal scores from the noisy histograms: post-processing."""
        counts, sigmas = noisy_histograms(known)
        sigma = max(sigmas.values())  # all alike: wide tables have histograms of one weight
        grid = known.plan.query(Histograms).grid(known.codec)
        return Scores.estimate(grid, counts, sigma, known.rows_estimate)

    def read_derived(self, plan: Plan, data: dict[str, Any]) -> Scores:
        """Stored masses."""
        return Scores.from_json(plan.query(Histograms).grid(plan.codec), data)

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """A label where it is needed, and no tables."""
        check_label(stage, self.by_label, schema)
        if find(before, Tables):
            raise PlanError("a plan has tables or directions, not both: bins or scores follow from its histograms")


def scores_of(known: Known) -> Scores:
    """The normal scores that followed from the histograms."""
    scores = known.derived_by(Directions)
    if not isinstance(scores, Scores):
        raise ArtefactError("the release has directions but no scores: it is damaged")
    return scores
