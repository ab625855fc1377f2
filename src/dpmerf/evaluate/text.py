"""Text: an evaluation for the terminal. Every block of scores carries the words NOT COVERED."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from dpmerf.evaluate.results import Evaluation, Fidelity, IntervalsHeld, NearestRecord, Scores, Utility

MARK = "NOT COVERED"
METRIC_NAMES = {
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "roc_auc_hard": "ROC-AUC, hard labels",
    "pr_auc_hard": "PR-AUC, hard labels",
    "f1_weighted": "F1, weighted",
    "f1_macro": "F1, macro",
    "accuracy": "accuracy",
    "r2": "R²",
}


def show(evaluation: Evaluation, console: Console) -> None:
    """Print everything, most useful first."""
    e = evaluation
    console.print(f"{e.warning}\n", style="bold")
    trained = "" if e.rows_train is None else f", {e.rows_train:,} real training rows"
    console.print(f"{e.rows_synthetic:,} synthetic rows against {e.rows_real:,} real rows{trained}; seed {e.seed}.")
    if e.utility is not None:
        _utility(e.utility, console)
    _fidelity(e.fidelity, console)
    _possible(e, console)
    if e.intervals is not None:
        _intervals(e.intervals, console)
    _nearest(e.nearest, console)


def _utility(u: Utility, console: Console) -> None:
    what = f"predicting '{u.label}'" + (f" (positive: {u.positive})" if u.positive else "")
    table = _table(f"Utility: {what}, {METRIC_NAMES[u.metric]}", ["model", "synthetic", "real", "floor", "of the way"])
    for scores in [*u.models, u.mean]:
        table.add_row(*_score_row(scores, u.metric), style="bold" if scores is u.mean else None)
    console.print(table)
    other = _table("Utility: mean over models", ["metric", "synthetic", "real", "floor", "of the way"])
    for metric in u.mean.synthetic:
        other.add_row(METRIC_NAMES[metric], *_score_row(u.mean, metric)[1:])
    console.print(other)
    console.print(
        f"Real: trained on {u.rows_real_train:,} rows, {u.ceiling_from}. Floor: the same with every column shuffled "
        f"apart. Tested on {u.rows_test:,} real rows; {u.rows_synthetic:,} synthetic rows trained on."
    )
    for note in filter(None, (u.note, u.mean.note)):
        console.print(f"Note: {note}.")


def _fidelity(f: Fidelity, console: Console) -> None:
    table = _table(f"Fidelity: total variation, {f.bins} public bins", ["marginals", "mean", "largest", "real vs real"])
    for m in f.marginals:
        counted = f"all {m.measured}" if m.measured == m.possible else f"{m.measured} of {m.possible}"
        table.add_row(f"{m.order}-way ({counted})", _n(m.mean), _n(m.largest), _n(m.baseline_mean))
    console.print(table)
    a, k, d = f.association, f.kernel, f.detection
    rest = _table("Fidelity: the whole table", ["score", "synthetic", "real vs real"])
    rest.add_row("association, mean difference", _n(a.mean_difference), _n(a.baseline_mean_difference))
    rest.add_row("association, largest difference", _n(a.largest_difference), "")
    rest.add_row(f"kernel distance (MMD), exact, {k.rows:,} rows", _n(k.exact), _n(k.baseline_exact))
    rest.add_row(f"kernel distance (MMD), {k.features:,} random features", _n(k.random_features), "")
    rest.add_row("real or synthetic? classifier AUC (0.5 is best)", _n(d.auc), _n(d.baseline_auc))
    console.print(rest)
    columns = _table("Fidelity: columns", ["column", "TV", "nulls", "→ synth.", "mean off by", "quantiles"])
    for c in f.columns:
        quantile = "" if c.quantile_error is None else f"{100 * c.quantile_error:.2f} %"
        mean = "" if c.mean_error is None else f"{c.mean_error:+.4g}"
        columns.add_row(c.name, _n(c.tv), _percent(c.null_real), _percent(c.null_synthetic), mean, quantile)
    console.print(columns)
    groups = _table("Fidelity: worst-served subgroups", ["group", "share", "TV", "excess", "model's score"])
    for g in f.subgroups:
        share = f"{100 * g.share_real:.1f} → {100 * g.share_synthetic:.1f} %"
        score = "" if g.score_real is None else f"{_n(g.score_real)} → {_n(g.score_synthetic)}"
        groups.add_row(f"{g.column} = {g.value}", share, _n(g.tv), _n(g.excess), score)
    console.print(groups)
    console.print("Real → synthetic. Excess: total variation of the group's other columns beyond chance.")


def _possible(e: Evaluation, console: Console) -> None:
    if e.novelty is None:
        return
    table = _table("Do the rows make sense?", ["rows that", "synthetic", "real"])
    for r in e.relations:
        table.add_row(f"break: {r.relation}", _percent(r.synthetic), _percent(r.real))
    table.add_row(
        "hold a pair of values that no known row has", _percent(e.novelty.synthetic), _percent(e.novelty.baseline)
    )
    console.print(table)


def _intervals(i: IntervalsHeld, console: Console) -> None:
    what = f"95 % intervals of the release that hold what real rows say, about {i.about}"
    table = _table(what, ["of", "held", "of so many"])
    table.add_row("shares", _percent(i.shares_held), f"{i.shares:,}")
    table.add_row("means", _percent(i.means_held), f"{i.means:,}")
    console.print(table)


def _nearest(n: NearestRecord, console: Console) -> None:
    table = _table(
        "Nearest records (no guarantee of anything)", ["against " + n.compared_with, "synthetic", "other real"]
    )
    table.add_row("exact copies", _percent(n.copies), _percent(n.baseline_copies))
    table.add_row("median distance", _n(n.median_distance), _n(n.baseline_median_distance))
    console.print(table)
    console.print(n.note[0].upper() + n.note[1:] + ".")


def _score_row(s: Scores, metric: str) -> list[str]:
    ratio = s.ratio[metric]
    real = None if s.ceiling is None else s.ceiling[metric]
    way = "" if ratio is None else f"{100 * ratio:.0f} %"
    return [s.model, _n(s.synthetic[metric]) + ("*" if s.note else ""), _n(real), _n(s.floor[metric]), way]


def _table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=f"{MARK} · {title}", title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=index > 0, overflow="fold")
    return table


def _n(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"
