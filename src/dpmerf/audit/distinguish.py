"""Distinguish: learn to tell two sets of artefacts apart on one half of them, and bound the claim by the other half.

A black box in the manner of DP-Auditorium: nothing is known of how an artefact is made. Several simple rules are
learned from everything that an artefact shows. Their error rates on artefacts that they have not seen, with
Clopper-Pearson limits, say how large ε (or μ) must be at least.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import final

import numpy as np

from dpmerf.audit.artefact import Artefact, Features
from dpmerf.audit.bounds import Claim, ErrorRates, error_rates

FEW = 16  # values of a number up to which it is also looked at as a word
STANDS_OUT = 3.0  # standard errors: of thousands of numbers that do not differ, few are taken by chance
SEEN = 3  # times: a word that occurs less often in training is one of the rare ones
RARE = "\0rare"
_NORMAL = NormalDist()


@final
@dataclass(frozen=True)
class Shown:
    """What the rules show, all together wrong with at most the stated probability."""

    rates: dict[str, ErrorRates]  # rule -> its best threshold's
    names: dict[str, str]  # rule -> what it looks at, where that can be said in a word
    doubt: float
    releases: int

    @property
    def best(self) -> str:
        return max(self.rates, key=lambda rule: self.rates[rule].mu)

    @property
    def mu(self) -> float:
        """A Gaussian release with such error rates has at least this μ."""
        return max(0.0, self.rates[self.best].mu)

    def epsilon(self, delta: float) -> float:
        return max(rates.epsilon(delta) for rates in self.rates.values())

    def refutes(self, claim: Claim) -> str | None:
        """The rule that contradicts the claim, in words; None if none does."""
        for rule in sorted(self.rates, key=lambda rule: -self.rates[rule].mu):
            if not claim.allows(self.rates[rule]):
                return f"{rule} rule{self.names.get(rule, '')}: μ ≥ {self.rates[rule].mu:.2f}"
        return None


def distinguish(out: Sequence[Artefact], inside: Sequence[Artefact], doubt: float) -> Shown:
    """Rules learned on the first half of each side, judged on the second."""
    found = [[a.features() for a in side] for side in (out, inside)]
    half = len(out) // 2
    table = Table(found[0][:half], found[1][:half])
    train = [table.rows(side[:half]) for side in found]
    test = [table.rows(side[half:]) for side in found]
    rules: list[Rule] = [
        Linear("linear", 1e-6),
        Linear("smoothed linear", 0.3),
        Strongest(),
        Energy(table.groups),
        Single(table),
        Words(table),
    ]
    rates, names = {}, {}
    for rule in rules:
        rule.learn(train[0], train[1])
        scores = [rule.score(rows) for rows in test]
        rates[rule.name] = max(error_rates(scores[0], scores[1], doubt / len(rules)), key=lambda r: r.mu)
        names[rule.name] = rule.looks_at
    return Shown(rates, names, doubt, len(out) + len(inside))


@final
@dataclass(frozen=True)
class Rows:
    """Artefacts as arrays."""

    numbers: np.ndarray  # (n, d) standardised by the training half; 0 where missing
    words: np.ndarray  # (n, w) places in the vocabularies


@final
class Table:
    """Which features vary in training, how numbers are standardised and words are coded."""

    def __init__(self, out: Sequence[Features], inside: Sequence[Features]) -> None:
        both = [*out, *inside]
        keys = np.array(sorted({k for f in both for k in f.numbers}), dtype=object)
        raw = _array([f.numbers for f in both], keys.tolist())
        seen = ~np.isnan(raw)
        mean = np.where(seen, raw, 0).sum(0) / seen.sum(0)
        spread = np.sqrt(np.where(seen, (raw - mean) ** 2, 0).sum(0) / seen.sum(0))
        varies = spread > 1e-12 * np.maximum(1.0, np.abs(mean))
        self.numeric: list[str] = keys[varies].tolist()
        self._mean, self._spread = mean[varies], spread[varies]
        self.vocabulary: dict[str, dict[str, int]] = {}
        for key, values in self._words(both, keys, raw).items():
            counts = Counter(values)
            kept = [value for value, count in counts.items() if count >= SEEN]
            if len(counts) > 1 and kept:
                self.vocabulary[key] = {value: i + 1 for i, value in enumerate(kept)}  # 0: the rare ones

    def _words(self, both: list[Features], keys: np.ndarray, raw: np.ndarray) -> dict[str, list[str]]:
        """All words, and those numbers that take few values (or are missing now and then)."""
        found = {key: [f.words.get(key, "") for f in both] for key in {k for f in both for k in f.words}}
        for j, key in enumerate(keys):
            if len(np.unique(raw[:, j])) <= FEW or np.isnan(raw[:, j]).any():
                found[f"={key}"] = [_word(value) for value in raw[:, j].tolist()]
        return dict(sorted(found.items()))

    @property
    def groups(self) -> np.ndarray:
        """(d,) which numbers belong to one file or tensor."""
        names = [key.split("[")[0].split(":")[0] for key in self.numeric]
        return np.unique(names, return_inverse=True)[1] if names else np.zeros(0, int)

    def rows(self, found: Sequence[Features]) -> Rows:
        raw = _array([f.numbers for f in found], self.numeric)
        words = np.zeros((len(found), len(self.vocabulary)), np.int64)
        for j, (key, places) in enumerate(self.vocabulary.items()):
            for i, f in enumerate(found):
                value = _word(f.numbers.get(key[1:], math.nan)) if key[0] == "=" else f.words.get(key, "")
                words[i, j] = places.get(value, 0)
        return Rows(np.nan_to_num((raw - self._mean) / self._spread, nan=0.0).clip(-1e6, 1e6), words)


def _array(rows: Sequence[dict[str, float]], keys: Sequence[str]) -> np.ndarray:
    return np.array([[row.get(key, math.nan) for key in keys] for row in rows]).reshape(len(rows), len(keys))


def _word(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


class Rule(ABC):
    """Learns from artefacts of both sides; scores others, higher for `inside`."""

    name: str
    looks_at: str = ""  # where it can be said in a word

    @abstractmethod
    def learn(self, out: Rows, inside: Rows) -> None:
        """Learn from the training half."""

    @abstractmethod
    def score(self, rows: Rows) -> np.ndarray:
        """(n,) of other artefacts."""


@final
class Linear(Rule):
    """Fisher's discriminant of all numbers. A direction without noise has all the weight, if the ridge is small."""

    def __init__(self, name: str, ridge: float) -> None:
        self.name = name
        self._ridge = ridge

    def learn(self, out: Rows, inside: Rows) -> None:
        self._weights = _discriminant(out.numbers, inside.numbers, self._ridge)

    def score(self, rows: Rows) -> np.ndarray:
        return np.asarray(rows.numbers @ self._weights)


