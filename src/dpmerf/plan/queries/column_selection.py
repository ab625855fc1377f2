"""Column selection: which column separates the classes most, by the exponential mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, final

from dpmerf.accounting.events import Event, Selection
from dpmerf.encoding.binning import Binning
from dpmerf.encoding.codec import Codec
from dpmerf.errors import ArtefactError, PlanError
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.query import Query, find
from dpmerf.plan.queries.tables import Tables, bins_of, in_bins

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema


@final
class ColumnSelection(Query):
    """One column, the one that separates the classes most, selected by noisy scores (`private/select.py`).

    What is summed, in the room, are the exact label × column tables that the scores are computed from. Only the
    selected column's place comes out.
    """

    words: ClassVar[str] = "the selection of a column"
    event: ClassVar[type[Event]] = Selection
    once: ClassVar[bool] = True
    after: ClassVar[type[Query] | None] = Tables

    kind: Literal["column selection", "choice"] = "column selection"  # the second in older files

    def nominal(self, plan: Plan) -> FeatureMap:
        """Over as many bins as there can be."""
        return self._map(plan.codec, plan.query(Tables), plan.query(Tables).most_bins(plan))

    def expected(self, plan: Plan) -> FeatureMap:
        """No counts come out."""
        return FeatureMap(())

    def resolve(self, known: Known) -> Embedding:
        """Over the bins that were cut."""
        binning = bins_of(known)
        return Embedding(self._map(known.codec, known.plan.query(Tables), binning), in_bins(binning))

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """Classes must have been counted."""
        tables = find(before, Tables)
        if not (tables and tables.by_label):
            raise PlanError(f"{self.words} needs tables by label before it")

    def _map(self, codec: Codec, tables: Tables, binning: Binning) -> FeatureMap:
        return total([class_table(codec, binning, name) for name in tables.columns(codec)])


def selected_column(known: Known) -> str | None:
    """The column that was selected; None before that, and in most plans."""
    if not known.plan.has(ColumnSelection) or known.plan.stage(ColumnSelection).name not in known.sums:
        return None
    columns = known.plan.query(Tables).columns(known.codec)
    place = int(known.numbers(known.plan.stage(ColumnSelection)).item())
    if not 0 <= place < len(columns):
        raise ArtefactError("the release selected a column that does not exist: it is damaged")
    return columns[place]


def class_table(codec: Codec, binning: Binning, column: str) -> FeatureMap:
    """Label × column, over bins."""
    if codec.schema.label is None:
        raise PlanError("the selection of a column needs a label")
    return onehot(binning.variables[codec.schema.label]) * onehot(binning.variables[column])
