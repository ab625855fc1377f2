"""Distributions: one small picture per column, synthetic beside real rows or beside the released counts."""

from __future__ import annotations

import numpy as np

from dpmerf.evaluate.diagnostics import NoisyCounts
from dpmerf.evaluate.subgroups import moment
from dpmerf.evaluate.views import Coded, Rows
from dpmerf.report.phrases import percent, short
from dpmerf.report.svg import REAL, RELEASED, SYNTHETIC, Picture, Plot, picture

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
    plot = Plot(WIDTH, HEIGHT)
    places = np.arange(ours.size) + np.where(np.arange(ours.size) >= BINS, 1.0, 0.0)  # null stands apart
    shares = 100 * ours.shares()
    plot.columns(places, shares, 0.92, SYNTHETIC, opacity=0.85)
    if theirs is not None:
        _stairs(plot, 100 * theirs[:BINS], -0.5)
        if ours.nulls:
            _stairs(plot, 100 * theirs[BINS:], BINS + 0.5)
    if released is not None:
        _dots(plot, places, released, upright=True)
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
    plot.x.ticks = [(t - 0.5 if t <= BINS else t, label) for t, label in zip(ticks, labels, strict=True)]
    plot.x.label = "logarithmic scale" if axis.log else ""
    plot.y.low, plot.y.label = 0, "%"
    edges = axis.value(np.arange(BINS + 1) / BINS) if axis.log else np.linspace(axis.low, axis.high, BINS + 1)
    names = [f"{moment(rows, name, edges[i])} – {moment(rows, name, edges[i + 1])}" for i in range(BINS)]
    return _picture(plot, name, [*names, "null"][: ours.size], ours.shares(), theirs, released)


def _levels(name: str, rows: Rows, ours: Coded, theirs: np.ndarray | None, released: NoisyCounts | None) -> Picture:
    shares = ours.shares()
    names = [rows.level_name(name, code) for code in range(ours.size)]
    weight = shares + (theirs if theirs is not None else 0)
    order = np.argsort(-weight, kind="stable") if len(names) > MOST_LEVELS else np.arange(len(names))
    shown, rest = order[:MOST_LEVELS], order[MOST_LEVELS:]

    def fold(values: np.ndarray) -> np.ndarray:
        return np.r_[values[shown], values[rest].sum()] if len(rest) else values[shown]

    labels = [names[c] for c in shown] + ([f"{len(rest)} others"] if len(rest) else [])
    plot = Plot(WIDTH, int(max(HEIGHT * 0.55, 62 + 17 * len(labels))))
    places = np.arange(len(labels))[::-1]
    plot.bars(places, 100 * fold(shares), 0.66, SYNTHETIC, opacity=0.85)
    if theirs is not None:
        plot.points(100 * fold(theirs), places, REAL, "stroke", 3.2)
    folded = None
    if released is not None:
        folded = NoisyCounts(fold(released.shares), np.sqrt(fold(released.noise**2)))
        _dots(plot, places, folded, upright=False)
    plot.y.ticks = [(p, short(label, 18)) for p, label in zip(places, labels, strict=True)]
    plot.y.low, plot.y.high = -0.6, len(labels) - 0.4
    plot.x.low, plot.x.label = 0, "%"
    return _picture(plot, name, labels, fold(shares), None if theirs is None else fold(theirs), folded)


def _dots(plot: Plot, places: np.ndarray, released: NoisyCounts, upright: bool) -> None:
    """The released shares, with two standard deviations of noise; none of it below zero."""
    shares, noise = 100 * released.shares, 200 * released.noise
    low, high, at = np.maximum(shares - noise, 0), np.maximum(shares + noise, 0), np.maximum(shares, 0)
    if upright:
        plot.segments([(p, a, p, b) for p, a, b in zip(places, low, high, strict=True)], RELEASED)
        plot.points(places, at, RELEASED, size=1.8)
    else:
        plot.segments([(a, p, b, p) for p, a, b in zip(places, low, high, strict=True)], RELEASED)
        plot.points(at, places, RELEASED, size=1.8)


def _stairs(plot: Plot, heights: np.ndarray, start: float) -> None:
    edges = start + np.arange(len(heights) + 1)
    plot.line([edges[0], *edges.repeat(2)[1:-1], edges[-1]], [0.0, *heights.repeat(2), 0.0], REAL, 1.8)


def _picture(
    plot: Plot,
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
    return picture(plot, f"distribution {name}", words + ".", (tuple(header), *rows))
