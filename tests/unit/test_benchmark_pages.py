"""The benchmarks' experiments end to end on next to nothing: they run, resume, and their pages say what was stored."""

import re

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not beside the package")

from benchmarks import (
    balog,
    claims,
    epsilon_curve,
    image_ablation,
    images_page,
    mixture,
    paper,
    peers_page,
    privbayes,
    proposition1,
    summary,
    table1_page,
)
from benchmarks.registry import FOLDER, Run
from benchmarks.store import Store

from dpmerf.generators.maxent import departures
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.tails import TailSettings
from dpmerf.generators.maxent.triples import TRIPLES
from dpmerf.methods.settings import FewRowsSettings, TablesSettings

MODELS = {"A": {"roc_auc": 0.8, "pr_auc": 0.6, "roc_auc_hard": 0.7, "pr_auc_hard": 0.5}}
RESULT = {
    "cpu_seconds": 10.0,
    "peak_mb": 300.0,
    "utility": {"task": "binary", "models": MODELS, "mean": MODELS["A"]},
    "tv1": 0.01,
    "tv2": 0.04,
    "tv3": 0.08,
}


def test_proposition1_measures_below_its_bounds(tmp_path):
    store = Store(tmp_path)
    for what, value in (("D", 50), ("n", 100), ("ε", 0.1)):
        store.write(f"proposition1/{what}", {"points": [proposition1.point(what, value, 3)]})
        point = store.read(f"proposition1/{what}")["points"][0]
        assert point["measured"] < point["tight_bound"] < point["paper_bound"]
    page = proposition1.page(store)
    assert "D = 50" in page and (tmp_path / "proposition1" / "proposition1.svg").exists()


@pytest.mark.slow
def test_balog_and_mixture_run_and_resume(tmp_path):
    store = Store(tmp_path)
    for module, only in ((balog, "reduced-set"), (mixture, "/mixture/paper/")):
        module.run(Run(store, None, quick=True, only=(only,)))
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    assert sum(len(store.lines(name)) for name in store.experiments()) == 3  # the mixture's real points too
    balog.run(Run(store, None, quick=True, only=("reduced-set",)))
    assert stored == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    assert "reduced set" in balog.page(store) and "modes" in mixture.page(store)
    assert (tmp_path / "mixture" / "mixture.svg").exists() and (tmp_path / "balog" / "balog.svg").exists()


def test_real_points_score_what_the_paper_says():
    scores = mixture.score(mixture.draw(400, seed=1))
    assert scores["nll_authors"] == pytest.approx(3.524, abs=0.02)  # 3.524e5 for 100,000 points
    assert scores["modes"] == 25 and scores["right_class"] > 0.95


def test_table1_page_has_ours_beside_the_papers(tmp_path):
    store = Store(tmp_path)
    for run in (1, 2):
        store.write(f"table1/paper/adult/paper/{run}", RESULT)
    store.write("table1/honest/adult/default/1", RESULT)
    store.write("table1/honest/adult/paper/1", {"error": "it failed"})
    page = table1_page.page(store)
    assert "0.700/0.500 (0.650/0.564)" in page
    assert "| A | 0.700/0.500 |" in table1_page.classifiers(store)
    assert "0.700/0.500" in summary.headline(store)


def test_pictures_are_averaged_over_runs_and_classifiers(tmp_path):
    store = Store(tmp_path)
    for run, accuracy in ((1, 0.7), (2, 0.9)):
        for model, slug in images_page.SLUGS.items():
            store.write(
                f"images/mnist/default/1/{run}/{slug}",
                {"accuracy": accuracy if model != images_page.CNN else 0.95, "pictures": 60_000},
            )
    store.write("images/mnist/default/1/1/cost", {"cpu_release": 60.0, "cpu_train": 30.0})
    store.write("images/fashion_mnist/paper/1/1/lda", {"accuracy": 0.6})
    assert "| mnist | **DP-MERF, default** | 1 | 2 | 1.5 | 60,000 | **0.800** | 0.652 | 0.950 |" in images_page.page(
        store
    )
    assert "(1 of 12)" in images_page.page(store)
    assert "| mnist | 0.652 | (0 of 12) | – | 0.800 | 0.950 |" in summary.pictures(store)


