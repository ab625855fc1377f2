"""Pictures: each takes plain numbers and says in words what it shows."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.ticker import MaxNLocator

from dpmerf.evaluate.diagnostics import Fit, Signal
from dpmerf.evaluate.results import Utility
from dpmerf.evaluate.text import METRIC_NAMES
from dpmerf.report.phrases import block, percent, short
from dpmerf.report.svg import (
    CEILING,
    FLOOR,
    GRID,
    INK,
    MUTED,
    PAPER,
    REAL,
    RELEASED,
    SYNTHETIC,
    Picture,
    canvas,
    legend,
    picture,
)

SHADES = ("#0a7d70", "#3b4a7b", "#b4530a", "#8a8b8c", "#5b3fa1")


def odds(accuracy: float, epsilon: float) -> Picture:
    """A line from coin toss to certainty, with the best attacker's place on it."""
    figure, axes = canvas(400, 92)
    axes.barh([0], [50], left=50, height=0.34, color=GRID)
    axes.barh([0], [100 * accuracy - 50], left=50, height=0.34, color=SYNTHETIC)
    axes.plot([100 * accuracy], [0], "o", color=SYNTHETIC, markersize=9, markeredgecolor=PAPER)
    axes.annotate(percent(accuracy), (100 * accuracy, 0.3), ha="left", va="bottom", color=INK, fontweight="bold")
    axes.set_xlim(49, 101)
    axes.set_ylim(-0.4, 0.9)
    axes.set_yticks([])
    axes.set_xticks([50, 75, 100], ["50 %\ncoin toss", "75 %", "100 %\ncertain"])
    _bare(axes)
    alternative = (
        f"Attacker's odds at ε = {epsilon:g}: someone who knows everything else guesses right at most "
        f"{percent(accuracy)} of the time, between a coin toss at 50 % and certainty at 100 %."
    )
    return picture(figure, "attacker's odds", alternative, (("guess", "right"), ("best attacker", percent(accuracy))))


