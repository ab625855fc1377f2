"""Views: the same rows as scores need them: bins for counting, a matrix for classifiers, points for kernels.

Everything is laid out by the schema alone, so that two tables of one schema are always comparable and a value that
occurs in one of them only has its place in the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa

from dpmerf.encoding.codec import Batch, Codec, null_name
from dpmerf.errors import DataError
from dpmerf.evaluate.axis_cells import AxisCells
from dpmerf.schema import Category, Numeric, Schema

BINS = 20
MOST_PLACES = 512  # of a category in a matrix: values beyond share the places of others (feature hashing)


@final
@dataclass(frozen=True)
class Coded:
    """A column as whole numbers: bins of equal width between the declared bounds, or categories; nulls come last."""

    name: str
    codes: np.ndarray  # (n,) int64
    size: int
    nulls: bool

    def shares(self) -> np.ndarray:
        """(size,) the fraction of rows in each bin."""
        return np.bincount(self.codes, minlength=self.size) / max(1, len(self.codes))

    def onehot(self, dtype: type[np.floating] = np.float64) -> np.ndarray:
        """(n, places) zeros and a one; a matrix as wide as 50,000 values would not fit into memory."""
        places = min(self.size, MOST_PLACES)
        found = np.zeros((len(self.codes), places), dtype)
        found[np.arange(len(self.codes)), self.codes % places] = 1
        return found


@final
@dataclass(frozen=True)
class Rows:
    """A table read through its schema. `numbers` are in the column's own units, NaN where null."""

    schema: Schema
    codec: Codec
    batch: Batch

    @staticmethod
    def read(table: pa.Table, schema: Schema, what: str = "table") -> Rows:
        """Encode a table. Only its shape can fail: a column is missing, or there are no rows."""
        missing = [name for name in schema.learned if name not in table.column_names]
        if missing:
            raise DataError(f"the schema names '{missing[0]}'; the {what} has no such column")
        if table.num_rows == 0:
            raise DataError(f"the {what} has no rows: there is nothing to score")
        codec = Codec(schema.without_relations())
        return Rows(schema, codec, codec.encode(table))

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.learned)

    def take(self, index: np.ndarray) -> Rows:
        import torch

        return Rows(self.schema, self.codec, self.batch.rows(torch.from_numpy(np.asarray(index, dtype=np.int64))))

    def sample(self, n: int, seed: int) -> Rows:
        """At most n rows, without repetition, in their order; all of them if there are no more."""
        if len(self) <= n:
            return self
        return self.take(np.sort(np.random.default_rng(seed).choice(len(self), n, replace=False)))

    def numeric(self, name: str) -> bool:
        return isinstance(self.schema.columns[name], Numeric)

    def null(self, name: str) -> np.ndarray:
        """(n,) bool."""
        column = self.schema.columns[name]
        if not column.nullable:
            return np.zeros(len(self), dtype=bool)
        if self.numeric(name):
            return self.batch.codes[null_name(name)].numpy() == 1
        return self.batch.codes[name].numpy() == self._levels(name)

    def unit(self, name: str) -> np.ndarray:
        """(n,) a numeric column on its axis [0, 1] (logarithmic if declared so), NaN where null."""
        values = self.batch.numbers[:, self.codec.numeric.index(name)].numpy().astype(float)
        return np.where(self.null(name), np.nan, values)

    def values(self, name: str) -> np.ndarray:
        """(n,) a numeric column in its own units (days, seconds for moments), NaN where null."""
        unit = self.unit(name)
        return np.where(np.isnan(unit), np.nan, self.codec.axes[name].value(np.nan_to_num(unit)))

    def coded(self, name: str, bins: int = BINS, declared_scale: bool = False) -> Coded:
        """A column as bins. `declared_scale` cuts a logarithmic column into equal steps of its logarithm."""
        column = self.schema.columns[name]
        if not self.numeric(name):
            size = self._levels(name) + column.nullable
            return Coded(name, self.batch.codes[name].numpy().astype(np.int64), size, column.nullable)
        axis = self.codec.axes[name]
        at = self.unit(name) if declared_scale else (self.values(name) - axis.low) / (axis.high - axis.low)
        code = np.clip(np.floor(np.nan_to_num(at) * bins), 0, bins - 1).astype(np.int64)
        return Coded(name, np.where(self.null(name), bins, code), bins + column.nullable, column.nullable)

    def in_cells(self, name: str, cells: AxisCells) -> Coded:
        """A numeric column in the cells of a picture."""
        null, size = self.null(name), len(cells.names)
        codes = np.where(null, size, cells.codes(np.nan_to_num(self.unit(name))))
        nullable = self.schema.columns[name].nullable
        return Coded(name, codes, size + nullable, nullable)

    def all_coded(self, bins: int = BINS) -> list[Coded]:
        return [self.coded(name, bins) for name in self.names]

    def points(self) -> np.ndarray:
        """(n, p) points for a kernel: unit numbers, nulls as a coordinate, categories one-hot ÷ √2 (distance 1)."""
        parts = []
        for name in self.names:
            if self.numeric(name):
                parts.append(np.nan_to_num(self.unit(name), nan=0.5)[:, None])
                if self.schema.columns[name].nullable:
                    parts.append(self.null(name)[:, None].astype(float))
            else:
                parts.append(self.coded(name).onehot() / np.sqrt(2))
        return np.concatenate(parts, axis=1)

    def level_name(self, name: str, code: int) -> str:
        """What a code of a discrete column is called."""
        column = self.schema.columns[name]
        if code >= self._levels(name):
            return "null"
        return str(column.levels[code]) if isinstance(column, Category) else ("no", "yes")[code]

    def _levels(self, name: str) -> int:
        column = self.schema.columns[name]
        return len(column.levels) if isinstance(column, Category) else 2


