"""Relations when a schema is loaded: what they leave to measure, and one clear error for every wrong one."""

import json
import re
from pathlib import Path

import pytest

from dpmerf.errors import SchemaError
from dpmerf.schema import Schema
from dpmerf.schema.expressions import Call, ExpressionError, Literal, Ref, parse

COLUMNS = """
[columns.ward]
kind = "category"
values = ["surgery", "maternity", "children"]
[columns.sex]
kind = "category"
values = ["female", "male"]
[columns.code]
kind = "integer"
min = 1
max = 9
[columns.age]
kind = "integer"
min = 0
max = 110
[columns.weeks]
kind = "integer"
min = 1
max = 45
nullable = true
[columns.day]
kind = "date"
first = 2020-01-01
last = 2024-12-31
[columns.left]
kind = "timestamp"
first = 2020-01-01T00:00:00
last = 2025-06-30T00:00:00
step = 3600
clock = false
nullable = true
[columns.weight]
kind = "number"
min = 2
max = 250
decimals = 1
[columns.height]
kind = "number"
min = 30
max = 230
decimals = 1
[columns.bmi]
kind = "number"
min = 0
max = 2800
decimals = 1
[columns.heavy]
kind = "flag"
[columns.net]
kind = "number"
min = 0
max = 1000
decimals = 2
[columns.gross]
kind = "number"
min = 0
max = 1300
decimals = 2
"""


def schema(*relations: str, columns: str = COLUMNS) -> Schema:
    return Schema.parse(columns + "".join(f"\n[[relations]]\n{r}\n" for r in relations))


def test_text_becomes_a_tree() -> None:
    assert parse("a <= b + 2h") == Call("<=", (Ref("a"), Call("+", (Ref("b"), Literal(7200.0, "span")))))
    assert parse("-2 < `odd name`") == Call("<", (Literal(-2.0), Ref("odd name")))
    assert parse('x is null unless s = "f"').op == "implies"  # type: ignore[union-attr]
    assert parse("never a > 1 and b > 1").op == "not"  # type: ignore[union-attr]
    assert parse("x = y²") == parse("x == y ^ 2")


