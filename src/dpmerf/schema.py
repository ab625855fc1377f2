"""Schema: the public facts about a table, written by a person, read from TOML.

Nothing here is ever computed from rows. A bound, a list of categories or a null that the schema does not declare does
not exist for the rest of the program.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from dpmerf.errors import SchemaError

FORMAT = 1
GAP = "?"  # what `schema draft` writes where a person must decide
MAX_BINS = 4096

Value = str | int | float


class Column(BaseModel):
    """What every column has. `dtype` is the Arrow type to restore on output; empty means the kind's natural one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    nullable: bool = False
    dtype: str = ""


class Category(Column):
    """One of the listed values. Anything else becomes `other`, or null, or (neither declared) the first value."""

    kind: Literal["category"] = "category"
    values: tuple[Value, ...]
    other: Value | None = None

    @field_validator("values", mode="before")
    @classmethod
    def _tuple(cls, values: Any) -> Any:
        if isinstance(values, list | tuple):
            if not values:
                raise ValueError('list the values that can occur, for example values = ["yes", "no"]')
            if len({type(v) for v in values}) > 1 or not isinstance(values[0], str | int | float):
                raise ValueError("list values of one type: all text, or all whole numbers")
            if len(set(values)) < len(values):
                raise ValueError("list every value once")
        return tuple(values) if isinstance(values, list) else values

    @model_validator(mode="after")
    def _one_type(self) -> Category:
        if self.other is not None and type(self.other) is not type(self.values[0]):
            raise ValueError("write `other` as the same type as the values")
        return self

    @property
    def levels(self) -> tuple[Value, ...]:
        """All values that can be produced, the catch-all last."""
        extra = () if self.other is None or self.other in self.values else (self.other,)
        return self.values + extra


class Flag(Column):
    """True or false."""

    kind: Literal["flag"] = "flag"


class Id(Column):
    """A key: generated on output, never read into the release, never learned."""

    kind: Literal["id"] = "id"


class Number(Column):
    """A real number in [min, max]; outside is clipped. `log` spreads small values apart; `bins` only for a label."""

    kind: Literal["number"] = "number"
    min: float
    max: float
    log: bool = False
    decimals: int | None = Field(default=None, ge=0, le=12)
    bins: int | None = Field(default=None, ge=2, le=MAX_BINS)

    @field_validator("min", "max", mode="before")
    @classmethod
    def _as_float(cls, bound: Any) -> Any:
        if isinstance(bound, int) and not isinstance(bound, bool):
            return float(bound) if abs(bound) < 10**300 else math.inf  # refused below, as any bound without end
        return bound

    @model_validator(mode="after")
    def _ordered(self) -> Number:
        if not (-1e300 < self.min < self.max < 1e300 and self.max - self.min > 1e-290):
            raise ValueError(f"write min below max, both finite (now min = {self.min}, max = {self.max})")
        return self


class Integer(Column):
    """A whole number min, min + step, …, max."""

    kind: Literal["integer"] = "integer"
    min: int
    max: int
    step: int = Field(default=1, ge=1, le=2**53)
    log: bool = False
    bins: int | None = Field(default=None, ge=2, le=MAX_BINS)

    @model_validator(mode="after")
    def _ordered(self) -> Integer:
        if not (-(2**53) <= self.min < self.max <= 2**53):
            raise ValueError(f"write min below max, within ±2^53 (now min = {self.min}, max = {self.max})")
        return self


class Date(Column):
    """A calendar day from `first` to `last`, every `step` days."""

    kind: Literal["date"] = "date"
    first: dt.date
    last: dt.date
    step: int = Field(default=1, ge=1, le=2**53)

    @model_validator(mode="after")
    def _ordered(self) -> Date:
        if not self.first < self.last:
            raise ValueError(f"write first before last (now first = {self.first}, last = {self.last})")
        return self


class Timestamp(Column):
    """A moment from `first` to `last`, every `step` seconds. Times of day are taken as written (UTC if zoned)."""

    kind: Literal["timestamp"] = "timestamp"
    first: dt.datetime
    last: dt.datetime
    step: int = Field(default=1, ge=1, le=2**53)

    @model_validator(mode="after")
    def _ordered(self) -> Timestamp:
        if self.first.tzinfo is not None or self.last.tzinfo is not None:
            raise ValueError("write first and last without a time zone; they are read as UTC")
        if not self.first < self.last:
            raise ValueError(f"write first before last (now first = {self.first}, last = {self.last})")
        return self


class Image(Column):
    """A picture of `height` × `width` pixels, grey or RGB, with pixel values from `low` to `high`; outside is clipped.

    Tables hold it as `height · width · channels` bytes, rows of pixels first. A cell that is no such picture is black.
    """

    kind: Literal["image"] = "image"
    height: int = Field(ge=4, le=128)
    width: int = Field(ge=4, le=128)
    channels: Literal[1, 3] = 1
    low: float = 0.0
    high: float = 255.0

    @model_validator(mode="after")
    def _plain(self) -> Image:
        if not (-1e30 < self.low < self.high < 1e30):
            raise ValueError(f"write low below high, both finite (now low = {self.low}, high = {self.high})")
        if self.nullable or self.dtype:
            raise ValueError("an image is never null and has no dtype: remove `nullable` and `dtype`")
        return self

    @property
    def pixels(self) -> int:
        """How many numbers a picture has, all channels together."""
        return self.height * self.width * self.channels


Numeric = Number | Integer | Date | Timestamp
AnyColumn = Annotated[Category | Flag | Id | Number | Integer | Date | Timestamp | Image, Field(discriminator="kind")]
KINDS = tuple(get_args(c.model_fields["kind"].annotation)[0] for c in get_args(get_args(AnyColumn)[0]))


