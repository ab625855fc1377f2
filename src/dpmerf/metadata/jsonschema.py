"""JSON Schema: the properties of one object, and pydantic models through the JSON Schema that they give."""

from __future__ import annotations

from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.schema.facts import Facts, TableFacts, column

NAME = "json-schema"
_KINDS = {"string": "category", "integer": "integer", "number": "number", "boolean": "flag"}
_FORMATS = {"date": "date", "date-time": "timestamp", "time": "time"}
_PERSONAL = ("email", "idn-email", "uri", "uuid", "ipv4", "ipv6", "hostname", "password", "binary", "uri-reference")


def fits(document: Any) -> bool:
    """Does a document look like this format?"""
    return isinstance(document, dict) and isinstance(_rows(document).get("properties"), dict)


def read(document: Any, table: str | None = None) -> TableFacts:
    """The properties of the object, or of the objects of an array; `table` names one of its definitions."""
    defined = {**_dict(document.get("definitions")), **_dict(document.get("$defs"))}
    if table is not None:
        if table not in defined:
            raise SchemaError(f"there is no definition '{table}'. There are: {', '.join(list(defined)[:12]) or 'none'}")
        document = {**defined[table], "$defs": defined}
    said = _resolve(_rows(document), defined)
    if "x-elsewhere" in said:
        raise SchemaError(f"the reference {said['x-elsewhere']} points outside this file: bundle the schema first")
    properties = said.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise SchemaError("this JSON Schema has no `properties`: it does not describe rows")
    required = set(map(str, said.get("required") or []))
    return TableFacts(
        {name: _column(_resolve(_dict(one), defined), name in required) for name, one in properties.items()}
    )


def _rows(document: dict[str, Any]) -> dict[str, Any]:
    items = document.get("items")
    return items if document.get("type") == "array" and isinstance(items, dict) else document


def _resolve(said: dict[str, Any], defined: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """The schema behind a local reference, and the one alternative beside null of a choice of two."""
    if depth > 20:
        raise SchemaError("a reference of this JSON Schema points to itself")
    reference = said.get("$ref")
    if isinstance(reference, str):
        target = defined.get(reference.rpartition("/")[2])
        if not isinstance(target, dict):
            return {"type": "object", "x-elsewhere": reference}
        return _resolve({**target, **{k: v for k, v in said.items() if k != "$ref"}}, defined, depth + 1)
    for choice in ("anyOf", "oneOf", "allOf"):
        options = said.get(choice)
        if not isinstance(options, list):
            continue
        real = [o for o in map(_dict, options) if o.get("type") != "null"]
        beside = {k: v for k, v in said.items() if k != choice}
        if len(real) == 1:
            nullable = {"x-null": True} if len(real) < len(options) else {}
            return {**beside, **_resolve(real[0], defined, depth + 1), **nullable}
        if real and all("const" in o for o in real):
            return {**beside, "enum": [o["const"] for o in real]}
    return said


def _column(said: dict[str, Any], required: bool) -> Facts:
    if "x-elsewhere" in said:
        return Facts("id", notes=(f"described elsewhere ({said['x-elsewhere']}): never learned, made up on output",))
    types = [t for t in ([said.get("type")] if not isinstance(said.get("type"), list) else said["type"]) if t]
    null = "null" in types or said.get("x-null") is True or not required
    types = [t for t in types if t != "null"]
    values = [v for v in said["enum"] if v is not None] if isinstance(said.get("enum"), list) else None
    if isinstance(said.get("enum"), list) and None in said["enum"]:
        null = True
    if "const" in said:
        values = [said["const"]]
    form = said.get("format")
    if form in _PERSONAL and values is None:
        return Facts("id", notes=(f"format '{form}': never learned, made up on output",))
    kind = _FORMATS.get(str(form)) if types in ([], ["string"]) and form in _FORMATS else None
    if kind is None and len(types) == 1:
        kind = _KINDS.get(types[0])
    if set(types) == {"integer", "number"} or set(types) == {"number", "string"}:
        kind = "number"
    if values is not None and set(values) <= {True, False} and all(isinstance(v, bool) for v in values):
        kind, values = "flag", None
    if kind is None and values is None:
        what = "of several types" if len(types) > 1 else f"of type '{types[0]}'" if types else "of any type"
        return Facts("id", notes=(f"{what}: cannot be learned, made up on output",))
    above, below = said.get("exclusiveMinimum"), said.get("exclusiveMaximum")  # true and false in draft 4
    return column(
        kind,
        values=values,
        low=None if above is True else said.get("minimum"),
        high=None if below is True else said.get("maximum"),
        above=said.get("minimum") if above is True else above if above is not False else None,
        below=said.get("maximum") if below is True else below if below is not False else None,
        step=said.get("multipleOf"),
        nullable=null,
    )


def _dict(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {}
