"""Reference: the page that lists every key of a schema, made from the models that read it.

`python -m dpmerf.schema.reference > docs/schema.md` writes it, and a test compares the two.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dpmerf.schema.columns import KINDS, Column
from dpmerf.schema.notation import Notation, Reading
from dpmerf.schema.relations import AnyRelation
from dpmerf.schema.schema import Schema

HEAD = """# Schema reference

<!-- Made by `python -m dpmerf.schema.reference > docs/schema.md`: change the models, not this page. -->

A schema is a TOML file of public facts. `dpmerf schema draft FILE` begins one from a header, `dpmerf schema import`
makes one from other tools' metadata, `dpmerf schema check` lists all that is missing or wrong. Nothing in it may be
looked up in the data.

```toml
format = 1
label = "ill"                 # the column to predict, if any

[reading]                     # how the file is written, where it is not plain
decimal = ","

[columns.age]                 # a section a column, in the order of the table
kind = "integer"
min = 0
max = 120

[columns.ill]
kind = "flag"
nullable = true

[[relations]]                 # what holds between columns in every row
rule = "if age < 14 then ill = false"
```
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [HEAD, "## The table", _table(Schema, leave=("columns", "relations", "reading"))]
    parts += ["## Every column", _words(Column), _table(Column, leave=("kind",))]
    for name, kind in KINDS.items():
        parts += [f'## `kind = "{name}"`', _words(kind), _table(kind, leave=("kind", *Column.model_fields))]
    parts += ["## How cells are written: `reading`", _words(Notation), _table(Notation)]
    parts += ["### Of a whole file: `[reading]`", _words(Reading), _table(Reading, leave=tuple(Notation.model_fields))]
    parts.append(
        "## Relations: `[[relations]]`\n\nOne of four forms, distinguished by its key; `name` is for messages."
    )
    for model in _members(AnyRelation):
        parts += [f"### {model.__name__}", _words(model), _table(model, leave=("name",))]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _members(union: Any) -> list[type[BaseModel]]:
    """The models of a union, in order."""
    if isinstance(union, type) and issubclass(union, BaseModel):
        return [union]
    return [model for part in get_args(union) for model in _members(part)]


def _words(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").partition("\n\nParameters")[0]


def _table(model: type[BaseModel], leave: tuple[str, ...] = ()) -> str:
    """A row a key: what it may be, its default, and what its line in the source says of it."""
    said = dict(re.findall(r"(?m)^    (\w+): .*?  # (.+)$", inspect.getsource(model)))
    lines = [
        f"| `{name}` | {_kind(field)} | {_default(field)} | {said.get(name, '')} |"
        for name, field in model.model_fields.items()
        if name not in leave
    ]
    return "\n".join(["| key | is | if left out | |", "|---|---|---|---|", *lines]) if lines else ""


_NAMES = (
    (r"typing\.|datetime\.|<class '|'>|builtins\.|dt\.", ""),
    (r"dict\[str, (.+)\]", r"table of \1"),
    (r"tuple\[tuple\[.*", "rows of values"),
    (r"tuple\[(.+), \.\.\.\]", r"list of \1"),
    (r"\bNoneType\b|\bNone\b", ""),
    (r"\bstr\b", "text"),
    (r"\bint\b", "whole number"),
    (r"\bfloat\b", "number"),
    (r"\bbool\b", "true or false"),
    (r"\bdatetime\b", "timestamp"),
    (r"dpmerf\.schema\.notation\.", ""),
    (r"Literal\[(.+)\]", r"\1"),
)


def _kind(field: FieldInfo) -> str:
    text = str(field.annotation)
    for old, new in _NAMES:
        text = re.sub(old, new, text)
    text = " or ".join(part.strip() for part in text.split("|") if part.strip())
    limits = [f"{word} {getattr(m, key)}" for m in field.metadata for key, word in _LIMITS.items() if hasattr(m, key)]
    return ", ".join([text, *limits])


_LIMITS = {"ge": "at least", "le": "at most", "min_length": "length at least", "max_length": "length at most"}


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**needed**"
    value = field.get_default(call_default_factory=True)
    if value in (None, "", (), {}):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    print(page(), end="")
