"""PrivBayes (Zhang et al. 2017), compact: a Bayesian network chosen by the exponential mechanism, with Laplace
tables.

Accounting: pure ε-DP when one row is replaced, n public. ε/2 for the structure: d − 1 choices of (column, parents) by
mutual information, each with the exponential mechanism at ε/2/(d − 1); the sensitivity of mutual information (natural
logarithm divided out, in bits) is at most 2/n·log₂((n+1)/2) + (n−1)/n·log₂((n+1)/(n−1)) (the paper's Lemma 4.1). ε/2
for d tables of counts: replacing a row changes a table by 2 in L1, so each gets Laplace noise of scale 4d/ε.
θ-usefulness (θ = 4) bounds the tables: the average cell holds at least θ times its noise. Numbers are cut into 16
equal bins of their public axis. Candidate parent sets are all subsets of at most 2 columns (reduced from the
original, which allows more where the noise does).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
import torch

from benchmarks.methods import Task
from dpmerf.encoding.codec import Batch, Codec

BINS, THETA, MOST_PARENTS, MOST_CANDIDATES = 16, 4.0, 2, 400
Network = list[tuple[int, tuple[int, ...]]]  # (column, parents) in drawing order


@final
@dataclass(frozen=True)
class Discrete:
    """A table of codes."""

    codes: np.ndarray  # (n, d) int64
    sizes: tuple[int, ...]

    def counts(self, columns: tuple[int, ...]) -> np.ndarray:
        """The contingency table of some columns."""
        shape = tuple(self.sizes[c] for c in columns)
        flat = np.ravel_multi_index(tuple(self.codes[:, c] for c in columns), shape)
        return np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(float)


def privbayes(task: Task) -> pa.Table:
    codec = Codec(task.schema)
    batch = codec.encode(task.rows)
    bins = (batch.numbers.numpy() * BINS).astype(np.int64).clip(0, BINS - 1)
    codes = np.stack([*bins.T, *(batch.codes[v.name].numpy() for v in codec.variables)], axis=1)
    sizes = (*[BINS] * bins.shape[1], *(v.size for v in codec.variables))
    rng = np.random.default_rng(task.seed)
    made = synthesize(Discrete(codes, sizes), task.epsilon, len(codes), rng)
    numbers = (made[:, : bins.shape[1]] + rng.random((len(made), bins.shape[1]))) / BINS
    named = {v.name: torch.from_numpy(made[:, bins.shape[1] + i]) for i, v in enumerate(codec.variables)}
    return codec.decode(codec.with_label(Batch(torch.from_numpy(numbers), named)))


def synthesize(data: Discrete, epsilon: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """n rows of codes from an ε-DP network."""
    d = len(data.sizes)
    if d == 1:
        structure: Network = [(0, ())]
        epsilon_tables = epsilon
    else:
        structure = choose_network(data, epsilon / 2, epsilon / 2, rng)
        epsilon_tables = epsilon / 2
    out = np.zeros((n, d), dtype=np.int64)
    for column, parents in structure:
        table = data.counts((*parents, column)) + rng.laplace(
            scale=2 * d / epsilon_tables, size=tuple(data.sizes[c] for c in (*parents, column))
        )
        table = table.clip(min=0).reshape(-1, data.sizes[column])
        total = table.sum(1, keepdims=True)
        conditional = np.where(total > 0, table / np.where(total > 0, total, 1), 1 / data.sizes[column])
        shape = tuple(data.sizes[p] for p in parents)
        row = np.ravel_multi_index(tuple(out[:, p] for p in parents), shape) if parents else np.zeros(n, dtype=int)
        cumulative = conditional.cumsum(1)[row]
        out[:, column] = (rng.random((n, 1)) > cumulative).sum(1).clip(max=data.sizes[column] - 1)
    return out


def choose_network(data: Discrete, epsilon: float, epsilon_tables: float, rng: np.random.Generator) -> Network:
    """(column, parents) in drawing order. The first column is drawn at random, at no cost."""
    d, n = len(data.sizes), len(data.codes)
    most_cells = max(n * epsilon_tables / (2 * d * THETA), max(data.sizes))  # θ-usefulness
    sensitivity = 2 / n * math.log2((n + 1) / 2) + (n - 1) / n * math.log2((n + 1) / (n - 1))
    chosen: Network = [(int(rng.integers(d)), ())]
    known: dict[tuple[int, ...], float] = {}
    for _ in range(d - 1):
        have = sorted(c for c, _ in chosen)
        candidates = list(_candidates(data, have, most_cells))
        if len(candidates) > MOST_CANDIDATES:  # a random subset, drawn without looking at rows
            candidates = [candidates[i] for i in rng.choice(len(candidates), MOST_CANDIDATES, replace=False)]
        scores = np.array([_information(data, c, p, known) for c, p in candidates])
        weights = epsilon / (d - 1) * scores / (2 * sensitivity)
        weights = np.exp(weights - weights.max())
        chosen.append(candidates[int(rng.choice(len(candidates), p=weights / weights.sum()))])
    return chosen


def _candidates(data: Discrete, have: list[int], most_cells: float):  # type: ignore[no-untyped-def]
    """Every missing column with its largest useful parent sets."""
    sizes = sorted(data.sizes[p] for p in have)
    for column in (c for c in range(len(data.sizes)) if c not in have):
        found = False
        for k in range(min(MOST_PARENTS, len(have)), 0, -1):
            if data.sizes[column] * math.prod(sizes[:k]) > most_cells:
                continue  # not even with the smallest parents: in a wide table these are too many to look through
            for parents in itertools.combinations(have, k):
                if data.sizes[column] * math.prod(data.sizes[p] for p in parents) <= most_cells:
                    found = True
                    yield column, parents
        if not found:
            yield column, ()


def _information(data: Discrete, column: int, parents: tuple[int, ...], known: dict[tuple[int, ...], float]) -> float:
    """Mutual information in bits."""
    if not parents:
        return 0.0
    key = (*parents, column)
    if key not in known:
        p = data.counts(key).reshape(-1, data.sizes[column]) / len(data.codes)
        outer = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
        positive = p > 0
        known[key] = float((p[positive] * np.log2(p[positive] / outer[positive])).sum())
    return known[key]
