"""Distributions: one small picture per column, synthetic beside real rows or beside the released counts."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmerf.evaluate.diagnostics import NoisyCounts
from dpmerf.evaluate.subgroups import moment
from dpmerf.evaluate.views import Coded, Rows
from dpmerf.report.phrases import percent, short
from dpmerf.report.svg import REAL, RELEASED, SYNTHETIC, Picture, canvas, picture

BINS = 20
MOST_LEVELS = 9  # a category's commonest values; the rest are drawn as one
WIDTH, HEIGHT = 300, 200


def distribution(name: str, synthetic: Rows, real: Rows | None, released: NoisyCounts | None) -> Picture:
    """One column."""
    ours = synthetic.coded(name, BINS, declared_scale=True)
    theirs = real.coded(name, BINS, declared_scale=True).shares() if real is not None else None
    if synthetic.numeric(name):
        return _numeric(name, synthetic, ours, theirs, released)
    return _levels(name, synthetic, ours, theirs, released)


def _numeric(name: str, rows: Rows, ours: Coded, theirs: np.ndarray | None, released: NoisyCounts | None) -> Picture:
    figure, axes = canvas(WIDTH, HEIGHT)
    places = np.arange(ours.size) + np.where(np.arange(ours.size) >= BINS, 1.0, 0.0)  # null stands apart
    shares = 100 * ours.shares()
    axes.bar(places, shares, width=0.92, color=SYNTHETIC, alpha=0.85)
    if theirs is not None:
        axes.stairs(100 * theirs[:BINS], np.arange(BINS + 1) - 0.5, color=REAL, linewidth=1.8)
        if ours.nulls:
            axes.stairs(100 * theirs[BINS:], [BINS + 0.5, BINS + 1.5], color=REAL, linewidth=1.8)
    if released is not None:
        _dots(axes, places, released)
    axis = rows.codec.axes[name]
    ticks = [0, BINS // 2, BINS]
    units = axis.low + np.array([0, 0.5, 1]) * (axis.high - axis.low)
    if axis.log:
        units = axis.value(np.array([0, 0.5, 1.0]))
    labels = [moment(rows, name, float(u)) for u in units]
    if ours.nulls:
        ticks, labels = [0, BINS // 2, BINS - 1, BINS + 1], [*labels[:2], labels[2], "null"]
        if len(labels[2]) > 4:
            ticks, labels = [0, BINS // 2, BINS + 1], [labels[0], labels[1], "null"]
    axes.set_xticks([t - 0.5 if t <= BINS else t for t in ticks], labels)
    axes.get_xticklabels()[0].set_horizontalalignment("left")
    if not ours.nulls:
        axes.get_xticklabels()[2].set_horizontalalignment("right")
    if axis.log:
        axes.set_xlabel("logarithmic scale", fontsize=10)
    edges = axis.value(np.arange(BINS + 1) / BINS) if axis.log else np.linspace(axis.low, axis.high, BINS + 1)
    names = [f"{moment(rows, name, edges[i])} – {moment(rows, name, edges[i + 1])}" for i in range(BINS)]
    return _finish(figure, axes, name, [*names, "null"][: ours.size], ours.shares(), theirs, released)


def _levels(name: str, rows: Rows, ours: Coded, theirs: np.ndarray | None, released: NoisyCounts | None) -> Picture:
    shares = ours.shares()
    names = [rows.level_name(name, code) for code in range(ours.size)]
    weight = shares + (theirs if theirs is not None else 0)
    order = np.argsort(-weight, kind="stable") if len(names) > MOST_LEVELS else np.arange(len(names))
    shown, rest = order[:MOST_LEVELS], order[MOST_LEVELS:]

    def fold(values: np.ndarray) -> np.ndarray:
        return np.r_[values[shown], values[rest].sum()] if len(rest) else values[shown]

    labels = [names[c] for c in shown] + ([f"{len(rest)} others"] if len(rest) else [])
    figure, axes = canvas(WIDTH, int(max(HEIGHT * 0.55, 62 + 17 * len(labels))))
    places = np.arange(len(labels))[::-1]
    axes.barh(places, 100 * fold(shares), height=0.66, color=SYNTHETIC, alpha=0.85)
    if theirs is not None:
        axes.plot(100 * fold(theirs), places, "|", color=REAL, markersize=13, markeredgewidth=2.4)
    folded = None
    if released is not None:
        noise = np.sqrt(fold(released.noise**2))
        folded = NoisyCounts(fold(released.shares), noise)
        axes.errorbar(
            100 * folded.shares,
            places,
            xerr=200 * noise,
            fmt="o",
            color=RELEASED,
            markersize=3.5,
            linewidth=1.3,
        )
    axes.set_yticks(places, [short(label, 18) for label in labels])
    axes.set_xlim(left=0)
    axes.set_xlabel("%", fontsize=10)
    return _picture(figure, name, labels, fold(shares), None if theirs is None else fold(theirs), folded)


def _dots(axes: Axes, places: np.ndarray, released: NoisyCounts) -> None:
    axes.errorbar(
        places,
        100 * released.shares,
        yerr=200 * released.noise,
        fmt="o",
        color=RELEASED,
        markersize=3,
        linewidth=1.3,
    )


def _finish(
    figure: Figure,
    axes: Axes,
    name: str,
    labels: list[str],
    ours: np.ndarray,
    theirs: np.ndarray | None,
    released: NoisyCounts | None,
) -> Picture:
    axes.set_ylim(bottom=0)
    axes.set_ylabel("%", rotation=0, labelpad=8, fontsize=10)
    return _picture(figure, name, labels, ours, theirs, released)


def _picture(
    figure: Figure,
    name: str,
    labels: list[str],
    ours: np.ndarray,
    theirs: np.ndarray | None,
    released: NoisyCounts | None,
) -> Picture:
    top = int(np.argmax(ours))
    words = f"Distribution of {name}: most synthetic rows, {percent(ours[top])}, are {labels[top]}"
    if theirs is not None:
        words += f" (real {percent(theirs[top])}); total variation {np.abs(ours - theirs).sum() / 2:.3f}"
    elif released is not None:
        words += f" (released {percent(released.shares[top])} ± {percent(2 * released.noise[top])})"
    header = ["value", "synthetic"] + (["real"] if theirs is not None else []) + (["released"] if released else [])
    rows = []
    for i, label in enumerate(labels):
        row = [label, percent(ours[i], 2)]
        row += [percent(theirs[i], 2)] if theirs is not None else []
        if released is not None:
            row.append(f"{percent(released.shares[i], 2)} ± {percent(2 * released.noise[i], 2)}")
        rows.append(tuple(row))
    return picture(figure, f"distribution {name}", words + ".", (tuple(header), *rows))
