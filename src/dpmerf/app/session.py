"""Session: what one person has declared on the page so far, and what follows from it. Holds no row."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import pyarrow as pa
from pydantic import ValidationError

from dpmerf.accounting.unit import Unit
from dpmerf.app import forms
from dpmerf.app.jobs import Job
from dpmerf.discovery import Purchase
from dpmerf.errors import BudgetError, DataError, DpmerfError
from dpmerf.methods.presets import make_plan
from dpmerf.methods.readable_first import in_doubt, readable_first
from dpmerf.plan import Plan
from dpmerf.private.count import public_rows
from dpmerf.private.discover import public_fields
from dpmerf.private.ledger import Ledger
from dpmerf.schema import Problem, Schema, names, problems_of, toml
from dpmerf.schema.explain import faults
from dpmerf.schema.facts import TableFacts
from dpmerf.schema.notation import Reading
from dpmerf.sources.rows import open_rows

LEAST_EPSILON, MOST_EPSILON = 0.01, 20.0


@final
@dataclass
class Session:
    """One table and everything that was said about it. The page shows it; every request may change it."""

    folder: Path  # where everything is made
    source: str = ""  # the table's path on this machine
    fields: dict[str, pa.DataType | None] = field(default_factory=dict)
    boxes: dict[str, forms.Typed] = field(default_factory=dict)
    more: dict[str, dict[str, Any]] = field(default_factory=dict)  # facts that have no box, by column
    written: forms.Typed = field(default_factory=dict)  # how the file is written, as typed
    label: str = ""
    rules: str = ""  # relations, one a line
    person: str = ""
    most_rows: int = 1
    add_remove: bool = False
    epsilon: float = 1.0
    delta: str = ""
    rows: str = ""  # as typed; empty: counted where that is public
    limit: float = 1.0  # of the ledger
    seed: int = 0
    job: Job | None = None
    buying: Job | None = None
    bought: str = ""  # the command for what was bought last
    counted: int | None = None  # the number of rows, once asked for and only where it is public

    @property
    def ready(self) -> bool:
        """Whether a table is open."""
        return bool(self.fields)

    @property
    def name(self) -> str:
        return Path(self.source).name

    @property
    def stem(self) -> str:
        return Path(self.source).name.split(".")[0] or "table"

    def open(self, source: str, written: forms.Typed | None = None) -> None:
        """Open a table that is written like that: its names and stored types, no value."""
        typed = {key: text for key, text in (written or {}).items() if key in forms.READING and text.strip()}
        fields = dict(open_rows(source, _reading(typed)).fields)
        check_names(list(fields))
        self.source, self.fields, self.job, self.counted, self.written = source, fields, None, None, typed
        self.boxes = {name: forms.typed(names.suggest(name, stored)) for name, stored in fields.items()}
        self.label = self.person = self.rules = self.bought = ""
        self.more, self.buying = {}, None

    def describe(self, found: TableFacts) -> int:
        """Take what somebody's metadata says about columns that the table has; how many they were."""
        there = [name for name in found.columns if name in self.fields]
        for name in there:
            self.boxes[name] = forms.typed(found.columns[name])
            self.more[name] = forms.unasked(found.columns[name])
        if found.label in self.fields:
            self.label = str(found.label)
        rules = forms.rules_of(found.relations)
        self.rules = "\n".join(filter(None, (self.rules, rules if rules not in self.rules else "")))
        return len(there)

    def declare(self, name: str, typed: forms.Typed) -> None:
        """What a person typed about one column. A bought fact that is typed over was not bought."""
        before = self.boxes[name]
        self.boxes[name] = {"dtype": before.get("dtype", "")} | typed
        if bought := self.more.get(name, {}).get("bought"):
            lines = [key for key in bought if _lines(before.get(key)) == _lines(typed.get(key))]
            self.more[name] = {**self.more[name], "bought": lines}

    @property
    def schema_text(self) -> str:
        table = forms.table(self.boxes, self.fields, self.label, self.rules, forms.reading(self.written), self.more)
        for facts in table.columns.values():
            if isinstance(told := facts.known.get("values"), str) and not told.startswith("list:"):
                facts.known["values"] = self._beside(told)
        for relation in table.relations:
            if "file" in relation:
                relation["file"] = self._beside(relation["file"])
        return toml.write(table, "Declared by a person. Nothing here may be looked up in the data.")

    def _beside(self, name: str) -> str:
        """Where a list lies that was named: beside the table, else where the page was started."""
        path = Path(self.source).parent / name
        return str(path.resolve() if path.with_name(path.name.partition("#")[0]).exists() else Path(name).resolve())

    def problems(self) -> tuple[Problem, ...]:
        """Everything that is missing or wrong, all at once."""
        return problems_of(self.schema_text)

    def schema(self) -> Schema:
        return Schema.parse(self.schema_text)

    @property
    def unit_text(self) -> str:
        return f"person:{self.person},{self.most_rows}" if self.person else "row"

    @property
    def neighbours(self) -> str:
        return "add-remove" if self.add_remove else "replace"

    @property
    def unit(self) -> Unit:
        return Unit.parse(self.unit_text, self.neighbours)

    def expected_rows(self) -> int | None:
        """As typed, or counted where the number of rows is public; None: nobody knows."""
        if self.rows.strip():
            plain = self.rows.replace(",", "").replace(" ", "").strip()
            if not plain.isdecimal() or int(plain) < 1:
                raise BudgetError("write the expected number of rows as a whole number, 1 or more")
            return int(plain)
        if not self.unit.rows_public:
            return None
        if self.counted is None:
            ledger = Ledger.load(self.ledger) if self.ledger.exists() else None
            self.counted = public_rows(open_rows(self.source, _reading(self.written)), self.unit, ledger)
        return self.counted

    def plan(self, epsilon: float | None = None, unit: Unit | None = None, rows: int | None = None) -> Plan:
        """The plan for what was declared, or for another ε or unit beside it. No row is read."""
        chosen = unit or self.unit
        expected = self.expected_rows() if rows is None else rows
        schema, source = self.schema(), open_rows(self.source, _reading(self.written))
        made = make_plan(schema, epsilon or self.epsilon, self._delta(), rows=expected, unit=chosen)
        return readable_first(made, in_doubt(schema, source.fields, source.guessed_types))

    def purchase(self, names: list[str], epsilon: float) -> Purchase:
        """The price of bounds, kinds and frequent values of some columns. No row is read."""
        source, reading = open_rows(self.source, _reading(self.written)), _reading(self.written)
        rows = self.expected_rows()
        if rows is None:
            raise BudgetError("the number of rows is protected: write how many to expect, about")
        return Purchase.of(public_fields(source), names, epsilon, self._delta(), self.unit, rows, reading)

    def _delta(self) -> float | None:
        if not self.delta.strip():
            return None
        try:
            return float(self.delta)
        except ValueError:
            raise BudgetError("write δ as a number, for example 1e-5, or leave it empty") from None

    @property
    def ledger(self) -> Path:
        return self.folder / f"{self.stem}.ledger"

    def output(self) -> Path:
        """A folder that is not there yet."""
        number = 1
        while (self.folder / f"{self.stem}-{number}").exists():
            number += 1
        return self.folder / f"{self.stem}-{number}"

    def commands(self) -> str:
        """The same walk on the command line."""
        schema = shlex.quote(str(self.folder / f"{self.stem}.toml"))
        data, ledger = shlex.quote(self.source), shlex.quote(str(self.ledger))
        options = [f"--epsilon {self.epsilon:g}"]
        options += [f"--delta {self.delta.strip()}"] if self.delta.strip() else []
        options += [f"--rows {self.rows.strip()}"] if self.rows.strip() else []
        options += [f"--unit {shlex.quote(self.unit_text)}"] if self.person else []
        options += ["--neighbours add-remove"] if self.add_remove else []
        told = " ".join(options)
        return "\n".join(
            (
                *filter(None, (self.bought,)),
                f"dpmerf schema check {schema} --data {data}",
                f"dpmerf plan {schema} {told}",
                f"dpmerf ledger init {ledger} --epsilon {self.limit:g} --delta {self.delta.strip() or '1e-5'}",
                f"dpmerf synth {data} --schema {schema} {told} --ledger {ledger} -o "
                + shlex.quote(str(self.folder / f"{self.stem}-1")),
            )
        )


def _reading(written: forms.Typed) -> Reading:
    try:
        return Reading.model_validate(forms.reading(written))
    except ValidationError as error:
        raise DataError(f"how the file is written: {faults(error, '')[0].sentence}") from None


def _lines(text: str | None) -> list[str]:
    return (text or "").split()


def check_names(found: list[str]) -> None:
    """Refuse a first line that looks like a row: the page would show its cells as names."""
    for name in found:
        plain = name.strip()
        digits = sum(c.isdigit() for c in plain)
        if not plain or len(plain) > 120 or not plain.isprintable() or 2 * digits > len(plain) + 1:
            raise DataError(
                "the first line of this table does not look like names of columns, so nothing of it is shown. "
                "Write a line of names above the rows"
            )


def attempt(action: Any) -> tuple[Any, str]:
    """The result, or the words of what went wrong."""
    try:
        return action(), ""
    except DpmerfError as problem:
        return None, str(problem)
