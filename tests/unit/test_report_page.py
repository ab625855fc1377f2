"""The page: complete, self-contained, marked, readable."""

import itertools
import re
from importlib import resources

import pytest
import typer
from typer.testing import CliRunner

from conftest import mixed_rows
from dpmerf.accounting.unit import Unit
from dpmerf.cli.report_command import report_command
from dpmerf.errors import ArtefactError
from dpmerf.evaluate import classifiers, evaluate
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.report import ImageSection, make_report
from dpmerf.schema import Schema
from dpmerf.train import train
from fixed_noise import FixedNoise

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def model(mixed_schema):
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=1500)
    return train(measure(mixed_rows(1500), plan, noise=FixedNoise(1)), steps=40)


@pytest.fixture(scope="module")
def evaluation(model):
    few = {name: classifiers.table_classifiers()[name] for name in ("Logistic regression", "XGBoost")}
    synthetic, real = model.sample(1500, seed=1), mixed_rows(1500, seed=2)
    return evaluate(synthetic, real, model.release.plan.schema, train=mixed_rows(1500), quick=True, makers=few)


@pytest.fixture(scope="module")
def covered_page(model) -> str:
    return make_report(model.release, model).html()


@pytest.fixture(scope="module")
def full_page(model, evaluation) -> str:
    return make_report(model.release, model, real=mixed_rows(1500, seed=2), evaluation=evaluation).html()


def outside(page: str) -> list[str]:
    """Everything that could make a browser fetch something."""
    page = re.sub(r'xmlns(:xlink)?="http://www\.w3\.org/[^"]*"', "", page)
    links = re.findall(r"""(?:src|href|action|data|poster|srcset)\s*=\s*["']([^"']*)""", page)
    links += re.findall(r"url\(([^)]*)\)", page) + re.findall(r"@import[^;]*", page)
    found = [link for link in links if not link.startswith(("#", "data:"))]
    return found + re.findall(r"https?://[^\s\"'<]*", page) + re.findall(r"<(?:script|iframe|object|embed)", page)


def alternatives(page: str) -> list[str]:
    return re.findall(r'<svg role="img" aria-label="([^"]+)"', page)


@pytest.mark.parametrize("name", ["covered_page", "full_page"])
def test_nothing_outside_the_page_is_needed(name, request):
    page = request.getfixturevalue(name)
    assert outside(page) == []
    assert len(page.encode()) < 3_000_000
    assert outside('<img src="https://example.org/x.png">') and outside("<style>a{background:url(x.png)}</style>")


def test_every_picture_is_there_and_named_in_words(full_page, model):
    words = alternatives(full_page)
    assert len(words) == full_page.count("<svg")
    for start in (
        *(f"Distribution of {name}" for name in model.release.plan.schema.learned),
        *("Dependence in the real rows", "Dependence in the synthetic rows", "Dependence, difference"),
        *("Utility bars", "Training curve", "Budget shares", "Attacker&#x27;s odds", "Signal to noise"),
    ):
        assert any(w.startswith(start) for w in words), start
    assert "noise floor" in next(w for w in words if w.startswith("Training curve"))


def test_associations_have_intervals_and_bars_have_errors(covered_page, full_page):
    for page in (covered_page, full_page):
        assert "by the released tables (Cramér" in page and "95 % interval" in page
        assert "counts as released, ± twice their noise" in page
    assert "The noise exceeds the signal in" in covered_page  # ward and the random columns of this table


def test_the_card_says_what_is_promised_and_what_is_not(covered_page):
    for phrase in ("In plain words", "at\nmost <strong>55", "one row, replaced by any other", "<em>not</em> protected"):
        assert phrase in covered_page, phrase
    assert "budgets add up" in covered_page


def test_a_person_level_card_speaks_of_persons(mixed_schema):
    unit = Unit("key", 3, "add-remove")
    plan = make_plan(mixed_schema, 1.0, 1e-5, rows=400, unit=unit, preset="paper")
    page = make_report(measure(mixed_rows(400), plan, noise=FixedNoise(1))).html()
    assert "one given person" in page and "per person" in page and "noisy estimate" in page
    assert 'id="columns"' not in page  # no model, no rows: the release alone


def test_without_real_rows_nothing_needs_the_mark(covered_page):
    main = covered_page[covered_page.index("<main") :]
    assert main.count("NOT COVERED") == 1  # where the card explains the mark
    assert 'id="utility"' not in covered_page and 'id="fidelity"' not in covered_page
    assert "as released" in covered_page


