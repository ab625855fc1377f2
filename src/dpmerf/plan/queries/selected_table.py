"""Selected table: label × the column that was selected, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, final

from dpmerf.errors import ArtefactError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.column_selection import ColumnSelection, class_table, selected_column
from dpmerf.plan.queries.query import Query
from dpmerf.plan.queries.tables import Tables, bins_of, in_bins

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan


@final
class SelectedTable(Query):
    """The label × column table of the column that was selected: the norm is 1 and the diameter √2."""

    words: ClassVar[str] = "the selected table"
    once: ClassVar[bool] = True
    after: ClassVar[type[Query] | None] = ColumnSelection

    kind: Literal["selected table", "closer look"] = "selected table"  # the second in older files

    def nominal(self, plan: Plan) -> FeatureMap:
        """Of the column with the most bins."""
        bins = plan.query(Tables).most_bins(plan)
        largest = max(plan.query(Tables).columns(plan.codec), key=lambda name: bins.variables[name].size)
        return class_table(plan.codec, bins, largest)

    def expected(self, plan: Plan) -> FeatureMap:
        """Nobody knows of which column."""
        return FeatureMap(())

    def resolve(self, known: Known) -> Embedding:
        """Of the column that was selected."""
        column, binning = selected_column(known), bins_of(known)
        if column is None:
            raise ArtefactError("the release has a selected table but no selection: it is damaged")
        return Embedding(class_table(known.codec, binning, column), in_bins(binning))
