"""Rows: the first synthetic rows, which relations they keep, and what the release suggests. The guarantee covers it."""

from __future__ import annotations

import pyarrow as pa

from dpmerf.evaluate.possible import broken_shares
from dpmerf.evaluate.results import Evaluation
from dpmerf.evaluate.suggestions import suggestions
from dpmerf.plan.queries.broken_relations import broken_shares as bought_shares
from dpmerf.release import Release
from dpmerf.report.markup import lead, section, table
from dpmerf.report.phrases import percent

SHOWN_ROWS = 10


def rows(release: Release, synthetic: pa.Table, evaluation: Evaluation | None) -> str:
    """What a reader looks at first: do the rows make sense?"""
    schema = release.plan.schema.as_written
    names = synthetic.column_names
    cells = synthetic.slice(0, SHOWN_ROWS).select(names).to_pylist()
    first = table(names, [[_cell(row[n]) for n in names] for row in cells], "The first synthetic rows")
    counted = broken_shares(synthetic, schema)
    real = {} if evaluation is None else {b.relation: percent(b.real, 2) for b in evaluation.relations}
    bought = {
        b.relation: f"{percent(min(max(b.share, 0.0), 1.0), 2)} ± {percent(1.96 * b.noise, 2)}"
        for b in bought_shares(release)
    }
    kept = ""
    if counted:
        more = {"rows of the table, bought": bought, "real rows": real}
        told = {head: shares for head, shares in more.items() if shares}
        header = ("relation", "synthetic rows that break it", *told)
        lines = [
            (
                words,
                f"{round(share * synthetic.num_rows):,}",
                *(shares.get(words, "not asked") for shares in told.values()),
            )
            for words, share in counted
        ]
        kept = table(header, lines, "Relations that the schema declares", covered=not real)
    hints = suggestions(release)
    shown = ""
    if hints:
        lines = [(s.seen, s.declare) for s in hints]
        shown = table(("the release suggests", "if that is a public fact, declare"), lines, "Relations to consider")
    words = "Drawn from the model: no real row is shown."
    if evaluation is not None and evaluation.novelty is not None:
        n = evaluation.novelty
        beside = "" if n.baseline is None else f" (fresh real rows: {percent(n.baseline)})"
        words += (
            f" {percent(n.synthetic)} of them hold a pair of values that no known real row has{beside}: NOT COVERED."
        )
    return section("rows", "Do the rows make sense?", lead(words), first, kept, shown, covered=evaluation is None)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