@final
class Strongest(Rule):
    """Fisher's discriminant of the numbers that differ by several standard errors: for more numbers than artefacts."""

    name = "strongest"

    def learn(self, out: Rows, inside: Rows) -> None:
        gap = inside.numbers.mean(0) - out.numbers.mean(0)
        variance = np.maximum((inside.numbers.var(0) + out.numbers.var(0)) / 2, 1e-9)
        errors = np.abs(gap) / np.sqrt(variance * (1 / len(out.numbers) + 1 / len(inside.numbers)))
        taken = errors > STANDS_OUT
        self._weights = np.zeros(len(gap))
        self._weights[taken] = _discriminant(out.numbers[:, taken], inside.numbers[:, taken], 0.3)

    def score(self, rows: Rows) -> np.ndarray:
        return np.asarray(rows.numbers @ self._weights)


@final
class Energy(Rule):
    """How far the numbers of each file or tensor lie from their means: noise whose size tells something."""

    name = "energy"

    def __init__(self, groups: np.ndarray) -> None:
        self._groups = groups

    def learn(self, out: Rows, inside: Rows) -> None:
        both = [self._energies(rows) for rows in (out, inside)]
        self._weights = _discriminant(both[0], both[1], 1e-3)

    def score(self, rows: Rows) -> np.ndarray:
        return np.asarray(self._energies(rows) @ self._weights)

    def _energies(self, rows: Rows) -> np.ndarray:
        groups = range(int(self._groups.max(initial=-1)) + 1)
        means = [np.log(np.square(rows.numbers[:, self._groups == g]).mean(1) + 1e-12) for g in groups]
        return np.stack(means, 1) if means else np.zeros((len(rows.numbers), 0))