def budget(shares: Sequence[tuple[str, float]]) -> Picture:
    """One bar cut into the stages' shares of the budget."""
    figure, axes = canvas(400, 44 + 22 * ((len(shares) + 1) // 2))
    left = 0.0
    for index, (name, share) in enumerate(shares):
        axes.barh(
            [0], [share], left=left, height=0.5, color=SHADES[index % len(SHADES)], label=f"{name} {percent(share, 0)}"
        )
        left += share
    axes.set_xlim(0, 1)
    axes.set_yticks([])
    axes.set_xticks([])
    _bare(axes)
    legend(figure, columns=2)
    words = ", ".join(f"{name} {percent(share, 0)}" for name, share in shares)
    numbers = (("stage", "share of the budget"), *((name, percent(share)) for name, share in shares))
    return picture(figure, "budget shares", f"Budget shares: {words}.", numbers)


def training(fit: Fit) -> Picture:
    """The loss over the steps of training, with the noise floor."""
    figure, axes = canvas(400, 270)
    axes.grid(axis="y", linewidth=0.6)
    axes.plot(fit.steps, fit.loss, color=SYNTHETIC, linewidth=2, marker="o", markersize=3.5, label="loss")
    if len(fit.held_out) == len(fit.steps):
        axes.plot(
            fit.steps,
            fit.held_out,
            color=REAL,
            linewidth=1.6,
            linestyle="--",
            marker="o",
            markersize=3.5,
            label="held-out features",
        )
    axes.axhline(fit.floor, color=RELEASED, linewidth=1.6, linestyle=":", label="noise floor")
    if fit.loss and min(fit.loss) > 0 and max(fit.loss) > 8 * max(fit.floor, 1e-12) and fit.floor > 0:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("training step")
    legend(figure, columns=3)
    end = f" and {fit.held_out[-1]:.4g} on held-out features" if fit.held_out else ""
    alternative = (
        f"Training curve: the loss goes from {fit.loss[0]:.4g} to {fit.loss[-1]:.4g}{end}; the noise floor is "
        f"{fit.floor:.4g}."
    )
    held = [f"{h:.5g}" for h in fit.held_out] or [""] * len(fit.steps)
    rows = tuple((str(s), f"{v:.5g}", h) for s, v, h in zip(fit.steps, fit.loss, held, strict=False))
    return picture(figure, "training curve", alternative, (("step", "loss", "held out"), *rows))


def signal(signals: Sequence[Signal]) -> Picture:
    """How far each block of the release stands above its noise, weakest last."""
    ordered = sorted(signals, key=lambda s: -s.signal_to_noise)
    shown = ordered if len(ordered) <= 24 else ordered[:12] + ordered[-12:]
    figure, axes = canvas(400, 60 + 19 * len(shown))
    places = np.arange(len(shown))[::-1]
    values = [max(1e-2, min(s.signal_to_noise, 1e6)) for s in shown]
    axes.hlines(places, 1e-2, values, color=GRID, linewidth=1.4)
    axes.plot(values, places, "o", color=SYNTHETIC, markersize=6)
    axes.axvline(1, color=RELEASED, linewidth=1.4, linestyle=":")
    axes.set_xscale("log")
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_yticks(places, [short(block(s.block), 24) for s in shown])
    axes.set_xlabel("signal ÷ noise (below 1: mostly noise)")
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
    return picture(figure, "signal to noise", alternative, (header, *rows))


def heat_map(
    name: str, columns: Sequence[str], matrix: np.ndarray, difference: bool = False, width: int = 330
) -> Picture:
    """Association of every pair of columns, 0 to 1; a difference is drawn on a scale of its own."""
    size = int(min(900, max(width, 120 + 15 * len(columns))))
    figure, axes = canvas(size, size)
    shown = np.where(np.eye(len(columns), dtype=bool), np.nan, matrix)
    top = 1.0 if not difference else max(0.1, float(np.nanmax(shown)) if len(columns) > 1 else 0.1)
    colours = fading(RELEASED if difference else SYNTHETIC)
    image = axes.imshow(shown, vmin=0, vmax=top, cmap=colours, interpolation="none")
    labels = [short(c, 16) for c in columns]
    axes.set_xticks(range(len(columns)), labels, rotation=90, fontsize=10)
    axes.set_yticks(range(len(columns)), labels, fontsize=10)
    _bare(axes)
    scale = figure.colorbar(image, ax=axes, location="top", shrink=0.6, aspect=30, pad=0.02)
    scale.outline.set_visible(False)  # type: ignore[operator]
    scale.ax.tick_params(length=0, colors=MUTED, labelsize=10)
    pairs = [(matrix[i, j], columns[j], columns[i]) for i in range(len(columns)) for j in range(i)]
    strongest = sorted(pairs, reverse=True)[:3]
    words = "; ".join(f"{a} and {b} {value:.2f}" for value, a, b in strongest)
    what = "largest differences" if difference else "strongest pairs"
    rows = tuple((a, b, f"{value:.3f}") for value, a, b in sorted(pairs, reverse=True)[:40])
    return picture(figure, name, f"{name}: {what} {words or 'none'}.", (("column", "with", "association"), *rows))


def utility_bars(utility: Utility, metric: str) -> Picture:
    """Each model: from the floor, over the synthetic rows' score, to the ceiling."""
    models = [*utility.models, utility.mean]
    figure, axes = canvas(400, 100 + 23 * len(models))
    places = np.arange(len(models))[::-1]
    places = np.where(np.arange(len(models)) == len(models) - 1, places - 0.5, places)
    ours = [m.synthetic[metric] for m in models]
    floor = [m.floor[metric] for m in models]
    ceiling = [m.ceiling[metric] if m.ceiling else m.synthetic[metric] for m in models]
    axes.grid(axis="x", linewidth=0.6)
    start = min(min(floor), min(ours), 0.5 if utility.task == "binary" and metric.startswith("roc") else 0.0)
    axes.barh(places, [o - start for o in ours], left=start, height=0.5, color=SYNTHETIC, label="trained on synthetic")
    axes.plot(floor, places, "|", color=FLOOR, markersize=15, markeredgewidth=2.6, label="floor: nothing to learn")
    axes.plot(ceiling, places, "D", color=CEILING, markersize=5, markeredgecolor=PAPER, label="ceiling: real rows")
    axes.set_yticks(places, [m.model for m in models])
    axes.set_xlim(start - 0.01, max(1.0, max(ceiling)) if utility.task != "regression" else max(*ceiling, *ours) + 0.05)
    axes.set_xlabel(METRIC_NAMES[metric])
    legend(figure)
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
    return picture(figure, f"utility {metric}", alternative, (("model", "synthetic", "floor", "ceiling"), *rows))


def class_balance(classes: Sequence[str], synthetic: Sequence[float], released: Sequence[float] | None) -> Picture:
    """Share of each class in the synthetic images, beside the released counts."""
    figure, axes = canvas(420, 60 + 24 * len(classes))
    places = np.arange(len(classes))[::-1]
    axes.barh(places, [100 * s for s in synthetic], height=0.55, color=SYNTHETIC, label="synthetic")
    if released is not None:
        axes.plot([100 * r for r in released], places, "D", color=RELEASED, markersize=5, label="released counts")
        legend(figure, columns=2)
    axes.set_yticks(places, [short(c, 20) for c in classes])
    axes.set_xlabel("share, %")
    words = ", ".join(f"{c} {percent(s)}" for c, s in zip(classes, synthetic, strict=True))
    rows = tuple((c, percent(s, 2)) for c, s in zip(classes, synthetic, strict=True))
    return picture(
        figure, "class balance", f"Class balance of the synthetic images: {words}.", (("class", "share"), *rows)
    )


def fading(colour: str) -> ListedColormap:
    """From nothing to the full colour: legible on light and on dark."""
    red, green, blue = to_rgb(colour)
    return ListedColormap([(red, green, blue, 0.04 + 0.96 * i / 255) for i in range(256)])


def _bare(axes: matplotlib.axes.Axes) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
