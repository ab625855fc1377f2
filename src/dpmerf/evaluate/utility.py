"""Utility: what a model learns from the synthetic rows, tested on real ones (NOT COVERED).

Two marks on every scale: the ceiling trains on real rows; the floor trains and is tested on rows whose columns were
shuffled apart, so that each column is right and nothing can be learned from one about another.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpmerf.errors import DataError
from dpmerf.evaluate.classifiers import LEAD, Makers, require_sklearn, table_classifiers, table_regressors
from dpmerf.evaluate.results import Metrics, Scores, Task, Utility
from dpmerf.evaluate.ticks import Step, silent
from dpmerf.evaluate.views import Design, Rows, shuffled

HEADLINE: Mapping[str, str] = {"binary": "roc_auc", "multiclass": "f1_weighted", "regression": "r2"}


@final
@dataclass(frozen=True)
class Fitted:
    """One model's scores on the test rows and its predictions there; `failed` says why it could not be trained."""

    metrics: Metrics
    predictions: np.ndarray
    failed: str = ""


@final
@dataclass(frozen=True)
class Split:
    """A numeric matrix and its target: class numbers 0, 1, … or real numbers."""

    x: np.ndarray  # (n, p)
    y: np.ndarray  # (n,)


def fit_models(
    train: Split, test: Split, makers: Makers, task: Task, seed: int, positive: int = 1, step: Step = silent
) -> dict[str, Fitted]:
    """Train each model and score it. A model that cannot be trained predicts the commonest class (or the mean)."""
    require_sklearn()
    from threadpoolctl import threadpool_limits

    fitted = {}
    with warnings.catch_warnings(), threadpool_limits(limits=1):  # one thread: the same bits on every run
        warnings.simplefilter("ignore")
        for name, make in makers.items():
            step(name)
            fitted[name] = _fit(make(seed), train, test, task, positive)
    return fitted


def compare(
    synthetic: Mapping[str, Fitted], ceiling: Mapping[str, Fitted] | None, floor: Mapping[str, Fitted]
) -> tuple[list[Scores], Scores]:
    """Each model's scores beside floor and ceiling, and the mean over models. A failed model scores the floor."""
    models = []
    for name, low in floor.items():
        fit = synthetic[name]
        note = f"scores the floor: {fit.failed}" if fit.failed else ""
        metrics = low.metrics if fit.failed else fit.metrics
        models.append(_scores(name, metrics, low.metrics, ceiling[name].metrics if ceiling else None, note))
    failed = sum(bool(m.note) for m in models)
    note = f"{failed} of {len(models)} models could not be trained and score the floor" if failed else ""
    high = _mean([m.ceiling for m in models if m.ceiling is not None]) if ceiling else None
    mean = _scores("mean", _mean([m.synthetic for m in models]), _mean([m.floor for m in models]), high, note)
    return models, mean


@final
@dataclass(frozen=True)
class TableUtility:
    """The result and, for subgroups, what the leading model predicted on which test rows."""

    result: Utility
    test: Rows
    target: np.ndarray
    lead_synthetic: np.ndarray
    lead_real: np.ndarray


def table_utility(
    synthetic: Rows,
    real: Rows,
    train: Rows | None,
    label: str,
    seed: int = 0,
    max_train: int = 50_000,
    max_test: int = 50_000,
    max_floor: int = 5_000,
    makers: Makers | None = None,
    step: Step = silent,
) -> TableUtility:
    """Train on synthetic, on real and on shuffled rows; test all on the same real rows.

    Without real training rows, 70 % of `real` are used for the ceiling and the other 30 % for the test.
    """
    ceiling_from = "the real training rows"
    if train is None:
        order = np.random.default_rng([seed, 1]).permutation(len(real))
        cut = int(0.7 * len(real))
        if cut < 1 or cut == len(real):
            raise DataError("too few real rows to score against: give more of them, or a --train file")
        train, real = real.take(np.sort(order[:cut])), real.take(np.sort(order[cut:]))
        ceiling_from = "70 % of the real rows; all models are tested on the other 30 %"
    numeric = real.numeric(label)
    parts = [_with_label(r, label) for r in (synthetic, train, real)]
    fit_on, fit_real = parts[0].sample(max_train, seed), parts[1].sample(max_train, seed)
    test = parts[2].sample(max_test, seed + 2)
    if not len(test) or not len(fit_real) or not len(fit_on):
        raise DataError("no rows with a label are left to score")
    classes = [] if numeric else [real.level_name(label, c) for c in range(real.coded(label).size)]
    target = _target(test, label)
    task: Task = "regression" if numeric else "binary" if len(classes) == 2 else "multiclass"
    positive = _rarer(target) if task == "binary" else 1
    makers = makers or (table_regressors() if numeric else table_classifiers())

    def run(rows: Rows, answers: np.ndarray, what: str) -> dict[str, Fitted]:
        design = Design.fit(rows, without=label)
        train_on, test_on = Split(design(rows), _target(rows, label)), Split(design(test), answers)
        return fit_models(train_on, test_on, makers, task, seed, positive, lambda name: step(f"{what}: {name}"))

    from_synthetic = run(fit_on, target, "trained on synthetic")
    from_real = run(fit_real, target, "trained on real")
    # The answers are shuffled too: a model that learned nothing still points somewhere, and on one shuffle a linear
    # model's random direction may score 0.4 or 0.6. Shuffled answers have the same mean without that luck.
    apart = np.random.default_rng([seed, 2]).permutation(target)
    few = fit_real.sample(max_floor, seed + 3)  # more rows do not help where there is nothing to learn
    from_floor = run(shuffled(few, seed), apart, "trained on shuffled")
    models, mean = compare(from_synthetic, from_real, from_floor)
    one_class = task != "regression" and len(np.unique(target)) < 2
    lead = LEAD if LEAD in makers else next(iter(makers))
    result = Utility(
        task=task,
        label=label,
        classes=classes,
        positive=classes[positive] if task == "binary" else None,
        metric=HEADLINE[task],
        rows_synthetic=len(fit_on),
        rows_real_train=len(fit_real),
        rows_test=len(test),
        ceiling_from=ceiling_from,
        models=models,
        mean=mean,
        note="the real test rows hold one class only: ROC-AUC is 0.5 by convention" if one_class else "",
    )
    lead_synthetic = (from_floor if from_synthetic[lead].failed else from_synthetic)[lead].predictions
    return TableUtility(result, test, target, lead_synthetic, from_real[lead].predictions)


