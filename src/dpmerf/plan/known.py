"""Known: what a release has said so far. It grows stage by stage; a `Release` is a complete one. Holds no row.

A stage is first prepared (what its query derives from earlier answers), then measured, then answered. The locked room
goes this way, and `verify` goes it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from dpmerf.accounting.events import Gaussian
from dpmerf.encoding.binning import Binning
from dpmerf.encoding.codec import Codec
from dpmerf.encoding.normal_scores import Scores
from dpmerf.features.algebra import BITS
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.measurements import Measurement, measured, table_of, tables_of
from dpmerf.plan.plan import Plan
from dpmerf.plan.queries import Derived, Directions, Query, Tables
from dpmerf.plan.stages import Stage
from dpmerf.plan.sums import Integers, sums_of

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor


@dataclass(frozen=True)
class Known:
    """A plan and the answers to some of its stages. Extended by `Release` alone."""

    plan: Plan
    sums: Mapping[str, Tensor]  # stage -> (dim,) int64, noisy; of a selection (1,), which candidate
    rows: int | None  # None: the number of rows is protected; see `rows_estimate`
    noise: str  # the name of its source
    derived: Mapping[str, Derived]  # stage -> what its query was resolved with

    def prepared(self, stage: Stage) -> Self:
        """With what the stage's query derives from earlier answers: post-processing."""
        derived = stage.query.derive(self)
        return self if derived is None else replace(self, derived={**self.derived, stage.name: derived})

    def answered(self, stage: Stage, sums: Tensor, rows: int | None) -> Self:
        """With the stage's noisy sums."""
        return replace(self, sums={**self.sums, stage.name: sums}, rows=rows)

    @property
    def codec(self) -> Codec:
        """From rows to tensors and back."""
        return self.plan.codec

    def derived_by(self, kind: type[Query]) -> Derived | None:
        """What the stage of that kind was resolved with; None if there is none, or not yet."""
        return self.derived.get(self.plan.stage(kind).name) if self.plan.has(kind) else None

    @property
    def binning(self) -> Binning | None:
        """The bins of tables."""
        found = self.derived_by(Tables)
        return found if isinstance(found, Binning) else None

    @property
    def scores(self) -> Scores | None:
        """The normal scores of directions."""
        found = self.derived_by(Directions)
        return found if isinstance(found, Scores) else None

    def embedding(self, stage: Stage) -> Embedding:
        """What is really measured in a stage, at its real size."""
        return stage.query.resolve(self)

    def numbers(self, stage: Stage) -> Integers:
        """(dim,) the stage's noisy sums as an array."""
        return sums_of(self.sums, stage.name)

    def answers(self, stage: Stage) -> tuple[Measurement, ...]:
        """The stage's noisy sums in natural units. A selection, or a stage that is still to come, has none."""
        if stage.query.event is not Gaussian or stage.name not in self.sums:
            return ()
        return measured(stage.name, self.embedding(stage).phi, self.numbers(stage), self.plan.price_of(stage).sigma)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy sums of all stages, in natural units."""
        return tuple(m for stage in self.plan.stages for m in self.answers(stage))

    def tables(self, *columns: str) -> list[Measurement]:
        """Every noisy table of counts over exactly these columns, axes in that order."""
        return tables_of(self.measurements, columns)

    def table(self, *columns: str) -> Measurement:
        """The finest of them; if it was measured several times, the mean by precision. TrainError if there is none."""
        return table_of(self.measurements, columns)

    def distance(self, rows: pa.Table) -> float:
        """How far rows lie from the release: ‖released − their mean embedding‖², whitened by its noise, ÷ dimension.

        One measure for whatever drew them, and no private row is needed. For rows like those measured the noise
        alone makes it 1, up to √(2/dimension); rows that say something else lie farther away. Draw at least as many as
        were measured, or what they vary by chance is seen as well.
        """
        batch, square, dim = self.codec.encode(rows, as_written=True), 0.0, 0
        for stage in self.plan.stages:
            if stage.query.drawn and stage.query.event is Gaussian and stage.name in self.sums:
                mean = self.embedding(stage).mean(batch)
                expected = mean * (self.rows_estimate * 2**BITS)
                gap = (self.sums[stage.name].double() - expected) / self.plan.price_of(stage).sigma
                square, dim = square + float(gap.square().sum()), dim + len(gap)
        return square / max(dim, 1)

    @cached_property
    def rows_estimate(self) -> float:
        """The number of rows: exact where public, else the best estimate from every noisy table of counts."""
        if self.rows is not None:
            return float(self.rows)
        weighted = precision = 0.0
        for m in self.measurements:
            if m.dense is None:
                p = 1 / (m.cells * m.sigma**2)
                weighted, precision = weighted + p * float(m.numbers.sum()), precision + p
        return max(1.0, weighted / precision) if precision else float(self.plan.rows)