@final
class Single(Rule):
    """The one number or word that differs most."""

    name = "single"

    def __init__(self, table: Table) -> None:
        self._names = (table.numeric, list(table.vocabulary))

    def learn(self, out: Rows, inside: Rows) -> None:
        gap = inside.numbers.mean(0) - out.numbers.mean(0)
        spread = np.sqrt((inside.numbers.var(0) + out.numbers.var(0)) / 2)
        seen = 2 * np.vectorize(_NORMAL.cdf, otypes=[float])(np.abs(gap) / np.maximum(spread, 1e-9) / 2) - 1
        logs = _log_ratios(out.words, inside.words)
        apart = np.array([_distance(out.words[:, j], inside.words[:, j]) for j in range(len(logs))])
        self._number = int(seen.argmax()) if len(seen) else None
        self._word = int(apart.argmax()) if len(apart) else None
        if self._word is not None and (self._number is None or apart[self._word] >= seen[self._number]):
            self._number = None
            self._logs, self.looks_at = logs[self._word], f" ({self._names[1][self._word].lstrip('=')})"
        elif self._number is not None:
            self._sign, self.looks_at = np.sign(gap[self._number]), f" ({self._names[0][self._number]})"

    def score(self, rows: Rows) -> np.ndarray:
        if self._number is not None:
            return np.asarray(self._sign * rows.numbers[:, self._number])
        return np.zeros(len(rows.words)) if self._word is None else self._logs[rows.words[:, self._word]]


@final
class Words(Rule):
    """All words together, each by how often it was seen on either side (naive Bayes)."""

    name = "words"

    def __init__(self, table: Table) -> None:
        self._count = len(table.vocabulary)

    def learn(self, out: Rows, inside: Rows) -> None:
        self._logs = _log_ratios(out.words, inside.words)

    def score(self, rows: Rows) -> np.ndarray:
        scores = [logs[rows.words[:, j]] for j, logs in enumerate(self._logs)]
        return np.asarray(sum(scores, np.zeros(len(rows.words))))


def _discriminant(out: np.ndarray, inside: np.ndarray, ridge: float) -> np.ndarray:
    within = (np.cov(out, rowvar=False) + np.cov(inside, rowvar=False)) / 2
    within = np.atleast_2d(within) + ridge * np.eye(out.shape[1])
    return np.linalg.solve(within, inside.mean(0) - out.mean(0)) if out.shape[1] else np.zeros(0)


def _log_ratios(out: np.ndarray, inside: np.ndarray) -> list[np.ndarray]:
    """For each feature, log P(word | inside) / P(word | out), smoothed by one each."""
    found = []
    for j in range(out.shape[1]):
        size = int(max(out[:, j].max(), inside[:, j].max())) + 1
        counts = [np.bincount(side[:, j], minlength=size + 1) + 1.0 for side in (out, inside)]
        found.append(np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum()))
    return found


def _distance(out: np.ndarray, inside: np.ndarray) -> float:
    """Total variation of two samples of words."""
    size = int(max(out.max(), inside.max())) + 1
    counts = [np.bincount(side, minlength=size) / len(side) for side in (out, inside)]
    return float(np.abs(counts[0] - counts[1]).sum() / 2)
