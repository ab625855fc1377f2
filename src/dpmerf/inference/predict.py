"""Predict: how sharp answers will be, from a plan alone. The noise is known before any row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dpmerf.inference.answers import NORMAL
from dpmerf.inference.blue import MOST_CELLS, Joint, solve
from dpmerf.inference.evidence import Evidence, expected
from dpmerf.inference.table_cells import fine_numbers
from dpmerf.plan import Plan
from dpmerf.plan.queries import Histograms, Tables
from dpmerf.schema import Numeric

Z = NORMAL[0.95]
SHARE = 0.1  # the share whose half-width is foretold
MOST_COLUMNS = 40  # that are looked at; every so many of a wider table
BUNCHED = 0.05  # of a declared range: the mean distance from its lower end, of values that lie bunched there


@final
@dataclass(frozen=True)
class Sharpness:
    """Half-widths of 95 % intervals to be expected; None where a plan measures no such thing."""

    share: float | None  # of one category, of this table: median over columns
    share_of_population: float | None  # the same for a share of 10 % of the population
    means: dict[str, float]  # of numeric columns of this table, in their own units: the middle of `spans`
    spans: dict[str, tuple[float, float]]  # of values spread evenly over the declared range, and bunched at its end
    ranges: dict[str, float]  # of these columns, as declared
    coefficient: float | None  # of a linear regression of one standardised number on another, in the population
    units: dict[str, tuple[str, float]] = field(default_factory=dict)  # of means that people count otherwise: days

    @property
    def mean(self) -> float | None:
        """Half-width of a mean as a part of its declared range, wherever values lie: the median over columns."""
        found = [high / self.ranges[name] for name, (_, high) in self.spans.items()]
        return float(np.median(found)) if found else None

    def to_json(self) -> dict[str, Any]:
        return {
            "share": self.share,
            "share_of_population": self.share_of_population,
            "mean_of_range": self.mean,
            "means": self.means,
            "means_between": {name: list(ends) for name, ends in self.spans.items()},
            "coefficient": self.coefficient,
        }


def sharpness(plan: Plan, counts: Mapping[str, np.ndarray] | None = None) -> Sharpness:
    """What a plan promises, for as many rows as it was made for.

    A mean's error depends on where in its declared range a column's values lie, which decides how bins are cut. Before
    a release nobody may know, so two extremes are computed. Public `counts` of fine cells would say it instead.
    """
    known, rows = expected(plan), plan.rows
    learned = list(plan.schema.learned)
    looked = learned[:: -(-len(learned) // MOST_COLUMNS)]
    joints = {name: joint for name in looked if (joint := _solved(known, (name,))) is not None}
    shares = [
        math.sqrt(float(np.median(j.covariance.diagonal()))) for n, j in joints.items() if n not in known.codec.axes
    ]
    share = Z * float(np.median(shares)) / rows if shares else None
    of_population = None if share is None else math.hypot(share, Z * math.sqrt(SHARE * (1 - SHARE) / rows))
    numbers = [name for name, joint in joints.items() if name in known.codec.axes and joint.levels == ("fine",)]
    told: list[Mapping[str, np.ndarray]] = [_spread(plan, known, of) for of in (None, BUNCHED)]
    told = told if counts is None else [counts]
    ends = [_means(plan, numbers, at) for at in told]
    spans = {n: (min(e[n] for e in ends), max(e[n] for e in ends)) for n in numbers if all(n in e for e in ends)}
    means = {name: math.sqrt(low * high) for name, (low, high) in spans.items()}
    ranges = {name: known.codec.axes[name].high - known.codec.axes[name].low for name in means}
    units = {name: unit for name in means if (unit := _unit(plan, name))[0]}
    return Sharpness(share, of_population, means, spans, ranges, _coefficient(known, rows), units)


def _means(plan: Plan, names: list[str], counts: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Half-width of each column's mean, if its values lay like this."""
    known, found = expected(plan, counts), {}
    for name in names:
        joint = _solved(known, (name,))
        if joint is not None:
            n = fine_numbers(known, name)
            centre = float(counts[name] @ n.value / max(counts[name].sum(), 1.0)) if name in counts else 0.0
            value = np.where(n.present > 0, n.value - centre, 0.0)
            found[name] = Z * math.sqrt(max(float(value @ joint.covariance @ value), 0.0)) / plan.rows
    return found


def _spread(plan: Plan, known: Evidence, bunched: float | None) -> dict[str, np.ndarray]:
    """Column -> counts of fine cells: numbers evenly over the range or bunched at its lower end; categories evenly."""
    found: dict[str, np.ndarray] = {}
    if not (plan.has(Histograms) and plan.has(Tables)):
        return found
    for name in plan.query(Histograms).columns:
        fine, size = known.fine(name), known.size(name, "fine")
        if fine is None:
            found[name] = np.full(size, plan.rows / size)
            continue
        edges = fine.edges / fine.edges[-1]
        below = edges if bunched is None else -np.expm1(-edges / bunched)
        found[name] = np.r_[plan.rows * np.diff(below), np.zeros(size - fine.size)]
    return found


def _unit(plan: Plan, name: str) -> tuple[str, float]:
    """What people say a distance of such values in, and how many of the column's own units that is."""
    column = plan.schema.measured.columns[name]
    return column.apart_in if isinstance(column, Numeric) and column.counted_in else ("", 1.0)


def _solved(known: Evidence, columns: tuple[str, ...]) -> Joint | None:
    covering = [t for t in known.tables if set(columns) <= set(t.columns)]
    if not covering or min(t.values.size for t in covering) > MOST_CELLS:
        return None
    return solve(known, columns)


def _coefficient(known: Evidence, rows: int) -> float | None:
    """Σ u v X ÷ n for scores u, v of two columns with equally many rows in each bin: median over measured pairs.

    With k bins of equal mass, scores of variance 1 have Σ u² = k: noise of variance s² in every cell gives the slope
    the variance s² · k₁ · k₂ ÷ n².
    """
    precision: dict[tuple[str, ...], tuple[float, int]] = {}
    for t in known.tables:
        if len(t.columns) == 2 and all(level == "bin" for level in t.levels):
            key = tuple(sorted(t.columns))
            before = precision.get(key, (0.0, 0))[0]
            precision[key] = (before + 1 / t.variance, math.prod(t.values.shape))
    if not precision:
        return None
    variance = float(np.median([cells / weight for weight, cells in precision.values()]))
    return Z * math.sqrt(variance / rows**2 + 1 / rows)


def _span(low: float, high: float, unit: str, size: float, name: str) -> str:
    return f"{name} ± {low / size:.2g} to {high / size:.2g}{' ' * bool(unit)}{unit}"


def in_words(s: Sharpness) -> list[str]:
    """For people."""
    found = []
    if s.share is not None and s.share_of_population is not None:
        found.append(
            f"Answers (95 %): a share of {SHARE:.0%} will be known to ± {100 * s.share:.2g} points in this table, "
            f"± {100 * s.share_of_population:.2g} in the population it was drawn from"
        )
    if s.means:
        spans = list(s.spans.items())
        shown = ", ".join(_span(*ends, *s.units.get(name, ("", 1.0)), name) for name, ends in spans[:4])
        more = ", …" if len(spans) > 4 else ""
        found.append(f"Means of this table, by how values lie in their declared range: {shown}{more}")
    if s.coefficient is not None:
        found.append(f"A standardised regression coefficient: about ± {s.coefficient:.2g}")
    return found
