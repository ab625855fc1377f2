"""Codec: rows <-> tensors, a pure function of the schema. Nothing is fitted on rows.

A row becomes `numbers` in [0, 1], one per numeric column (or per pixel of an image, channel by channel), and `codes`,
one per discrete variable. A nullable numeric column brings a variable `NAME#null`; a numeric label brings
`NAME#label`, its public equal-width bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa

from dpmerf.encoding import broken, cells, listed, pixels, readable
from dpmerf.encoding.derived import Relations
from dpmerf.encoding.reading import numbers_of, read
from dpmerf.encoding.stored_types import check_fits
from dpmerf.encoding.writing import arrow_type, category_array, id_array, number_array, restored
from dpmerf.errors import SchemaError
from dpmerf.lazy import torch
from dpmerf.schema import Category, Flag, Id, Image, Numeric, Schema
from dpmerf.schema.notation import Notation

if TYPE_CHECKING:
    from torch import Tensor

LABEL_BINS = 10


@final
@dataclass(frozen=True)
class Variable:
    """A discrete quantity with `size` possible codes: a column as it is, or cut in some way (`age#bin`)."""

    name: str
    size: int

    @property
    def column(self) -> str:
        """The column that it shows; empty for a quantity of the whole row."""
        return self.name.partition("#")[0]

    @property
    def cut(self) -> str:
        """How the column is cut: `fine`, `part` or `bin`; `null` and `label` of numbers; empty: its own categories."""
        return self.name.partition("#")[2]


@final
@dataclass(frozen=True)
class Batch:
    """Encoded rows."""

    numbers: Tensor  # (n, numeric columns), in [0, 1]
    codes: dict[str, Tensor]  # variable name -> (n,) int64
    scores: Tensor | None = None  # (n, columns) normal scores, in the view of a query that derived them

    def __len__(self) -> int:
        return self.numbers.shape[0]

    @property
    def values(self) -> Tensor:
        """What dense maps read: normal scores where there are any, else the numbers."""
        return self.numbers if self.scores is None else self.scores

    def rows(self, index: Tensor | slice) -> Batch:
        scores = None if self.scores is None else self.scores[index]
        return Batch(self.numbers[index], {name: code[index] for name, code in self.codes.items()}, scores)


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
        """The line that a column declares."""
        return Axis(*column.line)

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

    def clean(self, values: np.ndarray, nullable: bool) -> np.ndarray:
        """Numbers on the grid and within bounds; NaN stays if the column is nullable, and is the lower bound if not."""
        absent = np.isnan(values)
        found = self._snap(np.clip(np.where(absent, self.low, values), self.low, self.high))
        return np.where(absent, np.nan, found) if nullable else found

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

    def __init__(self, schema: Schema, looked: tuple[str, ...] = (), counted: tuple[int, ...] = ()) -> None:
        """A batch also says whether the cells of columns `looked` could be read, and which of the relations `counted`
        a row breaks."""
        self.looked, self.counted = looked, counted
        self.declared = schema
        self.schema = schema.measured  # what rows are measured by: relations may leave columns out or replace them
        self.relations = Relations(schema.program) if schema.rewrites else None
        self.axes: dict[str, Axis] = _axes(self.schema)
        self.types = {name: arrow_type(name, column) for name, column in schema.columns.items()}
        for name, column in schema.columns.items():
            check_fits(name, column, self.types[name], Axis.of(column).value if isinstance(column, Numeric) else None)

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Names of the numeric columns, in the order of `Batch.numbers`."""
        return tuple(self.axes)

    @property
    def width(self) -> int:
        """How many numbers an encoded row has: numeric columns, or pixels."""
        return self.schema.image[1].pixels if self.schema.image else len(self.axes)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The discrete variables that a row has before any binning, the numeric label's bins excepted."""
        found = []
        for name, column in self.schema.learned.items():
            if isinstance(column, Numeric):
                found += [Variable(null_name(name), 2)] if column.nullable else []
            elif isinstance(column, Category | Flag):
                found.append(Variable(name, len(column.levels) + column.nullable))
        return tuple(found)

    @cached_property
    def label(self) -> Variable | None:
        """The label as a discrete variable."""
        name = self.schema.label
        if name is None:
            return None
        column = self.schema.columns[name]
        if isinstance(column, Numeric):
            return Variable(label_name(name), (getattr(column, "bins", None) or LABEL_BINS) + column.nullable)
        return next(v for v in self.variables if v.name == name)

    def encode(self, table: pa.Table | pa.RecordBatch, as_written: bool = False) -> Batch:
        """Rows to tensors. Every cell finds a place; none raises. `as_written`: by this program, not as declared."""
        declared = self.declared.as_written if as_written else self.declared
        whole = read(table, declared, None if self.counted else declared.needed)
        values = {name: whole[name] for name in declared.needed if name in whole}
        if self.relations is not None:
            values = self.relations.forward(placed(values, self.declared))
        if self.schema.image is not None:
            name, image = self.schema.image
            codes = {other: torch.from_numpy(code) for other, code in values.items()}
            return self.with_label(Batch(torch.from_numpy(pixels.encode(table.column(name), image)), codes))
        found = self.batch(values, table.num_rows)
        more = self._answers(table, declared) | self._broken(whole)
        return Batch(found.numbers, {**found.codes, **more}) if more else found

    def _broken(self, values: dict[str, np.ndarray]) -> dict[str, Tensor]:
        """Whether rows break the relations that are counted: a function of each row alone."""
        if not self.counted:
            return {}
        found = broken.broken(placed(values, self.declared), self.declared.program)
        return {broken.variable_name(i): torch.from_numpy(found[i].astype(np.int64)) for i in self.counted}

    def _answers(self, table: pa.Table | pa.RecordBatch, declared: Schema) -> dict[str, Tensor]:
        """Whether cells of the columns that are looked at could be read."""
        codes = {}
        for name in self.looked:
            column = declared.columns[name]
            axis = Axis.of(column) if isinstance(column, Numeric) else None
            bounds = None if axis is None else (axis.low, axis.high)
            found = readable.answers(table.column(name), declared, name, bounds)
            codes[readable.variable_name(name)] = torch.from_numpy(found)
        return codes

    def batch(self, values: dict[str, np.ndarray], rows: int) -> Batch:
        """Measured columns as numbers in their own units (NaN is null) and codes -> encoded rows."""
        numbers = np.zeros((rows, self.width))
        codes: dict[str, Tensor] = {}
        for name, column in self.schema.learned.items():
            if isinstance(column, Numeric):
                i = self.numeric.index(name)
                absent = np.isnan(values[name])
                numbers[:, i] = self.axes[name].unit(values[name])
                if column.nullable:
                    numbers[absent, i] = 0.5
                    codes[null_name(name)] = torch.from_numpy(absent.astype(np.int64))
            else:
                codes[name] = torch.from_numpy(values[name])
        return self.with_label(Batch(torch.from_numpy(numbers), codes))

    def row(self, values: dict[str, object]) -> Batch:
        """One encoded row from Python values (text is read as in a CSV); columns not named are null.

        For values that a person types, not for data: refuses what the schema does not list or bound.
        """
        if self.relations is not None:  # of the measured columns as they are: a relation would mend what is not named
            return Codec(self.schema).row(values)
        for name, value in values.items():
            if name not in self.schema.learned:
                raise SchemaError(f"'{name}' is not a learned column. Choose from: {', '.join(self.schema.learned)}")
            if value is None and not self.schema.columns[name].nullable:
                raise SchemaError(f"column '{name}' cannot be null: the schema does not declare it nullable")
            if not self._declared(name, value):
                raise SchemaError(f"column '{name}' cannot be {value!r}: the schema does not declare that value")
        cells_of = {name: pa.array([values.get(name)]) for name in self.schema.learned}
        return self.encode(pa.table(cells_of), as_written=True)

    def _declared(self, name: str, value: object) -> bool:
        column, array = self.schema.columns[name], pa.array([value])
        if value is None:
            return column.nullable
        if isinstance(column, Numeric):
            number = float(numbers_of(array, column, Notation())[0])
            return self.axes[name].low <= number <= self.axes[name].high
        if isinstance(column, Image):
            return False
        if isinstance(column, Category):
            return int(listed.codes(array, column.levels)[0]) >= 0
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
        values = self.values(batch)
        if self.relations is not None:
            values = self.relations.backward(values)
        for name, column in self.declared.columns.items():
            if isinstance(column, Id):
                array = id_array(column, first_id, len(batch))
            elif isinstance(column, Numeric):
                array = number_array(column, values[name])
            elif isinstance(column, Image):
                array = pixels.decode(batch.numbers.double().numpy(), column)
            elif isinstance(column, Category):
                array = category_array(column, values[name], first_id)
            else:
                assert isinstance(column, Flag)
                levels: tuple[object, ...] = column.levels + ((None,) if column.nullable else ())
                array = pa.array(levels, from_pandas=False).take(pa.array(values[name]))
            arrays.append(restored(array, self.types[name], self.declared.notation(name).zone))
        return pa.Table.from_arrays(arrays, names=list(self.declared.columns))

    def values(self, batch: Batch) -> dict[str, np.ndarray]:
        """Measured columns as numbers (NaN is null) and codes."""
        found = {}
        for name, column in self.schema.learned.items():
            if isinstance(column, Numeric):
                values = self.axes[name].value(batch.numbers[:, self.numeric.index(name)].double().numpy())
                absent = batch.codes[null_name(name)].numpy() == 1 if column.nullable else False
                found[name] = np.where(absent, np.nan, values)
            elif not isinstance(column, Image):
                found[name] = batch.codes[name].numpy()
        return found


def placed(values: dict[str, np.ndarray], schema: Schema) -> dict[str, np.ndarray]:
    """Every number on its column's grid and within its bounds; null where the column has one, else the lower bound."""
    axes = _axes(schema)
    return {
        name: axes[name].clean(column, schema.columns[name].nullable) if name in axes else column
        for name, column in values.items()
    }


def _axes(schema: Schema) -> dict[str, Axis]:
    return {name: Axis.of(column) for name, column in schema.columns.items() if isinstance(column, Numeric)}


def null_name(column: str) -> str:
    """The variable that says whether a number is missing."""
    return f"{column}#null"


def label_name(column: str) -> str:
    """The variable of a numeric label's bins."""
    return f"{column}#label"
