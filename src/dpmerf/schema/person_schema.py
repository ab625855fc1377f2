"""Histories: the public facts about persons with several rows, in one table or in several, read from TOML.

One table: a `[person]` section names the key, the order and the most rows used of a person; columns that never change
for a person say `per = "person"`. Several tables: `[person]` names the key and the table with one row a person; every
other `[tables.NAME]` has its own order and most rows. Whatever the form, each table of rows becomes one `History`: a
schema in which the person's columns stand beside the row's, as if they were written in every row.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpmerf.errors import SchemaError
from dpmerf.schema.columns import Id, Image, Integer, Numeric
from dpmerf.schema.explain import faults
from dpmerf.schema.schema import Schema, checked, read_text, toml_of

ONLY = "rows"  # the name of the table where a schema has one
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")


class RowFacts(BaseModel):
    """How the rows of a person follow each other, and how many are used."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    order: str | None = None  # a date, a time or a number; None: the rows of a person are a set
    most: int = Field(default=8, ge=1, le=1_000)  # consecutive rows of a person that a release looks at
    largest: int = Field(default=0, ge=0, le=1_000_000)  # number of rows up to which persons are told apart; 0: `most`
    counter: str | None = None  # a column that counts a person's rows: 0, 1, 2, … from its lower bound on


class PersonFacts(RowFacts):
    """`[person]` of a schema with one table."""

    key: str