class Schema(BaseModel):
    """Columns in order, and which of them (if any) is the label.

    >>> Schema.parse('label = "ok"\\n[columns.ok]\\nkind = "flag"').label
    'ok'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    format: Literal[1] = 1
    label: str | None = None
    columns: dict[str, AnyColumn] = Field(min_length=1)

    @model_validator(mode="after")
    def _label_is_a_column(self) -> Schema:
        if self.label is not None:
            check_label(self, self.label)
        if not self.learned:
            raise ValueError("every column is an id: declare at least one column to learn")
        if any(isinstance(c, Image) for c in self.learned.values()):
            rest = [c for name, c in self.learned.items() if name != self.label]
            if len(rest) != 1 or isinstance(self.columns.get(self.label or ""), Numeric | Image):
                raise ValueError("an image column stands alone: beside it only a label (category or flag) and ids")
        return self

    @property
    def image(self) -> tuple[str, Image] | None:
        """The image column's name and facts; None for a table."""
        return next(((name, c) for name, c in self.columns.items() if isinstance(c, Image)), None)

    @property
    def learned(self) -> dict[str, AnyColumn]:
        return {name: c for name, c in self.columns.items() if c.kind != "id"}

    def with_label(self, label: str | None) -> Schema:
        """The same schema with another label column (None: unlabelled)."""
        if label is not None:
            try:
                check_label(self, label)
            except ValueError as error:
                raise SchemaError(str(error)) from None
        return self.model_copy(update={"label": label})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schema:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(f"cannot read the schema {path}: {_reason(error)}") from None
        return Schema.parse(text, source=str(path))

    @staticmethod
    def parse(text: str, source: str = "schema") -> Schema:
        """Read TOML; errors name the line and say what to write."""
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"{source}: not valid TOML: {error}. Mend that line") from None
        except RecursionError:
            raise SchemaError(f"{source}: not valid TOML: nested too deeply") from None
        if gap := _first_gap(raw):
            column, key = gap
            raise SchemaError(
                f"{source}, line {_line(text, column, key)}: `{key}` of {_where(column)} is still "
                f'"{GAP}". {_ADVICE.get(key, "Write its value.")} A person declares it; it is never taken from the data'
            )
        try:
            return Schema.model_validate(raw)
        except ValidationError as error:
            raise SchemaError(_explain(error, text, source)) from None

    @staticmethod
    def from_json(data: Any) -> Schema:
        try:
            return Schema.model_validate(data, strict=False)
        except ValidationError as error:
            raise SchemaError(_explain(error, "", "schema")) from None

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=False)


def check_label(schema: Schema, label: str) -> None:
    if label not in schema.columns:
        names = ", ".join(list(schema.columns)[:12])
        raise ValueError(f"the label '{label}' is not a column of the schema. Its columns: {names}")
    if schema.columns[label].kind == "id":
        raise ValueError(f"the label '{label}' is an id, and ids are never learned. Choose another column")


_ADVICE = {
    "kind": f"Write one of {', '.join(KINDS)}.",
    "values": 'List the values that can occur, for example values = ["yes", "no"].',
    "min": "Write the smallest value that can occur (a public fact).",
    "max": "Write the largest value that can occur (a public fact).",
    "first": "Write the earliest moment that can occur, for example 2020-01-01.",
    "last": "Write the latest moment that can occur, for example 2024-12-31.",
}


def _first_gap(raw: dict[str, Any]) -> tuple[str | None, str] | None:
    columns = raw.get("columns")
    for name, column in columns.items() if isinstance(columns, dict) else ():
        for key, value in column.items() if isinstance(column, dict) else ():
            if value == GAP or (value == [GAP] and key == "values"):
                return name, key
    return (None, "label") if raw.get("label") == GAP else None


def _where(column: str | None) -> str:
    return "the schema" if column is None else f"column '{column}'"


def _line(text: str, column: str | None, key: str | None) -> int:
    """The line (from 1) of a column's header, or of a key below it; 1 when it is not written out."""
    lines = text.splitlines() or [""]
    start = 0
    if column is not None:
        names = (re.escape(column), re.escape(f'"{column}"'), re.escape(f"'{column}'"))
        header = re.compile(rf"^\s*\[\s*columns\s*\.\s*(?:{'|'.join(names)})\s*\]")
        start = next((i for i, line in enumerate(lines) if header.match(line)), 0)
    if key is not None:
        for i in range(start, len(lines)):
            if i > start and column is not None and lines[i].lstrip().startswith("["):
                break
            if re.match(rf"^\s*{re.escape(key)}\s*=", lines[i]):
                return i + 1
    return start + 1


def _explain(error: ValidationError, text: str, source: str) -> str:
    """The first problem in one sentence: line, column, what to write."""
    problems = error.errors(include_url=False)
    first = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])  # a misspelt key explains more
    path = [str(part) for part in first["loc"]]
    column = path[1] if len(path) > 1 and path[0] == "columns" else None
    tail = [p for p in path[2:] if p not in KINDS] if column is not None else path
    key = tail[0] if tail else None
    kind = first["type"]
    place = f"{source}, line {_line(text, column, key)}: " if text else f"{source}: "
    what = f"`{key}` of {_where(column)}" if key else _where(column)
    if kind == "missing":
        return f"{place}{what} is missing. {_ADVICE.get(key or '', 'Add it.')}"
    if kind.startswith("union_tag"):
        return f"{place}`kind` of {_where(column)} is missing or unknown. {_ADVICE['kind']}"
    if kind == "extra_forbidden":
        return f"{place}{what} is not known here. Remove it or mend its spelling"
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}{what}: {message[0].lower() + message[1:]}. {_ADVICE.get(key or '', '')}".rstrip()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "it is not UTF-8 text"
