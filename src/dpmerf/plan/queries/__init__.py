"""Queries: what stages measure, one file a kind. `AnyQuery` names them all: how a stored one is read."""

from typing import Annotated

from pydantic import Field

from dpmerf.plan.queries.column_selection import ColumnSelection
from dpmerf.plan.queries.directions import Directions
from dpmerf.plan.queries.histograms import Histograms
from dpmerf.plan.queries.image_embedding import ImageBlock, ImageEmbedding
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
    | ColumnSelection
    | SelectedTable
    | Directions
    | MeanEmbedding
    | ImageEmbedding
    | Readability,
    Field(discriminator="kind"),
]

__all__ = [
    "AnyQuery",
    "ColumnSelection",
    "Derived",
    "Directions",
    "Histograms",
    "ImageBlock",
    "ImageEmbedding",
    "MeanEmbedding",
    "PairsAgain",
    "PreferredValues",
    "Query",
    "Readability",
    "SelectedTable",
    "Tables",
    "find",
]
