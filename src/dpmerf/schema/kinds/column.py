"""Column: what every kind of column answers. The rest of the program asks the column and knows no kind by name.

Nothing here is ever computed from rows. A bound, a list of categories or a null that is not declared does not exist
for the rest of the program.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, field_validator

from dpmerf.schema.notation import Notation
from dpmerf.schema.quantities import Fact

Value = str | int | float


class Cells(Protocol):
    """The ways to read cells (`encoding.cells`), each a function of one cell alone."""

    def numbers(self, column: Any) -> np.ndarray: ...
    def days(self, column: Any) -> np.ndarray: ...
    def seconds(self, column: Any) -> np.ndarray: ...
    def each(self, column: Any, place: Callable[[str], float | None]) -> np.ndarray: ...


class Form(abc.ABC):
    """A form of cells that only one kind knows: an Arrow type, Python objects, and the one text of such a cell."""

    @abc.abstractmethod
    def holds(self, stored: pa.DataType) -> bool:
        """Is this the Arrow type?"""

    @abc.abstractmethod
    def texts(self, array: pa.Array) -> list[str | None]:
        """Each cell's one text; None where it means nothing. Never raises."""

    @abc.abstractmethod
    def of_object(self, cell: Any) -> str | None:
        """The same text for a Python object; None for objects of other forms."""


class Column(BaseModel):
    """What every column has. `dtype` is the Arrow type to restore on output; empty means the kind's natural one.

    `reading` says how its cells are written, where that is not as in the rest of the table; `bought` names the facts
    that nobody declared: they were bought with a budget (`dpmerf discover`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    nullable: bool = False
    dtype: str = ""
    reading: Notation | None = None
    bought: tuple[str, ...] = ()

    kind: str
    title: ClassVar[str] = ""  # the kind in a few words, for forms
    hint: ClassVar[str] = ""  # what it needs, for a draft
    needs: ClassVar[tuple[str, ...]] = ()  # keys without a default
    asks: ClassVar[tuple[str, ...]] = ()  # keys that a form asks for
    example: ClassVar[tuple[str, str]] = ("", "")  # of its first and last value, for forms
    notated: ClassVar[str] = ""  # declared notations that its cells follow: number, moment, or only words for missing
    usual: ClassVar[pa.DataType | None] = None  # the Arrow type that it is written as, where no fact decides that
    form: ClassVar[Form | None] = None  # of cells, where only this kind knows it

    @field_validator("bought", mode="before")
    @classmethod
    def _list(cls, told: Any) -> Any:
        return tuple(told) if isinstance(told, list) else told

    @property
    def natural(self) -> pa.DataType:
        """The Arrow type on output, if none is declared."""
        return self.usual

    @abc.abstractmethod
    def at(self, place: float) -> Any:
        """The value at a place from 0 (first) to 1 (last), as the audit writes it into rows."""

    @property
    def audited(self) -> pa.DataType:
        """The Arrow type that holds `at`."""
        return self.natural

    def fact(self) -> Fact | None:
        """The column as relations see it; None for what they cannot speak of."""
        return None

    def narrowed(self, low: float, high: float) -> Column:
        """The same column with these bounds (in seconds for moments), where they are tighter."""
        return self

    def gap(self) -> Column | None:
        """A column for the distance between two values; None where rows have no order by it."""
        return None

    def back(self, written: pa.Array, stored: pa.DataType) -> pa.Array:
        """What was written in a declared type, in the type that it had."""
        return written.cast(stored, safe=False)

    def frictionless(self) -> tuple[str, tuple[str, str] | None] | None:
        """Its type in a Frictionless table schema and the keys of its bounds; None: there is no word for it."""
        return None

    def sdv(self) -> dict[str, Any] | None:
        """Its entry in SDV metadata; None: there is no word for it."""
        return None

    @classmethod
    def stored_as(cls, stored: pa.DataType) -> dict[str, Any] | None:
        """Facts that a stored type suggests (its dtype is added); None: it suggests another kind."""
        return None

    @classmethod
    def told(cls, low: Any, high: Any, above: Any, below: Any, said: list[str]) -> dict[str, Any]:
        """Bounds from metadata. `low` and `high` belong to the range; what makes no sense is left out, and said."""
        return {}

    @classmethod
    def typed(cls, key: str, text: str) -> Any:
        """A bound as typed into a form; text that means nothing stays, and the check says what is wrong with it."""
        return text


class Numeric(Column):
    """A column whose values lie on a line."""

    spans: ClassVar[tuple[int, ...]] = ()  # widths of its fine cells, from the finest on; (): by its bounds
    rounded: ClassVar[tuple[int, ...]] = ()  # what people round its values to, each a divisor of the next; (): decimal
    counted_in: ClassVar[str] = ""  # the unit of the line, where it is not that of the values as they are written
    apart_in: ClassVar[tuple[str, float]] = ("", 1.0)  # the unit in which distances are told, in units of the line

    @property
    @abc.abstractmethod
    def line(self) -> tuple[float, float, float | None, bool]:
        """Lowest and highest value in the column's own unit, the step between values, and whether the line is log."""

    @abc.abstractmethod
    def read(self, cells: Cells, array: Any) -> np.ndarray:
        """(n,) numbers in the column's own unit, out of bounds or not; NaN where there is none."""

    @abc.abstractmethod
    def array(self, values: np.ndarray, absent: np.ndarray | None) -> pa.Array:
        """Numbers on the line as Arrow values."""

    @abc.abstractmethod
    def shown(self, value: float) -> str:
        """A number of the line as a chart writes it."""

    @abc.abstractmethod
    def exact(self, value: float) -> Any:
        """A number of the line as an answer writes it."""
