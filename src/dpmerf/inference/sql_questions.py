"""SQL: a small subset of SELECT as questions. Parsed by sqlglot (`pip install 'dpmerf[sql]'`); nothing is executed."""

from __future__ import annotations

from typing import Any

from dpmerf.errors import AnswerError
from dpmerf.inference.questions import Condition, Question, question
from dpmerf.inference.words import condition
from dpmerf.metadata.sql import statements
from dpmerf.schema import Schema

_FORM = "Understood: SELECT COUNT(*), AVG(x), AVG(x = 'value'), SUM(x), VARIANCE(x), MEDIAN(x), QUANTILE(x, 0.9) "
_FORM += "FROM release WHERE a = 'b' AND c IN (…) AND x BETWEEN 1 AND 9 GROUP BY d"


def parse(schema: Schema, text: str) -> list[Question]:
    """One question per aggregate."""
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError:
        raise AnswerError(
            "SQL needs sqlglot: pip install 'dpmerf[sql]'. Or ask in words: mean of age by ward"
        ) from None
    try:
        trees = statements(text)
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise AnswerError(f"this is not SQL that can be read. {_FORM}") from None
    if len(trees) != 1:
        raise AnswerError(f"one statement is expected, and here are {len(trees)}. {_FORM}")
    tree = trees[0]
    allowed = {"expressions", "from", "from_", "where", "group"}
    if not isinstance(tree, exp.Select) or any(v for k, v in tree.args.items() if k not in allowed):
        raise AnswerError(f"only a plain SELECT is understood. {_FORM}")
    group = tree.args.get("group")
    by = [_column(e) for e in group.expressions] if group is not None else []
    where = tree.args.get("where")
    both = [] if where is None else list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    conditions = [_condition(schema, e) for e in both]
    found = []
    for selected in tree.expressions:
        wanted = selected.unalias()
        if isinstance(wanted, exp.Column):
            if wanted.name not in by:
                raise AnswerError(f"'{wanted.name}' is selected but is no group: add it to GROUP BY")
            continue
        found.append(_aggregate(schema, wanted, by, conditions))
    if not found:
        raise AnswerError(f"nothing is asked for. {_FORM}")
    return found


def _aggregate(schema: Schema, e: Any, by: list[str], where: list[Condition]) -> Question:
    from sqlglot import exp

    if isinstance(e, exp.Count) and isinstance(e.this, exp.Star):
        return question(schema, "count", by=by, where=where)
    if isinstance(e, exp.Avg) and isinstance(e.this, exp.EQ):
        return question(schema, "share", _column(e.this.this), by=by, where=where, value=_value(e.this.expression))
    if isinstance(e, exp.Quantile):
        return question(schema, "quantile", _column(e.this), by=by, where=where, q=_number(e.args.get("quantile")))
    names = {exp.Avg: "mean", exp.Sum: "sum", exp.Variance: "variance", exp.VariancePop: "variance"}
    if type(e) in names:
        return question(schema, names[type(e)], _column(e.this), by=by, where=where)
    if isinstance(e, exp.Median) or (isinstance(e, exp.Anonymous) and e.name.lower() == "median"):
        return question(schema, "quantile", _column(e.this if e.args.get("this") else None), by=by, where=where)
    raise AnswerError(f"'{e.sql()}' cannot be asked for. {_FORM}")


def _condition(schema: Schema, e: Any) -> Condition:
    from sqlglot import exp

    signs = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
    while isinstance(e, exp.Paren):
        e = e.this
    if type(e) in signs:
        return condition(schema, _column(e.this), signs[type(e)], (_value(e.expression),))
    if isinstance(e, exp.In) and e.expressions:
        return condition(schema, _column(e.this), "=", tuple(_value(v) for v in e.expressions))
    if isinstance(e, exp.Between):
        return condition(schema, _column(e.this), "from", (_value(e.args["low"]), _value(e.args["high"])))
    if isinstance(e, exp.Is) and isinstance(e.expression, exp.Null):
        return condition(schema, _column(e.this), "=", (None,))
    raise AnswerError(f"the condition '{e.sql()}' cannot be read. {_FORM}")


def _column(e: Any) -> str:
    from sqlglot import exp

    if not isinstance(e, exp.Column):
        raise AnswerError(f"a column is expected where '{e.sql() if e is not None else ''}' stands. {_FORM}")
    return str(e.name)


def _number(e: Any) -> float:
    found = None if e is None else _value(e)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise AnswerError(f"QUANTILE needs a number between 0 and 1. {_FORM}")
    return float(found)


def _value(e: Any) -> Any:
    from sqlglot import exp

    if isinstance(e, exp.Boolean):
        return bool(e.this)
    if isinstance(e, exp.Null):
        return None
    sign = -1 if isinstance(e, exp.Neg) else 1
    literal = e.this if isinstance(e, exp.Neg) else e
    if not isinstance(literal, exp.Literal):
        raise AnswerError(f"a value is expected where '{e.sql()}' stands. {_FORM}")
    if literal.is_string:
        return str(literal.this)
    text = str(literal.this)
    return sign * (int(text) if text.isdecimal() else float(text))
