"""Notation: how the cells of a table are written, declared by a person. Public facts, as everything in a schema.

A notation turns the text of a cell into the text that `encoding.cells` reads. It is a function of that cell alone.
"""

from __future__ import annotations

import codecs
import unicodedata
import zoneinfo
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from dpmerf.schema.moment_patterns import check_patterns

BLANK, APOSTROPHE = " ", "'"
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|"}


class Notation(BaseModel):
    """How the cells of a column are written. A column's own notation stands before the table's, key by key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    decimal: str = "."  # mark between whole and fraction
    thousands: str = ""  # mark between groups of digits; a blank is a blank of any width
    unit: tuple[str, ...] = ()  # what may stand before or after a number: "€", "EUR"
    date: tuple[str, ...] = ()  # patterns of dates and moments: "%d.%m.%Y"; ISO is always read
    zone: str = ""  # moments with an offset become the local time of this zone; empty: UTC
    missing: tuple[str, ...] = ()  # words for a cell without a value, besides an empty one

    @field_validator("unit", "date", "missing", mode="before")
    @classmethod
    def _several(cls, told: Any) -> Any:
        return (told,) if isinstance(told, str) else tuple(told) if isinstance(told, list) else told

    @field_validator("decimal")
    @classmethod
    def _decimal_mark(cls, mark: str) -> str:
        if mark not in (".", ",", "٫"):
            raise ValueError('write decimal = "," or decimal = "."')
        return mark

    @field_validator("thousands")
    @classmethod
    def _thousands_mark(cls, mark: str) -> str:
        plain = {"’": APOSTROPHE, "\u00a0": BLANK, "\u202f": BLANK, "\u2009": BLANK}.get(mark, mark)
        if plain not in ("", ".", ",", BLANK, APOSTROPHE, "_", "٬"):
            raise ValueError("""write thousands as one of "." "," " " "'" "_", or leave it out""")
        return plain

    @field_validator("unit")
    @classmethod
    def _no_digits(cls, units: tuple[str, ...]) -> tuple[str, ...]:
        if any(not u.strip() or any(c.isdigit() for c in u) or len(u) > 32 for u in units):
            raise ValueError('a unit is a short text without digits, as in unit = ["€", "EUR"]')
        return tuple(unicodedata.normalize("NFKC", u).strip() for u in units)

    @field_validator("date")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        check_patterns(patterns)
        return patterns

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            if zone:
                zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"there is no time zone '{zone}'. Write one such as Europe/Berlin") from None
        return zone

    @field_validator("missing")
    @classmethod
    def _words(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(w.strip() for w in words if w.strip()))  # an empty cell has no value anyway

    @model_validator(mode="after")
    def _marks_differ(self) -> Notation:
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both '{self.decimal}': they must differ")
        return self

    def under(self, table: Notation) -> Notation:
        """This notation, and the table's where this one says nothing."""
        told = {key: getattr(table, key) for key in Notation.model_fields if key in table.model_fields_set}
        return Notation(**{**told, **{key: getattr(self, key) for key in self.model_fields_set}})

    @property
    def plain(self) -> bool:
        """Nothing is declared: cells are written as the program itself writes them."""
        return self == Notation()


class Reading(Notation):
    """How a file is written: its cells, and what stands around them."""

    delimiter: str = ""  # of a CSV file; empty: guessed from the header line
    encoding: str = ""  # of a CSV file; empty: guessed from the header line, UTF-8 where it does not tell
    sheet: str = ""  # of an Excel file that has several
    table: str = ""  # of a database
    query: str = ""  # of a database, in place of a table

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, mark: str) -> str:
        mark = DELIMITERS.get(mark, mark)
        if mark and (len(mark) != 1 or mark in '"\r\n' or mark.isalnum() or ord(mark) > 127):
            raise ValueError('write one character, as in delimiter = ";", or tab, comma, semicolon, pipe')
        return mark

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, name: str) -> str:
        try:
            if name and not codecs.lookup(name)._is_text_encoding:
                raise LookupError
        except LookupError:
            raise ValueError(f"there is no encoding '{name}'. Write utf-8, cp1252, iso-8859-1, shift_jis, …") from None
        return name

    @property
    def cells(self) -> Notation:
        """Its cells alone."""
        return Notation().under(self)
