"""Schema: the public facts about a table, written by a person, read from TOML.

Nothing here is ever computed from rows. A bound, a list of categories or a null that the schema does not declare does
not exist for the rest of the program.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from dpmerf.errors import SchemaError
from dpmerf.schema.columns import AnyColumn, Id, Image, Numeric, Timestamp
from dpmerf.schema.explain import Problem, faults, gaps, line_of, of_relation, reason
from dpmerf.schema.headers import fields_of
from dpmerf.schema.lists import fill_in
from dpmerf.schema.notation import Notation, Reading
from dpmerf.schema.patterns import Pattern
from dpmerf.schema.program import Program, compiled
from dpmerf.schema.relations import AnyRelation, UnreadLookup, inline_files
from dpmerf.shown import Shown

FORMAT = 1
RESERVED = "#"  # joins a column's name to a part of it, as in `age#null`: no column may be called that


def _free(name: str) -> str:
    if RESERVED in name:
        raise ValueError(f"rename it, in the table and here: '{RESERVED}' in a name is kept for parts of a column")
    return name


class Schema(Shown, BaseModel):
    """The public facts about a table: columns in order, and which of them (if any) is the label.

    Made by `Schema.load` (a TOML file), `Schema.parse` (its text) or `Schema.from_dict`; `Schema.draft` begins one.

    Parameters
    ----------
    format : int
        Of the file: 1.
    label : str, optional
        The column to predict.
    columns : dict
        Name to facts: kind, bounds or values, whether there are nulls.
    relations : tuple
        Rules, lookups and quantities that hold between columns in every row.
    reading : Reading
        How the file is written, where it is not plain.

    Examples
    --------
    >>> Schema.parse('label = "ok"\\n[columns.ok]\\nkind = "flag"').label
    'ok'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    format: Literal[1] = 1
    label: str | None = None
    columns: dict[Annotated[str, AfterValidator(_free)], AnyColumn] = Field(min_length=1)
    relations: tuple[AnyRelation, ...] = Field(default=(), strict=False)
    reading: Reading = Reading()

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
        _ = self.program  # every relation is checked here
        return self

    def facts(self) -> dict[str, Any]:
        """At a glance."""
        kinds = [c.kind for c in self.columns.values()]
        told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return {"columns": told, "label": self.label, "relations": len(self.relations)}

    def details(self) -> dict[str, Any]:
        """Column by column, for a notebook."""
        each = {}
        for name, column in self.columns.items():
            known = column.model_dump(mode="json", exclude_defaults=True, exclude={"kind", "reading"})
            told = ", ".join(f"{key} = {value}" for key, value in known.items())
            each[name] = f"{column.kind}: {told}" if told else column.kind
        return {**self.facts(), **each}

    @cached_property
    def program(self) -> Program:
        """The relations in order: what is measured, and how the other columns follow."""
        return compiled(self.columns, self.label, self.relations)

    @property
    def measured(self) -> Schema:
        """The schema by which rows are measured: relations leave columns out, or learn something in their place."""
        return self._rewritten if self.rewrites else self

    @property
    def rewrites(self) -> bool:
        """Are other columns measured than declared, or rules kept between them?"""
        return bool(self.relations or self.program.steps)

    @cached_property
    def _rewritten(self) -> Schema:
        found = self.program.measured
        return Schema(label=self.label if self.label in found else None, columns=_whole(found))

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a release reads: not those that are computed or looked up."""
        return tuple(name for name in self.learned if name not in self.program.computed)

    def check_ids(self, rows: int) -> None:
        """Refuse more rows than the patterns of ids have ids for."""
        for name, column in self.columns.items():
            if isinstance(column, Id) and column.pattern and rows > (most := Pattern.parse(column.pattern).capacity):
                raise SchemaError(
                    f"column '{name}': the pattern {column.pattern} gives {most:,} ids, and {rows:,} rows need one "
                    "each. Lengthen the pattern, or ask for fewer rows"
                )

    def without_relations(self) -> Schema:
        """The columns alone."""
        whole = _whole(self.columns)
        return self if not self.rewrites else Schema(label=self.label, columns=whole, reading=self.reading)

    def with_whole(self, name: str) -> Schema:
        """The same schema with one timestamp learned as it is, not as day and time of day."""
        if not isinstance(self.columns.get(name), Timestamp):
            return self
        columns = _whole(self.columns, name)
        return Schema(label=self.label, columns=columns, relations=self.relations, reading=self.reading)

    def notation(self, name: str) -> Notation:
        """How the cells of a column are written."""
        return (self.columns[name].reading or Notation()).under(self.reading)

    @property
    def as_written(self) -> Schema:
        """The same facts for a table that this program wrote: ISO dates, decimal points, the values themselves."""
        zones = {name: self.notation(name).zone if "tz=" in c.dtype else "" for name, c in self.columns.items()}
        told = {name: Notation(zone=zone) if zone else None for name, zone in zones.items()}
        bare = {name: c.model_copy(update={"reading": told[name]}) for name, c in self.columns.items()}
        return self.model_copy(update={"columns": bare, "reading": Reading()})

    def with_reading(self, told: dict[str, Any]) -> Schema:
        """The same schema with other words on how the file is written, for the keys that are told."""
        if not told:
            return self
        known = {key: getattr(self.reading, key) for key in self.reading.model_fields_set}
        try:
            reading = Reading.model_validate({**known, **told})
        except ValidationError as error:
            raise SchemaError(f"--read: {faults(error, '')[0].sentence}") from None
        return self.model_copy(update={"reading": reading})

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
        try:
            return Schema(label=label, columns=self.columns, relations=self.relations, reading=self.reading)
        except ValidationError as error:
            raise SchemaError(faults(error, "")[0].message("schema")) from None

    @staticmethod
    def draft(table: Any) -> str:
        """TOML to fill in, from a table's column names and stored types alone; no value is read.

        Parameters
        ----------
        table
            A pandas, Polars or Arrow table, an Arrow schema, or names with their Arrow types (None: not known).

        Examples
        --------
        >>> import pyarrow as pa
        >>> print(Schema.draft({"age": pa.int64()}).split("[columns.age]")[1].strip())
        kind = "integer"
        min = "?"        # smallest value that can occur: a public fact
        max = "?"        # largest
        # nullable = true
        """
        from dpmerf.schema.draft import draft

        return draft(fields_of(table))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schema:
        """Read a TOML file; lists of values in files are found beside it."""
        return Schema.parse(read_text(path), source=str(path), folder=Path(path).parent)

    @staticmethod
    def parse(text: str, source: str = "schema", folder: Path | None = None) -> Schema:
        """Read TOML; an error says the first problem, with its line and what to write, and holds all of them."""
        found, problems = _parse(text, folder or Path())
        if found is None:
            more = f" (and {len(problems) - 1} more: `dpmerf schema check` lists them)" if len(problems) > 1 else ""
            raise SchemaError(problems[0].message(source) + more, problems)
        return found

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Schema:
        """A schema from plain Python values, as `tomllib.load` would give them; numbers and dates may be text.

        >>> Schema.from_dict({"columns": {"age": {"kind": "integer", "min": 0, "max": 99}}}).columns["age"].kind
        'integer'
        """
        filled, problems = fill_in(data, "", Path())
        if problems:
            raise SchemaError(problems[0].message("schema"), problems)
        try:
            inline_files(filled, Path())
        except UnreadLookup as error:
            raise SchemaError(of_relation(error.index, str(error), "").message("schema")) from None
        return Schema.from_json(filled)

    @staticmethod
    def from_json(data: Any) -> Schema:
        """From what `to_json` gave."""
        try:
            return Schema.model_validate(data, strict=False)
        except ValidationError as error:
            problems = faults(error, "")
            raise SchemaError(problems[0].message("schema"), problems) from None

    def to_json(self) -> dict[str, Any]:
        """As plans and releases hold it."""
        found = self.model_dump(mode="json", exclude_defaults=False)
        for name, column in found["columns"].items():
            for later in (
                "pattern",
                "reading",
                "synonyms",
                "other_from",
                "bought",
            ):  # as it was written, and hashed, before there were these
                if not column.get(later, True):
                    del column[later]
            if column.get("clock"):
                del column["clock"]
            if (own := self.columns[name].reading) is not None:
                column["reading"] = own.model_dump(mode="json", exclude_unset=True)
        found["reading"] = self.reading.model_dump(mode="json", exclude_unset=True)
        return {key: value for key, value in found.items() if value or key not in ("relations", "reading")}


def _whole(columns: Mapping[str, AnyColumn], only: str | None = None) -> dict[str, AnyColumn]:
    """The columns with no timestamp (or not the one that is named) learned as day and time of day."""
    return {
        name: c.model_copy(update={"clock": False}) if isinstance(c, Timestamp) and only in (None, name) else c
        for name, c in columns.items()
    }


def check_label(schema: Schema, label: str) -> None:
    """ValueError if the label is no learned column."""
    if label not in schema.columns:
        names = ", ".join(list(schema.columns)[:12])
        raise ValueError(f"the label '{label}' is not a column of the schema. Its columns: {names}")
    if schema.columns[label].kind == "id":
        raise ValueError(f"the label '{label}' is an id, and ids are never learned. Choose another column")


def problems_of(text: str, folder: Path | None = None) -> tuple[Problem, ...]:
    """Everything that is missing or wrong in a schema, all at once; empty: it is complete."""
    return tuple(_parse(text, folder or Path())[1])


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a schema file, or SchemaError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"cannot read the schema {path}: {reason(error)}") from None


def _parse(text: str, folder: Path) -> tuple[Schema | None, list[Problem]]:
    """The schema, or every problem that keeps it from being one."""
    raw = toml_of(text)
    if isinstance(raw, Problem):
        return None, [raw]
    if raw.keys() & {"person", "tables"}:
        words = " describes persons with several rows, which `dpmerf synth`, `plan` and `evaluate` know; this does not"
        return None, [Problem(None, None, None, words)]
    return checked(raw, text, folder)


def toml_of(text: str) -> dict[str, Any] | Problem:
    """What a TOML text holds, or why it cannot be read."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Problem(None, None, None, f" is not valid TOML: {error}. Fix that line")
    except RecursionError:
        return Problem(None, None, None, " is not valid TOML: nested too deeply")
    except ValueError:  # Python reads whole numbers of at most some thousand digits, and years up to 9999
        return Problem(None, None, None, " holds a number or a date that is out of all bounds. Fix it")


