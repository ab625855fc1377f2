"""Bought facts: what cells look like, what follows from noisy looks, and the artefact that holds them."""

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from command import dpmerf as run
from dpmerf.accounting.events import composed
from dpmerf.accounting.gaussian import compose, delta_of
from dpmerf.accounting.unit import Unit
from dpmerf.discovery import Discovery, Purchase
from dpmerf.discovery.looks import AFTER, PARTS, TEXT, digits, look, parts, scale
from dpmerf.discovery.purchase import NUMBER
from dpmerf.discovery.ranges import Coarse, Noisy, bounds
from dpmerf.errors import ArtefactError, LedgerError, PlanError
from dpmerf.methods.presets import make_plan
from dpmerf.private.discover import KEPT, discover, public_fields
from dpmerf.private.ledger import Ledger
from dpmerf.schema.notation import Notation, Reading
from dpmerf.sources.rows import Rows, open_rows
from locales import GERMANY

ROWS = 20_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw = np.random.default_rng(3)
    days = [dt.date(2022, 3, 1) + dt.timedelta(days=int(d)) for d in draw.integers(0, 700, ROWS)]
    ward = draw.choice(["north", "south", "east", "rare"], ROWS, p=[0.5, 0.3, 0.1995, 0.0005])
    return pa.table(
        {
            "age": draw.integers(18, 95, ROWS).astype(str),
            "year": draw.integers(1990, 2021, ROWS).astype(str),
            "weight": [f"{w:.1f}" if w < 110 else None for w in draw.normal(75, 25, ROWS).clip(30, 199)],
            "bill": [str(100 * int(b)) for b in draw.gamma(2, 20, ROWS)],
            "admitted": [day.isoformat() for day in days],
            "seen": [
                f"{day}T{h:02}:{m:02}:00" for day, h, m in zip(days, *draw.integers(0, 24, (2, ROWS)), strict=True)
            ],
            "ward": ward,
            "smoker": draw.choice(["yes", "no"], ROWS),
            "patient": [f"P{i:06}" for i in range(ROWS)],
        }
    )


def _purchase(rows: Rows, epsilon: float = 2.0, unit: Unit | None = None, count: int = ROWS) -> Purchase:
    return Purchase.of(public_fields(rows), None, epsilon, None, unit or Unit(), count, Reading())


