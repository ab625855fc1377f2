"""As given: synthetic rows in the kind of table that came in, with its columns' own types and its index.

A library's own types (Int64, boolean, string, an ordered category, a time zone) are chosen by people and are taken
over where they are wide enough for what the schema declares. Those that pandas chooses by looking at cells (a null
turns whole numbers into floats) are not: there the schema decides, and its `dtype`. No cell is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.encoding.codec import Axis
from dpmerf.encoding.stored_types import holds
from dpmerf.encoding.writing import restored
from dpmerf.schema import AnyColumn, Category, Id, Numeric, Schema
from dpmerf.schema.headers import index_names, is_typed
from dpmerf.sources.table import Rows

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["pandas", "polars", "pyarrow", "numpy"]
_MASKED = {"bool": "boolean", "float": "Float32", "double": "Float64"}
_MASKED |= {f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


@final
@dataclass(frozen=True)
class Given:
    """What came in: its kind, its columns' types in the kind's own words, and which columns were the index."""

    kind: Kind
    types: Mapping[str, Any] = field(default_factory=dict)
    index: tuple[str, ...] = ()

    @staticmethod
    def of(data: Any) -> Given:
        """Of a table in memory; anything else comes back as Arrow, by the schema alone."""
        if isinstance(data, pa.Table | pa.RecordBatch):
            return Given("pyarrow", {one.name: one.type for one in data.schema})
        if isinstance(data, str | os.PathLike | Rows):
            return Given("pyarrow")
        frame = nw.from_native(data)
        if frame.implementation.is_pandas():
            names = index_names(data)
            return Given(
                "pandas", {str(name): kind for name, kind in (*data.dtypes.items(), *names.items())}, (*names,)
            )
        if frame.implementation.is_polars():
            return Given("polars", dict(data.collect_schema()))
        return Given("pyarrow")

    def back(self, table: pa.Table, schema: Schema) -> Any:
        """Rows of this schema in the same kind and types."""
        match self.kind:
            case "pandas":
                return self._pandas(table, schema)
            case "polars":
                return self._polars(table, schema)
        return _retyped(table, schema, dict(self.types))

    def _pandas(self, table: pa.Table, schema: Schema) -> pd.DataFrame:
        import pandas as pd

        frame = nw.from_arrow(table, backend="pandas").to_native()
        made = {name: _series(table, name, schema, self.types.get(name), frame[name]) for name in frame.columns}
        found = pd.DataFrame(made, index=frame.index)
        kept = [name for name in self.index if name in made]
        return found.set_index(kept) if kept else found

    def _polars(self, table: pa.Table, schema: Schema) -> Any:
        import polars as pl

        empty = pl.DataFrame(schema={name: kind for name, kind in self.types.items() if name in table.column_names})
        types = {name: empty[name].to_arrow().type for name in empty.columns if is_typed(nw.from_native(empty)[name])}
        found = nw.from_arrow(_retyped(table, schema, types), backend="polars").to_native()
        enums = {name: column.levels for name, column in schema.columns.items() if isinstance(column, Category)}
        listed = [name for name in enums if isinstance(self.types.get(name), pl.Enum)]
        return found.with_columns(pl.col(name).cast(pl.String).cast(pl.Enum(map(str, enums[name]))) for name in listed)


def _retyped(table: pa.Table, schema: Schema, types: dict[str, pa.DataType]) -> pa.Table:
    """Columns in their stored types, where those hold what the schema declares and it declares no other."""
    columns = {}
    for name, array in zip(table.column_names, table.columns, strict=True):
        kind = types.get(name)
        columns[name] = array if kind is None else _stored(array.combine_chunks(), kind, schema, name)
    return pa.table(columns)


def _stored(array: pa.Array, kind: pa.DataType, schema: Schema, name: str) -> pa.Array:
    column = schema.columns[name]
    if column.dtype or kind == array.type or not _takes(column, kind):
        return array
    if pa.types.is_dictionary(kind) and isinstance(column, Category):
        levels = pa.array(column.levels, from_pandas=False)
        return pa.DictionaryArray.from_arrays(pc.index_in(array, levels), levels, ordered=kind.ordered)
    fits = holds(column, kind, Axis.of(column).value if isinstance(column, Numeric) else None)
    return restored(array, kind, schema.notation(name).zone) if fits else array


def _takes(column: AnyColumn, kind: pa.DataType) -> bool:
    """Is this a type that columns of the kind are kept in? An id may be text."""
    return column.stored_as(kind) is not None or (isinstance(column, Id) and Category.stored_as(kind) == {})


def _series(table: pa.Table, name: str, schema: Schema, kind: Any, plain: pd.Series) -> pd.Series:
    """A column in its own pandas type."""
    import pandas as pd

    column, array = schema.columns[name], table.column(name).combine_chunks()
    if isinstance(kind, pd.CategoricalDtype) and isinstance(column, Category):
        return pd.Series(pd.Categorical(plain, categories=list(column.levels), ordered=kind.ordered))
    if isinstance(kind, pd.ArrowDtype):
        stored = _stored(array, kind.pyarrow_dtype, schema, name)
        return pd.Series(pd.ArrowDtype(stored.type).__from_arrow__(stored))
    if isinstance(kind, pd.DatetimeTZDtype) and pa.types.is_timestamp(array.type):
        if array.type.tz is None:
            array = restored(array, pa.timestamp(array.type.unit, "UTC"), schema.notation(name).zone)
        return pd.Series(array.to_pandas()).dt.tz_convert(kind.tz).dt.as_unit(kind.unit)
    if isinstance(kind, pd.StringDtype) and (isinstance(column, Id) or pa.types.is_string(array.type)):
        return plain.astype(kind)
    if isinstance(kind, np.dtype):  # of these, pandas chooses all but a moment's unit by the cells
        moments = kind.kind == "M" and pa.types.is_timestamp(array.type) and not column.dtype
        return plain.dt.as_unit(np.datetime_data(kind)[0]) if moments else plain
    inner = getattr(kind, "numpy_dtype", None)  # Int64, Float64, boolean: values beside a mask
    if inner is None or not (pa.types.is_primitive(array.type) and not pa.types.is_temporal(array.type)):
        return plain
    stored = _stored(array, pa.from_numpy_dtype(inner), schema, name)
    own = pd.api.types.pandas_dtype(_MASKED[str(stored.type)])
    return pd.Series(own.__from_arrow__(stored))
