"""SVG: matplotlib figures as inline pictures that follow the page's colours and carry their own description.

Colours are written as placeholders and become CSS variables, so one picture serves light, dark and print. Text stays
text. Nothing in the result points outside the page.
"""

from __future__ import annotations

import html
import io
import re
from dataclasses import dataclass
from typing import Any, final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#111213", "#515253", "#d1d2d3", "#fefdfc"
SYNTHETIC, REAL, RELEASED, FLOOR, CEILING = "#0a7d70", "#3b4a7b", "#b4530a", "#8a8b8c", "#5b3fa1"
VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--card",
    SYNTHETIC: "--synthetic",
    REAL: "--real",
    RELEASED: "--released",
    FLOOR: "--floor",
    CEILING: "--ceiling",
}
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 12,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
}


@final
@dataclass(frozen=True)
class Picture:
    """An inline SVG, what it is called, what it shows in words, and its numbers as a table (first row: header)."""

    name: str
    svg: str
    alternative: str
    numbers: tuple[tuple[str, ...], ...] = ()


def canvas(width: int, height: int) -> tuple[Figure, Axes]:
    """A figure of so many CSS pixels, in the page's style."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        axes.tick_params(length=0)
    return figure, axes


def legend(figure: Figure, columns: int = 1) -> None:
    """A legend below the drawing, without a frame."""
    figure.legend(loc="outside lower left", ncols=columns, frameon=False, labelcolor=INK, fontsize=11, handlelength=1.2)


def picture(figure: Figure, name: str, alternative: str, numbers: tuple[tuple[str, ...], ...] = ()) -> Picture:
    """Draw the figure. `name` must be unique on the page: it keeps the ids of pictures apart."""
    stream = io.StringIO()
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": name}):
        FigureCanvasSVG(figure)
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return Picture(name, _inline(stream.getvalue(), name, alternative), alternative, numbers)


def _inline(text: str, name: str, alternative: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)
    text = re.sub(r"font: ([^;\"]*?)([\d.]+px)[^;\"]*", r"font-size: \2", text)
    text = re.sub(r"font-family: [^;\"]*;?\s*", "", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    slug = re.sub(r"\W+", "-", name)
    text = re.sub(r'\bid="', f'id="{slug}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{slug}-", text)
    head = re.match(r"<svg[^>]*>", text)
    assert head is not None
    box = re.search(r'viewBox="([^"]*)"', head[0])
    size = box[1].split() if box else ["0", "0", "0", "0"]
    label = html.escape(alternative, quote=True)
    start = (
        f'<svg role="img" aria-label="{label}" viewBox="{" ".join(size)}" '
        f'style="max-width:{1.2 * float(size[2]):.0f}px" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return re.sub(r"\n\s*", "\n", start + text[head.end() :]).strip()
