"""Populations: large tables to draw from, with their exact answers. Rows are drawn anew, independently, each time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa

from benchmarks.data import SETS
from dpmerf.demo import hospital as demo_data
from dpmerf.encoding.codec import Codec, null_name
from dpmerf.inference.evidence import Evidence
from dpmerf.schema import Schema

HOSPITAL_ROWS = 1_000_000


@final
@dataclass(frozen=True)
class Population:
    """A table that stands for a population: n rows drawn with replacement are an independent sample of it."""

    name: str
    schema: Schema
    table: pa.Table

    def draw(self, n: int, seed: int) -> np.ndarray:
        """(n,) which rows."""
        return np.random.default_rng(seed).integers(0, self.table.num_rows, n)

    @cached_property
    def _cells(self) -> dict[int, dict[str, np.ndarray]]:
        return {}

    def cells(self, evidence: Evidence) -> dict[str, np.ndarray]:
        """Column -> (rows,) fine cells."""
        if evidence.grid.most not in self._cells:
            batch = evidence.codec.encode(self.table)
            self._cells[evidence.grid.most] = {k: v.numpy() for k, v in evidence.grid.encode(batch).items()}
        return self._cells[evidence.grid.most]

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """Numeric column -> (rows,) values as the schema bounds them; NaN for null."""
        codec = Codec(self.schema)
        batch = codec.encode(self.table)
        found = {}
        for i, name in enumerate(codec.numeric):
            if name in codec.schema.learned:
                values = codec.axes[name].value(batch.numbers[:, i].numpy())
                null = batch.codes.get(null_name(name))
                found[name] = values if null is None else np.where(null.numpy() == 1, np.nan, values)
        return found


def population(name: str, data_dir: Path | None, quick: bool = False) -> Population:
    if name == "hospital":
        rows = 100_000 if quick else HOSPITAL_ROWS
        return Population(name, Schema.load(demo_data.SCHEMA), demo_data.hospital(rows, seed=1))
    data = SETS[name]
    return Population(name, data.schema, data.table(data.frame(0, data_dir)))
