"""Events: what mechanisms cost, as data. A stored event's meaning never changes; a new mechanism is a new event.

`delta` turns any collection of events into the δ of all of them together at some ε. Gaussian noise and selections
compose exactly, adaptively and in any order (`gaussian.py`, `selection.py`); what is added to δ outright adds up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from dpmerf.accounting.gaussian import compose, delta_of
from dpmerf.accounting.selection import MOST_RANGE
from dpmerf.errors import BudgetError


@final
@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of scale sensitivity ÷ μ: μ-GDP."""

    mu: float

    def __post_init__(self) -> None:
        if not (_is_number(self.mu) and math.isfinite(self.mu) and self.mu > 0):
            raise BudgetError(f"mu is {self.mu}: write a finite number above 0")


@final
@dataclass(frozen=True)
class Selection:
    """One of several candidates by the exponential mechanism: its loss has a window of this width."""

    range: float

    def __post_init__(self) -> None:
        if not (_is_number(self.range) and 0 < self.range <= MOST_RANGE):
            raise BudgetError(f"a selection has a range above 0 and at most {MOST_RANGE:g}")


@final
@dataclass(frozen=True)
class Added:
    """What adds to δ outright: the distance of a sampler from its ideal, a threshold that may fail."""

    delta: float

    def __post_init__(self) -> None:
        if not (_is_number(self.delta) and 0 <= self.delta < 1):
            raise BudgetError(f"delta is {self.delta}: write a number of 0 or more and below 1")


Event = Gaussian | Selection | Added
_FIELD: dict[str, type[Event]] = {"gaussian": Gaussian, "selection": Selection, "added": Added}


@final
@dataclass(frozen=True)
class Composed:
    """What several events come to: one Gaussian, the ranges of all selections, and what adds to δ."""

    mu: float
    ranges: tuple[float, ...]
    added: float

    def delta(self, epsilon: float) -> float:
        """δ of all of them at this ε."""
        return delta_of(self.mu, epsilon, self.ranges) + self.added


def composed(events: Iterable[Event]) -> Composed:
    """Add events up.

    >>> composed([Gaussian(3.0), Selection(0.4), Gaussian(4.0), Added(1e-9)])
    Composed(mu=5.0, ranges=(0.4,), added=1e-09)
    """
    every = tuple(events)
    return Composed(
        compose(*(e.mu for e in every if isinstance(e, Gaussian))),
        tuple(e.range for e in every if isinstance(e, Selection)),
        math.fsum(e.delta for e in every if isinstance(e, Added)),
    )


def delta(events: Iterable[Event], epsilon: float) -> float:
    """The δ for which all events together are (ε, δ)-DP.

    >>> f"{delta([Gaussian(1 / 3.7306)], 1.0):.2e}", delta([], 1.0)
    ('1.00e-05', 0.0)
    """
    return composed(events).delta(epsilon)


def to_json(event: Event) -> dict[str, float]:
    """One field, named after the mechanism.

    >>> to_json(Selection(0.4))
    {'selection': 0.4}
    """
    match event:
        case Gaussian():
            return {"gaussian": event.mu}
        case Selection():
            return {"selection": event.range}
        case Added():
            return {"added": event.delta}


def from_json(data: Any) -> Event:
    """The way back. An unknown mechanism is an error: what it costs cannot be known."""
    if not (isinstance(data, dict) and len(data) == 1):
        raise BudgetError("an event has one field, named after its mechanism")
    ((mechanism, size),) = data.items()
    if mechanism not in _FIELD:
        raise BudgetError(f"there is no mechanism '{mechanism}' in this version: update dpmerf")
    return _FIELD[mechanism](size)


def _is_number(value: object) -> bool:
    return isinstance(value, float)