def test_everything_from_real_rows_carries_the_mark(full_page):
    for anchor in ("utility", "columns", "dependence", "fidelity"):
        heading = re.search(rf'<h2 id="{anchor}-h">(.*?)</h2>', full_page)
        assert heading and "NOT COVERED" in heading[1], anchor
    for anchor in ("guarantee", "fit"):
        assert "NOT COVERED" not in re.search(rf'<h2 id="{anchor}-h">(.*?)</h2>', full_page)[1]
    gallery = full_page[full_page.index('<div class="gallery">') : full_page.index('id="dependence"')]
    assert gallery.count("<figure>") == gallery.count("NOT COVERED")
    assert all("NOT COVERED" in c for c in re.findall(r"<caption>(.*?)</caption>", _part(full_page, "fidelity")))


def _part(page: str, anchor: str) -> str:
    start = page.index(f'<section id="{anchor}"')
    return page[start : page.index("</section>", start)]


def test_test_noise_is_called_out(covered_page):
    assert "NOT PRIVATE" in covered_page


def test_the_same_inputs_give_the_same_bytes(model, covered_page):
    assert make_report(model.release, model).html() == covered_page


def test_ids_are_unique_and_every_link_has_its_target(full_page):
    ids = re.findall(r'\bid="([^"]+)"', full_page)
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'href="#([^"]+)"', full_page)) | set(re.findall(r"url\(#([^)]+)\)", full_page))
    assert targets <= set(ids)


def test_headings_tables_and_language_are_in_order(full_page):
    assert '<html lang="en">' in full_page and full_page.count("<h1") == 1
    levels = [int(n) for n in re.findall(r"<h([1-6])", full_page)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert full_page.count("<table>") == full_page.count("<thead>") and 'scope="col"' in full_page
    assert 'class="skip" href="#main"' in full_page and 'name="viewport"' in full_page


def test_names_from_the_schema_are_escaped():
    schema = Schema.parse("""
[columns."<script>alert(1)</script>"]
kind = "category"
values = ["<b>", "\\"quoted\\" & more"]
[columns.n]
kind = "integer"
min = 0
max = 3
""")
    name = "<script>alert(1)</script>"
    import pyarrow as pa

    rows = pa.table({name: ["<b>", '"quoted" & more'] * 50, "n": [0, 1, 2, 3] * 25})
    plan = make_plan(schema, 1.0, 1e-5, rows=100)
    page = make_report(measure(rows, plan, noise=FixedNoise(1)), synthetic=rows).html()
    assert "<script" not in page and "<b>" not in page and "&lt;script&gt;" in page


def test_images_have_a_place(model):
    images = ImageSection(PNG, "ten rows of synthetic digits", ("0", "1"), (0.4, 0.6), (0.45, 0.55))
    page = make_report(model.release, model, images=images).html()
    assert 'alt="ten rows of synthetic digits" src="data:image/png;base64,' in page
    assert any(w.startswith("Class balance") for w in alternatives(page)) and outside(page) == []


def test_a_model_of_another_release_is_refused(model, mixed_schema):
    other = make_plan(mixed_schema, 2.0, 1e-5, rows=1500)
    with pytest.raises(ArtefactError, match="another release"):
        make_report(measure(mixed_rows(1500), other, noise=FixedNoise(1)), model)


def test_the_command_writes_the_page(evaluation, mixed_schema, tmp_path):
    model = train(measure(mixed_rows(1500), make_plan(mixed_schema, 1.0, 1e-5, rows=1500)), steps=40)
    model.release.save(tmp_path / "release")
    model.save(tmp_path / "model")
    (tmp_path / "scores.json").write_text(evaluation.to_json())
    app = typer.Typer()
    app.command()(report_command)
    out = tmp_path / "new" / "report.html"
    folders = [str(tmp_path / "release"), str(tmp_path / "model")]
    done = CliRunner().invoke(app, [*folders, "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    scored = CliRunner().invoke(app, [*folders, "-o", str(out), "--evaluation", str(tmp_path / "scores.json")])
    assert scored.exit_code == 0 and "Is it useful?" in out.read_text(encoding="utf-8")
    (tmp_path / "scores.json").write_text("{}")
    wrong = CliRunner().invoke(app, [*folders, "-o", str(out), "--evaluation", str(tmp_path / "scores.json")])
    assert isinstance(wrong.exception, ArtefactError)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read_in_light_and_dark():
    css = resources.files("dpmerf.report").joinpath("style.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in css.split("@media")[:2])
    for theme in (light, dark):
        for ink in ("ink", "muted", "synthetic", "released", "real", "ceiling"):
            assert contrast(theme[ink], theme["card"]) >= 4.5, ink
        assert contrast(theme["ink"], theme["soft"]) >= 4.5 and contrast(theme["muted"], theme["page"]) >= 4.5
        assert contrast(theme["warn"], theme["warn-soft"]) >= 4.5
        assert contrast(theme["brand-ink"], theme["brand"]) >= 4.5
        assert contrast(theme["floor"], theme["card"]) >= 3
