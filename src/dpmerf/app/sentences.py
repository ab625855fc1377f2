"""Words: a plan's price in a sentence and a table, for people who have to decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dpmerf.plan import Plan
from dpmerf.schema import Problem

MISSING = {
    "kind": "Choose a kind.",
    "values": "List every value that can occur, one a line.",
    "min": "Write the smallest value that can occur.",
    "max": "Write the largest value that can occur.",
    "first": "Write the earliest that can occur, for example 2020-01-01.",
    "last": "Write the latest that can occur, for example 2024-12-31.",
}


def told(problem: Problem) -> str:
    """A problem as the page says it, beside the box that it is about."""
    if problem.words.startswith(' is still "?"') and problem.key in MISSING:
        return MISSING[problem.key]
    return problem.sentence


@final
@dataclass(frozen=True)
class Verdict:
    """What a plan promises and what it leaves visible."""

    name: str
    epsilon: float
    delta: float
    protects: str
    accuracy: float  # of the best attack
    single: float  # noise of a count by one column
    pair: float | None  # noise of a count by two columns; None: no pairs are measured
    rows: int

    @property
    def group(self) -> int:
        """Groups of fewer rows than this are mostly noise."""
        return max(1, round(2 * self.single))

    @property
    def light(self) -> str:
        """green, amber or red: how much of the table is left to see."""
        share = self.group / self.rows
        return "green" if share < 0.01 else "amber" if share < 0.1 else "red"

    @property
    def sentence(self) -> str:
        """In plain words."""
        worth = {
            "green": "Good for tables, averages and models.",
            "amber": "Good for rough pictures; small groups are lost.",
            "red": "Hardly worth it: mostly noise. More rows, a larger ε or fewer columns would help.",
        }[self.light]
        return (
            f"Counts by one column are right to about ± {self.single:,.0f} of {self.rows:,} rows, "
            f"and groups under {self.group:,} rows are noise. {worth}"
        )


def verdict(name: str, plan: Plan) -> Verdict:
    """A plan in words. Everything follows from public facts."""
    noises: dict[str, list[float]] = {"1": [], "2": []}
    for stage in plan.summary()["stages"]:
        for block in stage["blocks"]:
            noises.setdefault(str(block["name"])[:1], []).append(block["noise"])
    every = [n for found in noises.values() for n in found if n > 0] or [0.0]
    pairs = noises["2"]
    who = "one row" if plan.unit.person is None else f"one person ({plan.unit.person})"
    return Verdict(
        name, plan.epsilon, plan.delta, who, plan.odds.accuracy, min(every), max(pairs) if pairs else None, plan.rows
    )
