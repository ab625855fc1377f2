"""TOML: a schema, whole or with gaps, as text that a person goes on with."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.schema.columns import KINDS
from dpmerf.schema.explain import GAP
from dpmerf.schema.facts import Facts, TableFacts
from dpmerf.schema.schema import Schema

ADVICE = {
    "kind": ", ".join(name for name, kind in KINDS.items() if kind.title),
    "values": 'every value that can occur, or a file of them: values = "codes.csv"',
    "min": "smallest value that can occur: a public fact",
    "max": "largest",
    "first": "earliest that can occur, for example 2020-01-01",
    "last": "latest",
}


def write(table: TableFacts, head: str) -> str:
    """The table's schema; `head` is said first, as a comment."""
    lines = [f"# {_comment(line)}".rstrip() for line in head.split("\n")] if head else []
    lines += [f"# Note: {_comment(note)}." for note in table.notes]
    lines.append("format = 1")
    lines.append(
        f"label = {_value(table.label)}" if table.label else '# label = "..."   # the column to predict, if any'
    )
    if table.reading:
        lines += ["", "[reading]", *(f"{key(k)} = {_value(v)}" for k, v in table.reading.items())]
    for name, facts in table.columns.items():
        lines += ["", f"[columns.{key(name)}]", *_column(facts)]
    for relation in table.relations:
        lines += ["", "[[relations]]", *(f"{key(k)} = {_value(v)}" for k, v in relation.items())]
    return "\n".join(lines) + "\n"


def write_schema(schema: Schema, head: str = "") -> str:
    """A complete schema as TOML that reads back as the same schema."""
    columns = {}
    for name, declared in schema.columns.items():
        facts = declared.model_dump(exclude_defaults=True)
        facts.pop("kind", None)
        if declared.reading is not None:
            facts["reading"] = declared.reading.model_dump(mode="json", exclude_unset=True)
        columns[name] = Facts(declared.kind, {k: list(v) if isinstance(v, tuple) else v for k, v in facts.items()})
    relations = tuple(relation.model_dump(mode="json", exclude_defaults=True) for relation in schema.relations)
    reading = schema.reading.model_dump(mode="json", exclude_unset=True)
    text = write(TableFacts(columns, schema.label, relations=relations, reading=reading), head)
    return text if schema.label else re.sub(r"^# label.*\n", "", text, flags=re.MULTILINE)


def key(name: str) -> str:
    """A column's name as a TOML key, in quotation marks where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _column(facts: Facts) -> list[str]:
    lines = [f"# {_comment(note)}" for note in facts.notes]
    for name, value in facts.written().items():
        text = f"{name} = {_value(value)}"
        lines.append(f"{text:<16} # {ADVICE[name]}" if value in (GAP, [GAP]) and name in ADVICE else text)
    return lines


def _comment(words: str) -> str:
    """On one line, whatever somebody's metadata holds."""
    return "".join(c if c.isprintable() else " " for c in words).rstrip()


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, dt.date) or hasattr(value, "isoformat"):  # a day, a time of day
        return value.isoformat()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(v) for v in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key(str(k))} = {_value(v)}" for k, v in value.items()) + " }"
    if value is None:
        raise SchemaError("an empty cell in a table of relations cannot be written as TOML: keep it in a CSV file")
    return repr(value)
