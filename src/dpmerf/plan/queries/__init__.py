"""Queries: what stages measure, one file a kind. `AnyQuery` names them all: how a stored one is read."""

from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter

from dpmerf import plugins
from dpmerf.errors import ArtefactError
from dpmerf.plan.queries.broken_relations import BrokenRelations
from dpmerf.plan.queries.column_selection import ColumnSelection
from dpmerf.plan.queries.directions import Directions
from dpmerf.plan.queries.histograms import Histograms
from dpmerf.plan.queries.image_embedding import ImageBlock, ImageEmbedding
from dpmerf.plan.queries.label_triples import LabelTriples
from dpmerf.plan.queries.mean_embedding import MeanEmbedding
from dpmerf.plan.queries.pairs_again import PairsAgain
from dpmerf.plan.queries.preferred_values import PreferredValues
from dpmerf.plan.queries.query import Derived, Query, find
from dpmerf.plan.queries.readability import Readability
from dpmerf.plan.queries.selected_table import SelectedTable
from dpmerf.plan.queries.tables import Tables

AnyQuery = Annotated[
    Histograms
    | PreferredValues
    | Tables
    | PairsAgain
    | LabelTriples
    | ColumnSelection
    | SelectedTable
    | Directions
    | MeanEmbedding
    | ImageEmbedding
    | Readability
    | BrokenRelations,
    Field(discriminator="kind"),
]

_OWN: TypeAdapter[AnyQuery] = TypeAdapter(AnyQuery)
_KINDS = frozenset(word for kind in Query.__subclasses__() for word in get_args(kind.model_fields["kind"].annotation))


def read_query(data: Any) -> Query:
    """A stored query: one of ours, or a plugin's that is installed."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind in _KINDS:
        return _OWN.validate_python(data)
    plugin = plugins.load("queries", kind)
    if plugin is None:
        raise ArtefactError(
            f"its stage is measured by the plugin '{kind}', which is not installed: install its package"
        )
    if not (isinstance(plugin, type) and issubclass(plugin, Query)):
        raise ArtefactError(f"the plugin '{kind}' is no query: it must extend dpmerf.plan.queries.Query")
    return plugin.model_validate(data)


__all__ = [
    "AnyQuery",
    "BrokenRelations",
    "ColumnSelection",
    "Derived",
    "Directions",
    "Histograms",
    "ImageBlock",
    "ImageEmbedding",
    "LabelTriples",
    "MeanEmbedding",
    "PairsAgain",
    "PreferredValues",
    "Query",
    "Readability",
    "SelectedTable",
    "Tables",
    "find",
    "read_query",
]
