"""Page: one self-contained HTML file. No script, no network, nothing outside the file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, final

import pyarrow as pa

import dpmerf
from dpmerf.errors import ArtefactError
from dpmerf.evaluate.results import Evaluation
from dpmerf.evaluate.verdict import Verdict, seen
from dpmerf.evaluate.views import Rows
from dpmerf.generators.base import History
from dpmerf.release import Release
from dpmerf.report import rows_section, scores, sections, verdict_section
from dpmerf.report.markup import text, tiles
from dpmerf.report.phrases import percent, small
from dpmerf.report.sections import ImageSection
from dpmerf.schema.bought_facts import bought_columns
from dpmerf.shown import Shown

Fact = tuple[str, str, str, bool]


@final
@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What a page is made from. Only `release` is always there; with `real` rows comes their `evaluation`."""

    release: Release
    history: History | None = None
    synthetic: pa.Table | None = None
    real: pa.Table | None = None
    evaluation: Evaluation | None = None
    images: ImageSection | None = None
    title: str = "Synthetic data report"

    def facts(self) -> dict[str, Any]:
        """At a glance."""
        covered = "by the guarantee" if self.evaluation is None else "NOT COVERED: it holds scores on real rows"
        rows = 0 if self.synthetic is None else self.synthetic.num_rows
        return {"title": self.title, "synthetic rows": rows, "covered": covered, **self.release.facts()}

    def html(self) -> str:
        """The page. The same inputs give the same bytes."""
        schema = self.release.plan.schema.as_written
        synthetic = None if self.synthetic is None else Rows.read(self.synthetic, schema, "synthetic table")
        real = None if self.real is None else Rows.read(self.real, schema, "real table")
        body = []
        lights = None if self.release.plan.schema.image is not None else seen(self.release, self.synthetic)
        if lights is not None:
            body.append(("verdict", "Can I use it?", verdict_section.verdict(lights)))
        if self.synthetic is not None:
            body.append(("rows", "Rows", rows_section.rows(self.release, self.synthetic, self.evaluation)))
        body.append(("guarantee", "Promise", sections.guarantee(self.release)))
        if self.evaluation is not None and self.evaluation.utility is not None:
            body.append(("utility", "Useful?", scores.utility(self.evaluation.utility)))
        if self.images is not None:
            body.append(("images", "Images", sections.images(self.images)))
        if synthetic is not None:
            body.append(("columns", "Columns", sections.columns(self.release, synthetic, real)))
            body.append(
                ("dependence", "Dependence", sections.dependence(self.release, synthetic, self.evaluation, lights))
            )
        if self.evaluation is not None:
            body.append(("fidelity", "Weak spots", scores.fidelity(self.evaluation.fidelity, self.evaluation.nearest)))
        body.append(("fit", "Fit", sections.fit(self.release, self.history, lights)))
        return _page(self, body, lights)

    def write(self, path: str | Path) -> int:
        """Write the page; returns its size in bytes."""
        data = self.html().encode("utf-8")
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
        except OSError as problem:
            raise ArtefactError(f"cannot write {path}: {problem.strerror}") from None
        return len(data)


def _page(report: Report, body: list[tuple[str, str, str]], lights: Verdict | None) -> str:
    css = resources.files("dpmerf.report").joinpath("style.css").read_text(encoding="utf-8")
    links = "".join(f'<li><a href="#{anchor}">{text(name)}</a></li>' for anchor, name, _ in body)
    plan = report.release.plan
    columns = len(plan.schema.learned)
    what = f"{columns} columns" + (f", label '{plan.schema.label}'" if plan.schema.label else "")
    intro = (
        "Synthetic rows from one noisy release. They have the shape of the real data and belong to nobody."
        if report.synthetic is not None
        else "One noisy release, from which synthetic rows can be made."
    )
    footer = (
        f"dpmerf {dpmerf.__version__} · plan <code>{plan.hash}</code> · noise: {text(report.release.noise)}. "
        "This page is one file: it loads nothing and sends nothing."
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{text(report.title)}</title>
<style>
{css}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header><div class="wide">
<p class="eyebrow">dpmerf · {text(what)}</p><h1>{text(report.title)}</h1><p>{text(intro)}</p>
</div></header>
<div class="wide">{tiles(_facts(report, lights))}</div>
<nav aria-label="Sections"><div class="wide"><ul>{links}</ul></div></nav>
<main id="main" class="wide">
{sections.test_noise(report.release)}{scores.warning(report.evaluation)}
{chr(10).join(part for _, _, part in body)}
</main>
<footer class="wide">{footer}</footer>
</body>
</html>
"""


def _facts(report: Report, lights: Verdict | None) -> list[Fact]:
    release, plan = report.release, report.release.plan
    odds = plan.odds
    rows = f"{release.rows:,}" if release.rows is not None else f"≈ {release.rows_estimate:,.0f}"
    unit = "row" if plan.unit.person is None else "person"
    bought = "; what bought facts cost comes on top" if bought_columns(plan.schema) else ""
    facts: list[Fact] = []
    if lights is not None:
        seen_through = f"{lights.visible[0]} of {len(lights.columns)}"
        facts.append(("Columns to use", seen_through, "the others are noise, or could not be read", True))
    facts += [
        ("Privacy", f"ε = {plan.epsilon:g}", f"δ = {small(plan.delta)}, per {unit}{bought}", True),
        ("Attacker's best odds", percent(odds.accuracy), "a coin toss is 50 %", True),
        ("Rows released", rows, "public" if release.rows is not None else "noisy estimate", True),
    ]
    if report.synthetic is not None:
        facts.append(("Synthetic rows", f"{report.synthetic.num_rows:,}", "shown here", True))
    if report.evaluation is not None and report.evaluation.utility is not None:
        mean = report.evaluation.utility.mean
        ratio = mean.ratio[report.evaluation.utility.metric]
        if ratio is not None:
            facts.append(("Useful", percent(ratio, 0), "of the way from nothing to real rows", False))
    return facts
