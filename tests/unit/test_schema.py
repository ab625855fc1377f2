"""Schema files: every mistake is answered with its line and what to write."""

import pyarrow as pa
import pytest

from dpmerf.errors import SchemaError
from dpmerf.schema import Schema
from dpmerf.schema.draft import draft

GOOD = """label = "y"
[columns.y]
kind = "flag"
[columns.age]
kind = "integer"
min = 0
max = 9
"""


def test_reads_every_kind(mixed_schema: Schema) -> None:
    assert [c.kind for c in mixed_schema.columns.values()] == ["id", "integer", "number", "category", "date", "flag"]
    assert list(mixed_schema.learned) == ["age", "dose", "ward", "seen", "ill"]
    assert Schema.from_json(mixed_schema.to_json()) == mixed_schema


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("min = 0", "min = 20"), 4, "min below max"),
        (("max = 9", ""), 4, "`max` of column 'age' is missing"),
        (("max = 9", 'max = "?"'), 7, 'still "?"'),
        (("max = 9", "maxx = 9"), 7, "not known here"),
        (("max = 9", 'max = "nine"'), 7, "valid integer"),
        (('kind = "flag"', 'kind = "flg"'), 3, "category, flag"),
        (('kind = "flag"', ""), 2, "`kind`"),
        (('label = "y"', 'label = "z"'), 1, "not a column"),
        (("min = 0", "min = = 0"), 6, "TOML"),
    ],
)
def test_mistakes_name_the_line(change: tuple[str, str], line: int, words: str) -> None:
    with pytest.raises(SchemaError) as problem:
        Schema.parse(GOOD.replace(*change))
    assert f"line {line}" in str(problem.value), problem.value
    assert words in str(problem.value)


@pytest.mark.parametrize("name", ["age#null", "y#label", "age#bin", "#length", "#", "no#"])
def test_the_separator_of_names_is_reserved(name: str) -> None:
    """`age#null` beside a nullable `age` would be one variable with two meanings."""
    text = f'{GOOD}nullable = true\n[columns."{name}"]\nkind = "flag"\n'
    with pytest.raises(SchemaError, match=rf"line 9: column '{name}': rename it.*'#'"):
        Schema.parse(text)
    with pytest.raises(SchemaError, match="rename it"):
        Schema.from_json({"columns": {name: {"kind": "flag"}}})


@pytest.mark.parametrize(
    "column",
    [
        'kind = "category"\nvalues = []',
        'kind = "category"\nvalues = ["a", "a"]',
        'kind = "category"\nvalues = ["a", 1]',
        'kind = "category"\nvalues = ["a"]\nother = 3',
        'kind = "number"\nmin = nan\nmax = 1',
        'kind = "number"\nmin = 0\nmax = inf',
        'kind = "integer"\nmin = 0\nmax = 9\nstep = 0',
        'kind = "date"\nfirst = 2021-01-01\nlast = 2020-01-01',
        'kind = "timestamp"\nfirst = 2021-01-01T00:00:00Z\nlast = 2022-01-01T00:00:00Z',
        'kind = "id"',
    ],
)
def test_refuses_what_cannot_be_meant(column: str) -> None:
    with pytest.raises(SchemaError):
        Schema.parse(f"[columns.x]\n{column}\n")


def test_a_label_may_be_chosen_later(mixed_schema: Schema) -> None:
    assert mixed_schema.with_label("ward").label == "ward"
    assert mixed_schema.with_label(None).label is None
    with pytest.raises(SchemaError, match="not a column"):
        mixed_schema.with_label("nobody")
    with pytest.raises(SchemaError, match="is an id"):
        mixed_schema.with_label("key")


def test_a_missing_or_binary_file_is_one_clear_error(tmp_path) -> None:
    with pytest.raises(SchemaError, match="cannot read"):
        Schema.load(tmp_path / "nowhere.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="UTF-8"):
        Schema.load(tmp_path / "x.toml")


def test_a_draft_is_valid_but_for_its_gaps() -> None:
    types = {
        "a b": pa.int32(),
        "c": pa.float32(),
        "d": pa.string(),
        "e": pa.date32(),
        "f": pa.timestamp("ms"),
        "g": pa.bool_(),
        "h": pa.list_(pa.int8()),
        "i": pa.dictionary(pa.int8(), pa.string()),
        "j": None,
    }
    text = draft(types)
    with pytest.raises(SchemaError, match=r"line \d+: `min` of column 'a b' is still"):
        Schema.parse(text)
    filled = text.replace('values = ["?"]', 'values = ["x"]').replace('kind = "?"', 'kind = "flag"')
    for gap, value in (("min", "0"), ("max", "5")):
        filled = filled.replace(f'{gap} = "?"', f"{gap} = {value}")
    head, tail = filled.split("[columns.f]")
    for gap, day in (("first", "2020-01-01"), ("last", "2021-01-01")):
        head = head.replace(f'{gap} = "?"', f"{gap} = {day}")
        tail = tail.replace(f'{gap} = "?"', f"{gap} = {day}T00:00:00")
    schema = Schema.parse(f"{head}[columns.f]{tail}")
    assert list(schema.columns) == list(types)
    assert schema.columns["a b"].dtype == "int32"
