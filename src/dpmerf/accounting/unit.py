"""Unit: what is protected, a row or a person, and which tables are neighbours."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, final, get_args

from dpmerf.errors import BudgetError

Neighbours = Literal["replace", "add-remove"]


@final
@dataclass(frozen=True)
class Unit:
    """What is protected: one row, or one person with at most `max_rows` rows.

    Parameters
    ----------
    person : str, optional
        The column that names the person; None: every row is its own unit.
    max_rows : int
        The most rows of a person that are used. Further ones are left out, so the cap holds whatever the table has.
    neighbours : {"replace", "add-remove"}
        Whether a unit is exchanged for any other, or is there or not.
    mean : bool
        A person counts by the mean of their rows, and so as much as one row; else by their sum.

    Examples
    --------
    >>> Unit.parse("person:patient_id,5").sensitivity(norm_bound=1.0, diameter=2.0)
    10.0
    """

    person: str | None = None  # the column that names the person; None: every row is its own unit
    max_rows: int = 1
    neighbours: Neighbours = "replace"
    mean: bool = False  # a person counts by the mean of their rows, and so as much as one row; else by their sum

    def __post_init__(self) -> None:
        if self.neighbours not in get_args(Neighbours):
            raise BudgetError(f"neighbours is {self.neighbours!r}: write 'replace' or 'add-remove'")
        if not isinstance(self.max_rows, int) or isinstance(self.max_rows, bool) or self.max_rows < 1:
            raise BudgetError(f"a person has at most {self.max_rows!r} rows: write a whole number of 1 or more")
        if self.person is None and self.max_rows != 1:
            raise BudgetError("max_rows needs a person column: write the unit as 'person:COLUMN,ROWS'")
        if type(self.mean) is not bool or (self.mean and self.person is None):
            raise BudgetError("only a person counts by the mean of their rows: name the person column")
        if self.person is not None and (not isinstance(self.person, str) or not self.person):
            raise BudgetError("the person column has no name: write the unit as 'person:COLUMN,ROWS'")

    @classmethod
    def parse(cls, text: str, neighbours: str = "replace") -> Unit:
        """Read `row` or `person:COLUMN,ROWS`."""
        if text == "row":
            return cls(neighbours=neighbours)  # type: ignore[arg-type]  # checked above
        kind, _, rest = text.partition(":")
        person, _, max_rows = rest.rpartition(",")
        if kind != "person" or not person.strip() or not max_rows.strip().isdecimal():
            raise BudgetError(
                f"unit is {text!r}: write 'row' or 'person:COLUMN,ROWS', for example 'person:patient_id,5'"
            )
        return cls(person.strip(), int(max_rows), neighbours)  # type: ignore[arg-type]

    def sensitivity(self, norm_bound: float, diameter: float) -> float:
        """How far one unit can move the sum of phi, given sup|phi| = norm_bound and sup|phi - phi'| = diameter.

        A replaced person may have another number of rows, and an absent row contributes 0: hence max(diameter, norm).
        A mean of values of phi lies in their convex hull, which has the same norm and diameter: no factor max_rows.
        """
        for name, value in (("norm_bound", norm_bound), ("diameter", diameter)):
            if not (math.isfinite(value) and value >= 0):
                raise BudgetError(f"{name} is {value}: a feature map needs a finite bound of 0 or more")
        times = 1 if self.mean else self.max_rows
        if self.neighbours == "add-remove":
            return times * norm_bound
        return diameter if self.person is None else times * max(diameter, norm_bound)

    @property
    def rows_public(self) -> bool:
        """Is the number of rows the same in neighbouring tables, and therefore public?"""
        return self.person is None and self.neighbours == "replace"

    def adds_up_with(self, other: Unit) -> bool:
        """Do prices for both compose? How many rows of a person are used changes the sum, not who is protected."""
        return (self.person, self.neighbours) == (other.person, other.neighbours)

    def describe(self) -> str:
        """One sentence for the card."""
        if self.person is None:
            who = "one row"
        else:
            rows = "1 row" if self.max_rows == 1 else f"{self.max_rows} rows"
            used = f"the mean of at most {rows} of a table" if self.mean else f"at most {rows} of them used"
            who = f"one person (all rows with the same '{self.person}', {used})"
        what = "replaced by any other" if self.neighbours == "replace" else "added or removed"
        count = "public" if self.rows_public else "protected"
        return f"Protected: {who}, {what}. The number of rows is {count}."

    def to_dict(self) -> dict[str, Any]:
        """As files hold it."""
        found = asdict(self)
        return found if self.mean else {k: v for k, v in found.items() if k != "mean"}  # as before there were means

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Unit:
        """From what `to_dict` gave."""
        if set(fields) - {"mean"} != {"person", "max_rows", "neighbours"}:
            raise BudgetError("a unit has exactly the fields person, max_rows and neighbours")
        return cls(**fields)
