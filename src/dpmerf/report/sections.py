"""Sections of the page that come from the release alone: the guarantee covers them."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dpmerf.accounting.gaussian import at_most
from dpmerf.evaluate import diagnostics
from dpmerf.evaluate.association import association_matrix
from dpmerf.evaluate.results import Evaluation
from dpmerf.evaluate.verdict import Verdict
from dpmerf.evaluate.views import Rows
from dpmerf.generators.base import History
from dpmerf.inference.evidence import evidence
from dpmerf.inference.strength import strengths
from dpmerf.release.release import TRUSTED_NOISE, Release
from dpmerf.report import charts
from dpmerf.report.distributions import distribution
from dpmerf.report.markup import figure, grid, key, lead, section, table, text
from dpmerf.report.phrases import percent, small
from dpmerf.schema.bought_facts import bought_words

SHOWN = 12  # pairs in a table or a warning
MOST_COLUMNS = 48  # pictures of single columns that are open; those of a wider table unfold


@final
@dataclass(frozen=True)
class ImageSection:
    """For image releases: a contact sheet of synthetic images (PNG) beside the class balance."""

    contact_sheet: bytes
    description: str
    classes: tuple[str, ...]
    synthetic_shares: tuple[float, ...]
    released_shares: tuple[float, ...] | None = None


def guarantee(release: Release) -> str:
    """The card in plain words, the attacker's odds and the budget."""
    plan = release.plan
    odds = plan.odds
    unit = plan.unit
    who = "row" if unit.person is None else "person"
    public = "the number of rows, which is treated as public" if unit.rows_public else "nothing about their number"
    several = (
        "A person with several rows: each row is protected on its own."
        if unit.person is None
        else "Groups of people: relatives, or others who share much of their data, are not one person."
    )
    card = f"""<div class="card"><h3>In plain words</h3>
<p class="big">Whether or not one given {who} was in the data, almost the same release would have come out. Someone who
knows every other row, this software and its settings, and who guesses whether that {who}'s data was used, is right at
most <strong>{percent(odds.accuracy)}</strong> of the time. A coin is right {percent(0.5, 0)}.</p>
<p>Starting from even odds, their belief cannot pass <strong>{percent(odds.posterior)}</strong>, except with a
probability of at most {at_most(odds.passed)}.</p>
<p>{text(unit.describe())}</p></div>"""
    limits = f"""<div class="card"><h3>What is <em>not</em> protected</h3><ul>
<li>Facts about the group: if smokers fall ill more often, the release says so, also of smokers outside it.</li>
<li>The schema (names, bounds, categories) and {public}. {text(bought_words(plan.schema))}</li>
<li>{several}</li>
<li>Other releases of the same data: budgets add up. Keep one ledger for all of them.</li>
<li>What is marked <strong class="mark">NOT COVERED</strong> on this page: it was computed from real rows.</li>
</ul></div>"""
    prices = [
        (p.stage, percent(p.share, 0), f"{p.noise_multiplier:.3f}", f"{p.sensitivity:.4f}", f"{p.coordinates:,}")
        for p in plan.prices
    ]
    return section(
        "guarantee",
        "What is promised",
        lead(f"ε = {plan.epsilon:g}, δ = {small(plan.delta)}, recomputed from the plan that made this release."),
        grid("columns", [card, limits]),
        "<br>",
        grid(
            "columns",
            [
                figure(charts.odds(odds.accuracy, plan.epsilon), "Attacker's best odds"),
                figure(charts.budget([(p.stage, p.share) for p in plan.prices]), "Budget shares"),
            ],
        ),
        table(
            ("stage", "share", "noise ÷ sensitivity", "sensitivity", "numbers released"),
            prices,
            "What was bought with it",
        ),
    )


def fit(release: Release, history: History | None, lights: Verdict | None) -> str:
    """Training curve, signal to noise and the predicted error of counts: no rows are needed for these."""
    parts, warning = [], ""
    words = "Everything here follows from the release: no real row is read and nothing is spent."
    if lights is not None and lights.colour == "red":
        warning = (
            '<p class="warning">Most columns have a red light above. A close fit is then a close fit to noise, or to '
            "cells that could not be read: it says nothing good about the rows.</p>"
        )
    if history is not None and history.loss:
        shown = diagnostics.fit(history)
        parts.append(figure(charts.training(shown), "Training curve", shown.verdict))
    blocks = diagnostics.signals(release)
    parts.append(
        figure(
            charts.signal(blocks),
            "Signal to noise",
            f"{len(blocks)} measured blocks"
            + (", the 12 strongest and 12 weakest shown." if len(blocks) > 24 else ".")
            + " Right of the dotted line what was read is louder than the noise; whether it was read as meant is told"
            " by the lights.",
        )
    )
    return section(
        "fit", "How well the generator fits the release", lead(words), warning, grid("columns", parts), _counts(release)
    )


