"""Words for types: what databases, codebooks and frames call a type, and which kind of column that is."""

from __future__ import annotations

import re

_KINDS = {
    "category": "text string str char varchar nvarchar nchar character bpchar clob tinytext mediumtext longtext enum "
    "categorical category factor dropdown radio select nominal ordinal object checkbox",
    "integer": "int integer int2 int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 tinyint smallint mediumint "
    "bigint hugeint serial smallserial bigserial long short byte count whole year ubigint uint usmallint utinyint",
    "number": "float double real numeric number decimal dec money smallmoney float4 float8 float16 float32 float64 "
    "float64 continuous bigdecimal slider calc doubleprecision",
    "flag": "bool boolean bit yesno truefalse logical flag",
    "date": "date date32 date64",
    "timestamp": "timestamp datetime datetime2 smalldatetime timestamptz timestamp_ntz timestamp_tz datetime64 "
    "timestampltz timestampntz datetimeoffset",
    "time": "time timetz time32 time64",
    "id": "id uuid uniqueidentifier guid key identifier rowid binary varbinary blob bytea image file json jsonb xml "
    "geometry geography array struct map inet interval",
}
_WORDS = {word: kind for kind, listed in _KINDS.items() for word in listed.split()}


def kind_of(written: str) -> str | None:
    """The kind behind a type's name, whatever brackets and additions it has; None: not known.

    >>> kind_of("VARCHAR(20)"), kind_of("numeric(10, 2)"), kind_of("timestamp without time zone"), kind_of("tint")
    ('category', 'number', 'timestamp', None)
    """
    plain = re.sub(r"[(\[<].*", "", written.strip().lower()).replace("unsigned", "").strip()
    for word in (plain.replace(" ", ""), plain.replace(" ", "_"), plain.split(" ")[0]):
        if word in _WORDS:
            return _WORDS[word]
    return None


def size_of(written: str) -> tuple[int, ...]:
    """The numbers in a type's brackets.

    >>> size_of("numeric(10, 2)")
    (10, 2)
    """
    inside = re.search(r"\(([\d,\s]+)\)", written)
    return tuple(int(n) for n in inside[1].split(",") if n.strip()) if inside else ()
