"""Tables: contingency tables over bins that released histograms cut."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding.binning import LEAST_PART, Binning
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.errors import ArtefactError, PlanError
from dpmerf.features.algebra import BITS, FeatureMap, onehot, total
from dpmerf.plan.embedding import Embedding, View
from dpmerf.plan.queries.histograms import Histograms, fine_counts
from dpmerf.plan.queries.query import Query, Weights, check_each, check_label, check_weights, features, split, weighed

if TYPE_CHECKING:
    import numpy as np

    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema


@final
class Tables(Query):
    """Label × column (over sub-bins), pairs of columns, label × pairs.

    Each family has its share. A family of t tables with share s gives each of its tables the weight √(s/t), or weights
    in the proportions of `pair_weights` whose squares add up to s: so the norm is 1 and the diameter √2.
    """

    words: ClassVar[str] = "tables"
    once: ClassVar[bool] = True
    after: ClassVar[type[Query] | None] = Histograms
    derives: ClassVar[tuple[str, ...]] = ("bins", "parts")
    newer: ClassVar[tuple[str, ...]] = ("pair_weights",)

    kind: Literal["tables"] = "tables"
    bins: int = Field(ge=2, le=4096)
    parts: int = Field(ge=1, le=64)  # sub-bins of a bin, at most
    by_label: bool  # tables are also split by the label
    pairs: tuple[tuple[str, str], ...]
    pair_weights: Weights = ()
    share_single: float = Field(ge=0, le=1)
    share_pair: float = Field(ge=0, le=1)
    share_label_pair: float = Field(ge=0, le=1)

    def _shares(self) -> tuple[float, ...]:
        return self.share_single, self.share_pair, self.share_label_pair

    def columns(self, codec: Codec) -> tuple[str, ...]:
        """The binned columns."""
        return features(codec, self.by_label)

    def label(self, codec: Codec) -> str | None:
        """The column by which tables are split."""
        return codec.schema.label if self.by_label else None

    def nominal(self, plan: Plan) -> FeatureMap:
        """With as many bins as there can be."""
        return self._map(plan.codec, self.most_bins(plan))

    def expected(self, plan: Plan) -> FeatureMap:
        """With as many as are asked for."""
        return self._map(plan.codec, self.expected_bins(plan))

    def resolve(self, known: Known) -> Embedding:
        """Over the bins that were cut."""
        binning = bins_of(known)
        return Embedding(self._map(known.codec, binning), in_bins(binning))

    def derive(self, known: Known) -> Binning:
        """Bins from the noisy histograms: post-processing."""
        return self.bins_for(known.plan, *fine_counts(known), known.rows_estimate)

    def bins_for(
        self, plan: Plan, counts: Mapping[str, np.ndarray], sigmas: Mapping[str, float], rows: float
    ) -> Binning:
        """Those that fine counts, with noise of these sizes, lead to."""
        label = self.label(plan.codec)
        whole = frozenset({label} if label else ())
        histograms = plan.query(Histograms)
        grid, alike = histograms.grid(plan.codec), dict(histograms.alike)
        return Binning.cut(grid, counts, sigmas, rows, self.bins, whole, self.parts, self._part_noise(plan), alike)

    def read_derived(self, plan: Plan, data: dict[str, Any]) -> Binning:
        """Stored bins."""
        return Binning.from_json(plan.query(Histograms).grid(plan.codec), data)

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """A label where it is needed, and pairs of different binned columns, each once."""
        check_label(stage, self.by_label, schema)
        binned = set(schema.learned) - {schema.label if self.by_label else None}
        pairs = [tuple(sorted(pair)) for pair in self.pairs]
        check_each(stage, pairs, lambda pair: pair[0] != pair[1] and set(pair) <= binned)
        check_weights(stage, self.pair_weights, self.pairs)
        if any("mass" in query.derives for query in before):
            raise PlanError("a plan has tables or directions, not both: bins or scores follow from its histograms")

    def most_bins(self, plan: Plan) -> Binning:
        """Public bins, at least as many as can be cut."""
        return Binning.equal(plan.query(Histograms).grid(plan.codec), 2 * self.bins, self.parts)

    def expected_bins(self, plan: Plan) -> Binning:
        """Public bins, as many as are asked for, in as many sub-bins as the expected rows afford."""
        least = LEAST_PART * self._part_noise(plan)
        parts = min(max(1, int(plan.rows / self.bins / least)), self.parts)
        return Binning.equal(plan.query(Histograms).grid(plan.codec), self.bins, parts)

    def _part_noise(self, plan: Plan) -> float:
        """Of one count of label × column: its weight is known before the bins are."""
        single = self.nominal(plan).blocks[0]
        return plan.price_of(plan.stage(Tables)).sigma / (single.weight * 2**BITS)

    def _map(self, codec: Codec, binning: Binning) -> FeatureMap:
        v, label = binning.variables, self.label(codec)
        by = onehot(v[label]) if label else None
        singles = [split(onehot(binning.parts[name]), by) for name in self.columns(codec)]
        pairs = [onehot(v[a], v[b]) for a, b in self.pairs]
        label_pairs = [split(p, by) for p in pairs] if by else []
        families = [
            math.sqrt(share / len(maps)) * total(maps) if not weights else math.sqrt(share) * weighed(maps, weights)
            for maps, share, weights in zip(
                (singles, pairs, label_pairs), self._shares(), ((), self.pair_weights, self.pair_weights), strict=True
            )
            if maps and share > 0
        ]
        return total(families)


def bins_of(known: Known) -> Binning:
    """The bins that were cut for the tables."""
    if known.binning is None:
        raise ArtefactError("the release has tables but no bins: it is damaged")
    return known.binning


def in_bins(binning: Binning) -> View:
    """The bins and sub-bins of a row."""

    def view(batch: Batch) -> Batch:
        return Batch(batch.numbers, {**batch.codes, **binning.codes(batch)})

    return view
