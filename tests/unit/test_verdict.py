"""The verdict before and after: lights that follow noise and damage, words with numbers, plans side by side."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from command import dpmerf
from dpmerf.accounting.unit import Unit
from dpmerf.demo import hospital
from dpmerf.evaluate.verdict import foreseen, in_words, seen
from dpmerf.evaluate.views import Rows
from dpmerf.methods.presets import make_plan
from dpmerf.methods.readable_first import readable_first
from dpmerf.plan.queries.pairs_again import PairsAgain
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.report.page import Report
from dpmerf.schema import Schema
from locales import GERMANY

SCHEMA = Schema.load(hospital.SCHEMA)


def _plan(rows: int, epsilon: float, unit: str = "row"):  # type: ignore[no-untyped-def]
    return make_plan(SCHEMA, epsilon, 1e-5, rows=rows, unit=Unit.parse(unit))


def test_a_plan_says_what_will_be_visible() -> None:
    good, bad = foreseen(_plan(20_000, 1.0)), foreseen(_plan(5_000, 1.0, "person:patient_id,10"))
    assert good.colour == "green" and good.visible[0] == 14
    assert bad.colour == "red" and "Only noise" in " ".join(in_words(bad))
    assert good.group is not None and bad.group is not None and good.group < 200 < bad.group
    errors = [foreseen(_plan(5_000, e)).columns[0].error for e in (0.1, 0.3, 1.0, 3.0)]
    assert errors == sorted(errors, reverse=True)


def test_a_plan_leaves_out_what_would_be_only_noise() -> None:
    def three_way(rows: int, epsilon: float) -> bool:
        blocks = [b["name"] for s in _plan(rows, epsilon).summary()["stages"] for b in s["blocks"]]
        return any("3-way" in name for name in blocks)

    assert three_way(20_000, 1.0) and not three_way(5_000, 0.1)


def test_the_foreseen_error_is_the_real_one() -> None:
    """Total variation between released one-way tables and the rows they were made from, over columns."""
    table = hospital.hospital().slice(0, 8_000)
    release = measure(table, _plan(8_000, 0.5))
    real = Rows.read(table, SCHEMA, "table")
    ratios = []
    for light in foreseen(release.plan).columns:
        name = light.columns[0]
        if name in ("ward", "insurance", "sex", "diabetes", "smoker"):
            found = [m for m in release.measurements if m.dense is None and name in m.columns]
            m = min(found, key=lambda m: m.sigma**2 * m.cells)
            at = m.columns.index(name)
            others = [i for i in range(m.values.dim()) if i != at]  # none in a histogram
            shares = (m.values.sum(dim=others) if others else m.values).numpy() / 8_000
            apart = abs(shares - real.coded(name).shares()).sum() / 2
            ratios.append(apart / light.error)
    assert len(ratios) >= 4 and 0.2 < sum(ratios) / len(ratios) < 4


@pytest.fixture(scope="module")
def ruined(tmp_path_factory: pytest.TempPathFactory) -> Release:
    path = GERMANY.write(tmp_path_factory.mktemp("de") / "v.csv")
    schema = Schema.parse(GERMANY.schema(declared=False))
    plan = readable_first(make_plan(schema, 1.0, 1e-5, rows=4_000), schema.needed)
    return measure(path, plan, go_on=True)


def test_a_ruined_file_gets_red_lights(ruined: Release) -> None:
    found = seen(ruined)
    assert found.colour == "red"
    red = {c.columns[0] for c in found.columns if not c.visible}
    assert red >= {"admitted", "charges", "weight", "sex", "smoker"} and "visits" not in red
    assert any("null" in w for c in found.columns if c.columns == ("charges",) for w in c.why)


def test_the_first_screen_answers_whether_it_can_be_used(ruined: Release) -> None:
    page = Report(ruined).html()
    assert page.index("Can I use it?") < page.index("What is promised")
    assert "✕ noise" in page and "Do not use it for" in page and "#part" not in page and "#read" not in page


def test_synthetic_rows_that_depart_from_the_release_are_told() -> None:
    table = hospital.hospital().slice(0, 4_000)
    release = measure(table, _plan(4_000, 3.0))
    wrong = table.set_column(table.column_names.index("sex"), "sex", pa.array([table["sex"][0].as_py()] * 4_000))
    light = next(c for c in seen(release, wrong).columns if c.columns == ("sex",))
    assert light.colour == "yellow" and "depart" in light.why[0]


def test_plans_side_by_side_on_the_command_line(tmp_path: Path) -> None:
    hospital.write(tmp_path / "h.parquet")
    schema = tmp_path / "h.toml"
    told = ("plan", schema, "--epsilon", "1", "--rows", "5000", "--compare", "epsilon=0.1")
    done = dpmerf(*told, "--compare", "unit=person:patient_id,10")
    assert done.returncode == 0, done.stderr
    assert "Side by side" in done.stdout and "Verdict: green" in done.stdout and "red" in done.stdout
    found = json.loads(dpmerf(*told, "--json").stdout)
    assert found["visible"]["columns_visible"] == 14 and len(found["compared"]) == 2
    assert dpmerf(*told, "--compare", "colour=blue").returncode == 2


def test_a_close_fit_to_ruined_cells_is_not_praised(ruined: Release) -> None:
    page = Report(ruined).html()
    assert "says nothing good about the rows" in page and "Loss ÷ noise floor" not in page
    assert "#part" not in page and "#null" not in page and "#read" not in page


def test_no_pair_counts_on_being_measured_again() -> None:
    """Which pairs are measured again is not known to a plan: it says how many, and calls none of them visible."""
    plan = _plan(2_000, 1.0)
    found = foreseen(plan)
    assert plan.has(PairsAgain) and 2 * plan.query(PairsAgain).count <= len(found.pairs)
    assert 0 < found.again <= plan.query(PairsAgain).count
    assert f"up to {found.again} more" in in_words(found)[0]
    same = {round(p.error, 9) for p in found.pairs if "readmitted" not in p.columns}
    assert len(same) == 1


def test_the_light_of_a_pair_is_the_noise_of_its_counts(ruined: Release) -> None:
    light = next(p for p in seen(ruined).pairs)
    tables = [m for m in ruined.measurements if m.dense is None and set(light.columns) <= set(m.columns)]
    precision = sum(1 / m.sigma**2 for m in tables if len(m.columns) == 2)
    assert light.error == pytest.approx(2 / precision**0.5 / 4_000, rel=1e-6)
