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
from dpmerf.report.charts import grid
from dpmerf.report.markup import figure, lead, section, table, text, tiles
from dpmerf.report.phrases import percent, small
from dpmerf.report.svg import MUTED, SYNTHETIC, Picture, Plot, picture
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
    plot = Plot(560, 200)
    plot.columns(shares.index, shares.to_numpy(), 0.8, SYNTHETIC)
    plot.y.low, plot.x.label, plot.y.label = 0, "rows", "share of persons"
    numbers = (("rows", "share"), *((str(k), f"{v:.4f}") for k, v in shares.items()))
    return picture(plot, f"rows per person {name}", "Bars: share of persons by number of rows", numbers)


def _timelines(frame: pd.DataFrame, history: History, column: str | None) -> Picture:
    order = history.facts.order
    assert order is not None
    several = frame.groupby(history.key, sort=False).filter(lambda rows: len(rows) > 1)
    people = (several if len(several) else frame)[history.key].unique()[:SHOWN_PERSONS]
    plot = Plot(720, 40 + 26 * len(people))
    times, ticks = _on_a_line(frame[order])
    for line, person in enumerate(people):
        mine = frame[history.key] == person
        plot.line(times[mine], [line] * int(mine.sum()), SYNTHETIC, 1)
        plot.points(times[mine], [line] * int(mine.sum()), SYNTHETIC, size=2.5)
        if column is not None:
            for when, what in zip(times[mine], frame[column][mine], strict=True):
                plot.write(when, line, str(what), MUTED, 7, anchor="start", dy=-0.8)
    plot.y.ticks = [(line, str(p)) for line, p in enumerate(people)]
    plot.y.low, plot.y.high = -0.5, len(people) - 0.2
    plot.x.ticks, plot.x.label = ticks, order
    return picture(plot, f"timelines {history.name}", "One line a synthetic person, a point for each row")


def _on_a_line(order: pd.Series) -> tuple[np.ndarray, list[tuple[float, str]] | None]:
    """Places of the rows in time, and ticks in words where they are moments."""
    if not pd.api.types.is_datetime64_any_dtype(order):
        return pd.to_numeric(order, errors="coerce").fillna(0).to_numpy(dtype=float), None
    moments = order.astype("datetime64[s]")
    seconds = moments.astype("int64").to_numpy(dtype=float)
    low, high = (float(seconds.min()), float(seconds.max())) if len(seconds) else (0.0, 1.0)
    return seconds, [(at, str(pd.Timestamp(at, unit="s").date())) for at in np.linspace(low, high, 5)]


def _transitions(frame: pd.DataFrame, history: History, column: str) -> Picture:
    last = frame.groupby(history.key)[column].shift()
    levels = [str(v) for v in _levels(history, column) or ()]
    counts = pd.crosstab(last[last.notna()].astype(str), frame[column][last.notna()].astype(str))
    shares = counts.reindex(index=levels, columns=levels, fill_value=0)
    matrix = shares.div(np.maximum(shares.sum(axis=1), 1), axis=0).to_numpy(dtype=float)
    plot = Plot(420, 400)
    grid(plot, matrix, levels, levels, SYNTHETIC)
    for i, j in np.ndindex(matrix.shape):
        plot.write(j, i, f"{matrix[i, j]:.2f}", size=9)
    numbers = (
        ("from", *levels),
        *((level, *(f"{v:.3f}" for v in row)) for level, row in zip(levels, matrix, strict=True)),
    )
    name = f"transitions {history.name} {column}"
    return picture(plot, name, f"Share of next rows by '{column}' of the row before", numbers)


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
