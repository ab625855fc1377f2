"""Distributions: one small picture per column, synthetic beside real rows or beside the released counts."""

from __future__ import annotations

import numpy as np

from dpmerf.encoding.codec import Axis
from dpmerf.evaluate.axis_cells import AxisCells, axis_cells
from dpmerf.evaluate.diagnostics import NoisyCounts
from dpmerf.evaluate.views import Coded, Rows
from dpmerf.report.phrases import percent, short
from dpmerf.report.svg import REAL, RELEASED, SYNTHETIC, Picture, Plot, picture, wide
from dpmerf.schema import Numeric

NULL, NULL_WIDE = 1.06, 0.05  # where the bar of nulls stands, beside an axis from 0 to 1
MOST_TICKS = 6
MOST_LEVELS = 9  # a category's commonest values; the rest are drawn as one
WIDTH, HEIGHT = 300, 200


def distribution(name: str, synthetic: Rows, real: Rows | None, released: NoisyCounts | None) -> Picture:
    """One column."""
    column = synthetic.schema.columns[name]
    if isinstance(column, Numeric):
        cells = axis_cells(column)
        theirs = real.in_cells(name, cells).shares() if real is not None else None
        return _numeric(name, column, cells, synthetic.in_cells(name, cells), theirs, released)
    theirs = real.coded(name).shares() if real is not None else None
    return _levels(name, synthetic, synthetic.coded(name), theirs, released)


def _numeric(
    name: str,
    column: Numeric,
    cells: AxisCells,
    ours: Coded,
    theirs: np.ndarray | None,
    released: NoisyCounts | None,
) -> Picture:
    plot = Plot(WIDTH, HEIGHT)
    edges = cells.edges
    if len(edges) - 1 == Axis.of(column).levels:  # a level each: as wide as any other
        edges = np.arange(len(edges)) / (len(edges) - 1)
    lefts, rights = edges[:-1], edges[1:]
    if ours.nulls:  # stands apart
        lefts, rights = np.r_[lefts, NULL], np.r_[rights, NULL + NULL_WIDE]
    air = 0.04 * (rights - lefts)
    shares = 100 * ours.shares()
    boxes = zip(lefts + air, np.zeros(len(shares)), rights - air, shares, strict=True)
    plot.boxes([(float(a), b, float(c), float(d)) for a, b, c, d in boxes], SYNTHETIC, opacity=0.85)
    if theirs is not None:
        last = len(edges) - 1
        _stairs(plot, 100 * theirs[:last], edges)
        if ours.nulls:
            _stairs(plot, 100 * theirs[last:], np.array([NULL, NULL + NULL_WIDE]))
    if released is not None:
        _dots(plot, (lefts + rights) / 2, released, upright=True)
    plot.x.ticks = _ticks(cells, edges, ours.nulls)
    plot.x.label = "logarithmic scale" if Axis.of(column).log and edges is cells.edges else ""
    plot.x.low, plot.x.high = -0.02, float(rights[-1]) + 0.02
    plot.y.low, plot.y.label = 0, "%"
    return _picture(plot, name, [*cells.names, "null"][: ours.size], ours.shares(), theirs, released)


def _ticks(cells: AxisCells, edges: np.ndarray, nulls: bool) -> list[tuple[float, str]]:
    """What the axis says, as far as the words do not touch; levels with a bar each are named below it."""
    found = list(cells.ticks)
    if edges is not cells.edges:
        every = max(1, len(cells.names) // MOST_TICKS)
        found = [((edges[i] + edges[i + 1]) / 2, cells.names[i]) for i in range(0, len(cells.names), every)]
    if nulls:
        found.append((NULL + NULL_WIDE / 2, "null"))
    kept: list[tuple[float, str]] = []
    for at, words in reversed(found):  # the end of the axis, and null, first
        if not kept or kept[-1][0] - at > (wide(kept[-1][1]) + wide(words)) / 2 / (0.8 * WIDTH) + 0.02:
            kept.append((float(at), words))
    return kept[::-1]


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


def _stairs(plot: Plot, heights: np.ndarray, edges: np.ndarray) -> None:
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
