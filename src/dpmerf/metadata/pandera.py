"""pandera: a schema as its own `to_json` or `to_yaml` writes it, or the schema object itself."""

from __future__ import annotations

from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.type_words import kind_of
from dpmerf.schema.facts import Facts, TableFacts, column

NAME = "pandera"


def fits(document: Any) -> bool:
    """Does a document look like this format?"""
    return isinstance(document, dict) and document.get("schema_type") == "dataframe"


def read(document: Any, table: str | None = None) -> TableFacts:
    """The columns with their types, nullability and the checks that bound them."""
    columns = document.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise SchemaError("this pandera schema has no columns")
    found, notes = {}, []
    for name, said in columns.items():
        if isinstance(said, dict) and said.get("regex"):
            notes.append(f"'{name}' is a pattern for several columns: write them out")
            continue
        found[str(name)] = _column(said if isinstance(said, dict) else {})
    if not found:
        raise SchemaError("this pandera schema names its columns by patterns only: list them by name")
    return TableFacts(found, notes=tuple(notes))


def _column(said: dict[str, Any]) -> Facts:
    if said.get("unique") is True:
        return Facts("id", notes=("every value occurs once",))
    checks = {**(said["checks"] if isinstance(said.get("checks"), dict) else {}), **said}
    between = checks.get("in_range") if isinstance(checks.get("in_range"), dict) else {}
    assert isinstance(between, dict)
    open_low, open_high = between.get("include_min") is False, between.get("include_max") is False
    low, high = between.get("min_value"), between.get("max_value")
    isin = checks.get("isin")
    values = isin.get("allowed_values") if isinstance(isin, dict) else isin
    if "equal_to" in checks:
        values = [_plain(checks["equal_to"])]
    dtype = str(said.get("dtype") or "")
    kind = kind_of(dtype.replace("datetime64", "datetime").replace("string[", "string [")) if dtype else None
    if kind is None and values is None:
        return Facts(None, notes=(f"type '{dtype}'" if dtype else "no type",))
    return column(
        kind,
        values=values,
        low=_first(_plain(checks.get("greater_than_or_equal_to")), None if open_low else low),
        high=_first(_plain(checks.get("less_than_or_equal_to")), None if open_high else high),
        above=_first(_plain(checks.get("greater_than")), low if open_low else None),
        below=_first(_plain(checks.get("less_than")), high if open_high else None),
        nullable=said.get("nullable") is True,
        dtype="dictionary" if dtype.startswith("category") else None,
    )


def _plain(said: Any) -> Any:
    """A check's number, also where it is written with its name and options."""
    if isinstance(said, dict):
        return next((v for k, v in said.items() if k in ("min_value", "max_value", "value")), None)
    return said


def _first(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


def from_object(schema: Any) -> Any:
    """The JSON document of a DataFrameSchema or DataFrameModel."""
    import json

    made = schema.to_json() if hasattr(schema, "to_json") else schema.to_schema().to_json()
    return json.loads(made)
