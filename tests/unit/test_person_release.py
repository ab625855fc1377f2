"""Persons from plan to synthetic tables: priced before a row is read, charged once, checked, and joined by keys."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmerf.accounting.gaussian import delta_of
from dpmerf.errors import ArtefactError, DataError, LedgerError, PlanError
from dpmerf.methods.person_method import make_person_plan
from dpmerf.methods.presets import make_plan
from dpmerf.person_model import PersonModel, train_persons
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.plan.queries import Histograms, Tables
from dpmerf.private.ledger import Ledger
from dpmerf.private.person_measure import measure_persons
from dpmerf.release.person_release import PersonRelease, verify_persons
from dpmerf.schema.person_schema import Persons

SCHEMA = """
[person]
key = "id"
table = "people"
[tables.people.columns.id]
kind = "id"
pattern = "P[0-9]{5}"
[tables.people.columns.sex]
kind = "category"
values = ["f", "m"]
[tables.people.columns.born]
kind = "integer"
min = 1930
max = 2005
[tables.visits]
order = "year"
most = 4
largest = 12
counter = "visit"
[tables.visits.columns.id]
kind = "id"
pattern = "P[0-9]{5}"
[tables.visits.columns.year]
kind = "integer"
min = 2010
max = 2029
[tables.visits.columns.visit]
kind = "integer"
min = 1
max = 30
[tables.visits.columns.age]
kind = "integer"
min = 0
max = 110
[tables.visits.columns.ward]
kind = "category"
values = ["a", "b", "c"]
[[tables.visits.relations]]
rule = "age = year - born"
[[tables.visits.relations]]
rule = 'if sex = "m" then ward != "c"'
[tables.notes.columns.id]
kind = "id"
[tables.notes.columns.kind]
kind = "category"
values = ["x", "y"]
"""


def tables(persons: int = 1_500, seed: int = 0) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    ids = np.arange(persons) + 7
    sex = rng.choice(["f", "m"], persons)
    born = rng.integers(1940, 2000, persons)
    n = np.minimum(rng.poisson(1.5, persons), 9)
    who = np.repeat(np.arange(persons), n)
    place = np.arange(len(who)) - np.repeat(np.cumsum(n) - n, n)
    year = 2010 + np.repeat(rng.integers(0, 6, persons), n) + place
    stay = np.repeat(rng.integers(0, 2, persons), n)
    ward = np.where(rng.random(len(who)) < 0.9, np.array(["a", "b"])[stay], np.where(sex[who] == "f", "c", "a"))
    people = pd.DataFrame({"id": ids, "sex": sex, "born": born})
    visits = pd.DataFrame({"id": ids[who], "year": year, "visit": 0, "age": 0, "ward": ward})
    notes = pd.DataFrame({"id": rng.choice(ids, persons), "kind": rng.choice(["x", "y"], persons)})
    return {"people": people, "visits": visits.sample(frac=1, random_state=seed), "notes": notes}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[PersonRelease, Path]:
    folder = tmp_path_factory.mktemp("persons")
    plan = make_person_plan(Persons.parse(SCHEMA), 5.0, 1e-5, rows=1_500)
    release = measure_persons(tables(), plan, ledger=Ledger.open(folder / "l", 5.0, 1e-5))
    release.save(folder / "release")
    return release, folder


def test_the_price_is_known_before_a_row_is_read_and_holds_for_all_parts() -> None:
    plan = make_person_plan(Persons.parse(SCHEMA), 1.0, 1e-5, rows=1_500)
    assert list(plan.parts) == ["people", "visits", "notes"]
    assert 0.97e-5 < delta_of(plan.mu, 1.0) + plan.discrete_delta <= 1e-5  # nearly all of the budget, and no more
    assert all(part.unit.sensitivity(1.0, 2**0.5) == 2**0.5 for part in plan.parts.values())  # as one row's
    assert PersonPlan.from_json(json.loads(json.dumps(plan.to_json()))).hash == plan.hash


def test_what_follows_what_and_how_many_rows_there_are_is_measured_sharper_at_the_same_price() -> None:
    plan = make_person_plan(Persons.parse(SCHEMA), 1.0, 1e-5, rows=1_500)
    visits, people = plan.parts["visits"], plan.parts["people"]
    tables, histograms = visits.query(Tables), people.query(Histograms)
    heavy = dict(zip(tables.pairs, tables.pair_weights, strict=True))
    assert {pair for pair, w in heavy.items() if w > 1} == {("ward", "ward before")}
    counted = {n for n, w in zip(histograms.columns, histograms.weights, strict=True) if w > 1}
    assert counted == set(histograms.whole) == {"number of visits", "number of notes"}
    for part in (visits, people):
        phi = part.query(Tables).nominal(part)
        assert phi.norm_bound == pytest.approx(1.0) and phi.diameter == pytest.approx(2**0.5)
    known = json.loads(json.dumps(plan.to_json()))
    assert PersonPlan.from_json(known) == plan
    recipe = known["parts"][1]["plan"]["stages"][1]["recipe"]
    recipe["pair_weights"].append(1.0)
    with pytest.raises(PlanError, match="weights for"):
        PersonPlan.from_json(known)
    assert "pair_weights" not in make_plan(visits.schema, 1.0, 1e-5).to_json()["stages"][1]["recipe"]  # as ever


@pytest.mark.parametrize("change", ["epsilon", "unit", "columns", "parts"])
def test_a_plan_that_was_changed_is_refused(change: str) -> None:
    data = json.loads(json.dumps(make_person_plan(Persons.parse(SCHEMA), 1.0, 1e-5).to_json()))
    match change:
        case "epsilon":
            data["parts"][1]["plan"]["epsilon"] = 1.0
        case "unit":
            data["parts"][1]["plan"]["unit"]["max_rows"] = 2
        case "columns":
            data["parts"][1]["plan"]["schema"]["columns"]["gap"]["max"] = 5
        case "parts":
            data["parts"].pop()
    with pytest.raises((PlanError, ArtefactError)):
        PersonPlan.from_json(data)


def test_one_charge_for_all_parts_and_none_after_it(released: tuple[PersonRelease, Path]) -> None:
    release, folder = released
    ledger = Ledger.load(folder / "l")
    (entry,) = ledger.entries()
    assert release.charge is not None and release.charge.entry == entry.hash
    with pytest.raises(LedgerError):
        measure_persons({"people": "nowhere.csv"} | tables(20), release.plan, ledger=ledger)


def test_the_release_is_verified_and_changes_are_refused(released: tuple[PersonRelease, Path], tmp_path: Path) -> None:
    release, folder = released
    found, signer = verify_persons(folder / "release")
    assert found.plan.hash == release.plan.hash and signer is None
    assert "as much as one row" in (folder / "release" / "CARD.md").read_text()
    release.save(tmp_path / "r")
    document = json.loads((tmp_path / "r" / "persons.json").read_text())
    document["guarantee"]["epsilon"] = 0.1
    (tmp_path / "r" / "persons.json").write_text(json.dumps(document))
    with pytest.raises(ArtefactError, match="changed"):
        verify_persons(tmp_path / "r")


def test_persons_keep_what_is_theirs_and_keys_join(released: tuple[PersonRelease, Path], tmp_path: Path) -> None:
    release, _ = released
    model = train_persons(release, seed=3, steps=40)
    model.save(tmp_path / "model")
    made = PersonModel.load(tmp_path / "model").sample(1_000)
    assert all(made[t].equals(again) for t, again in model.sample(1_000).items())
    real, synthetic = tables(), {name: table.to_pandas() for name, table in made.items()}
    people, visits = synthetic["people"], synthetic["visits"]
    assert people.id.is_unique and people.id.str.fullmatch("P[0-9]{5}").all() and len(people) == 1_000
    assert set(visits.id) <= set(people.id)
    assert set(synthetic["notes"].id.astype(int)) <= set(range(1, 1_001))
    assert list(visits.columns) == ["id", "year", "visit", "age", "ward"]
    joined = visits.merge(people, on="id")
    assert (joined.age == joined.year - joined.born).all() and not ((joined.sex == "m") & (joined.ward == "c")).any()
    assert (visits.groupby("id").cumcount() + 1 == visits.visit).all()
    assert (visits.groupby("id").year.diff().dropna() >= 0).all()
    share = [1 - d["visits"].id.nunique() / len(d["people"]) for d in (real, synthetic)]
    assert abs(share[0] - share[1]) < 0.06  # persons without rows are persons, too
    stays = [_same(d["visits"].sort_values(["id", "year"], kind="stable")) for d in (real, synthetic)]
    assert abs(stays[0] - stays[1]) < 0.12 and stays[1] > 0.6  # a ward follows the ward before it


def _same(visits: pd.DataFrame) -> float:
    last = visits.groupby("id").ward.shift()
    return float((last == visits.ward)[last.notna()].mean())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("notes"), "the table 'notes' is missing"),
        (lambda t: t.update(more=t["notes"]), "no table 'more'"),
        (lambda t: t.update(notes="no/such/file.csv"), "no/such/file.csv"),
        (lambda t: t.update(notes=t["notes"].drop(columns="id")), "'id'"),
    ],
)
def test_bad_tables_are_refused_before_anything_is_spent(tmp_path: Path, change, said: str) -> None:  # type: ignore[no-untyped-def]
    given: dict[str, object] = dict(tables(30))
    change(given)
    ledger = Ledger.open(tmp_path / "l", 1.0, 1e-5)
    with pytest.raises(DataError, match=said):
        measure_persons(given, make_person_plan(Persons.parse(SCHEMA), 1.0, 1e-5), ledger=ledger)
    assert not ledger.entries()