@final
@dataclass(frozen=True)
class Design:
    """How rows become a classifier's matrix: numbers centred and scaled by the *training* rows, categories one-hot."""

    columns: tuple[str, ...]
    centre: dict[str, float]
    spread: dict[str, float]

    @staticmethod
    def fit(train: Rows, without: str | None) -> Design:
        columns = tuple(name for name in train.names if name != without)
        if not columns:
            raise DataError("the label is the only column: there is nothing to predict it from")
        centre, spread = {}, {}
        for name in columns:
            if train.numeric(name):
                known = train.values(name)[~train.null(name)]
                centre[name] = float(known.mean()) if len(known) else 0.0
                deviation = float(known.std()) if len(known) else 0.0
                spread[name] = deviation if deviation > 0 else 1.0
        return Design(columns, centre, spread)

    def __call__(self, rows: Rows) -> np.ndarray:
        """(n, p) float32."""
        parts = []
        for name in self.columns:
            if rows.numeric(name):
                scaled = (rows.values(name) - self.centre[name]) / self.spread[name]
                parts.append(np.nan_to_num(scaled, nan=0.0)[:, None].astype(np.float32))
                if rows.schema.columns[name].nullable:
                    parts.append(rows.null(name)[:, None].astype(np.float32))
            else:
                onehot = rows.coded(name).onehot(np.float32)
                parts.append(onehot[:, 1:] if onehot.shape[1] == 2 else onehot)
        return np.concatenate(parts, axis=1)


def shuffled(rows: Rows, seed: int) -> Rows:
    """The same rows with every column permuted on its own: each column is right, no two of them have to do."""
    import torch

    rng = np.random.default_rng(seed)
    numbers = rows.batch.numbers.clone()
    codes = dict(rows.batch.codes)
    for name in rows.names:
        order = torch.from_numpy(rng.permutation(len(rows)))
        if rows.numeric(name):
            i = rows.codec.numeric.index(name)
            numbers[:, i] = numbers[order, i]
            if rows.schema.columns[name].nullable:
                codes[null_name(name)] = codes[null_name(name)][order]
        else:
            codes[name] = codes[name][order]
    return Rows(rows.schema, rows.codec, rows.codec.with_label(Batch(numbers, codes)))
