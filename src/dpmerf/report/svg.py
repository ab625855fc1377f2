"""SVG: small drawings as inline pictures that follow the page's colours and carry their own description.

Colours are CSS variables of the page, so one picture serves light, dark and print. Text stays text. Nothing in the
result points outside the page. Written by hand because a page of pictures takes a plotting library seconds.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

INK, MUTED, GRID, PAPER = "var(--ink)", "var(--muted)", "var(--grid)", "var(--card)"
SYNTHETIC, REAL, RELEASED, FLOOR, CEILING = (
    f"var(--{name})" for name in ("synthetic", "real", "released", "floor", "ceiling")
)
TEXT, LINE = 11, 13.5  # of tick labels: size and distance, CSS pixels
MANY_TICKS = 6  # at most so many where they are chosen

Place = Callable[[float], float]  # a value -> a pixel
Numbers = Sequence[float] | np.ndarray


@final
@dataclass(frozen=True)
class Picture:
    """An inline SVG, what it is called, what it shows in words, and its numbers as a table (first row: header)."""

    name: str
    svg: str
    alternative: str
    numbers: tuple[tuple[str, ...], ...] = ()


@final
@dataclass
class Side:
    """One axis: its range (as far as the marks reach, unless set), scale, ticks (chosen, unless set) and words."""

    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: Sequence[tuple[float, str]] | None = None
    label: str = ""
    grid: bool = False
    spine: bool = True
    turned: bool = False  # tick labels run upwards
    reach: list[float] = field(default_factory=list)

    def range(self) -> tuple[float, float]:
        """Both ends, never equal; with a little air where they are not set."""
        low = min(self.reach, default=0.0) if self.low is None else self.low
        high = max(self.reach, default=1.0) if self.high is None else self.high
        if self.log:
            low, high = max(low, 1e-12), max(high, 1e-12)
            air = (high / low) ** 0.05 if high > low else 2.0
            return (low if self.low is not None else low / air), (high if self.high is not None else high * air)
        air = (high - low) * 0.05 if high > low else 0.5
        return (low if self.low is not None else low - air), (high if self.high is not None else high + air)

    def place(self, start: float, end: float) -> Place:
        """From values to pixels."""
        low, high = self.range()
        if self.log:
            a, b = math.log(low), math.log(high)
            return lambda v: start + (end - start) * (math.log(max(v, 1e-12)) - a) / (b - a)
        return lambda v: start + (end - start) * (v - low) / (high - low)

    def marks(self) -> list[tuple[float, str]]:
        """Where the ticks are and what they say."""
        if self.ticks is not None:
            return list(self.ticks)
        low, high = self.range()
        if self.log:
            powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
            every = max(1, math.ceil(len(powers) / MANY_TICKS))
            if len(powers) > 1:
                return [(10.0**p, f"{10.0**p:,g}" if -4 < p < 6 else f"1e{p}") for p in powers[::every]]
        rough = (high - low) / (MANY_TICKS - 1)
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * (1 - 1e-9))
        first = math.ceil(low / step - 1e-9)
        found = [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]
        return [(v, f"{v:,g}" if abs(v) >= 1 else f"{v:g}") for v in found if not (self.log and v <= 0)]


@final
class Plot:
    """Marks on two axes, written as SVG. Values are in the axes' own units; y runs upwards."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.x, self.y = Side(), Side()
        self._drawn: list[Callable[[Place, Place], str]] = []
        self._legend: list[tuple[str, str, str]] = []  # words, colour, shape

    def _reached(self, xs: Numbers, ys: Numbers) -> None:
        self.x.reach += [float(v) for v in xs]
        self.y.reach += [float(v) for v in ys]

    def named(self, words: str, colour: str, shape: str = "bar") -> None:
        """A line of the legend: a bar, a line, or a mark of that shape."""
        self._legend.append((words, colour, shape))

    def boxes(self, boxes: Sequence[tuple[float, float, float, float]], colour: str, opacity: float = 1.0) -> None:
        """Filled rectangles: from x, from y, to x, to y."""
        self._reached([v for b in boxes for v in b[::2]], [v for b in boxes for v in b[1::2]])

        def draw(x: Place, y: Place) -> str:
            parts = []
            for x0, y0, x1, y1 in boxes:
                left, right = sorted((x(x0), x(x1)))
                top, bottom = sorted((y(y0), y(y1)))
                parts.append(f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}Z")
            return f'<path fill="{colour}"{_opacity(opacity)} d="{"".join(parts)}"/>'

        self._drawn.append(draw)

    def columns(self, places: Numbers, heights: Numbers, width: float, colour: str, opacity: float = 1.0) -> None:
        """Upright bars from zero."""
        self.boxes([(p - width / 2, 0.0, p + width / 2, h) for p, h in zip(places, heights, strict=True)],
                   colour, opacity)  # fmt: skip

    def bars(self, places: Numbers, ends: Numbers, width: float, colour: str,
             start: float = 0.0, opacity: float = 1.0) -> None:  # fmt: skip
        """Bars that lie, from `start`."""
        self.boxes([(start, p - width / 2, e, p + width / 2) for p, e in zip(places, ends, strict=True)],
                   colour, opacity)  # fmt: skip

    def line(self, xs: Numbers, ys: Numbers, colour: str, width: float = 1.6, dash: str = "") -> None:
        """A line through points."""
        self._reached(xs, ys)

        def draw(x: Place, y: Place) -> str:
            points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(xs, ys, strict=True))
            return f'<polyline fill="none" stroke="{colour}" stroke-width="{width:g}"{_dash(dash)} points="{points}"/>'

        self._drawn.append(draw)

    def segments(self, lines: Sequence[tuple[float, float, float, float]], colour: str, width: float = 1.3) -> None:
        """Straight pieces: from x, from y, to x, to y."""
        self._reached([v for b in lines for v in b[::2]], [v for b in lines for v in b[1::2]])

        def draw(x: Place, y: Place) -> str:
            path = "".join(f"M{x(a):.1f} {y(b):.1f}L{x(c):.1f} {y(d):.1f}" for a, b, c, d in lines)
            return f'<path stroke="{colour}" stroke-width="{width:g}" d="{path}"/>'

        self._drawn.append(draw)

    def points(self, xs: Numbers, ys: Numbers, colour: str, shape: str = "dot", size: float = 3.0) -> None:
        """A mark at each point: dot, diamond or stroke."""
        self._reached(xs, ys)
        self._drawn.append(
            lambda x, y: "".join(_mark(shape, x(a), y(b), colour, size) for a, b in zip(xs, ys, strict=True))
        )

    def rule(self, at: float, colour: str, *, upright: bool = False) -> None:
        """A dotted line across the whole drawing."""
        self._reached([at] if upright else [], [] if upright else [at])

        def draw(x: Place, y: Place) -> str:
            (x0, x1), (y0, y1) = self.x.range(), self.y.range()
            ends = (x(at), y(y0), x(at), y(y1)) if upright else (x(x0), y(at), x(x1), y(at))
            return _line(*ends, colour, 1.5, "2 3")

        self._drawn.append(draw)

    def write(self, at_x: float, at_y: float, words: str, colour: str = INK, size: float = TEXT,
              anchor: str = "middle", dy: float = 0.35, bold: bool = False) -> None:  # fmt: skip
        """Words at a point; `dy` moves them down, in their own size."""
        self._drawn.append(lambda x, y: _text(x(at_x), y(at_y) + dy * size, words, colour, size, anchor, bold))

    # --- the whole -------------------------------------------------------------------------------------------------

    def svg(self, alternative: str) -> str:
        """The drawing, with its description."""
        body = self._body()
        return (
            f'<svg role="img" aria-label="{html.escape(alternative, quote=True)}" '
            f'viewBox="0 0 {self.width} {self.height}" style="max-width:{1.2 * self.width:.0f}px" '
            f'xmlns="http://www.w3.org/2000/svg">\n{body}\n</svg>'
        )

    def _body(self) -> str:
        x_ticks, y_ticks = self.x.marks(), self.y.marks()
        left = max((wide(words) for _, words in y_ticks), default=0.0) + (8 if y_ticks else 2)
        below = max((wide(w) + 4 if self.x.turned else LINE * (w.count("\n") + 1) for _, w in x_ticks), default=0.0)
        rows, across = self._legend_rows()
        title = LINE if self.x.label else 0.0
        bottom = self.height - below - title - 18.0 * rows - 8
        top = 6.0 + (LINE if self.y.label else 0.0)
        right = self.width - max([8.0, *(wide(w) / 2 - 10 for _, w in x_ticks[-1:] if not self.x.turned)])
        x, y = self.x.place(left, right), self.y.place(bottom, top)
        parts = []
        for v, words in y_ticks:
            if self.y.grid:
                parts.append(_line(left, y(v), right, y(v), GRID, 0.6))
            parts.append(_text(left - 6, y(v) + 0.35 * TEXT, words, MUTED, TEXT, "end"))
        for v, words in x_ticks:
            if self.x.grid:
                parts.append(_line(x(v), top, x(v), bottom, GRID, 0.6))
            parts.append(self._x_tick(x(v), bottom, words, left, right))
        parts += [draw(x, y) for draw in self._drawn]
        if self.x.spine:
            parts.append(_line(left, bottom, right, bottom, GRID, 1))
        if self.y.spine:
            parts.append(_line(left, top, left, bottom, GRID, 1))
        if self.x.label:
            parts.append(_text((left + right) / 2, bottom + below + LINE, self.x.label, MUTED, TEXT, "middle"))
        if self.y.label:
            parts.append(_text(left, LINE - 3, self.y.label, MUTED, TEXT, "start"))
        for i, (words, colour, shape) in enumerate(self._legend):
            at_x, at_y = 4 + (i % across) * self.width / across, bottom + below + title + 20 + 18 * (i // across)
            parts += [_swatch(shape, at_x, at_y - 4, colour), _text(at_x + 20, at_y, words, INK, TEXT, "start")]
        return "\n".join(parts)

    def _x_tick(self, at: float, bottom: float, words: str, left: float, right: float) -> str:
        if self.x.turned:
            return (
                f'<text transform="translate({at + 0.35 * TEXT:.1f} {bottom + 5:.1f}) rotate(-90)" text-anchor="end" '
                f'font-size="{TEXT}" fill="{MUTED}">{html.escape(words)}</text>'
            )
        half = max(wide(part) for part in words.split("\n")) / 2
        anchor = "start" if at - half < left - 12 else "end" if at + half > right + 10 else "middle"
        lines = words.split("\n")
        return "".join(_text(at, bottom + LINE * (i + 1), part, MUTED, TEXT, anchor) for i, part in enumerate(lines))

    def _legend_rows(self) -> tuple[int, int]:
        """How many rows the legend has, and how many entries stand in one."""
        if not self._legend:
            return 0, 1
        longest = max(wide(words) for words, _, _ in self._legend) + 30
        across = max(1, min(len(self._legend), int(self.width // longest)))
        return math.ceil(len(self._legend) / across), across


def picture(plot: Plot, name: str, alternative: str, numbers: tuple[tuple[str, ...], ...] = ()) -> Picture:
    """The finished drawing, by its name on the page."""
    return Picture(name, plot.svg(alternative), alternative, numbers)


def wide(words: str, size: float = TEXT) -> float:
    """About how many pixels wide words are: a page's fonts differ, and pictures must hold all of them."""
    return size * max((sum(map(_wide, part)) for part in words.split("\n")), default=0.0)


def _wide(sign: str) -> float:
    if unicodedata.east_asian_width(sign) in "WF":
        return 1.0
    return 0.86 if sign in "<>=+~±÷×MWm@%" else 0.58


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' fill-opacity="{opacity:.3g}"'


def _dash(dash: str) -> str:
    return f' stroke-dasharray="{dash}"' if dash else ""


def _line(x0: float, y0: float, x1: float, y1: float, colour: str, width: float, dash: str = "") -> str:
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"{_dash(dash)}/>'
    )


def _text(x: float, y: float, words: str, colour: str, size: float, anchor: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}" fill="{colour}"{weight}>'
        f"{html.escape(words)}</text>"
    )


def _mark(shape: str, x: float, y: float, colour: str, size: float) -> str:
    if shape == "stroke":
        return _line(x, y - 2 * size, x, y + 2 * size, colour, 2.4)
    if shape == "diamond":
        return (
            f'<path fill="{colour}" stroke="{PAPER}" stroke-width="0.8" '
            f'd="M{x:.1f} {y - size:.1f}l{size:g} {size:g}l-{size:g} {size:g}l-{size:g} -{size:g}Z"/>'
        )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" fill="{colour}"/>'


def _swatch(shape: str, x: float, y: float, colour: str) -> str:
    if shape == "bar":
        return f'<rect x="{x:.1f}" y="{y - 4:.1f}" width="14" height="8" fill="{colour}"/>'
    if shape in ("line", "dashed", "dotted"):
        return _line(x, y, x + 14, y, colour, 2, {"line": "", "dashed": "5 3", "dotted": "2 3"}[shape])
    return _mark(shape, x + 7, y, colour, 3.5)