@pytest.mark.parametrize(
    "text", ["", "a +", "a = = b", "if a > 1", "f(x) = 1", "a in 3", "log(a, b) = 1", "(" * 99, "a ; b"]
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


def test_columns_that_follow_from_others_are_not_measured() -> None:
    made = schema(
        'rule = "bmi = weight / (height / 100)^2"',
        'rule = "heavy = weight > 100"',
        'lookup = "code"\nby = "ward"\ntable = { surgery = 3, maternity = 5, children = 1 }',
        'name = "stay"\nlearn = "left - day"\nmin = "0h"\nmax = "90d"',
        'rule = "net <= gross"',
    )
    assert list(made.measured.columns) == [
        "ward", "sex", "age", "weeks", "day", "stay", "weight", "height", "net", "gross after net",
    ]  # fmt: skip
    stay = made.measured.columns["stay"]
    assert (stay.min, stay.max, stay.step, stay.nullable) == (0, 90 * 86_400, 3600, True)  # type: ignore[union-attr]


def test_few_allowed_combinations_are_one_column_and_many_are_boxes() -> None:
    few = schema(
        'columns = ["ward", "sex"]\nallowed = [["surgery", "male"], ["maternity", "female"], ["children", "male"]]'
    )
    assert "ward + sex" in few.measured.columns
    assert "sex" not in few.measured.columns
    many = schema('columns = ["ward", "sex"]\nforbidden = [["maternity", "male"]]')
    assert list(many.measured.columns) == list(many.columns)
    assert len(many.program.boxes) == 1


def test_a_schema_with_relations_survives_json() -> None:
    made = schema(
        'rule = "net < gross"',
        'lookup = "code"\nby = ["ward", "sex"]\ntable = [' + ", ".join(
            f'["{w}", "{s}", 2]' for w in ("surgery", "maternity", "children") for s in ("female", "male")
        ) + "]",
        'columns = ["ward", "sex"]\nforbidden = [["maternity", "male"]]',
        'learn = "left - day"\nmin = "0h"\nmax = "90d"',
    )  # fmt: skip
    again = Schema.from_json(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert again.measured == made.measured


def test_a_schema_without_relations_is_written_as_before() -> None:
    assert "relations" not in schema().to_json()


def test_a_lookup_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("ward,code\nsurgery,3\nmaternity,5\nchildren,1\n")
    text = COLUMNS + '[[relations]]\nlookup = "code"\nby = "ward"\nfile = "codes.csv"\n'
    (tmp_path / "s.toml").write_text(text)
    made = Schema.load(tmp_path / "s.toml")
    assert "code" not in made.measured.columns
    (tmp_path / "codes.csv").unlink()
    assert Schema.from_json(made.to_json()) == made  # the facts are in the schema, not in the file
    with pytest.raises(SchemaError, match=re.escape("codes.csv")):
        Schema.load(tmp_path / "s.toml")


WRONG = {
    "unknown column": (['rule = "total = age + 1"'], "relation 1 .*no column 'total'"),
    "unknown value": (["rule = 'if ward = \"maternty\" then age > 3'"], "relation 1 .*'maternty' is not among"),
    "unknown value in a list": (['columns = ["ward", "sex"]\nforbidden = [["x", "male"]]'], "relation 1 .*'x'"),
    "unknown key": (['rule = "age <= code"\nwhy = "x"'], "why"),
    "no form": (['name = "x"'], "rule, learn, lookup or columns"),
    "wrong kind": (['rule = "age = ward"'], "relation 1 .*a number.*a category"),
    "times without a unit": (['rule = "left = day + 3"'], "relation 1 .*span"),
    "moment against number": (['rule = "day <= age"'], "relation 1 .*moment cannot be compared"),
    "text has no order": (["rule = 'if ward < \"surgery\" then age > 3'"], "relation 1 .*no order"),
    "cycle of equations": (['rule = "gross = net + 1"', 'rule = "net = gross - 1"'], "relation .*bounds|circle"),
    "cycle of orders": (['rule = "net < gross"', 'rule = "gross < net"'], "relation .*circle: .*net -> gross"),
    "itself": (['rule = "age = age + 1"'], "relation 1 .*itself"),
    "two relations for one column": (
        ['rule = "bmi = weight / (height/100)^2"', 'rule = "bmi = weight"'],
        "relation 2 .*follows already from relation 1",
    ),
    "contradiction": (
        ["rule = 'if age < 18 then ward = \"children\"'", "rule = 'if age < 18 then ward = \"surgery\"'",
         "rule = 'never age >= 18 and age <= 110 and sex in [\"female\", \"male\"]'"],
        "relation 1 .*relation 2 .*no row satisfies",
    ),
    "bounds of an equation": (['rule = "gross = net * 2"'], "relation 1 .*bounds cannot meet: .*0 to 2000"),
    "bounds of a quantity": (['learn = "left - day"\nmin = "300d"\nmax = "400d"'], "relation 1 .*bounds cannot meet"),
    "bounds of an order": (['rule = "gross + 2000 <= net"'], "relation 1 .*bounds cannot meet"),
    "min above max": (['learn = "left - day"\nmin = "9d"\nmax = "2d"'], "relation 1 .*min below max"),
    "no unit": (['learn = "left - day"\nmin = 0\nmax = 9'], "relation 1 .*90d"),
    "null where none may be": (['rule = "code = weeks"'], "relation 1 .*must be nullable"),
    "no value everywhere": (['rule = "bmi = log(net)"'], "relation 1 .*must be nullable"),
    "missing key": (['lookup = "code"\nby = "ward"\ntable = { surgery = 3 }'], "relation 1 .*'maternity' is missing"),
    "double key": (
        ['lookup = "code"\nby = "ward"\ntable = [["surgery", 3], ["surgery", 4]]'],
        "relation 1 .*'surgery' is listed twice",
    ),
    "value not declared": (
        ['lookup = "code"\nby = "ward"\ntable = { surgery = 3, maternity = 5, children = 12 }'], "relation 1 .*12",
    ),
    "a continuous key": (['lookup = "code"\nby = "net"\ntable = [[1, 1]]'], "relation 1 .*'net' cannot be a key"),
    "same of every row": (['rule = "age = 3"'], "relation 1 .*every row"),
    "one column": (['rule = "age > 3"'], "relation 1 .*one column"),
    "values of a computed column": (
        ['rule = "bmi = weight / (height/100)^2"', "rule = 'if bmi > 30 then ward = \"surgery\"'"],
        "relation 2 .*follows from other columns",
    ),
    "encoded with a logarithm": (['learn = "gross - log(weight)"\nmin = 0\nmax = 9'], "relation 1 .*[Ll]ogarithm"),
    "four columns": (
        ['columns = ["ward", "sex", "heavy", "age"]\nforbidden = [["surgery", "male", true, 1]]'],
        "`columns` of relation 1 has at most 3 entries",
    ),
    "a lookup without its file": (
        ['lookup = "code"\nby = "ward"\nfile = "nowhere.csv"'], "line 6[0-9]: relation 1: cannot read the lookup table",
    ),
    "no pattern": (['rule = "if ward then"'], "relation 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_every_wrong_relation_gets_one_error_that_names_it(case: str) -> None:
    relations, words = WRONG[case]
    with pytest.raises(SchemaError) as error:
        schema(*relations)
    assert re.search(words, str(error.value)), str(error.value)
    assert "\n" not in str(error.value)


def test_null_rules_about_computed_columns_follow_their_sources() -> None:
    columns = COLUMNS.replace("decimals = 1\n[columns.heavy]", "decimals = 1\nnullable = true\n[columns.heavy]")
    columns = columns.replace("max = 250\ndecimals = 1", "max = 250\ndecimals = 1\nnullable = true")
    made = schema(
        'rule = "bmi = weight / (height / 100)^2"', 'rule = "bmi is null exactly when weight is null"', columns=columns
    )
    assert made.program.boxes == ()  # it holds already


def test_a_strict_order_leaves_room_at_the_end() -> None:
    made = schema('rule = "code < age"', columns=COLUMNS.replace("max = 110", "max = 9"))
    assert made.measured.columns["code"].max == 8  # type: ignore[union-attr]


def test_a_computed_label_is_no_label_of_the_measured_table() -> None:
    made = schema('rule = "heavy = weight > 100"').with_label("heavy")
    assert made.measured.label is None
    assert made.with_label("ward").measured.label == "ward"
