"""Readable first: a small stage before all others that asks whether the columns can be read as declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dpmerf.methods.settings import MethodSettings
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import Readability
from dpmerf.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa


def readable_first(plan: Plan, columns: tuple[str, ...], settings: MethodSettings | None = None) -> Plan:
    """The same plan with that stage, which takes its share from all others; without columns, the plan itself."""
    if not columns or plan.schema.image is not None:
        return plan
    share = (settings or MethodSettings()).readability
    others = tuple(replace(stage, share=stage.share * (1 - share)) for stage in plan.stages)
    return replace(plan, stages=(Stage("readability", share, Readability(columns=columns)), *others))


def in_doubt(schema: Schema, fields: Mapping[str, pa.DataType | None] | None, guessed: bool) -> tuple[str, ...]:
    """Columns that may come otherwise than declared: text, objects, or types that were chosen by looking at cells.

    `fields` are the stored types where the table is known: a stored number can only be out of bounds, which needs no
    purchase. Without a table, all columns that are read.
    """
    if fields is None or guessed:
        return schema.needed
    return tuple(name for name in schema.needed if name in fields and _in_doubt(fields[name]))


def _in_doubt(stored: pa.DataType | None) -> bool:
    from pyarrow import types

    if stored is None or types.is_null(stored):
        return True
    if types.is_dictionary(stored):
        stored = stored.value_type
    return bool(types.is_string(stored) or types.is_large_string(stored) or types.is_string_view(stored))
