"""Scores of the suite: what a synthetic table keeps of a real one, each figure with what real rows themselves score."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks import scoring
from benchmarks.protocols import Split
from dpmerf.evaluate.classifiers import table_classifiers
from dpmerf.evaluate.twosample import detection_auc
from dpmerf.evaluate.views import Rows, shuffled

MODELS = ("Logistic regression", "Random forest", "XGBoost")
DETECTED, FOLDS = 6_000, 3  # rows of each table that are told apart, and the folds
MOST_PAIRS = 400  # of columns, for pairs of values that were never seen
TAIL = (0.99, 0.999)


def scores(synthetic: pa.Table, real: Split, seed: int) -> dict[str, float]:
    """Every figure of one line. Judged by held-out training rows; pairs are new that the rows learned from do not hold.

    Those rows themselves are scored as what real rows can reach; of new pairs, the held-out rows say it.
    """
    ours, train, test = (Rows.read(t, real.schema) for t in (synthetic, real.train, real.test))
    found = {f"tv{k}": v for k, v in zip((1, 2, 3), _distances(synthetic, real, seed), strict=True)}
    found["utility"] = utility(synthetic, real, seed)
    found["novelty"] = novelty(test if synthetic is real.train else ours, train, seed)
    found |= moments(ours, test)
    size = min(DETECTED, len(ours), len(test))
    found["told_apart"] = detection_auc(ours.sample(size, seed), test.sample(size, seed), FOLDS, seed)
    return {name: round(float(value), 5) for name, value in found.items()}


def utility(synthetic: pa.Table, real: Split, seed: int) -> float:
    """Mean ROC-AUC (several classes: weighted F1) on real rows of classifiers trained on synthetic ones."""
    makers = {name: maker for name, maker in table_classifiers().items() if name in MODELS}
    mean = scoring.utility(synthetic, real, seed, makers=makers)["mean"]
    return float(mean.get("roc_auc", mean.get("f1_weighted")))


def independent(real: Split, seed: int) -> pa.Table:
    """The real training rows with every column permuted: no two columns have to do with each other."""
    rows = Rows.read(real.train, real.schema)
    return rows.codec.decode(shuffled(rows, seed).batch)


def novelty(ours: Rows, train: Rows, seed: int) -> float:
    """The share of rows that hold a pair of values (20 bins, categories) that no row learned from holds."""
    a, b = ours.all_coded(), train.all_coded()
    pairs = [(i, j) for i in range(len(a)) for j in range(i)]
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[k] for k in np.random.default_rng(seed).choice(len(pairs), MOST_PAIRS, replace=False)]
    new = np.zeros(len(ours), dtype=bool)
    for i, j in pairs:
        seen = np.zeros(b[i].size * b[j].size, dtype=bool)
        seen[b[i].codes * b[j].size + b[j].codes] = True
        new |= ~seen[a[i].codes * b[j].size + a[j].codes]
    return float(new.mean())


def moments(ours: Rows, test: Rows) -> dict[str, float]:
    """Errors of means and standard deviations (of a real one), correlations, and quantiles in the tail (relative)."""
    names = [n for n in test.names if test.numeric(n) and np.nanstd(test.values(n)) > 0]
    if not names:
        return {}
    mine, real = (np.stack([r.values(n) for n in names]) for r in (ours, test))
    spread = np.nanstd(real, axis=1)
    found = {
        "mean_error": np.mean(np.abs(np.nanmean(mine, axis=1) - np.nanmean(real, axis=1)) / spread),
        "sd_error": np.mean(np.abs(np.nanstd(mine, axis=1) / spread - 1)),
    }
    for q in TAIL:
        there, here = np.nanquantile(real, q, axis=1), np.nanquantile(mine, q, axis=1)
        found[f"q{q}"] = np.mean(np.abs(here - there) / np.maximum(np.abs(there), spread))
    if len(names) > 1:
        found["correlation_error"] = np.mean(np.abs(_correlations(mine) - _correlations(real)))
    return {name: float(value) for name, value in found.items()}


def _correlations(values: np.ndarray) -> np.ndarray:
    """(pairs,) Pearson, each over the rows that have both numbers; 0 where one of them never changes."""
    found = []
    for i in range(len(values)):
        for j in range(i):
            both = ~(np.isnan(values[i]) | np.isnan(values[j]))
            a, b = values[i, both], values[j, both]
            still = len(a) < 3 or a.std() == 0 or b.std() == 0
            found.append(0.0 if still else float(np.corrcoef(a, b)[0, 1]))
    return np.array(found)


def _distances(synthetic: pa.Table, real: Split, seed: int) -> tuple[float, float, float]:
    found = scoring.distances(synthetic, real, seed)
    return found["tv1"], found["tv2"], found["tv3"]
