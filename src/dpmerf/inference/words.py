"""Words: a question as one line of text, for the command line.

    share of readmitted by ward
    mean of age by sex where income = ">50K" and hours >= 40
    quantile 0.9 of charges where ward = surgery or cardiology
    crosstab by ward, sex

Names and values that contain a keyword or a sign are put in double quotes.
"""

from __future__ import annotations

import re
from typing import Any

from dpmerf.encoding.codec import Axis
from dpmerf.errors import AnswerError
from dpmerf.inference.questions import Condition, Question, check_column, question
from dpmerf.schema import Numeric, Schema

_TOKEN = re.compile(r'"([^"]*)"|(<=|>=|=|<|>|,)|([^\s"<>=,]+)')
_KEYWORDS = ("of", "by", "where", "and", "or", "is", "from", "to")
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}
_FORM = 'Write for example "mean of age by ward where sex = female" (see `dpmerf answer --help`)'
Token = tuple[str, str]  # ("word" | "sign" | "key", text)


def parse(schema: Schema, text: str) -> Question:
    """Read one line. What is wrong is said in one sentence."""
    tokens = _tokens(text)
    if not tokens or tokens[0][0] != "word":
        raise AnswerError(f"the question begins with what is wanted. {_FORM}")
    what, rest = tokens[0][1].lower(), tokens[1:]
    q = 0.5
    if what == "median":
        what = "quantile"
    elif what == "quantile" and rest and rest[0][0] == "word":
        q, rest = number(rest[0][1]), rest[1:]
    parts = _clauses(rest)
    column, value = None, None
    if "of" in parts:
        name, sign, values = _comparison(parts["of"])
        column = name
        if sign == "=":
            value = list(values)
        elif sign:
            raise AnswerError(f"after `of` comes a column, or column = value. {_FORM}")
    by = [_one(p) for p in _split(parts["by"], ("sign", ","))] if "by" in parts else []
    where = [condition(schema, *_comparison(p)) for p in _split(parts.get("where", []), ("key", "and")) if p]
    return question(schema, what, column, by=by, where=where, value=value, q=q)


def condition(schema: Schema, name: str, sign: str, values: tuple[Any, ...]) -> Condition:
    """column sign value; `from` has two values, low and high."""
    check_column(schema, name)
    if sign == "=" and values:
        return Condition(name, values)
    column = schema.columns[name]
    if not isinstance(column, Numeric):
        raise AnswerError(f"'{name}' is a {column.kind}: name its values with =, not a range")
    if sign == "from" and len(values) == 2:
        return Condition(name, None, values[0], values[1])
    if sign not in ("<", "<=", ">", ">=") or len(values) != 1:
        raise AnswerError(f"the condition on '{name}' cannot be read. {_FORM}")
    if values[0] is None:
        raise AnswerError(f"nothing is above or below null: write {name} = null for rows without a value")
    step = (Axis.of(column).step or 0.0) if len(sign) == 1 else 0.0  # below 40 is at most 39
    if step and isinstance(values[0], str) and not _is_number(values[0]):
        raise AnswerError(f"write <= or >= for '{name}': an open end is understood for plain numbers only")
    bound = number(values[0]) + (step if sign == ">" else -step) if step else _bound(values[0])
    return Condition(name, None, bound, None) if sign[0] == ">" else Condition(name, None, None, bound)


def number(text: Any) -> float:
    """A number as people write it."""
    if not _is_number(text):
        raise AnswerError(f"'{text}' is not a number. {_FORM}")
    return float(text)


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _bound(text: Any) -> Any:
    return float(text) if _is_number(text) else text


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for quoted, sign, word in _TOKEN.findall(text):
        if sign:
            found.append(("sign", sign))
        elif word and word.lower() in _KEYWORDS:
            found.append(("key", word.lower()))
        else:
            found.append(("word", word or quoted))
    return found


def _clauses(tokens: list[Token]) -> dict[str, list[Token]]:
    parts: dict[str, list[Token]] = {}
    current: list[Token] | None = None
    for token in tokens:
        if token[0] == "key" and token[1] in ("of", "by", "where"):
            if token[1] in parts:
                raise AnswerError(f"`{token[1]}` comes once in a question. {_FORM}")
            current = parts.setdefault(token[1], [])
        elif current is None:
            raise AnswerError(f"'{token[1]}' is not understood there. {_FORM}")
        else:
            current.append(token)
    return parts


def _split(tokens: list[Token], at: Token) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token == at:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _one(tokens: list[Token]) -> str:
    if not tokens or any(kind != "word" for kind, _ in tokens):
        raise AnswerError(f"a column name is missing or not understood. {_FORM}")
    return " ".join(text for _, text in tokens)


def _comparison(tokens: list[Token]) -> tuple[str, str, tuple[Any, ...]]:
    """(column, sign or "", values)."""
    signs = [i for i, (kind, _) in enumerate(tokens) if kind == "sign"]
    keys = [i for i, t in enumerate(tokens) if t in (("key", "is"), ("key", "from"))]
    if not signs and not keys:
        return _one(tokens), "", ()
    if keys and tokens[keys[0]][1] == "from":
        low, _, high = _partition(tokens[keys[0] + 1 :], ("key", "to"))
        return _one(tokens[: keys[0]]), "from", (_bound(_one(low)), _bound(_one(high)))
    if keys:
        if _one(tokens[keys[0] + 1 :]).lower() != "null":
            raise AnswerError(f"after `is` comes null. {_FORM}")
        return _one(tokens[: keys[0]]), "=", (None,)
    if len(signs) == 2 and all(tokens[i][1] == "<=" for i in signs):  # low <= column <= high
        low, middle, high = tokens[: signs[0]], tokens[signs[0] + 1 : signs[1]], tokens[signs[1] + 1 :]
        return _one(middle), "from", (_bound(_one(low)), _bound(_one(high)))
    if len(signs) != 1:
        raise AnswerError(f"a condition has one sign. {_FORM}")
    sign, left, right = tokens[signs[0]][1], tokens[: signs[0]], tokens[signs[0] + 1 :]
    values = tuple(None if v == [("word", "null")] else _one(v) for v in _split(right, ("key", "or")))
    if _is_number(_one(left)) and len(values) == 1 and values[0] is not None:
        return values[0], _FLIPPED[sign], (_one(left),)
    return _one(left), sign, values


def _partition(tokens: list[Token], at: Token) -> tuple[list[Token], Token, list[Token]]:
    if at not in tokens:
        raise AnswerError(f"write from LOW to HIGH. {_FORM}")
    i = tokens.index(at)
    return tokens[:i], at, tokens[i + 1 :]
