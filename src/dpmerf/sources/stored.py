"""Guessed types: what cannot be told apart in a frame whose library chose its types by looking at the cells."""

from __future__ import annotations

from dpmerf.encoding import listed
from dpmerf.errors import DataError
from dpmerf.schema import Category, Integer, Number, Schema
from dpmerf.sources.rows import Rows


def check_types(rows: Rows, schema: Schema) -> None:
    """Refuse a category of which two listed texts read alike ("1" and "01"), where texts may have become numbers.

    pandas and Polars make numbers of texts unless one cell stands in the way; then every row comes as text and finds
    another place. For other lists both forms give one place. Refused and not warned of, since a warning is read when
    the budget is spent; and whatever the type of the column is now, since that type may be due to one cell.
    """
    if not rows.guessed_types:
        return
    for name, column in schema.learned.items():
        notation = schema.notation(name)
        if notation.decimal != "." and isinstance(column, Number | Integer):
            raise DataError(
                f"column '{name}': the schema declares a decimal mark, and cells of this kind of table may have become "
                "numbers already. Pass the path of the file, or an Arrow table in which that column is text"
            )
        if isinstance(column, Category) and (pair := listed.clash((*column.levels, *column.synonyms))):
            raise DataError(
                f"column '{name}': the schema lists '{pair[0]}' and '{pair[1]}', which are one number or moment, and a "
                "pandas or Polars frame may have turned texts into numbers. Pass the path of the file, or an Arrow "
                "table in which that column is text"
            )
