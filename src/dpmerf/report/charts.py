"""Pictures: each takes plain numbers and says in words what it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmerf.evaluate.diagnostics import Fit, Signal
from dpmerf.evaluate.results import Utility
from dpmerf.evaluate.text import METRIC_NAMES
from dpmerf.report.phrases import block, percent, short
from dpmerf.report.svg import (
    CEILING,
    FLOOR,
    GRID,
    MUTED,
    REAL,
    RELEASED,
    SYNTHETIC,
    Picture,
    Plot,
    picture,
    wide,
)

SHADES = (SYNTHETIC, REAL, RELEASED, FLOOR, CEILING, GRID)
SCALE = 9  # boxes of a heat map's key


def odds(accuracy: float, epsilon: float) -> Picture:
    """A line from coin toss to certainty, with the best attacker's place on it."""
    plot = Plot(400, 92)
    at = 100 * accuracy
    plot.boxes([(50, -0.17, 100, 0.17)], GRID)
    plot.boxes([(50, -0.17, at, 0.17)], SYNTHETIC)
    plot.points([at], [0], SYNTHETIC, size=5)
    plot.write(at, 0.45, percent(accuracy), size=12, anchor="start", dy=0, bold=True)
    plot.x.low, plot.x.high, plot.y.low, plot.y.high = 49, 101, -0.4, 0.9
    plot.x.ticks, plot.y.ticks = [(50, "50 %\ncoin toss"), (75, "75 %"), (100, "100 %\ncertain")], []
    plot.x.spine = plot.y.spine = False
    alternative = (
        f"Attacker's odds at ε = {epsilon:g}: someone who knows everything else guesses right at most "
        f"{percent(accuracy)} of the time, between a coin toss at 50 % and certainty at 100 %."
    )
    return picture(plot, "attacker's odds", alternative, (("guess", "right"), ("best attacker", percent(accuracy))))


