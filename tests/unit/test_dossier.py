"""The dossier: every figure follows from the release, it prints on few pages, and it says what is not protected."""

from __future__ import annotations

import datetime as dt
import io
import json
import shutil
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest

from command import dpmerf
from conftest import mixed_rows
from dpmerf import Ledger, Release, Schema, make_plan
from dpmerf.accounting.unit import Unit
from dpmerf.dossier import LedgerFacts, html, make_dossier, pdf
from dpmerf.dossier.content import _declared
from dpmerf.private.measure import measure


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, mixed_schema: Schema) -> Path:
    """A release of persons and its ledger."""
    place = tmp_path_factory.mktemp("packed")
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=500, unit=Unit.parse("person:key,2", "replace"))
    measure(mixed_rows(500), plan, ledger=Ledger.open(place / "study.ledger", 3.0, 1e-5)).save(place / "release")
    return place


def _text(data: bytes) -> tuple[int, str]:
    pypdf = pytest.importorskip("pypdf")
    reader = pypdf.PdfReader(io.BytesIO(data))
    return len(reader.pages), "\n".join(page.extract_text() for page in reader.pages)


def test_pack_writes_a_page_and_a_pdf(made: Path) -> None:
    pytest.importorskip("reportlab")
    done = dpmerf("pack", "release", "--ledger", "study.ledger", "--name", "Ward <7>", "-o", "d", "--json", cwd=made)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    pages, text = _text((made / found["pdf"]).read_bytes())
    page = (made / found["html"]).read_text()
    release = Release.load(made / "release")
    assert 2 <= pages <= 6
    for words in ("Ward <7>", release.plan.hash, "Left: ε = 2.7", "Data protection officer", "Permitted uses"):
        assert words in text or words.replace("<", "&lt;").replace(">", "&gt;") in page, words
    assert "<script" not in page and "Ward &lt;7&gt;" in page
    assert "two values of 'key' counts as two persons" in unescape(page)


def test_the_ledger_knows_what_the_data_set_is_called(made: Path, mixed_schema: Schema) -> None:
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=500)
    measure(mixed_rows(500), plan, ledger=Ledger.open(made / "named.ledger", 3.0, 1e-5, "ward 7")).save(made / "second")
    assert dpmerf("pack", "second", "--ledger", "named.ledger", "-o", "e", cwd=made).returncode == 0
    assert "ward 7" in (made / "e" / "dossier.html").read_text()


def test_without_a_ledger_it_says_so(made: Path) -> None:
    release = Release.load(made / "release")
    plain = html(make_dossier(release, name="x", hashes={}, date=dt.date(2024, 2, 29)))
    assert "No ledger was given" in plain and "2024-02-29" in plain
    other = LedgerFacts("l", 1.0, 1e-5, 0.5, ())
    assert "no entry of this plan" in html(make_dossier(release, name="x", hashes={}, ledger=other))


def test_very_many_columns_still_print_on_few_pages() -> None:
    columns = "".join(f'[columns.c{i}]\nkind = "number"\nmin = 0\nmax = 1\n' for i in range(400))
    plan = make_plan(Schema.parse(columns), 1.0, 1e-5, rows=1_000)
    table = {f"c{i}": [0.5] * 20 for i in range(400)}
    release = measure(pa.table(table), plan)
    pytest.importorskip("reportlab")
    pages, text = _text(pdf(make_dossier(release, name="wide", hashes={"a": "0" * 64})))
    assert pages <= 6 and "340 more columns" in text


def test_a_damaged_release_is_not_packed(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "release", tmp_path / "release")
    document = tmp_path / "release" / "release.json"
    document.write_text(document.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5'))
    done = dpmerf("pack", "release", cwd=tmp_path)
    assert done.returncode != 0 and done.stderr.count("\n") == 1 and not (tmp_path / "dossier.html").exists()


def test_the_card_of_persons_says_what_stays_open(made: Path) -> None:
    card = (made / "release" / "CARD.md").read_text()
    assert "nothing else" not in card and "two values of 'key'" in card and "not in the same ledger" in card


def test_relations_and_bought_facts_are_told() -> None:
    text = '[columns.a]\nkind = "integer"\nmin = 0\nmax = 9\nbought = ["max"]\n[columns.b]\nkind = "integer"\nmin = 0\n'
    plan = make_plan(Schema.parse(text + 'max = 9\n[[relations]]\nrule = "a <= b"\n'), 1.0, 1e-5, rows=100)
    told = str(_declared(plan))
    assert "a <= b" in told and "bought with a budget of their own: facts of a" in told
