"""Can I use it? The first screen: a light for every column and pair, from the release alone."""

from __future__ import annotations

from dpmerf.evaluate.verdict import Light, Verdict
from dpmerf.report.markup import lead, section, text
from dpmerf.report.phrases import percent

SIGNS = {"green": "● good", "yellow": "▲ rough", "red": "✕ noise"}
ANSWERS = {
    "green": "Yes, for most questions about its columns.",
    "yellow": "In part: look at the lights before you use a column.",
    "red": "No. Most of what was released is noise, or could not be read.",
}
MOST_PAIRS = 60  # columns up to which pairs are shown as a matrix
NAMED = 12  # columns that are named in a sentence


def verdict(found: Verdict) -> str:
    """The section."""
    columns, pairs = found.visible
    total = len(found.pairs) + found.unmeasured
    words = f"{columns} of {len(found.columns)} columns are visible"
    words += f", and {pairs} of {total} pairs." if total else "."
    answer = (
        f'<p class="big"><span class="light {found.colour}">{SIGNS[found.colour]}</span> {ANSWERS[found.colour]}</p>'
    )
    return section(
        "verdict",
        "Can I use it?",
        answer,
        lead(words + " Noise is known, so all of this follows from the release: no real row was read for it."),
        _use(found),
        _columns(found),
        _matrix(found),
    )


def _use(found: Verdict) -> str:
    """What to use it for, and what not."""
    good = [c.columns[0] for c in found.columns if c.colour == "green"]
    bad = [c.columns[0] for c in found.columns if not c.visible]
    use, leave = [], []
    if good:
        use.append(f"Distributions, shares and means of {_named(good)}.")
    if any(p.visible for p in found.pairs):
        use.append("How two columns go together, for pairs with a green or yellow light; models that learn from them.")
    if found.group is not None and found.group < found.rows and found.colour != "red":
        use.append(
            f"Groups of more than {found.group:,.0f} rows"
            + (f" ({found.pair_group:,.0f} by two columns)." if found.pair_group else ".")
        )
        leave.append(f"Groups of fewer than {found.group:,.0f} rows: they are not told from none.")
    if bad:
        leave.append(f"Anything about {_named(bad)}.")
    red = sum(not p.visible for p in found.pairs)
    if red or found.unmeasured:
        leave.append(f"{red + found.unmeasured} pairs that are noise or were not measured.")
    leave.append("Single rows: none of them is a person.")
    parts = (
        ("Use it for", use or ["Trying out programs: the rows have the right shape."]),
        ("Do not use it for", leave),
    )
    cards = "".join(
        f'<div class="card"><h3>{title}</h3><ul>{"".join(f"<li>{text(w)}</li>" for w in lines)}</ul></div>'
        for title, lines in parts
    )
    return f'<div class="columns">{cards}</div>'


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _columns(found: Verdict) -> str:
    """Every column, the worst first."""
    order = sorted(found.columns, key=lambda c: (("red", "yellow", "green").index(c.colour), -c.error))
    rows = "".join(
        f'<tr><th scope="row">{text(c.columns[0])}</th><td>{_light(c)}</td><td>{percent(c.error)}</td>'
        f'<td class="words">{text("; ".join(c.why) or "–")}</td></tr>'
        for c in order
    )
    head = "".join(f'<th scope="col">{h}</th>' for h in ("column", "light", "rows that noise misplaces"))
    head += '<th scope="col" class="words">what is wrong</th>'
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="lights of columns"><table><caption>Columns</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _matrix(found: Verdict) -> str:
    """Every pair: a matrix of signs where columns are few enough, else how many of each."""
    if not found.pairs:
        return ""
    counts = ", ".join(f"{sum(p.colour == colour for p in found.pairs)} {sign}" for colour, sign in SIGNS.items())
    title = f"Pairs: {counts}" + (f", {found.unmeasured} not measured" if found.unmeasured else "")
    names = [c.columns[0] for c in found.columns]
    if len(names) > MOST_PAIRS:
        return f"<p>{text(title)}.</p>"
    lights = {frozenset(p.columns): p for p in found.pairs}
    head = "".join(f'<th scope="col"><span class="turned">{text(name)}</span></th>' for name in names[:-1])
    rows = []
    for i, name in enumerate(names[1:], start=1):
        cells = "".join(f"<td>{_sign(lights.get(frozenset((name, other))))}</td>" for other in names[:i])
        rows.append(f'<tr><th scope="row">{text(name)}</th>{cells}</tr>')
    return (
        f'<details open><summary>{text(title)}</summary><div class="scroll lights" tabindex="0" role="group" '
        f'aria-label="lights of pairs"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _light(light: Light) -> str:
    return f'<span class="light {light.colour}">{SIGNS[light.colour]}</span>'


def _sign(light: Light | None) -> str:
    if light is None:
        return '<span title="not measured">·</span>'
    why = f"groups under {percent(light.error)} of the rows are noise"
    return f'<span class="light {light.colour}" title="{why}">{SIGNS[light.colour][0]}</span>'