def test_peers_page_shows_failures(tmp_path):
    store = Store(tmp_path)
    store.write("peers/adult/1/default/1", RESULT)
    store.write("peers/adult/1/mst/1", {"error": "PeerFailed: no such package"})
    assert "| adult, ε = 1 | – | 0.800, 0.040 | – | – | – | fails | – | – |" in summary.peers(store)
    page = peers_page.page(store)
    assert "**dpmerf default** | 0.800 | 0.700 | 0.010 | 0.040 | 0.080 | 10 | 300 | 1" in page
    assert "failed: PeerFailed: no such package" in page


def test_epsilon_page_orders_by_epsilon(tmp_path):
    store = Store(tmp_path)
    for epsilon in ("inf", "1", "0.1"):
        store.write(f"epsilon-curve/default/{epsilon}/1", RESULT)
    page = epsilon_curve.page(store)
    assert page.index("| 0.1 |") < page.index("| 1 |") < page.index("| ∞ |") and "0.040 |" in page
    store.write("epsilon-curve/default/1/2", {**RESULT, "tv2": 0.06})
    assert "0.050 ± 0.010" in epsilon_curve.page(store)


def test_the_curves_default_is_that_of_the_peers_where_it_was_run(tmp_path):
    store = Store(tmp_path)
    store.write("peers/adult/0.2/default/3", RESULT)
    this = Run(store, tmp_path / "no data", runs=3, only=("/default/0.2/3/",))
    epsilon_curve.run(this)
    assert store.read("epsilon-curve/default/0.2/3") == {**RESULT, "same_as": "peers/adult/0.2/default/3"}


def test_privbayes_page_stands_beside_the_published(tmp_path):
    store = Store(tmp_path)
    assert privbayes.page(store) == ""
    store.write("privbayes/adult/D-star/privbayes/1", {"tv3": 0.2, "tv4": 0.3})
    assert "adult D\\*, α = 3 | 0.200 / – / –" in privbayes.page(store)


def test_prc_at_another_share_keeps_recall_and_alarms():
    def prc(recall, alarms, share):
        return recall * share * recall / (share * recall + (1 - share) * alarms) + (1 - recall) * share

    for recall, alarms, share, other in ((0.7, 0.003, 0.0018, 0.263), (0.55, 0.08, 0.24, 0.45), (0.9, 0.2, 0.5, 0.1)):
        roc = (1 + recall - alarms) / 2
        found = table1_page.at_share(roc, prc(recall, alarms, share), share, other)
        assert found == pytest.approx(prc(recall, alarms, other), abs=1e-6)


def test_the_first_screen_weighs_our_numbers_against_the_papers(tmp_path):
    store = Store(tmp_path)
    for method, roc in (("default", 0.80), ("paper", 0.60), ("dp-gan", 0.65)):
        mean = {"roc_auc_hard": roc, "pr_auc_hard": 0.56}
        store.write(f"table1/paper/adult/{method}/1", {"utility": {"models": {"A": mean}, "mean": mean}})
    shown = claims.numbers(store)
    assert "| adult, ROC/PRC | 0.650/0.564 | 0.600/0.560 | **0.800/0.560** | `table1` | above/level |" in shown
    assert "| covtype, F1 | 0.467 | – | **–** | `table1` | – |" in shown
    said = claims.words(store)
    assert (
        "0 of 1 tables" in said and "adult (0.600 against 0.650 of dp-gan; the default has 0.800)" in said
    )  # a claim can fail
    assert "sensitivity 2.000 without and 2.000 with" in said


def test_what_was_not_run_is_said_with_the_time_it_would_take(tmp_path):
    store = Store(tmp_path)
    assert image_ablation.page(store).startswith("Not run yet, nor anything like it: mnist default, mnist no grain")
    store.write("table1/paper/adult/dp-gan/1", RESULT, seconds=600.0)
    page = table1_page.page(store)
    assert "Not run yet, about" in page and "census dp-gan" in page and "adult dp-gan" not in page
    store.write("table1/paper/census/dp-gan/1", {"error": "out of memory"})
    assert "Failed: census dp-gan: out of memory" in table1_page.page(store)


