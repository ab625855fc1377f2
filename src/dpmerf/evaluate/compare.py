"""Run: one evaluation of a synthetic table against real rows, from tables to a result (NOT COVERED)."""

from __future__ import annotations

import pyarrow as pa

from dpmerf.errors import DataError
from dpmerf.evaluate.attack import nearest_record
from dpmerf.evaluate.classifiers import Makers, require_sklearn, table_classifiers, table_regressors
from dpmerf.evaluate.fidelity import STEPS, fidelity
from dpmerf.evaluate.intervals_held import intervals_held
from dpmerf.evaluate.possible import broken_relations, pair_novelty
from dpmerf.evaluate.results import Evaluation
from dpmerf.evaluate.ticks import bar
from dpmerf.evaluate.utility import TableUtility, table_utility
from dpmerf.evaluate.views import Rows
from dpmerf.release import Release
from dpmerf.schema import Numeric, Schema

QUICK_ROWS, QUICK_FLOOR = 12_000, 2_000
FULL_ROWS, FULL_FLOOR = 50_000, 10_000


def evaluate(
    synthetic: pa.Table,
    real: pa.Table,
    schema: Schema,
    train: pa.Table | None = None,
    label: str | None = None,
    quick: bool = False,
    seed: int = 0,
    makers: Makers | None = None,
    quiet: bool = True,
    release: Release | None = None,
) -> Evaluation:
    """All scores of `synthetic` against `real` (rows held back from the release are best).

    `train` are the real rows that the release was made from: they give the ceiling and the real-against-real baseline.
    With a `release`, its intervals are compared with what the real rows say.
    `label` defaults to the schema's; without one there is no utility. Equal inputs and seeds give equal scores.
    """
    require_sklearn()
    if label is not None:
        schema = schema.with_label(label)
    label = schema.label
    if schema.image is not None:
        raise DataError("these are pictures: score their arrays with dpmerf.evaluate.arrays.array_utility")
    ours = Rows.read(synthetic, schema, "synthetic table")
    theirs = Rows.read(real, schema, "real table")
    before = Rows.read(train, schema, "training table") if train is not None else None
    if label is not None and makers is None:
        makers = table_regressors() if isinstance(schema.columns[label], Numeric) else table_classifiers()
    steps = 3 * len(makers or {}) + STEPS + 2
    most, floor = (QUICK_ROWS, QUICK_FLOOR) if quick else (FULL_ROWS, FULL_FLOOR)
    with bar(steps, quiet) as step:
        utility: TableUtility | None = None
        if label is not None:
            utility = table_utility(ours, theirs, before, label, seed, most, most, floor, makers, step)
        closeness = fidelity(ours, theirs, before, utility, quick, seed, step)
        step("nearest records")
        nearest = nearest_record(
            ours,
            before if before is not None else theirs,
            theirs if before is not None else None,
            "the real training rows" if before is not None else "the real rows",
            1000 if quick else 3000,
            seed,
        )
        step("possible rows")
        novelty = pair_novelty(ours, theirs, before, seed)
    held = None
    if release is not None:
        held = intervals_held(release, real if train is None else train, same_rows=train is not None)
    return Evaluation(
        seed=seed,
        quick=quick,
        rows_synthetic=len(ours),
        rows_real=len(theirs),
        rows_train=None if before is None else len(before),
        utility=None if utility is None else utility.result,
        fidelity=closeness,
        nearest=nearest,
        relations=broken_relations(synthetic, real, schema),
        novelty=novelty,
        intervals=held,
    )
