"""Coverage of regression coefficients by copies, beside synthetic rows analysed as if real, and real rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
import statsmodels.api as sm

import dpmerf
from benchmarks.populations import Population
from dpmerf.inference.predict import sharpness
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure

ROWS, COPIES = 20_000, 20


@final
@dataclass(frozen=True)
class Regression:
    """One regression: numbers are divided by a fixed unit, categories enter as 'column = value'."""

    name: str
    outcome: str
    value: Any  # of a category or flag: logistic; None: linear
    numbers: dict[str, float]  # column -> unit
    indicators: dict[str, Any]  # column -> value

    @property
    def coefficients(self) -> list[str]:
        return [*self.numbers, *(f"{c} = {v}" for c, v in self.indicators.items())]

    def fit(self, table: pa.Table) -> dict[str, tuple[float, float]]:
        """Coefficient -> (estimate, variance), without rows that lack a number."""
        parts = [np.ones(table.num_rows), *(_number(table, c) / unit for c, unit in self.numbers.items())]
        X = np.column_stack([*parts, *(_equal(table, c, v) for c, v in self.indicators.items())])
        y = _number(table, self.outcome) if self.value is None else _equal(table, self.outcome, self.value)
        whole = np.isfinite(X).all(1) & np.isfinite(y)
        model = sm.OLS(y[whole], X[whole]) if self.value is None else sm.Logit(y[whole], X[whole])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit() if self.value is None else model.fit(disp=0)
        return {
            f"{self.name}: {n}": (float(q), float(s) ** 2)
            for n, q, s in zip(self.coefficients, found.params[1:], found.bse[1:], strict=True)
        }


def _number(table: pa.Table, column: str) -> np.ndarray:
    return table[column].to_numpy(zero_copy_only=False).astype(float)


def _equal(table: pa.Table, column: str, value: Any) -> np.ndarray:
    return np.array([x == value for x in table[column].to_pylist()], float)


REGRESSIONS = {
    "adult": (
        Regression(
            "income",
            "income",
            ">50K",
            {"age": 10.0, "education_num": 1.0, "hours_per_week": 10.0},
            {"sex": "Male", "marital_status": "Married-civ-spouse", "workclass": "Private"},
        ),
        Regression(
            "hours",
            "hours_per_week",
            None,
            {"age": 10.0, "education_num": 1.0},
            {"sex": "Male", "marital_status": "Married-civ-spouse", "workclass": "Private"},
        ),
    ),
    "hospital": (
        Regression(
            "readmitted",
            "readmitted",
            True,
            {"age": 10.0, "systolic": 10.0, "visits_before": 1.0},
            {"sex": "male", "diabetes": True, "ward": "surgery"},
        ),
        Regression(
            "systolic",
            "systolic",
            None,
            {"age": 10.0, "weight_kg": 10.0},
            {"sex": "male", "diabetes": True, "insurance": "private"},
        ),
    ),
}


_TRUTH: dict[tuple[str, int], dict[str, tuple[float, float]]] = {}


def release(people: Population, epsilon: float, seed: int) -> dict[str, Any]:
    """One release of freshly drawn rows: per coefficient the truth and three intervals; seconds of CPU."""
    drawn = people.table.take(people.draw(ROWS, seed))
    plan = make_plan(people.schema, epsilon, 1e-5, rows=ROWS)
    noisy = measure(drawn, plan)
    start = time.process_time()
    model = dpmerf.train(noisy, seed=seed)
    trained = time.process_time()
    copies = list(model.copies(COPIES, seed=seed))
    copied = time.process_time()
    pooled = dpmerf.analyse(copies, lambda t: _fits(people, t))
    real, synthetic = (_fits(people, t) for t in (drawn, model.sample(ROWS)))
    key = (people.name, people.table.num_rows)
    truth = _TRUTH[key] = _TRUTH.get(key) or _fits(people, people.table)
    slopes = dpmerf.analyse(copies, lambda t: _slopes(people, t)).coefficients
    return {
        "seconds": {"training": trained - start, "copies": copied - trained},
        "slope": {
            "foretold": sharpness(plan).coefficient,
            "seen": float(np.median([(c.high - c.low) / 2 for c in slopes])),
        },
        "coefficients": {
            c.name: {
                "truth": truth[c.name][0],
                "copies": [c.low, c.high],
                "real": _interval(*real[c.name]),
                "as if real": _interval(*synthetic[c.name]),
            }
            for c in pooled.coefficients
        },
    }


def _fits(people: Population, table: pa.Table) -> dict[str, tuple[float, float]]:
    return {name: pair for regression in REGRESSIONS[people.name] for name, pair in regression.fit(table).items()}


def _slopes(people: Population, table: pa.Table) -> dict[str, tuple[float, float]]:
    """Slope of one standardised number on another, for every pair of the numbers that the regressions use."""
    names = sorted({n for r in REGRESSIONS[people.name] for n in r.numbers})
    found = {}
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            both = np.column_stack([_number(table, a), _number(table, b)])
            both = both[np.isfinite(both).all(1)]
            slope = float(np.corrcoef(both.T)[0, 1])
            found[f"{b} on {a}"] = (slope, (1 - slope**2) / len(both))
    return found


def _interval(estimate: float, variance: float) -> list[float]:
    half = 1.959964 * variance**0.5
    return [estimate - half, estimate + half]
