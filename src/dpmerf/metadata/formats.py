"""Formats: which description of a table this is, and who reads it."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmerf.errors import DpmerfError, SchemaError
from dpmerf.metadata import (
    arrow,
    codebook,
    croissant,
    csvw,
    frictionless,
    information_schema,
    jsonschema,
    pandera,
    sdv,
    sql,
)
from dpmerf.schema import Schema, toml
from dpmerf.schema.facts import TableFacts

DOCUMENTS = (sdv, pandera, croissant, csvw, frictionless, jsonschema)  # JSON or YAML, most telling first
TEXTS = (information_schema, codebook)
READABLE = (*(m.NAME for m in (*DOCUMENTS, *TEXTS, sql, arrow)), "pydantic")
WRITABLE: dict[str, Callable[[Schema, str], dict[str, Any]]] = {
    frictionless.NAME: frictionless.write,
    sdv.NAME: sdv.write,
}
_ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


def read(source: Any, form: str | None = None, table: str | None = None, dialect: str | None = None) -> TableFacts:
    """What a file, a Python object or an already parsed document says about a table's columns.

    `source` is a path, `package.module:Name` of a pydantic model or pandera schema, such an object itself, an Arrow
    schema, or a dict. `form` is one of READABLE; it is recognised if left out. `table` picks one of several tables.
    """
    if form is not None and form not in READABLE:
        raise SchemaError(f"there is no format '{form}'. Choose from: {', '.join(READABLE)}")
    try:
        return _read(source, form, table, dialect)
    except DpmerfError as problem:
        name = source if isinstance(source, str | os.PathLike) else type(source).__name__
        raise SchemaError(f"{name}: {problem}") from None
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError):
        name = source if isinstance(source, str | os.PathLike) else type(source).__name__
        raise SchemaError(
            f"{name}: its parts do not fit together; is it {form or 'one of ' + ', '.join(READABLE)}?"
        ) from None


def imported(source: Any, form: str | None = None, table: str | None = None, dialect: str | None = None) -> str:
    """The same as a schema in TOML, with a gap wherever a person has to decide."""
    found = read(source, form, table, dialect)
    name = Path(source).name.replace("\n", " ") if isinstance(source, str | os.PathLike) else type(source).__name__
    head = (
        f"Made from {name}. Bounds, categories and nulls are public facts: keep what people know without the rows,\n"
        'replace what was computed from them, and every "?". `dpmerf schema check` says what is missing.'
    )
    return toml.write(found, head)


def _read(source: Any, form: str | None, table: str | None, dialect: str | None) -> TableFacts:
    if isinstance(source, pa.Schema):
        return arrow.read(source)
    if isinstance(source, dict | list):
        return _document(source, form, table)
    if not isinstance(source, str | os.PathLike):
        return _object(source, table)
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", str(source)) and not Path(source).exists():
        return _object(_named(str(source)), table)
    path = Path(source)
    if form == arrow.NAME or path.suffix.lower() in _ARROW:
        return arrow.read(_stored(path))
    text = _text(path)
    if form == sql.NAME or path.suffix.lower() in (".sql", ".ddl"):
        return sql.read(text, table, dialect)
    table_like = path.suffix.lower() in (".csv", ".tsv", ".txt")
    for module in TEXTS:
        if form == module.NAME or (form is None and table_like and module.fits(text)):
            return module.read(text, table)
    if table_like and form is None:
        raise SchemaError("it is no codebook: that has the headings `name` and `type`, and a line per column")
    return _document(_parsed(path, text), form, table)


def _document(document: Any, form: str | None, table: str | None) -> TableFacts:
    if isinstance(document, list) and form in (None, information_schema.NAME):
        rows = [{str(k).lower(): v for k, v in r.items()} for r in document if isinstance(r, dict)]
        if rows and "column_name" in rows[0]:
            return information_schema.from_rows(rows, table)
    for module in DOCUMENTS:
        if (form is None or form in (module.NAME, "pydantic")) and module.fits(document):
            return module.read(document, table)
    what = f"this is not {form}" if form else "the format is not known"
    raise SchemaError(f"{what}. Known are: {', '.join(READABLE)}")


def _object(thing: Any, table: str | None) -> TableFacts:
    if hasattr(thing, "model_json_schema"):
        return jsonschema.read(thing.model_json_schema(), table)
    if type(thing).__module__.startswith("pandera") or any(b.__module__.startswith("pandera") for b in _bases(thing)):
        return pandera.read(pandera.from_object(thing))
    if hasattr(thing, "schema") and isinstance(thing.schema, pa.Schema):
        return arrow.read(thing.schema)
    raise SchemaError("this is neither a pydantic model nor a pandera schema nor an Arrow schema")


def _bases(thing: Any) -> tuple[type, ...]:
    return thing.__mro__ if isinstance(thing, type) else ()


def _named(name: str) -> Any:
    """An object of the caller's own Python code, by module and name; the present folder is searched first."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        raise SchemaError("there is no such object: write it as package.module:Name, and see that it imports") from None
    finally:
        sys.path.remove(os.getcwd())


def _stored(path: Path) -> pa.Schema:
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pq.read_schema(path)
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file).schema
    except FileNotFoundError:
        raise SchemaError("there is no such file") from None
    except (OSError, pa.ArrowException):
        raise SchemaError("it is damaged or not a Parquet or Arrow file") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise SchemaError(f"cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise SchemaError("it is not UTF-8 text: save it as UTF-8") from None


def _parsed(path: Path, text: str) -> Any:
    if path.suffix.lower() in (".yaml", ".yml"):
        try:
            import yaml
        except ModuleNotFoundError:
            raise SchemaError("reading YAML needs the package PyYAML; or save it as JSON") from None
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError:
            raise SchemaError("it is not valid YAML") from None
    try:
        return json.loads(text)
    except ValueError as problem:
        place = f" (line {problem.lineno})" if isinstance(problem, json.JSONDecodeError) else ""
        raise SchemaError(f"it is not valid JSON{place}") from None
