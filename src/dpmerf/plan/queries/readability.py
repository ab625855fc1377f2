"""Readability: could the cells of each column be read as declared? Asked first, and for little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, final

from pydantic import Field

from dpmerf.encoding import readable
from dpmerf.encoding.codec import Variable
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.plan.embedding import Embedding
from dpmerf.plan.queries.query import Query, check_each

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema

SURE = 4.0  # standard deviations by which a share must pass a limit to do so beyond doubt
MOST_UNREAD = 0.5  # share of a column's cells above which nothing is worth measuring: unread, out of bounds, or null
MOST_OTHER = 0.95  # the same of cells that fall to a declared catch-all
WORTH_SAYING = 0.05  # share from which a note says it
DECLARE = {
    "number": "decimal, thousands, unit or missing",
    "integer": "decimal, thousands, unit or missing",
    "date": 'date = "%d.%m.%Y" or the like',
    "timestamp": 'date = "%d.%m.%Y %H:%M" or the like',
    "category": "its values, or synonyms",
    "flag": "synonyms = { … = true, … = false }",
}


@final
class Readability(Query):
    """A table of four answers for each column (read, out of bounds, null, unread), each with weight 1."""

    words: ClassVar[str] = "readability"
    once: ClassVar[bool] = True
    drawn: ClassVar[bool] = False

    kind: Literal["readability"] = "readability"
    columns: tuple[str, ...] = Field(min_length=1)

    def nominal(self, plan: Plan) -> FeatureMap:
        """The real map: one place of each column, B² = columns and d² = 2 · columns."""
        if unknown := set(self.columns) - set(plan.schema.needed):
            raise PlanError(f"a plan asks whether '{min(unknown)}' can be read, and a release does not read it")
        return total([onehot(self._variable(name)) for name in self.columns])

    def resolve(self, known: Known) -> Embedding:
        """The same. The codec says of each cell which answer it is."""
        return Embedding(self.nominal(known.plan), lambda batch: batch)

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """Each column once; and it stands first, since it decides whether to go on."""
        check_each(stage, self.columns, lambda name: not before)

    @staticmethod
    def _variable(name: str) -> Variable:
        return Variable(readable.variable_name(name), readable.ANSWERS)


@final
@dataclass(frozen=True)
class Readable:
    """What a release says about one column: noisy shares, and the standard deviation of each."""

    column: str
    read: float
    outside: float
    null: float
    unread: float
    noise: float

    def above(self, share: float, limit: float) -> bool:
        """Is the share beyond doubt above the limit?"""
        return share - SURE * self.noise > limit

    def problem(self, schema: Schema) -> str | None:
        """What is wrong with the column beyond doubt, and what to declare; None if nothing is."""
        declared = schema.columns[self.column]
        doubt = f"± {SURE * self.noise:.0%}"
        caught = getattr(declared, "other", None) is not None
        if self.above(self.unread, MOST_OTHER if caught else MOST_UNREAD):
            what = f"fell to '{getattr(declared, 'other', '')}'" if caught else f"are no {declared.kind} as declared"
            told = DECLARE[declared.kind]
            return f"'{self.column}': {_share(self.unread)} of its cells ({doubt}) {what}. Declare {told}"
        if self.above(self.outside, MOST_UNREAD):
            return (
                f"'{self.column}': {_share(self.outside)} of its cells ({doubt}) lie out of bounds. Declare wider ones"
            )
        if not declared.nullable and self.above(self.null, MOST_UNREAD):
            return f"'{self.column}': {_share(self.null)} of its cells ({doubt}) are missing. Declare nullable = true"
        return None

    def note(self, schema: Schema) -> str | None:
        """What is worth knowing though it does not stop a release."""
        declared = schema.columns[self.column]
        said = [
            (self.unread, "could not be read as declared"),
            (self.outside, "lie out of bounds and are clipped"),
            (0.0 if declared.nullable else self.null, "are missing in a column that is not nullable"),
        ]
        found = [f"{_share(share)} {what}" for share, what in said if self.above(share, WORTH_SAYING)]
        return f"'{self.column}': of its cells {' and '.join(found)}" if found else None


def readable_shares(known: Known) -> tuple[Readable, ...]:
    """What the stage said about each of its columns; none where there was no such stage."""
    if not known.plan.has(Readability):
        return ()
    stage = known.plan.stage(Readability)
    rows = known.rows_estimate
    names = known.plan.query(Readability).columns
    found = []
    for name, m in zip(names, known.answers(stage), strict=False):
        read, outside, null, unread = (m.values / rows).tolist()
        found.append(Readable(name, read, outside, null, unread, m.sigma / rows))
    return tuple(found)


def _share(share: float) -> str:
    return f"about {min(max(share, 0.0), 1.0):.0%}"
