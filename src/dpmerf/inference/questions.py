"""Questions: what may be asked, as typed data, checked against the schema before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

from dpmerf.errors import AnswerError, SchemaError
from dpmerf.inference.evidence import Evidence
from dpmerf.schema import Flag, Numeric, Schema
from dpmerf.schema.expressions import span_seconds

What = Literal["count", "share", "mean", "sum", "variance", "quantile", "crosstab"]
OF_NUMBERS = ("mean", "sum", "variance", "quantile")


class NoColumn(AnswerError):
    """A question about a column that was not measured."""

    def __init__(self, column: str, words: str) -> None:
        super().__init__(words)
        self.column = column


@final
@dataclass(frozen=True)
class Condition:
    """Rows whose column has one of `values` (None is null), or is a number from `low` to `high`, ends included."""

    column: str
    values: tuple[Any, ...] | None = None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.values is not None:
            return f"{self.column} = {' or '.join(map(str, self.values))}"
        low = "" if self.low is None else f"{_told(self.low)} ≤ "
        return f"{low}{self.column}" + ("" if self.high is None else f" ≤ {_told(self.high)}")


@final
@dataclass(frozen=True)
class Question:
    """count, share, mean, sum, variance, quantile or crosstab, of `column`, `by` groups, of the rows `where` all hold.

    A share is of the rows in which `column` is one of `values`: true for a flag; each of its values in turn if none is
    given. Without a column it is each group's share of all rows.
    """

    what: What
    column: str | None = None
    by: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    values: tuple[Any, ...] | None = None
    q: float = 0.5

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column it needs, each once."""
        own = (self.column,) if self.column is not None else ()
        return tuple(dict.fromkeys((*self.by, *own, *(c.column for c in self.where))))

    def __str__(self) -> str:
        value = "" if self.values is None else f" = {' or '.join(map(str, self.values))}"
        level = f" {self.q:g}" if self.what == "quantile" else ""
        words = f"{self.what}{level}" + (f" of {self.column}{value}" if self.column else "")
        words += f" by {', '.join(self.by)}" if self.by else ""
        return words + (f" where {' and '.join(map(str, self.where))}" if self.where else "")


def question(
    schema: Schema,
    what: str,
    column: str | None = None,
    *,
    by: str | Iterable[str] = (),
    where: Mapping[str, Any] | Iterable[Condition] = (),
    value: Any = None,
    q: float = 0.5,
) -> Question:
    """A checked question. `where` maps a column to a value, to a list of values, or to a pair (low, high) of numbers.

    >>> schema = Schema.parse('[columns.ok]\\nkind = "flag"\\n[columns.age]\\nkind = "integer"\\nmin = 0\\nmax = 99')
    >>> str(question(schema, "mean", "age", where={"ok": True}))
    'mean of age where ok = True'
    """
    if what not in get_args(What):
        raise AnswerError(f"'{what}' cannot be asked for. Choose one of {', '.join(get_args(What))}")
    groups = (by,) if isinstance(by, str) else tuple(by)
    conditions = tuple(_condition(schema, n, v) for n, v in where.items()) if isinstance(where, Mapping) else (*where,)
    if what == "crosstab":
        groups, column = (*groups, *((column,) if column else ())), None
        if not groups:
            raise AnswerError("a crosstab needs columns: name them with `by`")
    for name in (*groups, *([column] if column else []), *(c.column for c in conditions)):
        check_column(schema, name)
    if len(set(groups)) < len(groups) or column in groups:
        raise AnswerError("a column may be asked for once: as the thing measured or as a group")
    _check_numbers(schema, what, column, q)
    values = None if value is None else tuple(value) if isinstance(value, list | tuple | set) else (value,)
    if what == "share" and column is not None and values is None and isinstance(schema.columns[column], Flag):
        values = (True,)
    if values is not None and (what != "share" or column is None):
        raise AnswerError("`value` belongs to a share of a column; to restrict the rows use `where`")
    return Question(what, column, groups, conditions, values, q)  # type: ignore[arg-type]


def check_column(schema: Schema, name: str) -> None:
    """One clear error if nothing about this column can be asked."""
    if name not in schema.columns:
        raise NoColumn(name, f"there is no column '{name}'. The columns: {', '.join(schema.learned)}")
    if name not in schema.learned:
        raise AnswerError(f"column '{name}' is an id: ids are never measured")


def _told(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, int | float) else str(bound)


def _check_numbers(schema: Schema, what: str, column: str | None, q: float) -> None:
    if what in OF_NUMBERS:
        if column is None:
            raise AnswerError(f"name the column whose {what} you want")
        if not isinstance(schema.columns[column], Numeric):
            kind = schema.columns[column].kind
            raise AnswerError(f"'{column}' is a {kind}: a {what} needs numbers. Ask for its share instead")
    if what == "quantile" and not 0 < q < 1:
        raise AnswerError(f"q is {q}: write a quantile between 0 and 1, for example 0.5 for the median")


def _condition(schema: Schema, name: str, wanted: Any) -> Condition:
    check_column(schema, name)
    numeric = isinstance(schema.columns[name], Numeric)
    if isinstance(wanted, tuple) and len(wanted) == 2 and numeric:
        return Condition(name, None, *wanted)
    values = tuple(wanted) if isinstance(wanted, list | tuple | set | frozenset) else (wanted,)
    if not values:
        raise AnswerError(f"the condition on '{name}' lists no value")
    return Condition(name, values)


def code_of(evidence: Evidence, column: str, value: Any) -> int:
    """The fine cell of a declared value; a number that shares its cell with others has none of its own."""
    try:
        batch = evidence.codec.row({column: value})
    except SchemaError as problem:
        raise AnswerError(str(problem)) from None
    return int(evidence.grid.encode(batch)[column][0])


def number_of(evidence: Evidence, column: str, bound: Any) -> float:
    """A bound in the column's own unit (days or seconds since 1970 for dates), clipped to the declared range."""
    axis = evidence.codec.axes[column]
    if column in evidence.codec.declared.program.spans:
        seconds = span_seconds(str(bound))
        if seconds is None:
            raise AnswerError(f"'{column}' is a span of time: write its unit, for example 5d, 36h or 15min")
        number = seconds
    elif isinstance(bound, int | float) and not isinstance(bound, bool):
        number = float(bound)
    else:
        try:
            unit = float(evidence.codec.row({column: bound}).numbers[0, evidence.codec.numeric.index(column)])
        except SchemaError as problem:
            raise AnswerError(str(problem)) from None
        number = float(axis.value(unit))  # type: ignore[arg-type]
    return min(max(number, axis.low), axis.high)
