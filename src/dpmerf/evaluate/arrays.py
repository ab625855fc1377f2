"""Arrays: the same utility for rows that are vectors already, such as pictures (NOT COVERED)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmerf.errors import DataError
from dpmerf.evaluate.classifiers import Makers, image_classifiers
from dpmerf.evaluate.results import Task, Utility
from dpmerf.evaluate.ticks import Step, silent
from dpmerf.evaluate.utility import HEADLINE, Fitted, Split, compare, fit_models

MAX_FLOOR = 5_000


def array_utility(
    synthetic: Split,
    test: Split,
    classes: Sequence[str],
    train: Split | None = None,
    label: str = "label",
    seed: int = 0,
    makers: Makers | None = None,
    step: Step = silent,
) -> Utility:
    """Train on synthetic vectors with class numbers, test on real ones. `train` (real) gives the ceiling.

    The models are the paper's for images unless others are given. Vectors must be flat: (n, pixels).
    """
    if any(s.x.ndim != 2 or len(s.x) != len(s.y) or not len(s.y) for s in (synthetic, test)):
        raise DataError("give flat vectors (n, pixels) and one class number for each")
    makers = makers or image_classifiers()
    task: Task = "binary" if len(classes) == 2 else "multiclass"
    positive = int((test.y == 1).sum() <= (test.y == 0).sum()) if task == "binary" else 1
    rng = np.random.default_rng([seed, 2])
    base = train or synthetic
    some = rng.permutation(len(base.y))[:MAX_FLOOR]
    nothing = Split(base.x[some], rng.permutation(base.y[some]))

    def run(side: Split, answers: np.ndarray, what: str) -> dict[str, Fitted]:
        held = Split(test.x, answers)
        return fit_models(side, held, makers, task, seed, positive, lambda name: step(f"{what}: {name}"))

    floor = run(nothing, rng.permutation(test.y), "trained on shuffled")
    ceiling = run(train, test.y, "trained on real") if train is not None else None
    models, mean = compare(run(synthetic, test.y, "trained on synthetic"), ceiling, floor)
    return Utility(
        task=task,
        label=label,
        classes=list(classes),
        positive=classes[positive] if task == "binary" else None,
        metric=HEADLINE[task] if task == "binary" else "accuracy",
        rows_synthetic=len(synthetic.y),
        rows_real_train=0 if train is None else len(train.y),
        rows_test=len(test.y),
        ceiling_from="not measured" if train is None else "the real training rows",
        models=models,
        mean=mean,
    )
