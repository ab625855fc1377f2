"""Protocols: which rows train and which test. One split for every method.

paper:  the paper's rows, undersampling and splits, for comparison with its numbers. Undersampling looks at labels and
        its rates were tuned on private rows: comparable, not private end to end.
honest: all rows, no undersampling; official test rows where they exist, else one fixed split of 80/20.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.data import DataSet
from dpmerf.schema import Schema

PROTOCOLS = ("paper", "honest")
HONEST_TRAIN = 0.8


@final
@dataclass(frozen=True)
class PaperRows:
    """How the paper cut a set: rows used, training share, share kept of one class, classes dropped."""

    train: float
    rows: int | None = None
    keep: float = 1.0
    of: object = None
    drop: tuple[object, ...] = ()
    most_missing: int | None = None


PAPER = {
    "adult": PaperRows(0.9, rows=22_561, keep=0.4, of="<=50K"),
    "census": PaperRows(0.8, keep=0.4, of="- 50000"),
    "cervical": PaperRows(0.8, most_missing=9),
    "credit": PaperRows(0.8, keep=0.005, of=0),
    "epileptic": PaperRows(0.7),
    "isolet": PaperRows(0.7),
    "covtype": PaperRows(0.7, rows=20_000, keep=0.03, of=2),
    "intrusion": PaperRows(0.7, keep=0.1, of="dos", drop=("u2r",)),
}


@final
@dataclass(frozen=True)
class Split:
    """Real rows of one protocol and run."""

    schema: Schema
    train: pa.Table
    test: pa.Table
    score_rows: int


def split(data: DataSet, protocol: str, run: int, data_dir: Path | None = None, quick: bool = False) -> Split:
    """Run 1, 2, … of the paper's protocol draws its own split; the honest split never changes."""
    schema = data.schema
    label = str(schema.label)
    if protocol == "honest":
        train = data.frame(0, data_dir)
        if len(data.files) > 1:
            test = data.frame(1, data_dir)
        else:
            train, test = _cut(train, HONEST_TRAIN, np.random.default_rng(0))
    else:
        rng = np.random.default_rng(run)
        train, test = _cut(
            _paper_rows(data.frame(0, data_dir), PAPER[data.name], label, rng), PAPER[data.name].train, rng
        )
    if quick:
        few = np.random.default_rng(run)
        train, test = (f.iloc[few.permutation(len(f))[:most]] for f, most in ((train, 3_000), (test, 2_000)))
    return Split(schema, data.table(train), data.table(test), data.score_rows)


def _paper_rows(frame: pd.DataFrame, cut: PaperRows, label: str, rng: np.random.Generator) -> pd.DataFrame:
    frame = frame.head(cut.rows) if cut.rows else frame
    if cut.most_missing is not None:
        frame = frame[frame.isna().sum(axis=1) <= cut.most_missing]
    frame = frame[~frame[label].isin(cut.drop)]
    return frame[(frame[label] != cut.of) | (rng.random(len(frame)) < cut.keep)]


def _cut(frame: pd.DataFrame, share: float, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    order = rng.permutation(len(frame))
    at = round(share * len(frame))
    return frame.iloc[order[:at]], frame.iloc[order[at:]]
