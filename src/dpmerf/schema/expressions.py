"""Expressions: the small language in which relations are written. Text becomes a tree; it is never run as a program.

    discharged_at <= admitted + 90d        bmi = weight / (height / 100)^2
    if ward = "maternity" then sex = "female"        pregnancy_weeks is null unless sex = "female"

A column whose name is no plain word stands in backticks, text in quotes; a span of time is a number with its unit (s,
min, h, d, w), a moment is written 2024-01-31 or 2024-01-31T12:00:00.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
FUNCTIONS = {  # name -> least and most arguments
    "log": (1, 1), "log10": (1, 1), "log1p": (1, 1), "exp": (1, 1), "sqrt": (1, 1), "abs": (1, 1), "floor": (1, 1),
    "ceil": (1, 1), "round": (1, 2), "min": (2, 9), "max": (2, 9), "when": (3, 3), "years": (2, 2), "days": (1, 1),
    "hours": (1, 1), "year": (1, 1), "month": (1, 1), "weekday": (1, 1), "hour": (1, 1), "date": (1, 1),
}  # fmt: skip
COMPARED = ("=", "!=", "<", "<=", ">", ">=")
INEXACT = frozenset({"log", "log10", "log1p", "exp", "sqrt", "power"})  # rounded by the machine: never encoded with
_KEYWORDS = frozenset(
    ["if", "then", "unless", "exactly", "never", "and", "or", "not", "in", "is", "null", "true", "false"]
)
_DEEPEST = 40
_EPOCH = dt.datetime(1970, 1, 1)
_TOKEN = re.compile(
    r"""\s*(?:(?P<moment>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)
      |(?P<span>\d+(?:\.\d+)?(?:s|min|h|d|w)\b)
      |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      |(?P<text>"[^"]*"|'[^']*')
      |(?P<column>`[^`]+`)
      |(?P<word>[^\W\d²][^\W²]*)
      |(?P<mark><=|>=|!=|==|<>|[=<>+\-*/^²(),\[\]≤≥≠]))""",
    re.VERBOSE,
)
_SPELLINGS = {"==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!="}


class ExpressionError(ValueError):
    """A relation that cannot be read or cannot hold; the message says why."""


@final
@dataclass(frozen=True)
class Ref:
    """A column."""

    name: str


@final
@dataclass(frozen=True)
class Literal:
    """A constant: a number, text, flag or null; `unit` marks seconds as a span or a moment."""

    value: float | str | bool | None
    unit: str = ""


@final
@dataclass(frozen=True)
class Call:
    """An operator or function of other nodes."""

    op: str
    args: tuple[Node, ...]


Node = Ref | Literal | Call


def columns(node: Node) -> tuple[str, ...]:
    """The columns that a tree names, each once."""
    return tuple(dict.fromkeys(n.name for n in walk(node) if isinstance(n, Ref)))


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for arg in node.args if isinstance(node, Call) else ():
        yield from walk(arg)


def parse(text: str) -> Node:
    """One relation as a tree. `if`, `unless`, `exactly when` and `never` become `implies`, `iff` and `not`.

    >>> parse("total = a + 2").op
    '='
    """
    reader = _Reader(_tokens(text), text)
    found = reader.relation()
    reader.end()
    return found


def parse_value(text: str) -> Node:
    """One expression, for example of a difference to learn."""
    reader = _Reader(_tokens(text), text)
    found = reader.sum()
    reader.end()
    return found


def span_seconds(text: str) -> float | None:
    """`36h` -> seconds; None for anything else.

    >>> span_seconds("-2h")
    -7200.0
    """
    found = re.fullmatch(r"\s*(-?)\s*(\d+(?:\.\d+)?)(s|min|h|d|w)\s*", text)
    return None if found is None else (-1.0 if found[1] else 1.0) * float(found[2]) * SECONDS[found[3]]


def span_text(seconds: float) -> str:
    """A span in the largest unit that holds it whole.

    >>> span_text(7200), span_text(90_000), span_text(86_400 * 3)
    ('2h', '25h', '3d')
    """
    unit = next(
        (name for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)) if not seconds % size), "s"
    )
    return f"{seconds / SECONDS[unit]:g}{unit}"


def moment_seconds(text: str) -> float:
    """Seconds since 1970 of a written moment."""
    try:
        return (dt.datetime.fromisoformat(text) - _EPOCH).total_seconds()
    except ValueError:
        raise ExpressionError(f"{text} is no day of the calendar") from None


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"cannot read {text[at:].strip()[:20]!r}. Quote text, and set odd names in backticks")
        kind = str(match.lastgroup)
        value = match[kind]
        if kind == "word" and value in _KEYWORDS:
            kind = "mark"
        found.append((kind, _SPELLINGS.get(value, value)))
        at = match.end()
    return found


@final
class _Reader:
    """Recursive descent, loosest operator first."""

    def __init__(self, tokens: list[tuple[str, str]], text: str) -> None:
        self._tokens, self._text, self._at, self._depth = tokens, text, 0, 0

    def relation(self) -> Node:
        if self._take("if"):
            condition = self.either()
            self._expect("then")
            return Call("implies", (condition, self.either()))
        if self._take("never"):
            return Call("not", (self.either(),))
        found = self.either()
        if self._take("unless"):
            return Call("implies", (Call("not", (self.either(),)), found))
        if self._take("exactly"):
            if self._next() != ("word", "when"):
                raise ExpressionError("write `exactly when`")
            self._at += 1
            return Call("iff", (found, self.either()))
        return found

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise ExpressionError(f"cannot read on from {self._next()[1]!r}")

    def either(self) -> Node:
        found = self.both()
        while self._take("or"):
            found = Call("or", (found, self.both()))
        return found

    def both(self) -> Node:
        found = self._negated()
        while self._take("and"):
            found = Call("and", (found, self._negated()))
        return found

    def _negated(self) -> Node:
        return Call("not", (self._negated(),)) if self._take("not") else self._compared()

    def _compared(self) -> Node:
        found = self.sum()
        if self._take("is"):
            negative = self._take("not")
            self._expect("null")
            known = Call("null", (found,))
            return Call("not", (known,)) if negative else known
        negative = self._next() == ("mark", "not") and self._next(1) == ("mark", "in")
        self._at += negative
        if self._take("in"):
            self._expect("[")
            values = [self.sum()]
            while self._take(","):
                values.append(self.sum())
            self._expect("]")
            member = Call("in", (found, *values))
            return Call("not", (member,)) if negative else member
        kind, mark = self._next()
        if kind == "mark" and mark in COMPARED:
            self._at += 1
            return Call(mark, (found, self.sum_or_condition()))
        return found

    def sum_or_condition(self) -> Node:
        """The right side of `flag = x > 0` may be a comparison itself."""
        found = self.sum()
        kind, mark = self._next()
        if kind == "mark" and mark in COMPARED:
            self._at += 1
            return Call(mark, (found, self.sum()))
        return found

    def sum(self) -> Node:
        found = self._product()
        while self._next() in (("mark", "+"), ("mark", "-")):
            mark = self._pop()
            found = Call(mark, (found, self._product()))
        return found

    def _product(self) -> Node:
        found = self._signed()
        while self._next() in (("mark", "*"), ("mark", "/")):
            mark = self._pop()
            found = Call(mark, (found, self._signed()))
        return found

    def _signed(self) -> Node:
        if self._take("-"):
            inner = self._signed()
            if isinstance(inner, Literal) and isinstance(inner.value, float):
                return Literal(-inner.value, inner.unit)
            return Call("neg", (inner,))
        found = self._atom()
        if self._take("²"):
            return Call("^", (found, Literal(2.0)))
        return Call("^", (found, self._signed())) if self._take("^") else found

    def _atom(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError("it is nested too deeply")
        found = self._plain()
        self._depth -= 1
        return found

    def _plain(self) -> Node:
        kind, text = self._next()
        if kind == "":
            raise ExpressionError("it ends too early")
        self._at += 1
        match kind:
            case "number":
                return Literal(float(text))
            case "span":
                return Literal(span_seconds(text), "span")
            case "moment":
                return Literal(moment_seconds(text), "moment")
            case "text":
                return Literal(text[1:-1])
            case "column":
                return Ref(text[1:-1])
            case "word":
                return self._function(text) if self._next() == ("mark", "(") else Ref(text)
        match text:
            case "(":
                found = self.either()
                self._expect(")")
                return found
            case "null":
                return Literal(None)
            case "true" | "false":
                return Literal(text == "true")
        raise ExpressionError(f"cannot read on from {text!r}")

    def _function(self, name: str) -> Node:
        if name not in FUNCTIONS:
            raise ExpressionError(f"there is no function '{name}'. Choose from {', '.join(FUNCTIONS)}")
        self._expect("(")
        args = [self.either()]
        while self._take(","):
            args.append(self.either())
        self._expect(")")
        least, most = FUNCTIONS[name]
        if not least <= len(args) <= most:
            raise ExpressionError(f"`{name}` takes {least if least == most else f'{least} to {most}'} arguments")
        return Call(name, tuple(args))

    def _next(self, ahead: int = 0) -> tuple[str, str]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("", "")

    def _pop(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _take(self, mark: str) -> bool:
        if self._next() == ("mark", mark):
            self._at += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            seen = self._next()[1]
            raise ExpressionError(f"`{mark}` is missing" + (f" before {seen!r}" if seen else " at the end"))
