"""SQL: the columns of a CREATE TABLE, with the bounds and lists that its checks state. Needs sqlglot (extra `sql`)."""

from __future__ import annotations

import logging
from typing import Any

from dpmerf.errors import SchemaError
from dpmerf.metadata.pick import pick_table
from dpmerf.metadata.type_words import kind_of
from dpmerf.schema.facts import Facts, TableFacts, column
from dpmerf.schema.names import kind_by_name

NAME = "sql"
RULES = ""  # among the checks by column: orders of two columns
_MIRRORED = {"low": "high", "high": "low", "above": "below", "below": "above"}


def fits(text: str) -> bool:
    """Does a document look like this format?"""
    return "create" in text.lower() and "table" in text.lower() and "(" in text


def read(text: str, table: str | None = None, dialect: str | None = None) -> TableFacts:
    """One table of a script. Enumerated types that the script creates are followed."""
    try:
        import sqlglot
        from sqlglot import exp
    except ModuleNotFoundError:
        raise SchemaError("reading SQL needs the package sqlglot: pip install 'dpmerf[sql]'") from None
    try:
        parsed = statements(text, dialect)
    except RecursionError:
        raise SchemaError("this SQL is nested too deeply to be read") from None
    except sqlglot.errors.SqlglotError as problem:
        told = getattr(problem, "errors", None)
        where = told[0].get("line") if told else None
        place = f" (line {where})" if where else ""
        raise SchemaError(f"this SQL cannot be read{place}: name its dialect with --dialect, e.g. postgres") from None
    except ValueError:
        raise SchemaError(f"there is no SQL dialect '{dialect}': try postgres, mysql, tsql, oracle, sqlite") from None
    tables, enums = {}, {}
    for statement in parsed:
        if not isinstance(statement, exp.Create):
            continue
        if statement.kind == "TABLE" and isinstance(statement.this, exp.Schema):
            tables[statement.this.this.name] = statement.this
        elif statement.kind == "TYPE":
            enums[statement.this.name.lower()] = [v.name for v in statement.find_all(exp.Literal) if v.is_string]
    if not tables:
        raise SchemaError("there is no CREATE TABLE with columns in this SQL")
    return _table(pick_table(tables, table), enums, exp)


def statements(text: str, dialect: str | None = None) -> list[Any]:
    """What sqlglot makes of a text. Its log is not shown: it quotes the text, and a dump of a database holds rows."""
    import sqlglot

    def nothing(record: logging.LogRecord) -> bool:
        return False

    log = logging.getLogger("sqlglot")
    log.addFilter(nothing)
    try:
        return [s for s in sqlglot.parse(text, read=dialect) if s is not None]
    finally:
        log.removeFilter(nothing)


def _table(schema: Any, enums: dict[str, list[str]], exp: Any) -> TableFacts:
    keys: set[str] = set()
    checks: dict[str, dict[str, Any]] = {}
    for part in schema.expressions:
        parts = part.expressions if isinstance(part, exp.Constraint) else [part]
        for one in parts:
            if isinstance(one, exp.PrimaryKey | exp.ForeignKey | exp.UniqueColumnConstraint):
                keys |= _names(one, exp)
            elif isinstance(one, exp.CheckColumnConstraint):
                _check(one.this, checks, exp)
    columns = {}
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            columns[part.name] = _column(part, part.name in keys, checks, enums, exp)
    if not columns:
        raise SchemaError("this CREATE TABLE has no columns")
    rules = tuple({"rule": rule} for rule in checks.get(RULES, {}))
    return TableFacts(columns, relations=rules)


def _names(key: Any, exp: Any) -> set[str]:
    """The table's own columns of a key; a reference names columns of another table."""
    reference = key.args.get("reference")
    inside = set(map(id, reference.find_all(exp.Identifier))) if reference is not None else set()
    return {i.name for i in key.find_all(exp.Identifier) if id(i) not in inside}