def checked(raw: dict[str, Any], text: str, folder: Path) -> tuple[Schema | None, list[Problem]]:
    """The schema of one table from what its TOML text holds."""
    open_ones = gaps(raw, text)
    raw, unread = fill_in(raw, text, folder)
    try:
        inline_files(raw, folder)
    except UnreadLookup as error:
        unread.append(of_relation(error.index, str(error), text))
    known = {(p.column, p.key) for p in (*open_ones, *unread)}
    kinds = {p.column for p in open_ones if p.key == "kind"}  # without a kind nothing else can be said
    try:
        found = Schema.model_validate(raw)
    except ValidationError as error:
        said = {p.about for p in unread if p.about}  # without its table nothing else can be said of a lookup
        others = [p for p in faults(error, text) if (p.column, p.key) not in known and p.column not in kinds]
        others = [p for p in others if p.about not in said]
        return None, [*open_ones, *unread, *others, *_label(raw, text, others)]
    return (None, [*open_ones, *unread]) if known else (found, [])


def _label(raw: dict[str, Any], text: str, others: list[Problem]) -> list[Problem]:
    """A label that is no column, said also where the columns are not yet whole."""
    label, columns = raw.get("label"), raw.get("columns")
    said = any(p.column is None for p in others)
    if said or not isinstance(columns, dict) or not isinstance(label, str) or label in columns or label == "?":
        return []
    words = f": '{label}' is not a column of the schema. Its columns: {', '.join(list(columns)[:12])}"
    return [Problem(None, "label", line_of(text, None, "label"), words)]
