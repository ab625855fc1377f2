"""Relations: public facts about several columns, as a person declares them under [[relations]] in a schema.

Five forms: a `rule` in words (an equation, an order, an implication), a quantity to `learn` in place of a column, a
`lookup` that fixes one column by others, and a list of
`allowed` or `forbidden` combinations. They hold in every
synthetic row by construction and cost no privacy. `program.py` says how.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

Cell = bool | int | float | str | None
Cells = tuple[tuple[Cell, ...], ...]
MOST_COMBINED = 3  # columns of a combination
_KEYS = ("rule", "learn", "lookup", "columns")


class Relation(BaseModel):
    """What every relation has: a name, for messages; empty means its own words."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    name: str = ""

    @property
    def words(self) -> str:
        """The relation as messages and reports show it."""
        raise NotImplementedError


class Rule(Relation):
    """An equation (`total = a + b`), an order (`first <= second`) or a condition (`if … then …`, `never …`)."""

    rule: str = Field(min_length=1, max_length=2_000)

    @property
    def words(self) -> str:
        return self.rule


class Learn(Relation):
    """A difference, ratio or product that is learned in place of its first column, with public bounds."""

    learn: str = Field(min_length=1, max_length=2_000)
    min: float | str
    max: float | str
    decimals: int | None = Field(default=None, ge=0, le=12)
    log: bool = False

    @field_validator("min", "max", mode="before")
    @classmethod
    def _as_float(cls, bound: Any) -> Any:
        return float(bound) if isinstance(bound, int) and not isinstance(bound, bool) else bound

    @property
    def words(self) -> str:
        return f"{self.learn} from {_plain(self.min)} to {_plain(self.max)}"

    @property
    def measured(self) -> str:
        """The name of the quantity that is learned."""
        return self.name or self.learn


class Lookup(Relation):
    """One column follows from others by a public table: rows of keys, then the value."""

    lookup: str
    by: tuple[str, ...] = Field(min_length=1, max_length=3)
    table: Cells = Field(min_length=1, max_length=100_000)

    @model_validator(mode="before")
    @classmethod
    def _rows(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if isinstance(data.get("by"), str):
            data["by"] = (data["by"],)
        if isinstance(data.get("table"), dict):
            data["table"] = tuple((key, value) for key, value in data["table"].items())
        return _tuples(data, "by", "table")

    @model_validator(mode="after")
    def _width(self) -> Lookup:
        if any(len(row) != len(self.by) + 1 for row in self.table):
            raise ValueError(f"every row of `table` has {len(self.by)} keys and a value")
        return self

    @property
    def words(self) -> str:
        return f"{self.lookup} by {', '.join(self.by)}"


class Combination(Relation):
    """The only combinations of two or three columns that can occur, or some that cannot."""

    columns: tuple[str, ...] = Field(min_length=2, max_length=MOST_COMBINED)
    allowed: Cells = Field(default=(), max_length=100_000)
    forbidden: Cells = Field(default=(), max_length=100_000)

    @model_validator(mode="before")
    @classmethod
    def _rows(cls, data: Any) -> Any:
        return _tuples(dict(data), "columns", "allowed", "forbidden") if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _one_list(self) -> Combination:
        if bool(self.allowed) == bool(self.forbidden):
            raise ValueError("list either `allowed` or `forbidden` combinations")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("name every column once")
        if any(len(row) != len(self.columns) for row in self.allowed + self.forbidden):
            raise ValueError(f"every combination has {len(self.columns)} values")
        return self

    @property
    def words(self) -> str:
        return f"{'allowed' if self.allowed else 'forbidden'} combinations of {', '.join(self.columns)}"


def _form(data: Any) -> str | None:
    """Which form a declaration has, by its key."""
    names = data if isinstance(data, dict) else {k for k in _KEYS if hasattr(data, k)}
    return next((key for key in _KEYS if key in names), None)


AnyRelation = Annotated[
    Annotated[Rule, Tag("rule")]
    | Annotated[Learn, Tag("learn")]
    | Annotated[Lookup, Tag("lookup")]
    | Annotated[Combination, Tag("columns")],
    Discriminator(_form, custom_error_type="relation_form", custom_error_message=(
        "a relation has one of the keys rule, learn, lookup or columns"
    )),
]  # fmt: skip


class UnreadLookup(ValueError):
    """The file of a lookup cannot be used; which relation it belongs to."""

    def __init__(self, index: int, words: str) -> None:
        super().__init__(words)
        self.index = index


def inline_files(raw: dict[str, Any], folder: Path) -> None:
    """Replace `file` of lookups by its rows, in place: the schema, and so the plan's hash, holds the facts."""
    relations = raw.get("relations")
    for i, relation in enumerate(relations if isinstance(relations, list) else ()):
        if isinstance(relation, dict) and "lookup" in relation and isinstance(relation.get("file"), str):
            keys = relation.get("by", [])
            names = [keys] if isinstance(keys, str) else list(keys)
            try:
                relation["table"] = _read(folder / relation.pop("file"), [*names, relation["lookup"]])
            except ValueError as problem:
                raise UnreadLookup(i, str(problem)) from None


def _read(path: Path, names: list[str]) -> list[list[Cell]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            rows = list(csv.reader(handle))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ValueError(f"cannot read the lookup table {path}: it should be a CSV file in UTF-8") from None
    header = rows[0] if rows else []
    if missing := [name for name in names if name not in header]:
        raise ValueError(f"the lookup table {path} has no column '{missing[0]}' in its first line")
    at = [header.index(name) for name in names]
    if any(len(row) < len(header) for row in rows[1:] if row):
        raise ValueError(f"the lookup table {path} has lines with fewer cells than its first")
    return [[row[i] if row[i] != "" else None for i in at] for row in rows[1:] if row]


def _tuples(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Lists of TOML and JSON as tuples."""
    for key in keys:
        if isinstance(data.get(key), list | tuple):
            data[key] = tuple(tuple(row) if isinstance(row, list | tuple) else row for row in data[key])
    return data


def _plain(bound: float | str) -> str:
    return bound if isinstance(bound, str) else f"{bound:g}"