class KeyFacts(BaseModel):
    """`[person]` of a schema with several tables."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    key: str
    table: str  # the one with one row a person


@final
@dataclass(frozen=True)
class History:
    """One table of rows: the person's columns, then the row's own, and how rows follow each other."""

    name: str
    schema: Schema  # person columns first; with all relations
    persons: tuple[str, ...]  # learned columns that stay the same in all rows of a person
    written: tuple[str, ...]  # the columns of its own file, in order
    facts: RowFacts
    key: str

    @property
    def largest(self) -> int:
        """Persons with more rows count as having so many."""
        return self.facts.largest or self.facts.most

    @cached_property
    def measured_persons(self) -> tuple[str, ...]:
        """Of the columns that are measured, those that belong to the person."""
        program, own = self.schema.program, set(self.persons)
        own |= {name for step in program.steps if step.target in own for name in step.measured}
        own |= {joined.name for joined in program.joined if set(joined.columns) <= own}
        return tuple(name for name in self.schema.measured.learned if name in own)

    @cached_property
    def measured_rows(self) -> tuple[str, ...]:
        """Of the columns that are measured, those that may change from row to row; order and counter apart."""
        apart = {*self.measured_persons, self.facts.order, self.facts.counter}
        return tuple(name for name in self.schema.measured.learned if name not in apart)

    def check(self) -> None:
        """SchemaError unless every fact fits the columns."""
        measured, own = self.schema.measured.learned, self.schema.columns
        if not isinstance(own.get(self.key), Id):
            raise SchemaError(f"{self._where}the key '{self.key}' must be a column of kind = \"id\"")
        for what, name in (("order", self.facts.order), ("counter", self.facts.counter)):
            if name is None:
                continue
            if name not in own:
                raise SchemaError(f"{self._where}`{what}` names '{name}', which is no column")
            if name in self.persons or name not in measured or own[name].nullable:
                raise SchemaError(
                    f"{self._where}`{what}` is '{name}': it must belong to the row, have a value in every row and "
                    "follow from no relation"
                )
        if self.facts.order is not None and not isinstance(own[self.facts.order], Numeric):
            raise SchemaError(
                f"{self._where}`order` is '{self.facts.order}': a date, a timestamp or a number orders rows"
            )
        if self.facts.counter is not None and (
            self.facts.order is None or not isinstance(own[self.facts.counter], Integer)
        ):
            raise SchemaError(f'{self._where}`counter` needs an order, and a column of kind = "integer"')
        self._check_persons()

    def _check_persons(self) -> None:
        """What belongs to a person must not follow from what changes from row to row."""
        persons, program = set(self.persons), self.schema.program
        for joined in program.joined:
            if set(joined.columns) & persons and not set(joined.columns) <= persons:
                raise SchemaError(
                    f"{self._where}a list of combinations joins columns of the person and of the row "
                    f"({', '.join(joined.columns)}): write a rule, with the person's column after `if`"
                )
        for step in program.steps:
            if step.target in persons and not set(step.sources) <= persons:
                raise SchemaError(
                    f"{self._where}a relation makes '{step.target}', a column of the person, follow from columns of "
                    'the row: leave out `per = "person"`, or the relation'
                )
        place = {name: i for i, name in enumerate(program.order)}
        persons |= set(self.measured_persons)
        for box in program.boxes:
            names = sorted(box.names, key=lambda n: place[n])
            if not persons >= set(names) and names[-1] in persons:
                raise SchemaError(
                    f"{self._where}a rule makes '{names[-1]}', a column of the person, depend on '{names[0]}' of the "
                    "row: put the person's column after `if` and the row's after `then`"
                )
        if not self.measured_rows and self.facts.order is None:
            raise SchemaError(f"{self._where}no column changes from row to row: nothing is left to learn of the rows")

    @property
    def _where(self) -> str:
        return "" if self.name == ONLY else f"table '{self.name}': "


@final
@dataclass(frozen=True)
class Persons:
    """A schema of persons: their own table if there is one, and one or more histories."""

    document: dict[str, Any]  # as JSON, complete: what a plan stores and hashes
    key: str
    parent: tuple[str, Schema] | None  # the table with one row a person, and its name
    histories: tuple[History, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables, the parent first."""
        return (*((self.parent[0],) if self.parent else ()), *(h.name for h in self.histories))

    def schema_of(self, table: str) -> Schema:
        """The columns of one table, the person's among them."""
        if self.parent and table == self.parent[0]:
            return self.parent[1]
        return next(h.schema for h in self.histories if h.name == table)

    def to_json(self) -> dict[str, Any]:
        return self.document

    @staticmethod
    def from_json(data: Any) -> Persons:
        """The way back; refuses what `parse` would refuse."""
        try:
            if "tables" in data:
                facts = KeyFacts.model_validate(data["person"])
                tables = {
                    name: (RowFacts.model_validate(t["rows"]), Schema.from_json(t["schema"]), tuple(t["written"]))
                    for name, t in data["tables"].items()
                }
                return _several(facts, Schema.from_json(data["parent"]), tables)
            one = PersonFacts.model_validate(data["person"])
            return _single(one, Schema.from_json(data["schema"]), tuple(data["per_person"]))
        except (ValidationError, KeyError, TypeError, AttributeError):
            raise SchemaError("the schema of persons is damaged: make it anew from its TOML file") from None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Persons:
        return Persons.parse(read_text(path), str(path), Path(path).parent)

    @staticmethod
    def parse(text: str, source: str = "schema", folder: Path | None = None) -> Persons:
        """Read TOML with a [person] section."""
        raw = toml_of(text)
        if not isinstance(raw, dict):
            raise SchemaError(raw.message(source), [raw])
        try:
            if "tables" in raw:
                return _read_several(raw, text, source, folder or Path())
            return _read_single(raw, text, source, folder or Path())
        except ValidationError as error:
            problem = faults(error, "")[0]
            raise SchemaError(f"{source}: [person] {problem.key or ''}{problem.words}") from None


def load_schema(path: str | os.PathLike[str]) -> Schema | Persons:
    """A schema file of either kind."""
    text = read_text(path)
    raw = toml_of(text)
    if isinstance(raw, dict) and raw.keys() & {"person", "tables"}:
        return Persons.parse(text, str(path), Path(path).parent)
    return Schema.parse(text, str(path), Path(path).parent)


def _read_single(raw: dict[str, Any], text: str, source: str, folder: Path) -> Persons:
    facts = PersonFacts.model_validate(raw.pop("person"))
    columns = raw.get("columns")
    per_person: list[str] = []
    for name, column in columns.items() if isinstance(columns, dict) else ():
        per = column.pop("per", "row") if isinstance(column, dict) else "row"
        if per not in ("row", "person"):
            raise SchemaError(f'{source}: `per` of column \'{name}\' is {per!r}: write "person" or "row"')
        per_person += [name] if per == "person" else []
    return _single(facts, _table(raw, text, source, folder), tuple(per_person))


def _single(facts: PersonFacts, schema: Schema, per_person: tuple[str, ...]) -> Persons:
    rows = RowFacts(**facts.model_dump(exclude={"key"}))
    history = _history(ONLY, schema, per_person, tuple(schema.columns), rows, facts.key)
    document = {"person": facts.model_dump(), "schema": schema.to_json(), "per_person": list(per_person)}
    return Persons(document, facts.key, None, (history,))


