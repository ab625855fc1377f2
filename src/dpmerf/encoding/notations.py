"""Notations: cells as a person declared them to be written -> cells as this program writes them.

Each cell by itself, before `cells` reads it. What is not written as declared becomes text that reads as nothing. Typed
cells keep their meaning: a number has one text whatever column holds it, and declared words for missing are found by
text or by what they read as, so that the number 999 is the word "999".
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmerf.encoding import cells, instants, listed
from dpmerf.encoding.cells import Column
from dpmerf.schema import AnyColumn, Schema
from dpmerf.schema.moment_patterns import iso_of
from dpmerf.schema.notation import BLANK, Notation

NOTHING = "not as declared"  # a text that is no number and no moment
_EPOCH = dt.datetime(1970, 1, 1)
_LONGEST = 256  # bytes of a cell that can still be a number or a moment


def as_written(table: pa.Table, schema: Schema) -> pa.Table:
    """A table in the notation that this program writes, for a reader without the declared one."""
    for name in schema.columns:
        notation = schema.notation(name)
        if notation.plain or name not in table.column_names:
            continue
        found = as_declared(table.column(name), schema.columns[name], notation)
        table = table.set_column(table.column_names.index(name), name, found)
    return table


def as_declared(array: Column, column: AnyColumn, notation: Notation) -> Column:
    """Cells of a column, ready to be read."""
    if column.notated == "number":
        return numbers_as_declared(array, notation)
    if column.notated == "moment":
        return moments_as_declared(array, notation)
    return without_missing(cells.read(array), notation)


def numbers_as_declared(column: Column, notation: Notation) -> Column:
    """Cells of a numeric column, ready to be read."""
    if notation.plain:
        return column
    array = without_missing(cells.read(column), notation)
    if array.type != pa.large_string() or not (notation.decimal != "." or notation.thousands or notation.unit):
        return array
    text = _folded(array)
    full = _number(notation)
    matched = pc.match_substring_regex(text, full)
    bare = pc.replace_substring_regex(text, full, r"\1\2\3")
    if notation.thousands:
        bare = pc.replace_substring(bare, notation.thousands, "")
    if notation.decimal != ".":
        bare = pc.replace_substring(bare, notation.decimal, ".")
    otherwise = text if notation.decimal == "." else pa.scalar(NOTHING, text.type)
    return pc.if_else(pc.is_null(array), pa.scalar(None, text.type), pc.if_else(matched, bare, otherwise))


def moments_as_declared(column: Column, notation: Notation) -> Column:
    """Cells of a date or timestamp column, ready to be read."""
    if notation.plain:
        return column
    array = without_missing(cells.read(column), notation)
    if notation.zone and pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return _local(array, notation.zone)
    if notation.date and cells.is_number(array.type):
        array = cells.text_of(array)  # 20231231, stored as a number
    if array.type != pa.large_string() or not (notation.date or notation.zone):
        return array
    encoded = _folded(array).dictionary_encode()
    read = [_iso(cell, notation) for cell in encoded.dictionary.to_pylist()]
    return pa.array(read, pa.large_string()).take(encoded.indices)


def without_missing(array: pa.Array, notation: Notation) -> pa.Array:
    """Null in place of declared words for missing."""
    if not notation.missing:
        return array
    text = pc.utf8_trim_whitespace(array) if array.type == pa.large_string() else array
    there = listed.codes(text, notation.missing) < 0
    return pc.if_else(pa.array(there), array, pa.scalar(None, array.type))


def _iso(cell: str | None, notation: Notation) -> str | None:
    found = iso_of(notation.date, cell) if cell is not None else None
    found = cell if found is None else found
    if not notation.zone or found is None or not re.search(r"(Z|[+-][0-9]{2}:[0-9]{2})$", found):
        return found
    moment = instants.of_text(found) if len(found) > len("2000-01-01") else None
    return found if moment is None else instants.text(moment + _offset(moment // instants.SECOND, notation.zone))


def _local(array: pa.Array, zone: str) -> pa.Array:
    """Moments in UTC as the local time of a zone."""
    seconds = cells.seconds(array)
    offsets = {s: _offset(int(s), zone) for s in np.unique(seconds[~np.isnan(seconds)]).tolist()}
    shifted = [None if s != s else int(s) + offsets[s] // instants.SECOND for s in seconds.tolist()]
    return pa.array(shifted, pa.int64()).cast(pa.timestamp("s"))


@lru_cache(maxsize=65_536)
def _offset(seconds: int, zone: str) -> int:
    """Nanoseconds to add to UTC; 0 at the edges of the calendar."""
    try:
        away = (_EPOCH + dt.timedelta(seconds=seconds)).replace(tzinfo=dt.UTC).astimezone(zoneinfo.ZoneInfo(zone))
    except (OverflowError, ValueError):
        return 0
    return round((away.utcoffset() or dt.timedelta()).total_seconds()) * instants.SECOND


@lru_cache(maxsize=256)
def _number(notation: Notation) -> str:
    """A number as declared; its sign (before or after the unit) and its digits are the groups."""
    group, point = re.escape(notation.thousands), re.escape(notation.decimal)
    whole = rf"[0-9]{{1,3}}(?:{group}[0-9]{{2,3}})*{group}[0-9]{{3}}|[0-9]*" if group else "[0-9]*"
    digits = rf"(?:{whole})(?:{point}[0-9]*)?(?:[eE][+-]?[0-9]{{1,3}})?"
    unit = "|".join(re.escape(u) for u in sorted(notation.unit, key=len, reverse=True))
    front, back = (rf"(?:(?:{unit}) *)?", rf"(?: *(?:{unit}))?") if unit else ("", "")
    return rf"^([+-]?) *{front}([+-]?) *({digits}){back}$"


def _folded(array: pa.Array) -> pa.Array:
    """Trimmed text with digits, marks and blanks of any width as the plain ones; what is too long is no number."""
    small = pc.less_equal(pc.binary_length(array), _LONGEST)
    short = pc.if_else(small, array, pa.scalar(NOTHING, array.type))
    plain = pc.utf8_normalize(short, form="NFKC")
    for odd, usual in (("−", "-"), ("–", "-"), ("’", "'"), ("\u200f", ""), ("\u200e", "")):
        plain = pc.replace_substring(plain, odd, usual)
    return pc.utf8_trim(plain, characters=f"{BLANK}\t\r\n")
