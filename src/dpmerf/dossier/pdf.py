"""PDF: the same dossier on A4, by reportlab (extra `pack`) with the fonts that matplotlib brings along."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import Any

import matplotlib

from dpmerf.dossier.content import Dossier
from dpmerf.dossier.parts import Blank, Grid, Items, Part, Signatures, Text
from dpmerf.errors import ArtefactError

FONTS = {"Body": "DejaVuSans.ttf", "Bold": "DejaVuSans-Bold.ttf"}  # with Greek letters and boxes to tick
SIZE, LEADING = 8.6, 12.2
INK, MUTED, LINE = "#17202a", "#4d5966", "#c9d1d9"


def pdf(dossier: Dossier) -> bytes:
    """The document as the bytes of a PDF file."""
    try:
        from reportlab.lib.pagesizes import A4
        from reportlab.lib.units import mm
        from reportlab.pdfbase import pdfmetrics
        from reportlab.pdfbase.ttfonts import TTFont
        from reportlab.platypus import SimpleDocTemplate
    except ModuleNotFoundError:
        raise ArtefactError(
            "a PDF needs the package reportlab: pip install 'dpmerf[pack]', or print the HTML"
        ) from None
    for name, file in FONTS.items():
        pdfmetrics.registerFont(TTFont(name, Path(matplotlib.get_data_path()) / "fonts" / "ttf" / file))
    pdfmetrics.registerFontFamily("Body", normal="Body", bold="Bold", italic="Body", boldItalic="Bold")
    made = io.BytesIO()
    document = SimpleDocTemplate(
        made,
        pagesize=A4,
        leftMargin=18 * mm,
        rightMargin=18 * mm,
        topMargin=16 * mm,
        bottomMargin=18 * mm,
        title=f"{dossier.title}: {dossier.subtitle}",
        invariant=1,  # equal content, equal bytes
    )

    def foot(canvas: Any, page: Any) -> None:
        canvas.setFont("Body", 7)
        canvas.setFillColor(MUTED)
        canvas.drawString(18 * mm, 10 * mm, dossier.footer)
        canvas.drawRightString(A4[0] - 18 * mm, 10 * mm, f"page {page.page}")

    document.build(_story(dossier, document.width - 12), onFirstPage=foot, onLaterPages=foot)
    return made.getvalue()


def _story(dossier: Dossier, width: float) -> list[Any]:
    from reportlab.platypus import KeepTogether, Paragraph, Spacer

    facts = Grid(("", ""), tuple(dossier.facts), (1, 3))
    story = [
        Paragraph(escape(dossier.title), _style("title", 16, 20, bold=True)),
        Paragraph(escape(dossier.subtitle), _style("sub", 10, 15, colour=MUTED)),
        Spacer(0, 4),
        _grid(facts, width, header=False),
    ]
    for number, section in enumerate(dossier.sections, 1):
        heading = Paragraph(f"{number}. {escape(section.title)}", _style("h", 11, 15, bold=True, before=10, after=3))
        parts = [flowable for part in section.parts for flowable in _part(part, width)]
        story += (
            [KeepTogether([heading, parts[0]]), *parts[1:]] if len(parts) > 1 else [KeepTogether([heading, *parts])]
        )
    return story


def _part(part: Part, width: float) -> list[Any]:
    from reportlab.platypus import KeepTogether, Paragraph

    match part:
        case Text():
            opening = f"<b>{escape(part.opening)}</b> " if part.opening else ""
            return [Paragraph(opening + escape(part.words), _style("body", after=4))]
        case Items():
            mark = "☐" if part.tick else "•"
            return [Paragraph(escape(item), _style("item", left=12, after=1.5), bulletText=mark) for item in part.items]
        case Grid():
            return [_grid(part, width)]
        case Blank():
            return [
                KeepTogether(
                    [
                        Paragraph(escape(part.label), _style("label", 7.6, 10, MUTED, before=4)),
                        *_lines(part.lines, width),
                    ]
                )
            ]
        case Signatures():
            return [_signatures(part, width)]


def _lines(count: int, width: float) -> list[Any]:
    from reportlab.platypus import HRFlowable, Spacer

    return [piece for _ in range(count) for piece in (Spacer(0, 14), HRFlowable(width, 0.5, color="#8a949e"))]


def _grid(part: Grid, width: float, header: bool = True) -> Any:
    from reportlab.platypus import Table

    style = _style("cell", 7.6, 10)
    first = [[_cell(h, _style("head", 7.6, 10, MUTED)) for h in part.header]] if header else []
    rows = first + [[_cell(cell, style) for cell in row] for row in part.rows]
    total = sum(part.widths)
    table = Table(rows, [width * w / total for w in part.widths], repeatRows=1 if header else 0)
    table.setStyle(
        [
            ("LINEBELOW", (0, 0), (-1, -1), 0.4, LINE),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 1.6),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 2.2),
        ]
    )
    return table


def _cell(words: str, style: Any) -> Any:
    """A cell whose long words (hashes, names) may break anywhere."""
    from reportlab.platypus import Paragraph

    return Paragraph(escape(words), style)


def _signatures(part: Signatures, width: float) -> Any:
    from reportlab.platypus import Table

    label, small = _style("role", 8.6, 11), _style("small", 7, 9, MUTED)
    count, gap = len(part.roles), 14.0  # an empty column parts two lines
    told = _cell("name, date, signature", small)
    rows = [_apart([_cell(r, label) for r in part.roles]), [""] * (2 * count - 1), _apart([told] * count)]
    each = (width - gap * (count - 1)) / count
    table = Table(rows, [gap if i % 2 else each for i in range(2 * count - 1)], [14, 30, 12])
    lines = [("LINEBELOW", (i, 1), (i, 1), 0.7, INK) for i in range(0, 2 * count - 1, 2)]
    table.setStyle([*lines, ("LEFTPADDING", (0, 0), (-1, -1), 0)])
    return table


def _apart(cells: list[Any]) -> list[Any]:
    return [piece for cell in cells for piece in (cell, "")][:-1]


def _style(
    name: str,
    size: float = SIZE,
    leading: float = LEADING,
    colour: str = INK,
    bold: bool = False,
    before: float = 0,
    after: float = 0,
    left: float = 0,
) -> Any:
    from reportlab.lib.styles import ParagraphStyle

    return ParagraphStyle(
        name,
        fontName="Bold" if bold else "Body",
        fontSize=size,
        leading=leading,
        textColor=colour,
        spaceBefore=before,
        spaceAfter=after,
        leftIndent=left,
        splitLongWords=1,
        bulletFontName="Body",
        bulletFontSize=size,
    )