def _read_several(raw: dict[str, Any], text: str, source: str, folder: Path) -> Persons:
    if "person" not in raw:
        raise SchemaError(f'{source} has several tables: add [person] with key = "…" and table = "…", the persons\'')
    if extra := sorted(set(raw) - {"person", "tables", "format"}):
        raise SchemaError(f"{source}: `{extra[0]}` stands outside the tables: move it under [tables.NAME]")
    if not isinstance(raw["tables"], dict):
        raise SchemaError(f"{source}: write tables as [tables.NAME]")
    facts = KeyFacts.model_validate(raw["person"])
    tables, rows = raw["tables"], {}
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            raise SchemaError(f"{source}: a table's name has 1 to 60 letters, digits, _ and -")
        if not (isinstance(table, dict) and isinstance(table.get("columns"), dict)):
            raise SchemaError(f"{source}: write table '{name}' as [tables.{name}.columns.COLUMN]")
        rows[name] = RowFacts.model_validate({k: table.pop(k) for k in list(table) if k in RowFacts.model_fields})
    _check_parent(facts, list(tables))
    parent = _table(tables[facts.table], _own_lines(text, facts.table), f"{source}, table '{facts.table}'", folder)
    found = {}
    for name, table in tables.items():
        if name == facts.table:
            continue
        own = tuple(table["columns"])
        if shared := sorted(set(parent.learned) & set(own)):
            raise SchemaError(f"tables '{facts.table}' and '{name}' both have a column '{shared[0]}': rename one")
        joined = {  # as if the person's columns were written in every row: relations may speak of both
            **table,
            "columns": {n: c for n, c in tables[facts.table]["columns"].items() if n in parent.learned}
            | table["columns"],
            "relations": [*tables[facts.table].get("relations", ()), *table.get("relations", ())],
        }
        found[name] = rows[name], _table(joined, _own_lines(text, name), f"{source}, table '{name}'", folder), own
    return _several(facts, parent, found)


def _check_parent(facts: KeyFacts, tables: list[str]) -> None:
    if facts.table not in tables or len(tables) < 2:
        raise SchemaError(
            f"`table` of [person] is '{facts.table}': name the table with one row a person, beside one or more others"
        )


def _several(facts: KeyFacts, parent: Schema, tables: dict[str, tuple[RowFacts, Schema, tuple[str, ...]]]) -> Persons:
    if not isinstance(parent.columns.get(facts.key), Id):
        raise SchemaError(f"table '{facts.table}': the key '{facts.key}' must be a column of kind = \"id\"")
    histories = tuple(
        _history(name, schema, tuple(parent.learned), own, rows, facts.key)
        for name, (rows, schema, own) in tables.items()
    )
    document = {
        "person": facts.model_dump(),
        "parent": parent.to_json(),
        "tables": {
            name: {"rows": rows.model_dump(), "schema": schema.to_json(), "written": list(own)}
            for name, (rows, schema, own) in tables.items()
        },
    }
    return Persons(document, facts.key, (facts.table, parent), histories)


def _history(
    name: str, schema: Schema, persons: tuple[str, ...], written: tuple[str, ...], rows: RowFacts, key: str
) -> History:
    if unknown := [p for p in persons if p not in schema.learned or p == key]:
        raise SchemaError(f"column '{unknown[0]}' is an id: only learned columns can be `per = \"person\"`")
    if any(isinstance(c, Image) for c in schema.columns.values()):
        raise SchemaError("pictures have no histories: leave the image column out, or [person]")
    found = History(name, schema.with_whole(rows.order or ""), persons, written, rows, key)
    found.check()
    return found


def _table(raw: dict[str, Any], text: str, source: str, folder: Path) -> Schema:
    found, problems = checked(raw, text, folder)
    if found is None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise SchemaError(problems[0].message(source) + more, problems)
    return found


def _own_lines(text: str, table: str) -> str:
    """The lines of one table as if it were alone, at their places: errors then name the right line."""
    found, mine = [], False
    header = re.compile(rf"^(\s*\[{{1,2}}\s*)tables\s*\.\s*\"?{re.escape(table)}\"?\s*(?:\.\s*|(?=\]))")
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            mine = header.match(line) is not None
        found.append(header.sub(r"\1", line) if mine else "")
    return "\n".join(found)
