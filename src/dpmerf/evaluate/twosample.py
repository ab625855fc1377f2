"""Two-sample scores: kernel distance, a real-versus-synthetic classifier, likelihood under a known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpmerf.evaluate.classifiers import require_sklearn
from dpmerf.evaluate.results import Detection, KernelDistance
from dpmerf.evaluate.views import Design, Rows

FEATURES = 2000


def public_length_scale(rows: Rows) -> float:
    """A length-scale from the schema alone: √columns ÷ 2 (two rows differ by at most 1 in each column)."""
    return float(np.sqrt(len(rows.names)) / 2)


def kernel_mmd(x: np.ndarray, y: np.ndarray, length_scale: float) -> float:
    """Exact maximum mean discrepancy of a Gaussian kernel: ‖mean embedding of x − mean embedding of y‖.

    >>> x = np.array([[0.0], [1.0]])
    >>> kernel_mmd(x, x, 1.0)
    0.0
    """
    squared = _mean_kernel(x, x, length_scale) + _mean_kernel(y, y, length_scale)
    squared -= 2 * _mean_kernel(x, y, length_scale)
    return float(np.sqrt(max(0.0, squared))) if squared > 1e-12 else 0.0


def random_feature_mmd(x: np.ndarray, y: np.ndarray, length_scale: float, features: int, seed: int) -> float:
    """The same from random Fourier features (cos and sin of features ÷ 2 frequencies)."""
    frequencies = np.random.default_rng(seed).standard_normal((x.shape[1], features // 2)) / length_scale
    difference = _mean_features(x, frequencies) - _mean_features(y, frequencies)
    return float(np.linalg.norm(difference))


def kernel_distance(synthetic: Rows, real: Rows, train: Rows | None, most: int, seed: int) -> KernelDistance:
    """On at most `most` rows of each table, drawn with one seed."""
    size = min(most, len(synthetic), len(real), len(train) if train else most)
    length_scale = public_length_scale(real)
    x, y = synthetic.sample(size, seed).points(), real.sample(size, seed).points()
    z = train.sample(size, seed).points() if train else None
    return KernelDistance(
        rows=size,
        length_scale=length_scale,
        exact=kernel_mmd(x, y, length_scale),
        random_features=random_feature_mmd(x, y, length_scale, FEATURES, seed),
        features=FEATURES,
        baseline_exact=kernel_mmd(z, y, length_scale) if z is not None else None,
    )


def detection(synthetic: Rows, real: Rows, train: Rows | None, most: int, seed: int, folds: int = 5) -> Detection:
    """Cross-validated ROC-AUC of a boosted-tree classifier that tells the two tables apart."""
    size = min(most, len(synthetic), len(real), len(train) if train else most)
    x, y = synthetic.sample(size, seed), real.sample(size, seed)
    return Detection(
        auc=detection_auc(x, y, folds, seed),
        folds=folds,
        rows=2 * size,
        baseline_auc=detection_auc(train.sample(size, seed), y, folds, seed) if train else None,
    )


def detection_auc(synthetic: Rows, real: Rows, folds: int, seed: int) -> float:
    """Equal rows of the two tables are paired and stay in one fold.

    Otherwise a copy whose twin is in the training folds, with the other answer, would push the score below 0.5.
    """
    require_sklearn()
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits
    from xgboost import XGBClassifier

    if min(len(synthetic), len(real)) < 2 * folds:
        return 0.5
    design = Design.fit(real, without=None)
    x = np.concatenate([design(synthetic), design(real)])
    source = np.repeat([1, 0], [len(synthetic), len(real)])
    fold = _paired_folds(x, source, folds, seed)
    scores = []
    with threadpool_limits(limits=1):
        for k in range(folds):
            held = fold == k
            if len(np.unique(source[held])) < 2 or len(np.unique(source[~held])) < 2:
                continue
            model = XGBClassifier(n_estimators=80, max_depth=5, learning_rate=0.2, n_jobs=1, random_state=seed)
            model.fit(x[~held], source[~held])
            scores.append(roc_auc_score(source[held], model.predict_proba(x[held])[:, 1]))
    return float(np.mean(scores)) if scores else 0.5


def negative_log_likelihood(rows: np.ndarray, log_density: Callable[[np.ndarray], np.ndarray]) -> float:
    """Mean −log p(row) under a known truth. `log_density` takes (n, p) and returns (n,)."""
    return float(-np.mean(log_density(rows)))


def _paired_folds(x: np.ndarray, source: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each row; the k-th occurrence of a row in one table goes with the k-th in the other."""
    _, key = np.unique(x, axis=0, return_inverse=True)
    key = key.reshape(-1)
    order = np.lexsort((source, key))
    start = np.r_[True, (np.diff(key[order]) != 0) | (np.diff(source[order]) != 0)]
    first = np.maximum.accumulate(np.where(start, np.arange(len(order)), 0))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - first
    _, pair = np.unique(np.stack([key, rank], axis=1), axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    return np.random.default_rng([seed, folds]).integers(0, folds, pair.max() + 1)[pair]


def _mean_kernel(x: np.ndarray, y: np.ndarray, length_scale: float, rows: int = 1000) -> float:
    total = 0.0
    for i in range(0, len(x), rows):
        part = x[i : i + rows]
        squared = (part**2).sum(1)[:, None] + (y**2).sum(1)[None, :] - 2 * part @ y.T
        total += float(np.exp(-np.maximum(squared, 0) / (2 * length_scale**2)).sum())
    return total / (len(x) * len(y))


def _mean_features(x: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    angles = x @ frequencies
    return np.concatenate([np.cos(angles).mean(0), np.sin(angles).mean(0)]) / np.sqrt(frequencies.shape[1])
