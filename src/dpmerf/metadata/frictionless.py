"""Frictionless Table Schema (versions 1 and 2), alone or inside a data package or resource. Read and written."""

from __future__ import annotations

from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.pick import pick_table
from dpmerf.metadata.written import dates, truths
from dpmerf.schema import KINDS, Category, Id, Schema
from dpmerf.schema.facts import Facts, TableFacts, column

NAME = "frictionless"
OWN = "dpmerf"  # a custom property of a field: what the standard has no word for
_KINDS = {
    "string": "category",
    "number": "number",
    "integer": "integer",
    "boolean": "flag",
    "date": "date",
    "datetime": "timestamp",
    "time": "time",
    "year": "integer",
}
_PERSONAL = ("email", "uri", "uuid", "binary")


def fits(document: Any) -> bool:
    """Does a document look like this format?"""
    if not isinstance(document, dict):
        return False
    return isinstance(document.get("fields"), list) or "resources" in document or _fields(document) is not None


def _fields(document: dict[str, Any]) -> dict[str, Any] | None:
    inside = document.get("schema")
    return inside if isinstance(inside, dict) and isinstance(inside.get("fields"), list) else None


def read(document: Any, table: str | None = None) -> TableFacts:
    """A table schema's fields."""
    if isinstance(document.get("resources"), list):
        named = {str(r.get("name", i)): r for i, r in enumerate(document["resources"]) if isinstance(r, dict)}
        document = pick_table(named, table)
        if isinstance(document.get("schema"), str):
            raise SchemaError(f"its table schema is in another file: import {document['schema']} instead")
    schema = _fields(document) or document
    fields = schema.get("fields")
    if not isinstance(fields, list) or not fields:
        raise SchemaError("this table schema has no `fields`")
    key = schema.get("primaryKey") or []
    keys = {key} if isinstance(key, str) else set(map(str, key))
    columns = {}
    for number, said in enumerate(fields, 1):
        if not isinstance(said, dict) or not isinstance(said.get("name"), str):
            raise SchemaError(f"field {number} of this table schema has no `name`")
        columns[said["name"]] = _column(said, said["name"] in keys)
    label = schema.get(OWN, {}).get("label") if isinstance(schema.get(OWN), dict) else None
    return TableFacts(columns, label if label in columns else None)


def _column(said: dict[str, Any], is_key: bool) -> Facts:
    limits = said.get("constraints") if isinstance(said.get("constraints"), dict) else {}
    assert isinstance(limits, dict)
    own = said.get(OWN) if isinstance(said.get(OWN), dict) else {}
    assert isinstance(own, dict)
    kind = own.get("kind") or _KINDS.get(str(said.get("type", "string")))
    form = said.get("format")
    if is_key or kind == "id" or (form in _PERSONAL and "enum" not in limits):
        return Facts("id")
    if kind is None:
        return Facts("id", notes=(f"type '{said.get('type')}' cannot be learned: made up on output",))
    values = limits.get("enum") or _categories(said.get("categories"))
    facts, notes = dates(form if form not in ("default", "any") else None)
    facts |= truths(said.get("trueValues"), said.get("falseValues")) if kind == "flag" else {}
    facts |= {
        k: KINDS[kind].typed(k, v) if isinstance(v, str) and k in ("first", "last") else v for k, v in own.items()
    }
    return column(
        kind,
        values=values,
        low=limits.get("minimum"),
        high=limits.get("maximum"),
        above=limits.get("exclusiveMinimum"),
        below=limits.get("exclusiveMaximum"),
        nullable=limits.get("required") is not True,
        notes=notes,
        **{k: v for k, v in facts.items() if k not in ("kind", "label")},
    )


def _categories(listed: Any) -> list[Any] | None:
    """Version 2 lists categories as values or as objects with a value and a label."""
    if not isinstance(listed, list) or not listed:
        return None
    return [c["value"] if isinstance(c, dict) and "value" in c else c for c in listed]


def write(schema: Schema, table: str = "table") -> dict[str, Any]:
    """The schema as a table schema; what the standard has no word for goes into a property of its own."""
    fields = []
    for name, declared in schema.columns.items():
        said = declared.model_dump(mode="json", exclude_defaults=True)
        said.pop("kind", None)
        limits: dict[str, Any] = {} if said.pop("nullable", False) else {"required": True}
        if (known := declared.frictionless()) is None:
            raise SchemaError(f"a table schema has no type for column '{name}' ({declared.kind}): leave it out first")
        kind, bounds = known
        if isinstance(declared, Category):
            limits["enum"] = list(declared.values)
            said.pop("values")
        elif isinstance(declared, Id):
            limits, said = {}, said | {"kind": "id"}
        if bounds is not None:
            limits |= {
                limit: said.pop(key) for limit, key in zip(("minimum", "maximum"), bounds, strict=True) if key in said
            }
        field: dict[str, Any] = {"name": name, "type": kind}
        fields.append(field | ({"constraints": limits} if limits else {}) | ({OWN: said} if said else {}))
    return {"fields": fields} | ({OWN: {"label": schema.label}} if schema.label else {})
