"""Odd data of persons: one rule each (docs/tutorials/histories.md). The same sums as of the data that the rule says."""

from collections.abc import Callable

import pandas as pd
import pytest
import torch

from dpmerf.methods.person_method import make_person_plan
from dpmerf.private.person_measure import measure_persons
from dpmerf.release.person_release import PersonRelease
from dpmerf.schema.person_schema import Persons
from fixed_noise import FixedNoise
from unit.test_person_release import SCHEMA, tables

Tables = dict[str, pd.DataFrame]
PLAN = make_person_plan(Persons.parse(SCHEMA), 1.0, 1e-5, rows=60)
ALONE = """
[person]
key = "id"
order = "year"
[columns.id]
kind = "id"
[columns.sex]
kind = "category"
values = ["f", "m"]
per = "person"
[columns.year]
kind = "integer"
min = 2010
max = 2029
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
"""


def given() -> Tables:
    """Of every person at most four rows in a table, so that nothing depends on the secret key."""
    found = tables(60)
    visits = found["visits"].sort_values(["id", "year"]).groupby("id").head(3)
    return {**found, "visits": visits, "notes": found["notes"].groupby("id").head(4)}


def same(a: PersonRelease, b: PersonRelease) -> bool:
    parts = [(x.sums, b.parts[name].sums) for name, x in a.parts.items()]
    return all(torch.equal(one[stage], other[stage]) for one, other in parts for stage in one)


def released(data: Tables) -> PersonRelease:
    return measure_persons(data, PLAN, noise=FixedNoise(1))


def more(table: pd.DataFrame, *rows: dict[str, object]) -> pd.DataFrame:
    return pd.concat([table, pd.DataFrame(rows)], ignore_index=True)


VISIT = {"year": 2012, "visit": 0, "age": 0, "ward": "a"}


def changed(table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Tables], Tables]:
    return lambda data: {**data, table: change(data[table])}


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(changed("visits", lambda t: more(t, {"id": 999, **VISIT}, {"id": 999, **VISIT})), id="no parent"),
        pytest.param(changed("visits", lambda t: more(t, {"id": None, **VISIT})), id="no key"),
        pytest.param(changed("people", lambda t: pd.concat([t, t.iloc[:5]])), id="a parent twice, with equal rows"),
        pytest.param(changed("visits", lambda t: t.assign(id=t.id.astype(str))), id="a key of text"),
        pytest.param(changed("visits", lambda t: t.assign(id=t.id.astype(float))), id="a key of decimals"),
        pytest.param(changed("visits", lambda t: t.sample(frac=1, random_state=1)), id="another order of rows"),
        pytest.param(changed("visits", lambda t: t.assign(visit=77, age=-5)), id="columns that are not read"),
    ],
)
def test_as_if_it_were_not_there(odd: Callable[[Tables], Tables]) -> None:
    data = given()
    assert same(released(data), released(odd(data)))


def test_a_parent_twice_counts_once() -> None:
    data = given()
    first = data["people"].iloc[0]
    other = {"id": first["id"], "sex": "m" if first["sex"] == "f" else "f", "born": 1931}
    twice = {**data, "people": more(data["people"], other)}
    one_of = [data, {**data, "people": more(data["people"].iloc[1:], other)}]
    assert sum(same(released(twice), released(each)) for each in one_of) == 1  # and always the same of the two
    turned = {**twice, "people": twice["people"].iloc[::-1]}
    assert same(released(twice), released(turned))


@pytest.mark.parametrize(("odd", "as_if"), [(None, 2010.0), (1500.0, 2010.0), (9999.0, 2029.0)])
def test_an_order_value_that_is_null_or_far_away_is_the_nearest_bound(odd: float | None, as_if: float) -> None:
    def at_first(value: float | None) -> Tables:
        data = given()
        years = data["visits"].year.astype(float)
        years.iloc[::7] = float("nan") if value is None else value
        return {**data, "visits": data["visits"].assign(year=years)}

    assert same(released(at_first(odd)), released(at_first(as_if)))
    assert not same(released(at_first(odd)), released(given()))


def test_what_is_the_persons_is_as_in_the_first_row() -> None:
    plan = make_person_plan(Persons.parse(ALONE), 1.0, 1e-5, rows=60)
    data = given()
    rows = data["visits"].merge(data["people"], on="id")
    rows = rows.assign(year=2010 + rows.groupby("id").cumcount())[["id", "sex", "year", "ward"]]
    later = rows.year > 2010
    odd = rows.assign(sex=rows.sex.where(~later, "m"))
    assert (odd.sex != rows.sex).any()
    first, second = (measure_persons(t, plan, noise=FixedNoise(1)) for t in (rows, odd))
    assert same(first, second)