def budget(shares: Sequence[tuple[str, float]]) -> Picture:
    """One bar cut into the stages' shares of the budget."""
    plot = Plot(400, 44 + 18 * ((len(shares) + 1) // 2))
    left = 0.0
    for index, (name, share) in enumerate(shares):
        colour = SHADES[index % len(SHADES)]
        plot.boxes([(left, 0, left + share, 1)], colour)
        plot.named(f"{name} {percent(share, 0)}", colour)
        left += share
    plot.x.low, plot.x.high, plot.y.low, plot.y.high = 0, 1, 0, 1
    plot.x.ticks = plot.y.ticks = []
    plot.x.spine = plot.y.spine = False
    words = ", ".join(f"{name} {percent(share, 0)}" for name, share in shares)
    numbers = (("stage", "share of the budget"), *((name, percent(share)) for name, share in shares))
    return picture(plot, "budget shares", f"Budget shares: {words}.", numbers)


def training(fit: Fit) -> Picture:
    """The loss over the steps of training, with the noise floor."""
    plot = Plot(400, 270)
    plot.y.grid = True
    plot.line(fit.steps, fit.loss, SYNTHETIC, 2)
    plot.points(fit.steps, fit.loss, SYNTHETIC, size=2)
    plot.named("loss", SYNTHETIC, "line")
    if len(fit.held_out) == len(fit.steps):
        plot.line(fit.steps, fit.held_out, REAL, 1.6, "5 3")
        plot.named("held-out features", REAL, "dashed")
    plot.rule(fit.floor, RELEASED)
    plot.named("noise floor", RELEASED, "dotted")
    if fit.loss and min(fit.loss) > 0 and max(fit.loss) > 8 * max(fit.floor, 1e-12) and fit.floor > 0:
        plot.y.log = True
    else:
        plot.y.low = 0
    plot.x.label = "training step"
    end = f" and {fit.held_out[-1]:.4g} on held-out features" if fit.held_out else ""
    alternative = (
        f"Training curve: the loss goes from {fit.loss[0]:.4g} to {fit.loss[-1]:.4g}{end}; the noise floor is "
        f"{fit.floor:.4g}."
    )
    held = [f"{h:.5g}" for h in fit.held_out] or [""] * len(fit.steps)
    rows = tuple((str(s), f"{v:.5g}", h) for s, v, h in zip(fit.steps, fit.loss, held, strict=False))
    return picture(plot, "training curve", alternative, (("step", "loss", "held out"), *rows))


def signal(signals: Sequence[Signal]) -> Picture:
    """How far each block of the release stands above its noise, weakest last."""
    ordered = sorted(signals, key=lambda s: -s.signal_to_noise)
    shown = ordered if len(ordered) <= 24 else ordered[:12] + ordered[-12:]
    plot = Plot(400, 60 + 19 * len(shown))
    places = [float(len(shown) - 1 - i) for i in range(len(shown))]
    values = [max(1e-2, min(s.signal_to_noise, 1e6)) for s in shown]
    plot.segments([(1e-2, p, v, p) for p, v in zip(places, values, strict=True)], GRID, 1.4)
    plot.points(values, places, SYNTHETIC)
    plot.rule(1, RELEASED, upright=True)
    plot.x.log, plot.x.low = True, 1e-2
    plot.y.low, plot.y.high = -0.7, len(shown) - 0.3
    plot.y.ticks = [(p, short(block(s.block), 24)) for p, s in zip(places, shown, strict=True)]
    plot.x.label = "signal ÷ noise (below 1: mostly noise)"
    weak = sum(s.signal_to_noise < 1 for s in signals)
    alternative = (
        f"Signal to noise of {len(signals)} measured blocks: the strongest is {block(ordered[0].block)} at "
        f"{ordered[0].signal_to_noise:.3g}, the weakest {block(ordered[-1].block)} at "
        f"{ordered[-1].signal_to_noise:.3g}; {weak} are mostly noise."
    )
    rows = tuple(
        (s.stage, block(s.block), f"{s.coordinates:,}", f"{s.noise:.3g}", f"{s.signal_to_noise:.3g}") for s in shown
    )
    header = ("stage", "block", "coordinates", "noise (rows)", "signal ÷ noise")
    return picture(plot, "signal to noise", alternative, (header, *rows))


def heat_map(
    name: str, columns: Sequence[str], matrix: np.ndarray, difference: bool = False, width: int = 330
) -> Picture:
    """Association of every pair of columns, 0 to 1; a difference is drawn on a scale of its own."""
    size = int(min(900, max(width, 120 + 15 * len(columns))))
    shown = np.where(np.eye(len(columns), dtype=bool), np.nan, matrix)
    top = 1.0 if not difference else max(0.1, float(np.nanmax(shown)) if len(columns) > 1 else 0.1)
    colour = RELEASED if difference else SYNTHETIC
    labels = [short(c, 16) for c in columns]
    plot = Plot(size, size + 24)
    grid(plot, shown / top, labels, labels, colour)
    longest = max((wide(label) for label in labels), default=0.0)
    step = len(columns) * 0.6 / SCALE  # the key: a strip of boxes above the map
    above = -0.5 - 14 * len(columns) / max(60.0, size - longest)
    for i in range(SCALE):
        box = (i * step, above, (i + 1) * step, above + (-0.5 - above) * 0.6)
        plot.boxes([box], colour, faint((i + 0.5) / SCALE))
    for at, words in ((0.0, "0"), (SCALE * step, f"{top:.2g}")):
        plot.write(at, above, words, MUTED, 10, dy=-0.3)
    plot.y.high, plot.y.low = 2 * above + 0.5, len(columns) - 0.5
    pairs = [(matrix[i, j], columns[j], columns[i]) for i in range(len(columns)) for j in range(i)]
    strongest = sorted(pairs, reverse=True)[:3]
    words = "; ".join(f"{a} and {b} {value:.2f}" for value, a, b in strongest)
    what = "largest differences" if difference else "strongest pairs"
    rows = tuple((a, b, f"{value:.3f}") for value, a, b in sorted(pairs, reverse=True)[:40])
    return picture(plot, name, f"{name}: {what} {words or 'none'}.", (("column", "with", "association"), *rows))


def utility_bars(utility: Utility, metric: str) -> Picture:
    """Each model: from the floor, over the synthetic rows' score, to the ceiling."""
    models = [*utility.models, utility.mean]
    plot = Plot(400, 100 + 23 * len(models))
    places = [float(len(models) - 1 - i) for i in range(len(models) - 1)] + [-0.5]
    ours = [m.synthetic[metric] for m in models]
    floor = [m.floor[metric] for m in models]
    ceiling = [m.ceiling[metric] if m.ceiling else m.synthetic[metric] for m in models]
    plot.x.grid = True
    start = min(min(floor), min(ours), 0.5 if utility.task == "binary" and metric.startswith("roc") else 0.0)
    plot.bars(places, ours, 0.5, SYNTHETIC, start=start)
    plot.points(floor, places, FLOOR, "stroke", 4)
    plot.points(ceiling, places, CEILING, "diamond", 4.5)
    plot.named("trained on synthetic", SYNTHETIC)
    plot.named("floor: nothing to learn", FLOOR, "stroke")
    plot.named("ceiling: real rows", CEILING, "diamond")
    plot.y.low, plot.y.high = -1, len(models) - 0.5
    plot.y.ticks = [(p, m.model) for p, m in zip(places, models, strict=True)]
    plot.x.low = start - 0.01
    plot.x.high = max(1.0, max(ceiling)) if utility.task != "regression" else max(*ceiling, *ours) + 0.05
    plot.x.label = METRIC_NAMES[metric]
    mean = utility.mean
    top = f", ceiling {mean.ceiling[metric]:.3f}" if mean.ceiling else ""
    alternative = (
        f"Utility bars, {METRIC_NAMES[metric]} for predicting {utility.label}: mean of {len(utility.models)} models "
        f"{mean.synthetic[metric]:.3f} trained on synthetic rows, floor {mean.floor[metric]:.3f}{top}."
    )
    rows = tuple(
        (
            m.model,
            f"{m.synthetic[metric]:.3f}",
            f"{m.floor[metric]:.3f}",
            f"{m.ceiling[metric]:.3f}" if m.ceiling else "",
        )
        for m in models
    )
    return picture(plot, f"utility {metric}", alternative, (("model", "synthetic", "floor", "ceiling"), *rows))


def class_balance(classes: Sequence[str], synthetic: Sequence[float], released: Sequence[float] | None) -> Picture:
    """Share of each class in the synthetic images, beside the released counts."""
    plot = Plot(420, 60 + 24 * len(classes))
    places = [float(len(classes) - 1 - i) for i in range(len(classes))]
    plot.bars(places, [100 * s for s in synthetic], 0.55, SYNTHETIC)
    if released is not None:
        plot.points([100 * r for r in released], places, RELEASED, "diamond", 4.5)
        plot.named("synthetic", SYNTHETIC)
        plot.named("released counts", RELEASED, "diamond")
    plot.y.low, plot.y.high = -0.6, len(classes) - 0.4
    plot.y.ticks = [(p, short(c, 20)) for p, c in zip(places, classes, strict=True)]
    plot.x.low, plot.x.label = 0, "share, %"
    words = ", ".join(f"{c} {percent(s)}" for c, s in zip(classes, synthetic, strict=True))
    rows = tuple((c, percent(s, 2)) for c, s in zip(classes, synthetic, strict=True))
    return picture(
        plot, "class balance", f"Class balance of the synthetic images: {words}.", (("class", "share"), *rows)
    )


def grid(plot: Plot, shares: np.ndarray, rows: Sequence[str], columns: Sequence[str], colour: str) -> None:
    """A box for each cell of a matrix, the fuller the higher its share (0 to 1; none where it is not a number)."""
    for i, j in np.ndindex(shares.shape):
        if not np.isnan(shares[i, j]):
            plot.boxes([(j - 0.5, i - 0.5, j + 0.5, i + 0.5)], colour, faint(float(shares[i, j])))
    plot.x.low, plot.x.high, plot.y.low, plot.y.high = -0.5, len(columns) - 0.5, len(rows) - 0.5, -0.5
    plot.x.ticks, plot.y.ticks = list(enumerate(columns)), list(enumerate(rows))
    plot.x.turned, plot.x.spine, plot.y.spine = True, False, False


def faint(share: float) -> float:
    """From next to nothing to the full colour: legible on light and on dark."""
    return 0.04 + 0.96 * min(1.0, max(0.0, share))
