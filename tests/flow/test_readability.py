"""Never spend on nothing: files of four countries stop before the main spend unless their formats are declared."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from command import dpmerf
from dpmerf.accounting.events import composed
from dpmerf.errors import UnreadableError
from dpmerf.methods.presets import make_plan
from dpmerf.methods.readable_first import in_doubt, readable_first
from dpmerf.methods.settings import MethodSettings
from dpmerf.plan import Plan
from dpmerf.plan.queries import Readability
from dpmerf.plan.queries.readability import readable_shares
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.schema import Schema
from dpmerf.sources.rows import open_rows
from locales import COUNTRIES, GERMANY, Country, names

UNREAD = {
    "german": {"admitted", "seen", "charges", "weight", "sex", "smoker"},
    "french": {"admitted", "seen", "charges", "weight", "sex", "smoker"},
    "american": {"admitted", "seen", "charges", "sex", "smoker"},
    "japanese": {"admitted", "seen", "charges", "sex", "smoker"},
}


@pytest.mark.parametrize("country", COUNTRIES, ids=lambda c: c.name)
def test_a_file_stops_before_the_main_spend_unless_its_formats_are_declared(country: Country, tmp_path: Path) -> None:
    data, bare, whole = country.write(tmp_path / "v.csv"), tmp_path / "bare.toml", tmp_path / "whole.toml"
    bare.write_text(country.schema(declared=False), encoding="utf-8")
    whole.write_text(country.schema(), encoding="utf-8")
    ledger = tmp_path / "l"
    done = dpmerf("synth", data, "--schema", bare, "--epsilon", "1", "--ledger", ledger, "-o", tmp_path / "no")
    assert done.returncode == 4 and "main budget is unspent" in done.stderr
    assert {name for name in names() if f"'{name}':" in done.stderr} == UNREAD[country.name]
    assert not (tmp_path / "no" / "release").exists()
    (entry,) = Ledger.load(ledger).entries()
    assert entry.purpose == "readability" and composed(entry.events).mu ** 2 <= 0.0201 * 0.27**2
    assert Ledger.load(ledger).remaining_epsilon() > 0.98
    priced = tmp_path / "plan.json"
    assert dpmerf("plan", whole, "--epsilon", "0.9", "--rows", "4000", "-q", "-o", priced).returncode == 0
    done = dpmerf("release", data, "--plan", priced, "--ledger", ledger, "-o", tmp_path / "yes", "-q")
    assert done.returncode == 0, done.stderr
    assert [e.purpose for e in Ledger.load(ledger).entries()][1:] == ["readability", "release (tables)"]
    assert "| readability | 2% |" in (tmp_path / "yes" / "CARD.md").read_text()
    assert dpmerf("verify", tmp_path / "yes", "--ledger", ledger).returncode == 0
    for column in readable_shares(Release.load(tmp_path / "yes")):
        assert column.read + column.null > 0.8


def test_declared_formats_give_synthetic_rows(tmp_path: Path) -> None:
    data, schema = GERMANY.write(tmp_path / "v.csv"), tmp_path / "s.toml"
    schema.write_text(GERMANY.schema(), encoding="utf-8")
    done = dpmerf("synth", data, "--schema", schema, "--epsilon", "2", "-q", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    rows = pa.csv.read_csv(tmp_path / "out" / "synthetic.csv").to_pandas()
    assert 1000 < rows["charges"].mean() < 2600 and 60 < rows["weight"].mean() < 90
    assert 0.4 < (rows["sex"] == "female").mean() < 0.75


def _plans(epsilon: float, rows: int, table: pa.Table) -> Plan:
    schema = Schema.parse('[columns.n]\nkind = "integer"\nmin = 0\nmax = 9\n[columns.ok]\nkind = "flag"\n')
    source = open_rows(table)
    plan = make_plan(schema, epsilon, 1e-5, rows=rows)
    return readable_first(plan, in_doubt(schema, source.fields, source.guessed_types))


def _table(unread: int, rows: int) -> pa.Table:
    cells = ["x"] * unread + [str(i % 10) for i in range(rows - unread)]
    return pa.table({"n": cells, "ok": pa.array([i % 2 == 0 for i in range(rows)])})


def test_types_make_the_stage_needless(tmp_path: Path) -> None:
    typed = pa.table({"n": [1, 2, 3], "ok": [True, False, True]})
    assert not _plans(1.0, 3, typed).has(Readability)
    plan = _plans(1.0, 100, _table(0, 100))
    assert plan.query(Readability).columns == ("n",)
    assert plan.stage(Readability).share == MethodSettings().readability <= 0.02
    assert math.isclose(sum(p.mu**2 for p in plan.prices), plan.mu**2, rel_tol=1e-9)
    assert plan.price_of(plan.stage(Readability)).mu ** 2 <= 0.02 * plan.mu**2 * (1 + 1e-9)


def test_go_on_releases_all_the_same_and_shares_are_close() -> None:
    table = _table(3000, 4000)
    plan = _plans(4.0, 4000, table)
    with pytest.raises(UnreadableError, match="'n': about 7"):
        measure(table, plan)
    (seen,) = readable_shares(measure(table, plan, go_on=True))
    assert abs(seen.unread - 0.75) < 5 * seen.noise and abs(seen.read - 0.25) < 5 * seen.noise
    assert "could not be read" in (seen.note(plan.schema) or "")
    measure(_table(40, 4000), plan)  # a few unread cells stop nothing


def test_a_ledger_without_room_for_all_is_not_charged_for_the_look(tmp_path: Path) -> None:
    from dpmerf.errors import LedgerError

    table = _table(0, 1000)
    ledger = Ledger.open(tmp_path / "l", 0.5, 1e-5)
    with pytest.raises(LedgerError):
        measure(table, _plans(1.0, 1000, table), ledger=ledger)
    assert ledger.entries() == ()


def test_the_stage_counts_each_cell_by_itself() -> None:
    from dpmerf.encoding.readable import answers

    schema = Schema.parse(GERMANY.schema())
    texts = ["€ 2.022,01", "abc", "k. A.", "", "99.999,00", None]
    whole = answers(pa.array(texts), schema, "charges", (0.0, 10_000.0))
    assert whole.tolist() == [0, 3, 2, 2, 1, 2]
    for i, text in enumerate(texts):
        assert answers(pa.array([text], pa.string()), schema, "charges", (0.0, 10_000.0))[0] == whole[i]
    assert np.array_equal(answers(pa.array(["W", "x", "male"]), schema, "sex", None), [0, 3, 0])
