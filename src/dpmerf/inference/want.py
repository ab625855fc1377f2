"""Want: the other way round. How large must ε be for answers to be as sharp as this?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from dpmerf.errors import AnswerError, PlanError
from dpmerf.inference.predict import Sharpness, sharpness
from dpmerf.plan import Plan

LEAST, MOST = 0.01, 20.0  # of ε
CLOSE = 1.005  # ratio of ε at which the search ends
_TEXT = re.compile(
    r"^\s*(share|mean|coefficient)(?:\s+of\s+(.+?))?\s*(?:±|\+-|\+/-)\s*([0-9.eE+-]+)\s*(points?|%)?\s*$"
)
_FORM = (
    'write for example "share ± 0.5 points", "mean of age ± 0.3", "mean ± 1 %" (of a declared range) or '
    '"coefficient ± 0.05"'
)


@final
@dataclass(frozen=True)
class Want:
    """A half-width of a 95 % interval: of a share, of a mean (of one column, or as a part of a range), of a slope."""

    what: str
    column: str | None
    half: float

    @staticmethod
    def parse(text: str) -> Want:
        """
        >>> Want.parse("share ± 0.5 points")
        Want(what='share', column=None, half=0.005)
        """
        found = _TEXT.match(text)
        try:
            half = float(found[3]) if found else 0.0
        except ValueError:
            half = 0.0
        if not found or not 0 < half < 1e12 or (found[2] and found[1] != "mean"):
            raise AnswerError(f"--want '{text}' cannot be read: {_FORM}")
        if found[4]:
            half /= 100
        return Want(found[1], found[2], half)

    def reached(self, s: Sharpness) -> float:
        """The half-width that a plan gives."""
        if self.column is not None:
            if self.column not in s.means:
                raise AnswerError(f"no mean of '{self.column}' will be measured. There are: {', '.join(s.means)}")
            return s.spans[self.column][1]  # wherever its values lie
        half = {"share": s.share, "mean": s.mean, "coefficient": s.coefficient}[self.what]
        if half is None:
            raise AnswerError(f"this plan measures no table that gives a {self.what}")
        return half


def least_epsilon(want: Want, make: Callable[[float], Plan]) -> Plan:
    """The plan of least ε that is as sharp as wanted, by bisection on a logarithmic scale."""

    def sharp(epsilon: float) -> bool:
        return want.reached(sharpness(make(epsilon))) <= want.half

    low, high = LEAST, MOST
    while True:  # a large ε may be more than the discrete sampler allows
        try:
            enough = sharp(high)
            break
        except PlanError:
            high /= 2
            if high < LEAST:
                raise
    if not enough:
        best = want.reached(sharpness(make(high)))
        raise AnswerError(
            f"no ε up to {high:g} is enough: even then the half-width is {best:.3g}. Want less, or more rows"
        )
    while high / low > CLOSE:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if sharp(middle) else (middle, high)
    return make(float(f"{high * 1.005:.3g}"))