def _column(part: Any, is_key: bool, checks: dict[str, dict[str, Any]], enums: dict[str, list[str]], exp: Any) -> Facts:
    own = {part.name: dict(checks.get(part.name, {}))}
    nullable = True
    for constraint in (c.kind for c in part.constraints):
        if isinstance(constraint, exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint | exp.Reference):
            is_key = True
        elif isinstance(constraint, exp.NotNullColumnConstraint):
            nullable = bool(constraint.args.get("allow_null"))
        elif isinstance(constraint, exp.CheckColumnConstraint):
            _check(constraint.this, own, exp)
        elif isinstance(constraint, exp.AutoIncrementColumnConstraint | exp.GeneratedAsIdentityColumnConstraint):
            is_key = True
    written = part.kind.sql() if part.kind is not None else ""
    kind = kind_of(written)
    said = own[part.name]
    values = said.pop("values", None)
    if kind == "category" and part.kind is not None and part.kind.this == exp.DType.ENUM:
        values = [v.name for v in part.kind.expressions]
    if written.lower() in enums:
        kind, values = "category", enums[written.lower()]
    if is_key or written.lower() in ("serial", "bigserial", "smallserial"):
        return Facts("id")
    if kind == "category" and values is None and kind_by_name(part.name) == "id":
        return Facts("id", notes=("suggested by its name: check",))
    if kind == "id":
        return Facts("id", notes=(f"type {written} cannot be learned: made up on output",))
    if kind is None and values is None:
        return Facts(None, notes=(f"type {written}",))
    size = [int(p.name) for p in part.kind.find_all(exp.Literal) if not p.is_string and p.name.isdecimal()]
    decimals = size[1] if kind == "number" and len(size) == 2 else None
    if kind == "number" and written.upper().startswith(("DECIMAL", "NUMERIC", "NUMBER")) and decimals in (None, 0):
        kind, decimals = ("integer", None) if size else ("number", None)
    return column(kind, values=values, decimals=decimals, nullable=nullable, **said)


def _check(condition: Any, found: dict[str, dict[str, Any]], exp: Any) -> None:
    """What a check says about single columns: comparisons with constants, BETWEEN and IN, joined by AND."""
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        _check(condition.left, found, exp)
        _check(condition.right, found, exp)
        return
    if isinstance(condition, exp.Between):
        low, high = _constant(condition.args["low"], exp), _constant(condition.args["high"], exp)
        _note(condition.this, {"low": low, "high": high}, found, exp)
    elif isinstance(condition, exp.In):
        listed = [_constant(v, exp) for v in condition.expressions]
        if listed and None not in listed:
            _note(condition.this, {"values": listed}, found, exp)
    elif isinstance(condition, exp.GTE | exp.GT | exp.LTE | exp.LT):
        side = {exp.GTE: "low", exp.GT: "above", exp.LTE: "high", exp.LT: "below"}[type(condition)]
        if all(isinstance(side.unnest(), exp.Column) for side in (condition.left, condition.right)):
            sign = {exp.GTE: ">=", exp.GT: ">", exp.LTE: "<=", exp.LT: "<"}[type(condition)]
            rule = f"{condition.left.unnest().name} {sign} {condition.right.unnest().name}"
            found.setdefault(RULES, {})[rule] = True
        elif isinstance(condition.left.unnest(), exp.Column):
            _note(condition.left, {side: _constant(condition.right, exp)}, found, exp)
        else:
            _note(condition.right, {_MIRRORED[side]: _constant(condition.left, exp)}, found, exp)


def _note(side: Any, said: dict[str, Any], found: dict[str, dict[str, Any]], exp: Any) -> None:
    side = side.unnest()
    if isinstance(side, exp.Column):
        found.setdefault(side.name, {}).update({k: v for k, v in said.items() if v is not None})


def _constant(written: Any, exp: Any) -> Any:
    written = written.unnest()
    if isinstance(written, exp.Neg):
        inside = _constant(written.this, exp)
        return -inside if isinstance(inside, int | float) else None
    if isinstance(written, exp.Cast):
        return _constant(written.this, exp)
    if not isinstance(written, exp.Literal):
        return None
    if written.is_string:
        return written.name
    return int(written.name) if written.name.isdecimal() else float(written.name)