def _counts(release: Release) -> str:
    rows = []
    for c in diagnostics.count_errors(release):
        if c.noise is None or c.share is None or c.total_variation is None:
            rows.append((c.column, "", "measured only together with other columns", "", ""))
        else:
            rows.append(
                (
                    c.column,
                    f"{c.cells:,}",
                    f"± {c.noise:,.1f} rows",
                    f"± {percent(c.share, 2)}",
                    f"{c.total_variation:.4f}",
                )
            )
    inner = table(
        ("column", "cells", "error of one count", "as a share", "expected total variation"),
        rows,
        "Predicted error of each one-way count",
    )
    return f"<details><summary>Predicted error of each column's counts</summary>{inner}</details>"


def columns(release: Release, synthetic: Rows, real: Rows | None) -> str:
    """One picture per column."""
    released = diagnostics.one_way(release)
    drawn = [
        figure(distribution(name, synthetic, real, released.get(name)), name, covered=real is None)
        for name in synthetic.names
    ]
    more = ""
    if len(drawn) > MOST_COLUMNS:
        rest = len(drawn) - MOST_COLUMNS
        more = f"<details><summary>{rest} more columns</summary>{grid('gallery', drawn[MOST_COLUMNS:])}</details>"
    beside = [("released", "counts as released, ± twice their noise")]
    beside += [("real", "real rows")] if real is not None else []
    return section(
        "columns",
        "Columns",
        lead("Each column on its own."),
        key(("synthetic", "synthetic rows"), *beside),
        grid("gallery", drawn[:MOST_COLUMNS]),
        more,
        covered=real is None,
    )


def dependence(release: Release, synthetic: Rows, evaluation: Evaluation | None, lights: Verdict | None) -> str:
    """Heat maps of association."""
    red = set() if lights is None else {c.columns[0] for c in lights.columns if not c.visible}
    words = (
        "How strongly two columns go together, from 0 to 1: correlation between numbers, Cramér's V between "
        "categories, correlation ratio between the two."
    )
    if evaluation is None:
        matrix = association_matrix(synthetic)
        picture = charts.heat_map("Dependence in the synthetic rows", synthetic.names, matrix, width=440)
        trusted = [row for row in picture.numbers[1:] if not red & set(row[:2])]
        caption = "Strongest pairs" + (", without columns that have a red light" if red else "")
        strongest = table(("column", "with", "association"), trusted[:SHOWN], caption)
        shown = figure(replace(picture, numbers=()), "Synthetic")
        return section(
            "dependence", "Dependence", lead(words), grid("columns", [shown, strongest]), _released_pairs(release, red)
        )
    a = evaluation.fidelity.association
    ours, theirs = np.array(a.synthetic), np.array(a.real)
    drawn = [
        figure(charts.heat_map("Dependence in the real rows", a.columns, theirs), "Real", covered=False),
        figure(charts.heat_map("Dependence in the synthetic rows", a.columns, ours), "Synthetic"),
        figure(
            charts.heat_map("Dependence, difference", a.columns, np.abs(ours - theirs), difference=True),
            "Difference",
            f"Mean {a.mean_difference:.3f}, largest {a.largest_difference:.3f}.",
            covered=False,
        ),
    ]
    return section(
        "dependence", "Dependence", lead(words), grid("triple", drawn), _released_pairs(release, red), covered=False
    )


def _released_pairs(release: Release, red: set[str]) -> str:
    """Associations as the release itself tells them, with 95 % intervals, and a warning about pairs lost in noise."""
    found = strengths(evidence(release)) if release.plan.schema.image is None else []
    found = [s for s in found if not red & set(s.columns)]
    if not found:
        return ""
    rows = [(*s.columns, f"{s.estimate:.3f}", f"{s.low:.3f} … {s.high:.3f}") for s in found if not s.drowned][:SHOWN]
    drowned = [s for s in found if s.drowned]
    warning = ""
    if drowned:
        names = ", ".join(f"{a} × {b}" for a, b in (s.columns for s in drowned[:SHOWN]))
        more = f" and {len(drowned) - SHOWN} more" if len(drowned) > SHOWN else ""
        warning = (
            f'<p class="warning">The noise exceeds the signal in {len(drowned)} of {len(found)} measured pairs: '
            f"what the synthetic rows show there may be chance. {text(names)}{more}.</p>"
        )
    caption = "Strongest pairs by the released tables (Cramér's V of their cells), with 95 % intervals"
    return table(("column", "with", "association", "95 % interval"), rows, caption) + warning


def images(shown: ImageSection) -> str:
    """A contact sheet and the class balance."""
    data = base64.b64encode(shown.contact_sheet).decode()
    sheet = (
        f'<figure><h3>Contact sheet</h3><img alt="{text(shown.description)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{text(shown.description)}</figcaption></figure>"
    )
    parts = [sheet]
    if shown.classes:
        balance = charts.class_balance(shown.classes, shown.synthetic_shares, shown.released_shares)
        parts.append(figure(balance, "Class balance"))
    return section("images", "Images", lead("Drawn from the model: no real picture is shown."), grid("columns", parts))


def test_noise(release: Release) -> str:
    """A loud warning when the noise came from a source for tests."""
    if release.noise == TRUSTED_NOISE:
        return ""
    words = "NOT PRIVATE: the noise of this release came from a source for tests. Do not share it."
    return f'<p class="danger" role="alert">{words}</p>'
