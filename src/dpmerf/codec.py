"""Codec: rows <-> tensors, a pure function of the schema. Nothing is fitted on rows.

A row becomes `numbers` in [0, 1], one per numeric column (or per pixel of an image, channel by channel), and `codes`,
one per discrete variable. A nullable numeric column brings a variable `NAME#null`; a numeric label brings
`NAME#label`, its public equal-width bins.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from dpmerf import cells, pixels
from dpmerf.errors import SchemaError
from dpmerf.schema import AnyColumn, Category, Date, Flag, Id, Image, Integer, Number, Numeric, Schema, Timestamp

LABEL_BINS = 10
_EPOCH = dt.datetime(1970, 1, 1)


@final
@dataclass(frozen=True)
class Variable:
    """A discrete quantity with `size` possible codes."""

    name: str
    size: int


@final
@dataclass(frozen=True)
class Batch:
    """Encoded rows."""

    numbers: Tensor  # (n, numeric columns), in [0, 1]
    codes: dict[str, Tensor]  # variable name -> (n,) int64

    def __len__(self) -> int:
        return self.numbers.shape[0]

    def rows(self, index: Tensor | slice) -> Batch:
        return Batch(self.numbers[index], {name: code[index] for name, code in self.codes.items()})


@final
@dataclass(frozen=True)
class Axis:
    """A numeric column's line segment [low, high] <-> [0, 1], on a grid of `step` if there is one.

    >>> Axis(0.0, 10.0, 5.0).value(Axis(0.0, 10.0, 5.0).unit(np.array([6.0, 99.0, -np.inf]))).tolist()
    [5.0, 10.0, 0.0]
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False

    @staticmethod
    def of(column: Numeric) -> Axis:
        match column:
            case Number():
                step = None if column.decimals is None else 10.0**-column.decimals
                return Axis(column.min, column.max, step, column.log)
            case Integer():
                levels = (column.max - column.min) // column.step
                return Axis(column.min, column.min + levels * column.step, column.step, column.log)
            case Date():
                low, high = (_days(d) for d in (column.first, column.last))
                return Axis(low, low + (high - low) // column.step * column.step, column.step)
            case Timestamp():
                low, high = ((t - _EPOCH).total_seconds() for t in (column.first, column.last))
                return Axis(low, low + (high - low) // column.step * column.step, column.step)

    @property
    def levels(self) -> int | None:
        """How many values the column can take; None on a continuous line."""
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    @property
    def _grain(self) -> float:
        """The distance from `low` below which a log scale is linear."""
        return self.step if self.step is not None else (self.high - self.low) * 1e-3

    def unit(self, values: np.ndarray) -> np.ndarray:
        x = np.clip(np.where(np.isnan(values), self.low, values), self.low, self.high)
        x = self._snap(x) - self.low
        if self.log:
            return np.log1p(x / self._grain) / math.log1p((self.high - self.low) / self._grain)
        return x / (self.high - self.low)

    def value(self, unit: np.ndarray) -> np.ndarray:
        u = np.clip(unit, 0.0, 1.0)
        if self.log:
            x = np.expm1(u * math.log1p((self.high - self.low) / self._grain)) * self._grain
        else:
            x = u * (self.high - self.low)
        return self._snap(np.clip(x + self.low, self.low, self.high))

    def _snap(self, values: np.ndarray) -> np.ndarray:
        if self.step is None:
            return values
        if self.step < 1:  # decimals: round in decimal, so that 0.1 stays the float 0.1
            return np.clip(np.round(values, round(-math.log10(self.step))), self.low, self.high)
        steps = np.floor((values - self.low) / self.step + 0.5)
        return np.clip(self.low + steps * self.step, self.low, self.high)


@final
class Codec:
    """Encode and decode for one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.axes: dict[str, Axis] = {
            name: Axis.of(column) for name, column in schema.columns.items() if isinstance(column, Numeric)
        }
        self.types = {name: arrow_type(name, column) for name, column in schema.columns.items()}

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the numeric columns, in the order of `Batch.numbers`."""
        return tuple(self.axes)

    @property
    def width(self) -> int:
        """How many numbers an encoded row has: numeric columns, or pixels."""
        return self.schema.image[1].pixels if self.schema.image else len(self.axes)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The discrete variables that a row has before any binning, the numeric label's bins excepted."""
        found = []
        for name, column in self.schema.learned.items():
            if isinstance(column, Numeric):
                found += [Variable(null_name(name), 2)] if column.nullable else []
            elif isinstance(column, Category | Flag):
                found.append(Variable(name, len(_levels(column)) + column.nullable))
        return tuple(found)

    @property
    def label(self) -> Variable | None:
        """The label as a discrete variable."""
        name = self.schema.label
        if name is None:
            return None
        column = self.schema.columns[name]
        if isinstance(column, Numeric):
            return Variable(label_name(name), (getattr(column, "bins", None) or LABEL_BINS) + column.nullable)
        return next(v for v in self.variables if v.name == name)

    def encode(self, table: pa.Table | pa.RecordBatch) -> Batch:
        """Rows to tensors. Every cell finds a place; none raises."""
        n = table.num_rows
        numbers = np.zeros((n, self.width))
        codes: dict[str, Tensor] = {}
        for name, column in self.schema.learned.items():
            array = table.column(name)
            if isinstance(column, Numeric):
                i = self.numeric.index(name)
                values = _READERS[column.kind](array)
                absent = np.isnan(values)
                numbers[:, i] = self.axes[name].unit(values)
                if column.nullable:
                    numbers[absent, i] = 0.5
                    codes[null_name(name)] = torch.from_numpy(absent.astype(np.int64))
            elif isinstance(column, Image):
                numbers = pixels.encode(array, column)
            elif isinstance(column, Category | Flag):
                codes[name] = torch.from_numpy(_code(array, column))
        return self.with_label(Batch(torch.from_numpy(numbers), codes))

    def row(self, values: dict[str, object]) -> Batch:
        """One encoded row from Python values (text is read as in a CSV); columns not named are null.

        For values that a person types, not for data: refuses what the schema does not list or bound.
        """
        for name, value in values.items():
            if name not in self.schema.learned:
                raise SchemaError(f"'{name}' is not a learned column. Choose from: {', '.join(self.schema.learned)}")
            if not self._declared(name, value):
                raise SchemaError(f"column '{name}' cannot be {value!r}: the schema does not declare that value")
        cells_of = {name: pa.array([values.get(name)]) for name in self.schema.learned}
        return self.encode(pa.table(cells_of))

    def _declared(self, name: str, value: object) -> bool:
        column, array = self.schema.columns[name], pa.array([value])
        if value is None:
            return column.nullable
        if isinstance(column, Numeric):
            number = float(_READERS[column.kind](array)[0])
            return self.axes[name].low <= number <= self.axes[name].high
        if isinstance(column, Image):
            return False
        if isinstance(column, Category):
            return int(cells.codes(array, column.levels)[0]) >= 0
        return not math.isnan(float(cells.flags(array)[0]))

    def with_label(self, batch: Batch) -> Batch:
        """Add the bins of a numeric label, which are a function of the number itself."""
        label, name = self.label, self.schema.label
        if label is None or name is None or label.name == name:
            return batch
        bins = label.size - self.schema.columns[name].nullable
        code = (batch.numbers[:, self.numeric.index(name)] * bins).long().clamp(0, bins - 1)
        if self.schema.columns[name].nullable:
            code = torch.where(batch.codes[null_name(name)] == 1, bins, code)
        return Batch(batch.numbers, {**batch.codes, label.name: code})

    def decode(self, batch: Batch, first_id: int = 1) -> pa.Table:
        """Tensors to rows, with the declared dtypes, steps, bounds and nulls; ids are counted from `first_id`."""
        arrays = []
        for name, column in self.schema.columns.items():
            if isinstance(column, Id):
                array = pa.array(np.arange(first_id, first_id + len(batch)), pa.int64())
            elif isinstance(column, Numeric):
                array = self._decode_number(name, column, batch)
            elif isinstance(column, Image):
                array = pixels.decode(batch.numbers.double().numpy(), column)
            else:
                levels: tuple[object, ...] = _levels(column) + ((None,) if column.nullable else ())
                dictionary = pa.array(levels, from_pandas=False)
                array = dictionary.take(pa.array(batch.codes[name].numpy()))
            arrays.append(_restore(array, self.types[name]))
        return pa.Table.from_arrays(arrays, names=list(self.schema.columns))

    def _decode_number(self, name: str, column: Numeric, batch: Batch) -> pa.Array:
        values = self.axes[name].value(batch.numbers[:, self.numeric.index(name)].double().numpy())
        absent = batch.codes[null_name(name)].numpy() == 1 if column.nullable else None
        match column:
            case Number():
                return pa.array(values, pa.float64(), mask=absent)
            case Integer():
                return pa.array(values.astype(np.int64), pa.int64(), mask=absent)
            case Date():
                return pa.array(values.astype(np.int32), pa.int32(), mask=absent).cast(pa.date32())
            case Timestamp():
                return pa.array(values.astype(np.int64), pa.int64(), mask=absent).cast(pa.timestamp("s"))


def null_name(column: str) -> str:
    return f"{column}#null"


def label_name(column: str) -> str:
    return f"{column}#label"


def arrow_type(name: str, column: AnyColumn) -> pa.DataType:
    """The output type of a column: the declared dtype, or the natural one of its kind."""
    if not column.dtype:
        return _natural(column)
    try:
        if zoned := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", column.dtype):
            return pa.timestamp(zoned[1], tz=zoned[2])
        if column.dtype.startswith("dictionary"):
            return pa.dictionary(pa.int32(), _natural(column))
        if decimal := re.fullmatch(r"decimal128\((\d+), (\d+)\)", column.dtype):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        return pa.type_for_alias(column.dtype.replace("date32[day]", "date32").replace("date64[ms]", "date64"))
    except (ValueError, pa.ArrowException):
        raise SchemaError(
            f"column '{name}': `dtype` is '{column.dtype}', which is no Arrow type. Write for example int32, "
            "or leave it out"
        ) from None


def _natural(column: AnyColumn) -> pa.DataType:
    match column:
        case Category():
            return {str: pa.string(), int: pa.int64(), float: pa.float64()}[type(column.values[0])]
        case Flag():
            return pa.bool_()
        case Image():
            return pa.binary(column.pixels)
        case Number():
            return pa.float64()
        case Date():
            return pa.date32()
        case Timestamp():
            return pa.timestamp("us")
        case _:
            return pa.int64()


def _restore(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return array.cast(kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_decimal(kind):
        return array.cast(pa.string()).cast(kind)
    return array.cast(kind, safe=False)


def _levels(column: Category | Flag) -> tuple[object, ...]:
    return column.levels if isinstance(column, Category) else (False, True)


def _code(array: pa.Array | pa.ChunkedArray, column: Category | Flag) -> np.ndarray:
    levels = _levels(column)
    if isinstance(column, Flag):
        values = cells.flags(array)
        code = np.where(np.isnan(values), -1, values).astype(np.int64)
    else:
        code = cells.codes(array, column.levels)
    if isinstance(column, Category) and column.other is not None:
        known_null = cells.plain(array).is_null().to_numpy(zero_copy_only=False) & column.nullable
        code = np.where((code < 0) & ~known_null, levels.index(column.other), code)
    return np.where(code < 0, len(levels) if column.nullable else 0, code)


def _days(day: dt.date) -> float:
    return float((day - _EPOCH.date()).days)


_READERS: dict[str, Callable[[pa.Array], np.ndarray]] = {
    "number": cells.numbers,
    "integer": cells.numbers,
    "date": cells.days,
    "timestamp": cells.seconds,
}
