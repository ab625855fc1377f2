"""History page: what was promised to persons, and what their synthetic histories look like. The guarantee covers it.

Everything on it follows from the release: no real row is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
import pyarrow as pa

import dpmerf
from dpmerf.errors import ArtefactError
from dpmerf.release.person_release import PersonRelease
from dpmerf.report.charts import fading
from dpmerf.report.markup import figure, lead, section, table, text, tiles
from dpmerf.report.phrases import percent, small
from dpmerf.report.svg import INK, MUTED, SYNTHETIC, Picture, canvas, picture
from dpmerf.schema import Category, Flag
from dpmerf.schema.person_schema import ONLY, History

SHOWN_PERSONS, SHOWN_ROWS, MOST_LEVELS = 12, 12, 12


@final
@dataclass(frozen=True)
class HistoryPage:
    """One self-contained HTML file."""

    html: str

    def write(self, path: str | Path) -> int:
        """Write the page; returns its size in bytes."""
        data = self.html.encode("utf-8")
        try:
            Path(path).write_bytes(data)
        except OSError as problem:
            raise ArtefactError(f"cannot write {path}: {problem.strerror}") from None
        return len(data)


def history_page(release: PersonRelease, synthetic: dict[str, pa.Table]) -> HistoryPage:
    """The page of a release of persons and of rows drawn from it."""
    plan, odds = release.plan, release.plan.odds
    facts = [
        ("Privacy", f"ε = {plan.epsilon:g}", f"δ = {small(plan.delta)}, per person", True),
        ("Attacker's best odds", percent(odds.accuracy), "a coin toss is 50 %", True),
        ("Persons", f"≈ {release.persons_estimate:,.0f}", "noisy estimate", True),
    ]
    parts = [_promise(release)]
    for history in plan.persons.histories:
        parts.append(_history(history, synthetic[history.name]))
    css = resources.files("dpmerf.report").joinpath("style.css").read_text(encoding="utf-8")
    mark = "" if release.private else "<p><strong>NOT PRIVATE: the noise came from a source for tests.</strong></p>"
    return HistoryPage(f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>Synthetic histories</title>
<style>
{css}</style>
</head>
<body>
<header><div class="wide"><p class="eyebrow">dpmerf · persons by '{text(plan.persons.key)}'</p>
<h1>Synthetic histories</h1>
<p>Persons with their rows in order, drawn from one noisy release. They belong to nobody.</p>
</div></header>
<div class="wide">{tiles(facts)}</div>
<main id="main" class="wide">{mark}
{chr(10).join(parts)}
</main>
<footer class="wide">dpmerf {dpmerf.__version__} · plan <code>{plan.hash}</code>.
This page is one file: it loads nothing and sends nothing.</footer>
</body>
</html>
""")


def _promise(release: PersonRelease) -> str:
    lines = [
        (name, str(part.unit.max_rows), price.stage, f"{price.mu:.4f}", f"{price.coordinates:,}")
        for name, part in release.plan.parts.items()
        for price in part.prices
    ]
    header = ("table", "rows used of a person", "stage", "μ", "coordinates")
    words = release.plan.unit.describe() + " A person counts as much as one row, whatever the number of rows."
    return section("guarantee", "What is promised?", lead(words), table(header, lines, "What was measured"))


def _history(history: History, rows: pa.Table) -> str:
    frame = rows.to_pandas(date_as_object=False)
    counts = frame.groupby(history.key).size()
    name = "Histories" if history.name == ONLY else f"Histories: {history.name}"
    pictures = [figure(_rows_per_person(counts, history.name), "Rows of a person who has any")]
    column = next(
        (n for n in history.measured_rows if _levels(history, n) is not None and n in frame),
        None,
    )
    if history.facts.order is not None and len(frame):
        pictures.append(figure(_timelines(frame, history, column), f"{SHOWN_PERSONS} synthetic persons over time"))
        if column is not None:
            pictures.append(figure(_transitions(frame, history, column), f"'{column}': from one row to the next"))
    names = list(frame.columns)
    first = [[_cell(v) for v in row] for row in frame.head(SHOWN_ROWS).itertuples(index=False)]
    shown = table(names, first, "The first synthetic rows")
    words = f"{len(frame):,} rows of {len(counts):,} synthetic persons."
    return section(f"history-{history.name}", name, lead(words), *pictures, shown)


def _rows_per_person(counts: pd.Series, name: str) -> Picture:
    shares = counts.value_counts(normalize=True).sort_index().head(30)
    drawing, axes = canvas(560, 200)
    axes.bar(shares.index, shares.to_numpy(), color=SYNTHETIC)
    axes.set_xlabel("rows")
    axes.set_ylabel("share of persons")
    numbers = (("rows", "share"), *((str(k), f"{v:.4f}") for k, v in shares.items()))
    return picture(drawing, f"rows per person {name}", "Bars: share of persons by number of rows", numbers)


def _timelines(frame: pd.DataFrame, history: History, column: str | None) -> Picture:
    order = history.facts.order
    assert order is not None
    several = frame.groupby(history.key, sort=False).filter(lambda rows: len(rows) > 1)
    people = (several if len(several) else frame)[history.key].unique()[:SHOWN_PERSONS]
    drawing, axes = canvas(720, 40 + 26 * len(people))
    for line, person in enumerate(people):
        rows = frame[frame[history.key] == person]
        axes.plot(rows[order], [line] * len(rows), "-o", color=SYNTHETIC, linewidth=1, markersize=5)
        if column is not None:
            for when, what in zip(rows[order], rows[column], strict=True):
                axes.annotate(
                    str(what), (when, line), xytext=(0, 5), textcoords="offset points", fontsize=7, color=MUTED
                )
    axes.set_yticks(range(len(people)), [str(p) for p in people], color=INK)
    axes.set_xlabel(order)
    return picture(drawing, f"timelines {history.name}", "One line a synthetic person, a point for each row")


def _transitions(frame: pd.DataFrame, history: History, column: str) -> Picture:
    last = frame.groupby(history.key)[column].shift()
    levels = [str(v) for v in _levels(history, column) or ()]
    counts = pd.crosstab(last[last.notna()].astype(str), frame[column][last.notna()].astype(str))
    shares = counts.reindex(index=levels, columns=levels, fill_value=0)
    matrix = shares.div(np.maximum(shares.sum(axis=1), 1), axis=0).to_numpy(dtype=float)
    drawing, axes = canvas(420, 400)
    axes.imshow(matrix, vmin=0, vmax=1, cmap=fading(SYNTHETIC), interpolation="none")
    for i, j in np.ndindex(matrix.shape):
        axes.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize=9, color=INK)
    axes.set_xticks(range(len(levels)), levels, rotation=90)
    axes.set_yticks(range(len(levels)), levels)
    numbers = (
        ("from", *levels),
        *((level, *(f"{v:.3f}" for v in row)) for level, row in zip(levels, matrix, strict=True)),
    )
    name = f"transitions {history.name} {column}"
    return picture(drawing, name, f"Share of next rows by '{column}' of the row before", numbers)


def _levels(history: History, name: str) -> tuple[object, ...] | None:
    column = history.schema.columns.get(name)
    if isinstance(column, Flag):
        return (False, True)
    if isinstance(column, Category) and len(column.levels) <= MOST_LEVELS:
        return column.levels
    return None


def _cell(value: object) -> str:
    if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, pd.Timestamp):
        return str(value.date()) if value == value.normalize() else str(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
