"""Predict: how sharp answers will be, from a plan alone. The noise is known before any row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dpmerf.inference.answers import NORMAL
from dpmerf.inference.blue import MOST_CELLS, Joint, solve
from dpmerf.inference.evidence import Evidence, expected
from dpmerf.inference.table_cells import fine_numbers
from dpmerf.plan import Plan
from dpmerf.schema import Numeric

Z = NORMAL[0.95]
SHARE = 0.1  # the share whose half-width is foretold
MOST_COLUMNS = 40  # that are looked at; every so many of a wider table


@final
@dataclass(frozen=True)
class Sharpness:
    """Half-widths of 95 % intervals to be expected; None where a plan measures no such thing."""

    share: float | None  # of one category, of this table: median over columns
    share_of_population: float | None  # the same for a share of 10 % of the population
    means: dict[str, float]  # of numeric columns of this table, in their own units
    ranges: dict[str, float]  # of these columns, as declared
    coefficient: float | None  # of a linear regression of one standardised number on another, in the population
    units: dict[str, tuple[str, float]] = field(default_factory=dict)  # of means that people count otherwise: days

    @property
    def mean(self) -> float | None:
        """Half-width of a mean as a part of its column's declared range: the median over columns."""
        found = [self.means[name] / self.ranges[name] for name in self.means]
        return float(np.median(found)) if found else None

    def to_json(self) -> dict[str, Any]:
        return {
            "share": self.share,
            "share_of_population": self.share_of_population,
            "mean_of_range": self.mean,
            "means": self.means,
            "coefficient": self.coefficient,
        }


def sharpness(plan: Plan) -> Sharpness:
    """What a plan promises. For as many rows as it was made for."""
    known = expected(plan)
    rows = plan.rows
    learned = list(plan.schema.learned)
    shares, means = [], {}
    for name in learned[:: -(-len(learned) // MOST_COLUMNS)]:
        joint = _solved(known, (name,))
        if joint is None:
            continue
        if name not in known.codec.axes:
            shares.append(math.sqrt(float(np.median(joint.covariance.diagonal()))))
        elif joint.levels == ("fine",):
            n = fine_numbers(known, name)
            value = np.where(n.present > 0, n.value - n.value[n.present > 0].mean(), 0.0)
            means[name] = Z * math.sqrt(max(float(value @ joint.covariance @ value), 0.0)) / rows
    share = Z * float(np.median(shares)) / rows if shares else None
    of_population = None if share is None else math.hypot(share, Z * math.sqrt(SHARE * (1 - SHARE) / rows))
    ranges = {name: known.codec.axes[name].high - known.codec.axes[name].low for name in means}
    units = {name: unit for name in means if (unit := _unit(plan, name))[0]}
    return Sharpness(share, of_population, means, ranges, _coefficient(known, rows), units)


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


def _half(half: float, unit: str, size: float, name: str) -> str:
    return f"{name} ± {half / size:.3g}{' ' * bool(unit)}{unit}"


def in_words(s: Sharpness) -> list[str]:
    """For people."""
    found = []
    if s.share is not None and s.share_of_population is not None:
        found.append(
            f"Answers (95 %): a share of {SHARE:.0%} will be known to ± {100 * s.share:.2g} points in this table, "
            f"± {100 * s.share_of_population:.2g} in the population it was drawn from"
        )
    if s.means:
        shown = ", ".join(_half(half, *s.units.get(name, ("", 1.0)), name) for name, half in list(s.means.items())[:4])
        found.append(f"Means of this table: {shown}" + (", …" if len(s.means) > 4 else ""))
    if s.coefficient is not None:
        found.append(f"A standardised regression coefficient: about ± {s.coefficient:.2g}")
    return found
