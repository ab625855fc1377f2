"""Codebook: a CSV with a line per column of the table. Headings are found by their usual names.

Needed is a heading for the column's name (name, variable, field, column, …). Known beside it: type, values or choices,
minimum, maximum, decimals, nullable or required, label or description. A data dictionary of REDCap is such a file.
Values are written one after the other with `|` or `;` between them, with or without a meaning: `1, male | 2, female`,
`1 = male; 2 = female`, `male | female`.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.type_words import kind_of, size_of
from dpmerf.schema.facts import Facts, TableFacts, column
from dpmerf.schema.names import kind_by_name

NAME = "codebook"
_HEADINGS = {
    "name": "name variable variable/fieldname variablename varname field fieldname column columnname merkmal spalte",
    "type": "type datatype kind fieldtype variabletype storagetype format typ",
    "valid": "textvalidationtypeorshowslidernumber validation",
    "values": "values value choices codes categories levels enum allowedvalues valuelabels werte "
    "choices,calculations,orsliderlabels choicescalculationsorsliderlabels",
    "min": "min minimum low lower textvalidationmin lowerbound",
    "max": "max maximum high upper textvalidationmax upperbound",
    "decimals": "decimals decimalplaces scale",
    "required": "required requiredfield? mandatory notnull",
    "nullable": "nullable null nulls missing isnullable optional",
    "identifier": "identifier? identifier pii",
    "label": "label description fieldlabel title text",
}
_FOUND = {word: key for key, listed in _HEADINGS.items() for word in listed.split()}
_YES = {"y", "yes", "true", "1", "x", "ja", "oui"}
_VALIDATION = {"integer": "integer", "number": "number", "date": "date", "datetime": "timestamp", "time": "time"}
_NOT_LEARNED = {"notes", "file", "descriptive", "sql", "textarea", "signature"}


def fits(text: str) -> bool:
    """Does a document look like this format?"""
    header = text.lstrip("\ufeff").splitlines()[:1]
    places = _places(next(csv.reader(header, delimiter=_delimiter(header[0])), [])) if header else {}
    return "name" in places and bool(places.keys() & {"type", "values"})


def read(text: str, table: str | None = None) -> TableFacts:
    """One column a line, in the order of the lines."""
    text = text.lstrip("\ufeff")
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=_delimiter(text.split("\n", 1)[0])))
    except csv.Error:
        raise SchemaError("this codebook is not a CSV file: a line cannot be read") from None
    places = _places(rows[0]) if rows else {}
    if "name" not in places:
        raise SchemaError("this codebook has no heading for the columns' names: call it `name`")
    _no_data(rows[1:], places)
    found: dict[str, Facts] = {}
    for number, row in enumerate(rows[1:], 2):
        said = {key: row[i].strip() for key, i in places.items() if i < len(row)}
        name = said.get("name", "")
        if not name:
            continue
        if name in found:
            raise SchemaError(f"line {number} of this codebook describes a column a second time: remove one")
        found[name] = _column(name, said)
    if not found:
        raise SchemaError("this codebook has headings but describes no column")
    return TableFacts(found)


def _no_data(rows: list[list[str]], places: dict[str, int]) -> None:
    """Refuse a table of data that was taken for a codebook: it must not be shown as column names."""
    written = [row[places["type"]] for row in rows if "type" in places and len(row) > places["type"]]
    told = [w for w in written if w.strip()]
    known = [w for w in told if kind_of(w) or re.sub(r"[^a-z]", "", w.lower()) in _NOT_LEARNED]
    if told and 2 * len(known) < len(told):
        raise SchemaError("this looks like a table of data, not like a codebook: its types are not types")


def _column(name: str, said: dict[str, str]) -> Facts:
    written = said.get("type", "")
    plain = re.sub(r"[^a-z]", "", written.lower())
    notes = [said["label"].replace("\n", " ")] if said.get("label") else []
    if said.get("identifier", "").lower() in _YES or plain in _NOT_LEARNED:
        return Facts("id", notes=tuple(notes))
    kind = kind_of(written) if written else kind_by_name(name)
    valid = re.sub(r"_.*", "", said.get("valid", "").lower())
    if valid in ("email", "phone", "zipcode", "mrn", "ssn", "vmrn"):
        return Facts("id", notes=tuple(notes))
    kind = _VALIDATION.get(valid, kind)
    if plain == "text" and "valid" in said and not valid:  # REDCap: free text, unless it is validated
        return Facts("id", notes=(*notes, "free text: never learned, made up on output"))
    values = _values(said.get("values", "")) if plain not in ("calc", "slider") and kind != "flag" else None
    if values and set(map(str.lower, map(str, values))) <= {"true", "false"}:
        kind, values = "flag", None
    if kind is None and not values:
        return Facts(None, notes=(*notes, *([f"type '{written}'"] if written else [])))
    nullable = said.get("required", "").lower() not in _YES
    if "nullable" in said and "required" not in said:
        nullable = said["nullable"].lower() in _YES
    size = size_of(written)
    return column(
        kind,
        values=values or None,
        low=said.get("min") or None,
        high=said.get("max") or None,
        decimals=said.get("decimals") or (size[1] if kind == "number" and len(size) == 2 else None),
        nullable=nullable,
        notes=notes,
    )


def _values(written: str) -> list[Any]:
    """The codes of a list; their meanings, after `,` or `=`, are left out."""
    if not written:
        return []
    between = "|" if "|" in written else ";" if ";" in written else "\n" if "\n" in written else ","
    parts = [part.strip() for part in written.split(between)]
    codes = [re.split(r"\s*=\s*|,\s+", part, maxsplit=1)[0].strip() if between != "," else part for part in parts]
    if between == "," and all("=" in part for part in parts):
        codes = [part.partition("=")[0].strip() for part in parts]
    codes = [c.strip("\"'") for c in codes if c]
    return [int(c) for c in codes] if codes and all(re.fullmatch(r"-?(0|[1-9]\d{0,15})", c) for c in codes) else codes


def _places(header: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for i, heading in enumerate(header):
        key = _FOUND.get(re.sub(r"[\s_]+", "", heading.strip().lower()))
        if key is not None:
            found.setdefault(key, i)
    return found


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)
