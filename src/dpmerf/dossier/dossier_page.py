"""Page: the dossier as one HTML file that prints well."""

from __future__ import annotations

from html import escape

from dpmerf.dossier.content import Dossier
from dpmerf.dossier.parts import Blank, Grid, Items, Part, Signatures, Text

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Liberation Sans", "DejaVu Sans", sans-serif; color: #17202a; background: #fff;
  max-width: 820px; margin: 0 auto; padding: 28px 20px; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.1rem; margin: 26px 0 6px; break-after: avoid; }
.sub { color: #4d5966; margin: 2px 0 16px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 0; }
dt { color: #4d5966; } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin: 8px 0; } tr { break-inside: avoid; }
th, td { text-align: left; border-bottom: 1px solid #c9d1d9; padding: 4px 10px 4px 0; vertical-align: top;
  overflow-wrap: anywhere; }
ul { margin: 6px 0; padding-left: 20px; } ul.tick { list-style: none; padding: 0; }
ul.tick li::before { content: "☐ "; }
.blank { margin: 10px 0; } .blank span { display: block; color: #4d5966; font-size: .88rem; }
.blank i { display: block; border-bottom: 1px solid #8a949e; height: 1.7em; }
.signs { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 24px; margin-top: 14px; }
.signs i { display: block; border-bottom: 1px solid #17202a; height: 2.6em; } .signs small { color: #4d5966; }
footer { color: #4d5966; font-size: .8rem; margin-top: 30px; }
@page { size: A4; margin: 18mm; }
@media print { body { font-size: 10.5pt; max-width: none; padding: 0; } }
"""


def html(dossier: Dossier) -> str:
    """The whole page; no script, nothing from elsewhere."""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in dossier.facts)
    body = "".join(
        f"<h2>{number}. {escape(section.title)}</h2>" + "".join(map(_part, section.parts))
        for number, section in enumerate(dossier.sections, 1)
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(dossier.title)}: {escape(dossier.subtitle)}</title><style>{STYLE}</style></head><body>
<h1>{escape(dossier.title)}</h1><p class="sub">{escape(dossier.subtitle)}</p><dl>{facts}</dl>
{body}
<footer>{escape(dossier.footer)}</footer></body></html>
"""


def _part(part: Part) -> str:
    match part:
        case Text():
            opening = f"<strong>{escape(part.opening)}</strong> " if part.opening else ""
            return f"<p>{opening}{escape(part.words)}</p>"
        case Items():
            kind = ' class="tick"' if part.tick else ""
            return f"<ul{kind}>" + "".join(f"<li>{escape(item)}</li>" for item in part.items) + "</ul>"
        case Grid():
            head = "".join(f'<th scope="col">{escape(h)}</th>' for h in part.header)
            rows = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in part.rows)
            return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        case Blank():
            return f'<div class="blank"><span>{escape(part.label)}</span>{"<i></i>" * part.lines}</div>'
        case Signatures():
            each = "".join(
                f"<div>{escape(role)}<i></i><small>name, date, signature</small></div>" for role in part.roles
            )
            return f'<div class="signs">{each}</div>'
