"""Markup: HTML from plain values. Everything that comes from outside is escaped here."""

from __future__ import annotations

import html
from collections.abc import Sequence

from dpmerf.report.svg import Picture

MARK = '<strong class="mark">NOT COVERED</strong>'


def text(value: str) -> str:
    """Escaped text."""
    return html.escape(value, quote=True)


def section(anchor: str, title: str, *parts: str, covered: bool = True) -> str:
    """A section with a heading; what was computed from real rows carries its mark."""
    mark = "" if covered else f" {MARK}"
    kind = "" if covered else ' class="not-covered"'
    body = "\n".join(p for p in parts if p)
    heading = f'<h2 id="{anchor}-h">{text(title)}{mark}</h2>'
    return f'<section id="{anchor}"{kind} aria-labelledby="{anchor}-h">{heading}\n{body}\n</section>'


def lead(words: str) -> str:
    """The first paragraph of a section."""
    return f'<p class="lead">{text(words)}</p>'


def figure(picture: Picture, title: str = "", caption: str = "", covered: bool = True, scroll: bool = False) -> str:
    """A picture with its title, caption and numbers."""
    mark = "" if covered else f" {MARK}"
    heading = f"<h3>{text(title)}{mark}</h3>" if title else ""
    below = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    drawing = picture.svg
    if scroll:
        drawing = f'<div class="scroll" tabindex="0" role="group" aria-label="{text(picture.name)}">{drawing}</div>'
    numbers = ""
    if picture.numbers:
        inner = table(picture.numbers[0], picture.numbers[1:])
        numbers = f"<details><summary>Numbers of this picture</summary>{inner}</details>"
    return f"<figure>{heading}{drawing}{below}{numbers}</figure>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", covered: bool = True) -> str:
    """A table that scrolls sideways on a small screen."""
    mark = "" if covered else f" {MARK}"
    title = f"<caption>{text(caption)}{mark}</caption>" if caption else ""
    head = "".join(f'<th scope="col">{text(h)}</th>' for h in header)
    body = "".join(
        f'<tr><th scope="row">{text(row[0])}</th>' + "".join(f"<td>{text(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    name = text(caption or "numbers")
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{name}">'
        f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def tiles(facts: Sequence[tuple[str, str, str, bool]]) -> str:
    """Key figures: (name, value, explanation, covered)."""
    cells = "".join(
        f'<div class="tile"><dt>{text(name)}</dt><dd>{text(value)}<small>{text(why)}{"" if covered else " " + MARK}'
        "</small></dd></div>"
        for name, value, why, covered in facts
    )
    return f'<dl class="tiles">{cells}</dl>'


def key(*entries: tuple[str, str]) -> str:
    """What the colours of a section's pictures mean: (CSS class, words)."""
    items = "".join(f'<li><span class="swatch {kind}"></span>{text(words)}</li>' for kind, words in entries)
    return f'<ul class="key">{items}</ul>'


def grid(kind: str, parts: Sequence[str]) -> str:
    """Parts side by side."""
    return f'<div class="{kind}">' + "\n".join(parts) + "</div>"
