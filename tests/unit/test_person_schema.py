"""Schemas of persons: one table or several, read, refused with one clear sentence, and stored."""

import pytest

from dpmerf.errors import SchemaError
from dpmerf.schema import Schema
from dpmerf.schema.extended_schema import extended, person_table
from dpmerf.schema.person_schema import Persons, load_schema

ONE = """
[person]
key = "pid"
order = "day"
most = 3
largest = 9
counter = "visit"
[columns.pid]
kind = "id"
pattern = "P[0-9]{4}"
[columns.sex]
kind = "category"
values = ["f", "m"]
per = "person"
[columns.born]
kind = "date"
first = 1920-01-01
last = 2019-01-01
per = "person"
[columns.day]
kind = "date"
first = 2019-01-01
last = 2020-12-31
[columns.visit]
kind = "integer"
min = 1
max = 40
[columns.age]
kind = "integer"
min = 0
max = 110
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
[columns.score]
kind = "number"
min = 0
max = 10
nullable = true
[[relations]]
rule = "age = years(born, day)"
[[relations]]
rule = 'if sex = "m" then ward != "c"'
"""
SEVERAL = """
[person]
key = "id"
table = "people"
[tables.people.columns.id]
kind = "id"
[tables.people.columns.age]
kind = "integer"
min = 0
max = 110
[tables.labs]
order = "days"
most = 4
largest = 50
[tables.labs.columns.id]
kind = "id"
[tables.labs.columns.days]
kind = "integer"
min = -1000
max = 1000
[tables.labs.columns.value]
kind = "number"
min = 0
max = 100
[tables.events.columns.id]
kind = "id"
[tables.events.columns.event]
kind = "category"
values = ["x", "y"]
"""


def test_extended_rows_hold_the_row_the_row_before_and_the_person() -> None:
    persons = Persons.parse(ONE)
    (history,) = persons.histories
    found = extended(history)
    assert list(found.columns) == [
        "pid", "sex", "born", "number of rows", "step", "day", "day before", "gap", "visit", "ward",
        "score", "ward before", "score before",
    ]  # fmt: skip
    assert found.label == "step"
    assert found.columns["gap"].max == 730 and found.columns["gap"].nullable
    assert found.columns["ward before"].nullable and not found.columns["ward"].nullable
    assert len(found.relations) == 10  # the rule, and what is null when; age follows from what is measured


def test_several_tables_are_one_history_each_beside_the_persons_own() -> None:
    persons = Persons.parse(SEVERAL)
    assert persons.tables == ("people", "labs", "events")
    labs, events = persons.histories
    assert labs.measured_persons == ("age",) and labs.measured_rows == ("value",) and labs.written[0] == "id"
    assert list(person_table(persons).columns) == ["id", "age", "number of labs", "number of events"]
    assert extended(events).label is None and "gap" not in extended(events).columns  # a set: no row before


@pytest.mark.parametrize("text", [ONE, SEVERAL])
def test_stored_and_read_again(text: str) -> None:
    persons = Persons.parse(text)
    assert Persons.from_json(persons.to_json()) == persons


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (ONE, 'key = "pid"', 'key = "ward"', "must be a column of kind"),
        (ONE, 'order = "day"', 'order = "ward"', "orders rows"),
        (ONE, 'order = "day"', 'order = "nope"', "is no column"),
        (ONE, 'order = "day"', 'order = "age"', "follow from no relation"),
        (ONE, 'order = "day"', 'order = "score"', "have a value in every row"),
        (ONE, "most = 3", "most = 0", "most"),
        (ONE, "most = 3", "many = 3", "many"),
        (ONE, 'counter = "visit"', 'counter = "ward"', "counter"),
        (ONE, 'if sex = "m" then ward != "c"', 'if ward = "c" then sex = "f"', "after `if`"),
        (ONE, '[columns.score]\nkind = "number"', '[columns.score]\nkind = "number"\nper = "house"', "`per`"),
        (ONE, "[columns.score]", '[columns."ward before"]', "kept for histories"),
        (
            ONE,
            "min = 0\nmax = 110\n[columns.ward]",
            'min = 0\nmax = 110\nper = "person"\n[columns.ward]',
            "follow from",
        ),
        (SEVERAL, 'table = "people"', 'table = "nobody"', "one row a person"),
        (SEVERAL, "[tables.labs.columns.value]", "[tables.labs.columns.age]", "both have a column 'age'"),
        (SEVERAL, "max = 100\n[tables.events", "maximum = 100\n[tables.events", "line 24"),
        (SEVERAL, "[person]", 'label = "x"\n[person]', "outside the tables"),
    ],
)
def test_one_clear_error(text: str, old: str, new: str, said: str) -> None:
    assert old in text
    with pytest.raises(SchemaError, match=said.replace("[", r"\[")):
        for history in Persons.parse(text.replace(old, new)).histories:
            extended(history)


def test_schemas_of_one_row_a_person_say_what_to_do(tmp_path) -> None:
    (tmp_path / "s.toml").write_text(ONE)
    assert isinstance(load_schema(tmp_path / "s.toml"), Persons)
    with pytest.raises(SchemaError, match="persons with several rows"):
        Schema.load(tmp_path / "s.toml")
