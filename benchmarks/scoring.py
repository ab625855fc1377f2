"""Scoring: the same scores for every method, with the package's own evaluation (on real rows: NOT COVERED)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.protocols import Split
from dpmerf.evaluate.classifiers import Makers, table_classifiers
from dpmerf.evaluate.marginals import marginals
from dpmerf.evaluate.results import Task as Kind
from dpmerf.evaluate.utility import Split as Matrix
from dpmerf.evaluate.utility import fit_models
from dpmerf.evaluate.views import Design, Rows

SETS_OF_COLUMNS = {1: 5_000, 2: 5_000, 3: 300}  # marginals: at most this many, drawn at random
QUICK = ("Logistic regression", "Decision tree", "XGBoost")
TEST_ROWS = 60_000


def utility(
    synthetic: pa.Table, real: Split, seed: int, quick: bool = False, makers: Makers | None = None
) -> dict[str, Any]:
    """The 12 classifiers, or `makers`, trained on synthetic and tested on real rows: {"models": …, "mean": …}."""
    label = str(real.schema.label)
    ours = Rows.read(synthetic, real.schema).sample(real.score_rows, seed)
    test = Rows.read(real.test, real.schema).sample(TEST_ROWS, seed)
    design = Design.fit(ours, without=label)
    y = test.coded(label).codes
    task: Kind = "binary" if test.coded(label).size == 2 else "multiclass"
    rarer = int(np.bincount(y, minlength=2)[:2].argmin())
    makers = table_classifiers() if makers is None else makers
    if quick:
        makers = {name: makers[name] for name in QUICK}
    train_on = Matrix(design(ours), ours.coded(label).codes)
    fitted = fit_models(train_on, Matrix(design(test), y), makers, task, seed, rarer)
    models = {name: _rounded(f.metrics) for name, f in fitted.items()}
    mean = {m: float(np.mean([f.metrics[m] for f in fitted.values()])) for m in next(iter(models.values()))}
    failed = [name for name, f in fitted.items() if f.failed]
    return {"task": task, "rows": len(ours), "test_rows": len(test), "models": models, "mean": _rounded(mean)} | (
        {"failed": failed} if failed else {}
    )


def distances(synthetic: pa.Table, real: Split, seed: int = 0) -> dict[str, float]:
    """Mean total variation over 1-, 2- and 3-way marginals in 20 public bins: `tv2` from test, `tv2_train` from train.

    Test rows are the fair judge (real training rows score what sampling alone gives), unless, as for intrusion, the
    official test set was drawn from another population.
    """
    ours, train, test = (
        Rows.read(t, real.schema).sample(200_000, seed).all_coded() for t in (synthetic, real.train, real.test)
    )
    found = {}
    for end, theirs in (("", test), ("_train", train)):
        for k, most in SETS_OF_COLUMNS.items():
            found[f"tv{k}{end}"] = round(marginals(ours, theirs, None, k, most, seed).mean, 5)
    return found


def _rounded(metrics: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in metrics.items()}
