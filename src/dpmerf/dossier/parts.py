"""Parts of a printed document, free of any layout: text, tables, boxes to tick, lines to fill in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Text:
    """A paragraph; a bold opening where it has one."""

    words: str
    opening: str = ""


@final
@dataclass(frozen=True)
class Items:
    """A list; `tick` gives every item a box to tick."""

    items: tuple[str, ...]
    tick: bool = False


@final
@dataclass(frozen=True)
class Grid:
    """A table. Columns share the width by `widths`."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[float, ...]


@final
@dataclass(frozen=True)
class Blank:
    """Something for a person to write: a label and so many empty lines."""

    label: str
    lines: int = 1


@final
@dataclass(frozen=True)
class Signatures:
    """One line each for name, date and signature, by role."""

    roles: tuple[str, ...]


Part = Text | Items | Grid | Blank | Signatures


@final
@dataclass(frozen=True)
class Section:
    """A numbered part of the document."""

    title: str
    parts: tuple[Part, ...]
