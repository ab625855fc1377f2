"""Explain: everything that is wrong in a schema file, each in one sentence with its line and what to write there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, final

from pydantic import ValidationError

from dpmerf.schema.columns import KINDS

GAP = "?"  # what `schema draft` writes where a person must decide

ADVICE = {
    "kind": f"Write one of {', '.join(KINDS)}.",
    "values": 'List the values that can occur, for example values = ["yes", "no"].',
    "min": "Write the smallest value that can occur (a public fact).",
    "max": "Write the largest value that can occur (a public fact).",
    "first": "Write the earliest moment that can occur, for example 2020-01-01.",
    "last": "Write the latest moment that can occur, for example 2024-12-31.",
}


@final
@dataclass(frozen=True)
class Problem:
    """One thing to fix: its column (None: the schema as a whole), key and line where they are known, and words."""

    column: str | None
    key: str | None
    line: int | None
    words: str
    about: str | None = None  # what it is about where that is no column: a relation

    @property
    def _subject(self) -> str:
        return where(self.column) if self.about is None else self.about

    def message(self, source: str) -> str:
        """With its place, as an error says it."""
        place = f"{source}, line {self.line}" if self.line is not None else source
        what = f"`{self.key}` of {self._subject}" if self.key else self._subject
        return f"{place}: {what}{self.words}"

    def to_json(self) -> dict[str, Any]:
        return {"column": self.column, "key": self.key, "line": self.line, "problem": self.sentence}

    @property
    def sentence(self) -> str:
        """Without its column, for a place that shows it already."""
        subject = f"`{self.key}`" if self.key else self.about or ""
        told = f"{subject}{self.words}".removeprefix(":").strip()
        return told[:1].upper() + told[1:]


def gaps(raw: dict[str, Any], text: str) -> list[Problem]:
    """Every "?" that a person has to replace."""
    columns = raw.get("columns")
    found: list[tuple[str | None, str]] = []
    for name, column in columns.items() if isinstance(columns, dict) else ():
        for key, value in column.items() if isinstance(column, dict) else ():
            if value == GAP or (value == [GAP] and key == "values"):
                found.append((name, key))
    if raw.get("label") == GAP:
        found.append((None, "label"))
    words = ' is still "' + GAP + '". {} A person declares it; it is never taken from the data'
    return [
        Problem(name, key, line_of(text, name, key), words.format(ADVICE.get(key, "Write its value.")))
        for name, key in found
    ]


def faults(error: ValidationError, text: str) -> list[Problem]:
    """Every mistake of a schema, in the order of the file; a misspelt key before what is missing because of it."""
    found = [_fault(one, text) for one in error.errors(include_url=False)]
    order = [p for p in found if "is not known here" in p.words] + [
        p for p in found if "is not known here" not in p.words
    ]
    place = {name: i for i, name in enumerate(dict.fromkeys(p.column for p in found))}
    return sorted(order, key=lambda p: place[p.column])


def _fault(one: Any, text: str) -> Problem:
    path = [str(part) for part in one["loc"]]
    column = path[1] if len(path) > 1 and path[0] == "columns" else None
    tail = [p for p in path[2:] if p not in (*KINDS, "[key]")] if column is not None else path
    if tail[:1] == ["reading"] and len(tail) > 1:
        tail = tail[1:]  # the key below it is what a person wrote
    key = tail[0] if tail else None
    kind = one["type"]
    message = one["msg"].removeprefix("Value error, ")
    if path[:1] == ["relations"] and len(path) > 1 and path[1].isdigit():
        return _relation(int(path[1]), path[3] if len(path) > 3 else None, kind, message, text)
    if relation := re.match(r"relation (\d+) \(", message):
        number = int(relation[1])
        about = f"relation {number}"
        return Problem(None, None, _line_of_relation(number - 1, text), message.removeprefix(about), about)
    if kind.startswith("union_tag"):
        key, words = "kind", f" is missing or unknown. {ADVICE['kind']}"
    elif kind == "missing":
        words = f" is missing. {ADVICE.get(key or '', 'Add it.')}"
    elif kind == "extra_forbidden":
        words = " is not known here. Remove it or fix its spelling"
    else:
        words = f": {message[0].lower() + message[1:]}. {ADVICE.get(key or '', '')}".rstrip()
    return Problem(column, key, line_of(text, column, key) if text else None, words)


def of_relation(index: int, message: str, text: str) -> Problem:
    """What is wrong with a relation as a whole."""
    return _relation(index, None, "", message, text)


def _relation(index: int, key: str | None, kind: str, message: str, text: str) -> Problem:
    """The same for a relation, which has a number instead of a name."""
    told = {"missing": " is missing", "extra_forbidden": " is not known here. Remove it or fix its spelling"}
    words = told.get(kind, f": {message}")
    if kind in ("too_long", "too_short") and (counts := re.search(r"at (?:most|least) \d+", message)):
        words = f" has {counts[0]} entries"
    return Problem(None, key, _line_of_relation(index, text), words, f"relation {index + 1}")


def _line_of_relation(index: int, text: str) -> int | None:
    lines = [i for i, line in enumerate(text.splitlines(), 1) if re.match(r"^\s*\[\[\s*relations\s*\]\]", line)]
    return lines[index] if index < len(lines) else None


def where(column: str | None) -> str:
    """Which part of a schema a problem lies in, in words."""
    return "the schema" if column is None else f"column '{column}'"


def line_of(text: str, column: str | None, key: str | None) -> int:
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


def reason(error: Exception) -> str:
    """Why a file could not be read, in words."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "it is not UTF-8 text"