def _fit(model: Any, train: Split, test: Split, task: Task, positive: int) -> Fitted:
    if task == "regression":
        try:
            predictions = model.fit(train.x, train.y).predict(test.x)
        except ValueError:
            return Fitted({"r2": 0.0}, np.full(len(test.y), train.y.mean()), "the model could not be trained")
        return Fitted({"r2": _r2(test.y, predictions)}, predictions)
    present, y = np.unique(train.y, return_inverse=True)
    common = present[np.bincount(y).argmax()]
    constant = np.full(len(test.y), common)
    if len(present) < 2:
        return Fitted(
            _classes(test.y, constant, None, task, positive), constant, "the training rows hold one class only"
        )
    try:
        model.fit(train.x, y)
        hard = present[np.asarray(model.predict(test.x)).astype(int)]
    except ValueError:
        return Fitted(_classes(test.y, constant, None, task, positive), constant, "the model could not be trained")
    score = None
    if task == "binary":
        score = _decision(model, test.x)
        score = score if positive == 1 else -score
    return Fitted(_classes(test.y, hard, score, task, positive), hard)


def _decision(model: Any, x: np.ndarray) -> np.ndarray:
    """(n,) what a model ranks rows by: its log-odds if it tells them. Probabilities round to 0 and 1, and rows tie."""
    if hasattr(model, "decision_function"):
        score = model.decision_function(x)
    elif hasattr(model, "predict_joint_log_proba"):
        joint = model.predict_joint_log_proba(x)
        score = joint[:, 1] - joint[:, 0]
    else:
        score = model.predict_proba(x)[:, 1]
    return np.nan_to_num(np.asarray(score).astype(np.float64))


def _classes(y: np.ndarray, hard: np.ndarray, score: np.ndarray | None, task: Task, positive: int) -> Metrics:
    from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

    if task == "binary":
        truth, said = (y == positive).astype(int), (hard == positive).astype(float)
        score = np.zeros(len(y)) if score is None else score
        both = 0 < truth.sum() < len(truth)
        return {
            "roc_auc": float(roc_auc_score(truth, score)) if both else 0.5,
            "pr_auc": float(average_precision_score(truth, score)) if both else float(truth.mean()),
            "roc_auc_hard": float(roc_auc_score(truth, said)) if both else 0.5,
            "pr_auc_hard": float(average_precision_score(truth, said)) if both else float(truth.mean()),
        }
    return {
        "f1_weighted": float(f1_score(y, hard, average="weighted", zero_division=0)),
        "f1_macro": float(f1_score(y, hard, average="macro", zero_division=0)),
        "accuracy": float(accuracy_score(y, hard)),
    }


def _scores(name: str, synthetic: Metrics, floor: Metrics, ceiling: Metrics | None, note: str) -> Scores:
    ratio: dict[str, float | None] = {}
    for metric, low in floor.items():
        room = ceiling[metric] - low if ceiling else 0.0
        ratio[metric] = (synthetic[metric] - low) / room if room > 1e-6 else None
    return Scores(model=name, synthetic=synthetic, floor=floor, ceiling=ceiling, ratio=ratio, note=note)


def _mean(rows: list[Metrics]) -> Metrics:
    return {metric: float(np.mean([r[metric] for r in rows])) for metric in rows[0]}


def _r2(y: np.ndarray, predictions: np.ndarray) -> float:
    total = float(((y - y.mean()) ** 2).sum())
    return 1 - float(((y - predictions) ** 2).sum()) / total if total > 0 else 0.0


def _with_label(rows: Rows, label: str) -> Rows:
    """For a numeric target, the rows where it is known; a missing class is a class of its own."""
    return rows.take(np.flatnonzero(~rows.null(label))) if rows.numeric(label) else rows


def _target(rows: Rows, label: str) -> np.ndarray:
    return rows.values(label) if rows.numeric(label) else rows.coded(label).codes


def _rarer(target: np.ndarray) -> int:
    return int((target == 1).sum() <= (target == 0).sum())