@pytest.fixture(scope="module")
def found(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Discovery:
    import pyarrow.csv

    path = tmp_path_factory.mktemp("csv") / "visits.csv"
    pyarrow.csv.write_csv(table, path)
    rows = open_rows(path)
    return discover(rows, _purchase(rows))


def test_facts_are_found_from_names_alone(found: Discovery) -> None:
    facts = {name: f.written() for name, f in found.facts.columns.items()}
    assert {name: f["kind"] for name, f in facts.items()} == {
        "age": "integer", "year": "integer", "weight": "number", "bill": "integer", "admitted": "date",
        "seen": "timestamp", "ward": "category", "smoker": "flag", "patient": "id",
    }  # fmt: skip
    for name, low, high in (("age", 18, 94), ("year", 1990, 2020), ("weight", 30, 110)):
        least, most = facts[name]["min"], facts[name]["max"]
        assert least <= low * 1.01 and most >= high * 0.99 and most - least <= 4.5 * (high - low), (
            name
        )  # 2.1, once in a while twice that
    assert facts["weight"]["max"] == round(facts["weight"]["max"], 1)
    assert facts["weight"]["decimals"] == 1 and facts["weight"]["nullable"] is True and not facts["age"]["nullable"]
    assert facts["bill"]["step"] == 100
    first, last = facts["admitted"]["first"], facts["admitted"]["last"]
    assert first <= dt.date(2022, 3, 10) and last >= dt.date(2024, 1, 20) and (last - first).days <= 3600
    assert facts["seen"]["step"] == 60
    assert set(facts["ward"]["values"]) == {"north", "south", "east"}  # ten rows are not named
    assert facts["ward"]["bought"] == ["values", "nullable"]
    schema = found.schema()
    assert schema.columns["age"].bought == ("min", "max", "nullable")
    assert json.dumps(schema.to_json()["columns"]["ward"]["bought"])


def _purchase_of_adult() -> Purchase:
    fields = {name: pa.int64() for name in ("age", "fnlwgt", "education_num", "gain", "loss", "hours")}
    fields |= {f"text {i}": pa.string() for i in range(9)}
    return Purchase.of(fields, None, 0.1, None, Unit(), 32_561, Reading())


def test_a_thousandth_of_adult_is_less_than_the_noise_of_any_count() -> None:
    asked = _purchase_of_adult()
    whole = asked.shared_sigma("tails") * asked.shares["tails"] ** 0.5  # one count, all of the budget
    assert 45 < whole < 52 and 0.001 * asked.rows < 0.7 * whole


def test_an_end_is_generous_where_noise_hides_much() -> None:
    asked = _purchase_of_adult()
    up = Coarse(NUMBER, False, zero=True, up=(26, 26))  # 64 to 128, in parts of 8

    def end(sigma: float, *shown: int) -> float:
        counts = np.zeros(PARTS)
        counts[list(shown)] = 2_000.0
        return bounds(asked, up, Noisy(counts, sigma), asked.rows)[1]

    assert end(200.0, 0, 1, 2) == pytest.approx(1.9 * 80)  # something is at 80 or above: at most 1.9 times as far
    assert end(200.0) == pytest.approx(1.9 * 64) and end(200.0, *range(8)) == 2.5 * 64
    assert end(5.0, 0, 1, 2) <= 104  # hardly any noise: the tail is followed


def test_zero_is_an_end_where_it_is_near() -> None:
    asked = _purchase_of_adult()
    far = Coarse(NUMBER, False, up=(26, 27))  # 64 to 256, in 64 parts of 3

    def low(first: int) -> float:
        counts = np.zeros(PARTS)
        counts[first:] = 2_000.0
        return bounds(asked, far, Noisy(counts, 200.0), asked.rows)[0]

    assert low(10) == 0.0 and low(50) > 64.0


def test_a_look_is_a_function_of_the_cell() -> None:
    texts = ["3", "-0.25", "2024-01-01", "abc", "", "yes", "007", "1e300", "inf", None]
    whole = look(pa.array(texts), Notation())
    for i, text in enumerate(texts):
        one = look(pa.array([text], pa.string()), Notation())
        for view in (scale, digits, lambda seen: parts(seen, ((0.0, 2.0, 10.0),))):
            assert view(one)[0] == view(whole)[i]
    typed = scale(look(pa.array([3.0, -0.25]), Notation()))
    assert typed.tolist() == scale(whole)[:2].tolist()
    moment = scale(look(pa.array([dt.date(2024, 1, 1)]), Notation()))
    assert moment[0] == scale(whole)[2] == AFTER + 13
    assert scale(whole)[6] == TEXT  # a code, not a number


def test_an_artefact_reads_back_and_changes_are_refused(found: Discovery, tmp_path: Path) -> None:
    place = tmp_path / "bought"
    found.save(place)
    again = Discovery.load(place)
    assert again == found and again.schema_text() == found.schema_text()
    for file, old, new in (
        ("schema.toml", "min", "max"),
        ("CARD.md", "differentially", "very"),
        ("discovery.json", "north", "nord"),
    ):
        whole = (place / file).read_text()
        (place / file).write_text(whole.replace(old, new, 1))
        with pytest.raises(ArtefactError):
            Discovery.load(place)
        (place / file).write_text(whole)
    (place / "more.txt").write_text("x")
    with pytest.raises(ArtefactError, match="no part"):
        Discovery.load(place)


def test_the_ledger_is_charged_with_what_rare_values_add(table: pa.Table, tmp_path: Path) -> None:
    rows = open_rows(table.slice(0, 2000))
    purchase = _purchase(rows, 0.5, count=2000)
    ledger = Ledger.open(tmp_path / "l", 0.5, purchase.delta)
    discover(rows, purchase, ledger=ledger)
    (entry,) = ledger.entries()
    assert composed(entry.events).added >= purchase.threshold_delta > 0
    assert composed(entry.events).delta(0.5) <= purchase.delta * (1 + 1e-9)
    with pytest.raises(LedgerError):
        discover(rows, purchase, ledger=ledger)


def test_what_is_left_and_what_was_bought_make_up_the_budget(table: pa.Table) -> None:
    whole = _purchase(open_rows(table), 1.0)
    part = whole.at_most(0.1)
    plan = make_plan(_schema(), part.rest(1.0, whole.delta), whole.delta, rows=ROWS)
    extra = part.threshold_delta_at(1.0) + part.discrete_delta_at(1.0) + plan.discrete_delta_at(1.0)
    together = delta_of(compose(part.mu, plan.mu), 1.0) + extra
    assert 0.95 * whole.delta < together <= whole.delta
    assert part.mu**2 <= 0.1 * compose(part.mu, plan.mu) ** 2 * 1.02
    with pytest.raises(PlanError, match="whole budget"):
        _purchase(open_rows(table), 3.0).rest(1.0, whole.delta)


def _schema():  # type: ignore[no-untyped-def]
    from dpmerf.schema import Schema

    return Schema.parse('[columns.a]\nkind = "flag"\n[columns.b]\nkind = "integer"\nmin = 0\nmax = 9\n')


def test_parts_of_values_change_nothing(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = open_rows(table.select(["ward", "patient"]))
    purchase = _purchase(rows, 1.0)
    one = discover(rows, purchase)
    monkeypatch.setattr("dpmerf.private.discover.KEPT", KEPT // 128)
    several = discover(rows, purchase)
    for name in ("ward", "patient"):
        assert {v for v, _ in one.values[name]} == {v for v, _ in several.values[name]}


def test_persons_count_at_most_their_rows() -> None:
    names = ["one"] * 3000 + [f"p{i}" for i in range(1000)]
    rows = open_rows(pa.table({"who": names, "city": ["Ulm"] * 3000 + ["Bonn"] * 1000}))
    unit = Unit.parse("person:who,2")
    found = discover(rows, _purchase(rows, 5.0, unit, 4000))
    assert [v for v, _ in found.values["city"]] == ["Bonn"]  # one person's 3,000 rows count twice
    assert found.facts.columns["who"].kind == "id"


def test_discover_and_synth_on_the_command_line(table: pa.Table, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    data, schema = tmp_path / "a.parquet", tmp_path / "a.toml"
    pq.write_table(table.select(["age", "ward", "smoker"]).slice(0, 4000), data)
    done = run("discover", data, "--epsilon", "1", "--ledger", tmp_path / "l", "-o", schema)
    assert done.returncode == 0, done.stderr
    assert run("schema", "check", schema).returncode == 0
    assert run("verify", tmp_path / "a.discovery", "--ledger", tmp_path / "l").returncode == 0
    assert run("discover", data, "--epsilon", "1", "-o", schema).returncode != 0  # a file is in the way
    done = run("discover", data, "--epsilon", "1", "--columns", "age,nowhere", "-o", tmp_path / "b.toml")
    assert done.returncode != 0 and "no column 'nowhere'" in done.stderr
    done = run("synth", data, "--epsilon", "2", "--discover", "--ledger", tmp_path / "m", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "discovery" / "CARD.md").exists() and (tmp_path / "out" / "synthetic.parquet").exists()
    for place in ("release/CARD.md", "report.html"):  # their figures leave out what the schema's facts cost
        told = (tmp_path / "out" / place).read_text(encoding="utf-8")
        assert "were bought from rows" in told and "comes on top of this" in told, place
    assert len(Ledger.load(tmp_path / "m").entries()) == 2 and Ledger.load(tmp_path / "m").remaining_epsilon() < 0.2


def test_a_declared_notation_is_used(tmp_path: Path) -> None:
    path = GERMANY.write(tmp_path / "visits.csv", 3000)
    told = {"delimiter": ";", "encoding": "cp1252", "decimal": ",", "thousands": ".", "unit": "€", "missing": "k. A."}
    reading = Reading.model_validate({**told, "date": ["%d.%m.%Y", "%d.%m.%Y %H:%M"]})
    rows = open_rows(path, reading)
    purchase = Purchase.of(public_fields(rows), None, 10.0, None, Unit(), 3000, reading)
    kinds = {name: f.kind for name, f in discover(rows, purchase).facts.columns.items()}
    assert kinds == {
        "admitted": "date", "seen": "timestamp", "charges": "number", "weight": "number", "sex": "category",
        "smoker": "category", "visits": "integer",
    }  # fmt: skip


def test_a_part_of_a_larger_ledger_costs_as_little_delta_there() -> None:
    small = Purchase.of({"t": None}, None, 1.0, 1e-5, Unit(), 1_000, Reading())
    inside = small.within(5.0)
    assert small.threshold_delta_at(5.0) > small.delta > inside.delta
    assert inside.threshold_delta_at(5.0) == pytest.approx(small.threshold_delta)
    assert small.within(0.5) is small