def test_every_number_of_the_papers_tables_stands_on_the_page_beside_ours():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name, columns in paper.TABLE1.items():
        line = next(line for line in text.splitlines() if line.startswith(f"| {name} (") and line.count("(") > 4)
        for method, values in columns.items():
            published = "/".join(f"{v:.3f}" for v in values)
            assert f"({published})" in line, (name, method)
            if f"– ({published})" in line:  # then a sentence says why
                assert f"{name} {method.replace(' ', '-')}" in text
    for name, numbers in images_page.PAPER.items():
        for (preset, epsilon), value in numbers.items():
            ours = [cells for cells in map(_cells, text.splitlines()) if len(cells) == 9 and cells[0] == name]
            shown = [c for c in ours if c[1] == images_page.TITLES[preset] and f"{value:.3f}" in c[7]]
            said = f"{name} real" if preset == "real" else f"{name} {preset} at ε = "
            assert shown or said in text, (name, preset, epsilon)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


PAPERS_PARTS = ("numbers", "claims", "table1", "mixture", "proposition1", "privbayes", "balog", "images")
NO_NUMBER = ("–", "", "not run", "**–**")


def _of_twelve(cell):
    return cell.startswith("**(") and "of 12" in cell


@pytest.mark.parametrize("part", PAPERS_PARTS)
def test_a_cell_of_the_papers_tables_without_a_number_has_its_reason_below_it(part):
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    shown = text.partition(f"<!-- {part} -->")[2].partition(f"<!-- /{part} -->")[0]
    body = [_cells(line) for line in shown.splitlines() if line.startswith("|")]
    empty = [c for c in body if any(cell in NO_NUMBER or "/ –" in cell or _of_twelve(cell) for cell in c[1:])]
    unexplained = [c for c in empty if not _explained(part, c, shown)]
    assert body and not unexplained


def _explained(part, cells, shown):
    """By a sentence that names the row, with the time that it would take or took."""
    reasons = " ".join(line for line in shown.splitlines() if line.startswith(("Not run yet", "–:")))
    if cells[0] in ("", "set") or (part == "images" and cells[1] == images_page.TITLES["real"]):
        return True  # headers; real pictures have neither ε nor cost
    if part == "images":
        preset = next(preset for preset, title in images_page.TITLES.items() if title == cells[1])
        return f"{cells[0]} {preset} at ε = {cells[2]}" in reasons
    return "a reduced set is optimised" in reasons if part == "balog" else re.split(r",| \(", cells[0])[0] in reasons


def test_confessed_constants_are_those_of_the_settings():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    told = text.partition("| part | chosen on |")[2].partition("## Table 1")[0]
    tables, few, empty = TablesSettings(), FewRowsSettings(), Settings()
    shares = ", ".join(f"{v:.2f}" for v in (few.histograms, few.single, few.selection, few.selected))
    tails = TailSettings()
    for said in (
        f"few rows: the four shares ({shares})",
        f"preferred values ({tables.preferred:.1%} of μ², {tables.preferred_share:.0%} of the rows".replace("%", " %"),
        f"usual shape {tails.usual_shape}, spread {tails.shape_spread}",
        f"histograms {tables.coarse.histograms:.2f} or {tables.alone.histograms:.2f} of μ²",
        f"triples ({tables.triples:.0%} of μ²".replace("%", " %"),
        f"least prior variances ({departures.Settings().first}, {departures.Settings().other})",
    ):
        assert said in told, said
    assert (empty.empty, empty.full_tables) == (0.5, 10.0) and "probability one half, ten assumed tables" in told
    assert tables.bins[0] == 4 and "large noise (at most four bins)" in told
    assert tables.preferred_noise == 6 and "six times the noise" in told
    assert TRIPLES.clear == 5 and "five standard deviations" in told
