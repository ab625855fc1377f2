"""Sections that were computed from real rows: every one of them is marked NOT COVERED."""

from __future__ import annotations

from dpmerf.evaluate.results import WARNING, Evaluation, Fidelity, NearestRecord, Utility
from dpmerf.evaluate.text import METRIC_NAMES
from dpmerf.report import charts
from dpmerf.report.markup import figure, grid, lead, section, table, text
from dpmerf.report.phrases import percent

SHOWN = {"binary": ("roc_auc", "roc_auc_hard"), "multiclass": ("f1_weighted", "accuracy"), "regression": ("r2",)}


def utility(u: Utility) -> str:
    """Bars between floor and ceiling, and the means of all metrics."""
    drawn = [figure(charts.utility_bars(u, metric), METRIC_NAMES[metric], covered=False) for metric in SHOWN[u.task]]
    rows = []
    for metric in u.mean.synthetic:
        ratio = u.mean.ratio[metric]
        rows.append(
            (
                METRIC_NAMES[metric],
                f"{u.mean.synthetic[metric]:.3f}",
                f"{u.mean.floor[metric]:.3f}",
                "" if u.mean.ceiling is None else f"{u.mean.ceiling[metric]:.3f}",
                "" if ratio is None else percent(ratio, 0),
            )
        )
    positive = f" Positive class: {u.positive}." if u.positive else ""
    words = (
        f"{len(u.models)} models learn to predict '{u.label}' from {u.rows_synthetic:,} synthetic rows and are tested "
        f"on {u.rows_test:,} real ones.{positive} The ceiling learns from real rows ({u.ceiling_from}); the floor from "
        "rows whose columns were shuffled apart, so that there is nothing to learn."
    )
    notes = "".join(f"<p>{text(n)}.</p>" for n in (u.note, u.mean.note) if n)
    header = ("mean over models", "synthetic", "floor", "ceiling", "of the way")
    return section(
        "utility",
        "Is it useful?",
        lead(words),
        notes,
        grid("columns", drawn),
        table(header, rows, "Mean over models", covered=False),
        covered=False,
    )


def fidelity(f: Fidelity, nearest: NearestRecord) -> str:
    """Distances between the tables, and who is served worst."""
    marginals = [
        (
            f"{m.order}-way ({'all ' if m.measured == m.possible else ''}{m.measured:,} sets of columns)",
            f"{m.mean:.4f}",
            f"{m.largest:.4f}",
            _n(m.baseline_mean),
            ", ".join(m.worst[0].columns) if m.worst else "",
        )
        for m in f.marginals
    ]
    whole = [
        (
            "association, mean difference",
            f"{f.association.mean_difference:.4f}",
            _n(f.association.baseline_mean_difference),
        ),
        ("kernel distance (MMD), exact", f"{f.kernel.exact:.4f}", _n(f.kernel.baseline_exact)),
        ("kernel distance (MMD), random features", f"{f.kernel.random_features:.4f}", ""),
        ("real or synthetic? classifier AUC (0.5 is best)", f"{f.detection.auc:.3f}", _n(f.detection.baseline_auc)),
        ("exact copies of real rows *", percent(nearest.copies, 2), _percent(nearest.baseline_copies)),
        (
            "median distance to the nearest real row *",
            f"{nearest.median_distance:.3f}",
            _n(nearest.baseline_median_distance),
        ),
    ]
    groups = [
        (
            f"{g.column} = {g.value}",
            f"{percent(g.share_real)} → {percent(g.share_synthetic)}",
            f"{g.tv:.3f}",
            f"{g.excess:.3f}",
            "" if g.score_real is None else f"{g.score_real:.3f} → {g.score_synthetic:.3f}",
        )
        for g in f.subgroups
    ]
    columns = [
        (
            c.name,
            f"{c.tv:.4f}",
            f"{percent(c.null_real)} → {percent(c.null_synthetic)}",
            "" if c.mean_error is None else f"{c.mean_error:+.4g}",
            "" if c.quantile_error is None else percent(c.quantile_error, 2),
        )
        for c in f.columns
    ]
    return section(
        "fidelity",
        "Where is it weak?",
        lead(
            "Total variation is half the summed difference of shares: 0 is equal, 1 has nothing in common. "
            "'Real against real' is what the real training rows themselves score against the real test rows."
        ),
        table(
            ("marginals", "mean", "largest", "real against real", "worst"), marginals, "Total variation", covered=False
        ),
        table(("the whole table", "synthetic", "real against real"), whole, "The whole table", covered=False),
        f"<p>* {text(nearest.note[0].upper() + nearest.note[1:])}.</p>",
        table(
            ("rows with", "share, real → synthetic", "total variation", "beyond chance", "model's score"),
            groups,
            "Worst-served subgroups",
            covered=False,
        ),
        "<details><summary>Every column in numbers</summary>"
        + table(
            ("column", "total variation", "nulls, real → synthetic", "mean off by", "quantile error"),
            columns,
            "Columns",
            covered=False,
        )
        + "</details>",
        covered=False,
    )


def warning(evaluation: Evaluation | None) -> str:
    """What the mark means, once, at the top."""
    return "" if evaluation is None else f'<p class="danger">{text(WARNING)}</p>'


def _n(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _percent(value: float | None) -> str:
    return "" if value is None else percent(value, 2)
