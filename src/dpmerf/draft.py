"""Draft: a schema to fill in, from column names and stored types alone. No value is ever read for it."""

from __future__ import annotations

import json
import re

import pyarrow as pa

from dpmerf.schema import Schema

_BOUNDS = 'min = "?"        # smallest value that can occur: a public fact\nmax = "?"        # largest\n'
_VALUES = 'kind = "category"\nvalues = ["?"]   # every value that can occur\n'
_MOMENTS = 'first = "?"      # earliest that can occur, for example {example}\nlast = "?"       # latest\n'


def draft(fields: dict[str, pa.DataType | None]) -> str:
    """TOML text with "?" wherever a person must decide."""
    head = (
        '# A draft: column names and stored types only. Replace every "?" by a public fact;\n'
        "# nothing here may be looked up in the data. `dpmerf schema check` says what is missing.\n"
        "format = 1\n"
        '# label = "..."   # the column to predict, if there is one\n'
    )
    return head + "".join(f"\n[columns.{_key(name)}]\n{_column(kind)}" for name, kind in fields.items())


def draft_images(schema: Schema) -> str:
    """A complete schema of pictures as TOML, to check and to keep."""
    lines = ["# Public facts about the pictures. Nothing here may be looked up in the data.", "format = 1"]
    lines += [] if schema.label is None else [f"label = {json.dumps(schema.label)}"]
    for name, column in schema.columns.items():
        facts = {"kind": column.kind, **column.model_dump(exclude_defaults=True, mode="json")}
        lines += [f"\n[columns.{_key(name)}]"]
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(lines) + "\n"


def _column(kind: pa.DataType | None) -> str:
    if kind is None:
        return (
            'kind = "?"       # category, number, integer, date, timestamp, flag or id\n'
            '#   category: values = ["a", "b"], other = "catch-all"    number: min, max, decimals, log\n'
            "#   integer: min, max, step    date, timestamp: first, last, step\n"
            "# nullable = true\n"
        )
    if pa.types.is_dictionary(kind):
        return f'{_VALUES}# nullable = true\ndtype = "dictionary"\n'
    dtype = "" if _natural(kind) else f'dtype = "{kind}"\n'
    tail = f"# nullable = true\n{dtype}"
    if pa.types.is_boolean(kind):
        return f'kind = "flag"\n{tail}'
    if pa.types.is_integer(kind):
        return f'kind = "integer"\n{_BOUNDS}step = 1\n{tail}'
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return f'kind = "number"\n{_BOUNDS}# decimals = 2\n# log = true\n{tail}'
    if pa.types.is_date(kind):
        return f'kind = "date"\n{_MOMENTS.format(example="2020-01-01")}step = 1         # days\n{tail}'
    if pa.types.is_timestamp(kind):
        return f'kind = "timestamp"\n{_MOMENTS.format(example="2020-01-01T00:00:00")}step = 1         # seconds\n{tail}'
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return f'{_VALUES}# other = "other" # catch-all\n{tail}'
    return 'kind = "id"       # a type that cannot be learned\n'


def _natural(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us"))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
