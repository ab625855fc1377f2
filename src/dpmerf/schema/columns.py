"""Columns: the kinds that a column can have. A new kind is a class of its own in `kinds/` and its line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from dpmerf.schema.kinds.calendar import Date, Timestamp
from dpmerf.schema.kinds.column import Column, Form, Numeric, Value
from dpmerf.schema.kinds.listed_kinds import Category, Flag, Id, Image
from dpmerf.schema.kinds.numbers import MAX_BINS, Integer, Number
from dpmerf.schema.kinds.time_of_day import Time

_ALL: tuple[type[Column], ...] = (Category, Flag, Id, Number, Integer, Date, Timestamp, Time, Image)
KINDS: dict[str, type[Column]] = {kind.model_fields["kind"].default: kind for kind in _ALL}


class _ByKind:
    """Tells pydantic which class reads a column: the one that its `kind` names."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        known: Any = Union[tuple(KINDS.values())]  # noqa: UP007 (a union of a list that may grow)
        return handler.generate_schema(Annotated[known, Field(discriminator="kind")])


if TYPE_CHECKING:
    AnyColumn = Column
else:
    AnyColumn = Annotated[Column, _ByKind]


def forms() -> list[Form]:
    """Forms of cells that one kind alone knows."""
    return [kind.form for kind in KINDS.values() if kind.form is not None]


__all__ = ["KINDS", "MAX_BINS", "AnyColumn", "Category", "Column", "Date", "Flag", "Form", "Id", "Image", "Integer",
           "Number", "Numeric", "Timestamp", "Value", "forms"]  # fmt: skip
