"""Draft: a schema to fill in, from column names and stored types alone. No value is ever read for it."""

from __future__ import annotations

import re

import pyarrow as pa

from dpmerf.schema.columns import KINDS
from dpmerf.schema.facts import TableFacts
from dpmerf.schema.names import suggest
from dpmerf.schema.notation import Reading
from dpmerf.schema.schema import Schema
from dpmerf.schema.toml import write, write_schema

_HEAD = """A draft: column names and stored types only. Kinds are suggestions: check them. Replace every "?" by a public
fact; nothing here may be looked up in the data. `dpmerf schema check` says what is missing.
Kinds and what they need:
{kinds}
Any column but an id may have: nullable = true
How the file is written, for the table or (reading = {{ … }}) for a column, where it is not plain:
  [reading]   delimiter = ";", encoding = "cp1252", decimal = ",", thousands = ".", unit = "€", date = "%d.%m.%Y",
              zone = "Europe/Berlin", missing = ["NA", "-"]
  category    synonyms = {{ W = "female" }}, flag: synonyms = {{ ja = true, nein = false }}"""


def head() -> str:
    """What stands at the top of a draft."""
    return _HEAD.format(kinds="\n".join(f"  {name:11} {k.hint}" for name, k in KINDS.items() if k.hint))


def draft(fields: dict[str, pa.DataType | None], reading: Reading | None = None) -> str:
    """TOML text with "?" wherever a person must decide."""
    told = (reading or Reading()).model_dump(mode="json", exclude_unset=True)
    table = TableFacts({name: suggest(name, stored) for name, stored in fields.items()}, reading=told)
    return re.sub(r"(?m)^(kind = .*\n(?:(?!\n|\[).*\n)*)", _hint, write(table, head()))


def _hint(column: re.Match[str]) -> str:
    """A line to uncomment, where nulls are possible and nobody has said so."""
    lines = column[1]
    return lines if 'kind = "id"' in lines else lines + "# nullable = true\n"


def draft_images(schema: Schema) -> str:
    """A complete schema of pictures as TOML, to check and to keep."""
    return write_schema(schema, "Public facts about the pictures. Nothing here may be looked up in the data.")
