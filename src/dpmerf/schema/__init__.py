"""Schema: column kinds and public facts, read from TOML."""

from dpmerf.schema.columns import (
    KINDS,
    AnyColumn,
    Category,
    Column,
    Date,
    Flag,
    Id,
    Image,
    Integer,
    Number,
    Numeric,
    Time,
    Timestamp,
)
from dpmerf.schema.explain import GAP, Problem
from dpmerf.schema.schema import FORMAT, Schema, check_label, problems_of

__all__ = [
    "FORMAT",
    "GAP",
    "KINDS",
    "AnyColumn",
    "Category",
    "Column",
    "Date",
    "Flag",
    "Id",
    "Image",
    "Integer",
    "Number",
    "Numeric",
    "Problem",
    "Schema",
    "Time",
    "Timestamp",
    "check_label",
    "problems_of",
]
