"""Verdict: which columns and pairs can be used, before a release (from its plan) and after it (from the release alone).

Of a column the yardstick is the expected total variation of its noisy table, read in at most TEN cells: the share of
rows that noise alone puts into a wrong cell. Of a pair it is the smallest group of rows, by both columns, that noise
does not hide, as a share of all: it does not depend on how the columns are spread, which a plan cannot know. No row is
needed, and nothing is spent.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa

from dpmerf.evaluate.axis_cells import axis_cells
from dpmerf.evaluate.diagnostics import NoisyCounts, one_way
from dpmerf.evaluate.views import Rows
from dpmerf.inference.evidence import Counted, Evidence, evidence, expected
from dpmerf.inference.predict import Sharpness, sharpness
from dpmerf.plan import Plan
from dpmerf.plan.queries.pairs_again import PairsAgain
from dpmerf.plan.queries.readability import readable_shares
from dpmerf.release import Release
from dpmerf.schema import Numeric

Colour = Literal["green", "yellow", "red"]
TEN = 10  # cells in which a column is read
GOOD, ROUGH = 0.05, 0.15  # of a column: total variation up to which it is green, or yellow
GOOD_PAIR, ROUGH_PAIR = 0.02, 0.10  # of a pair: share of the rows that a group must have to be seen
GROUP = 2.0  # standard deviations of a cell's noise below which a group is not told from none
SPIKE = 0.9  # share of the rows in the first or the last cell of a numeric column that looks like clipping
EMPTY = 0.95  # share of nulls that leaves nothing to use
APART = 0.05  # by how much more than noise released and synthetic counts may differ


@final
@dataclass(frozen=True)
class Light:
    """One column or pair: its colour, what noise does to it, and what else is wrong with it."""

    columns: tuple[str, ...]
    colour: Colour
    error: float  # of a column: expected total variation; of a pair: the share of rows below which a group is noise
    why: tuple[str, ...] = ()

    @property
    def visible(self) -> bool:
        """Does the data show through the noise?"""
        return self.colour != "red"


@final
@dataclass(frozen=True)
class Verdict:
    """Lights of all columns, and of all pairs that are measured."""

    columns: tuple[Light, ...]
    pairs: tuple[Light, ...]
    unmeasured: int  # pairs that no table holds
    group: float | None  # rows of a group by one column below which it is noise: the median over columns
    pair_group: float | None  # the same by two columns
    rows: float
    again: int = 0  # pairs more that will be visible, of a plan that measures some again: which, the release decides

    @property
    def visible(self) -> tuple[int, int]:
        """How many columns and pairs are visible."""
        return sum(c.visible for c in self.columns), sum(p.visible for p in self.pairs)

    @property
    def colour(self) -> Colour:
        """All of it: red if half of the columns are, green if most are and no column is red."""
        reds = sum(not c.visible for c in self.columns)
        greens = sum(c.colour == "green" for c in self.columns)
        if 2 * reds >= len(self.columns):
            return "red"
        return "green" if reds == 0 and 2 * greens > len(self.columns) else "yellow"

    def to_json(self) -> dict[str, Any]:
        columns, pairs = self.visible
        return {
            "verdict": self.colour,
            "columns_visible": columns,
            "columns": {c.columns[0]: {"light": c.colour, "error": c.error, "why": list(c.why)} for c in self.columns},
            "pairs_visible": pairs,
            "pairs_visible_if_measured_again": self.again,
            "pairs_measured": len(self.pairs),
            "pairs_unmeasured": self.unmeasured,
            "group_rows": self.group,
            "pair_group_rows": self.pair_group,
        }


def foreseen(plan: Plan) -> Verdict:
    """What a plan will show of as many rows as it was made for.

    Which pairs are measured again is not known before: unless most are, a pair is judged as if it were not.
    """
    known, names, rows = expected(plan), list(plan.codec.schema.learned), float(plan.rows)
    found = _judged(known, names, rows, {})
    again = plan.query(PairsAgain).count if plan.has(PairsAgain) else 0
    if again == 0 or 2 * again > len(found.pairs):
        return found
    stage = plan.stage(PairsAgain).name
    once = _judged(replace(known, tables=tuple(t for t in known.tables if t.stage != stage)), names, rows, {})
    seen_again = min((p.error for p in found.pairs), default=1.0) <= ROUGH_PAIR
    return replace(once, again=min(again, len(once.pairs) - once.visible[1]) if seen_again else 0)


def seen(release: Release, synthetic: pa.Table | None = None) -> Verdict:
    """What a release shows. With synthetic rows, columns that depart from the released counts are told."""
    wrong: dict[str, list[_Wrong]] = {}
    shares = one_way(release)
    for name, counts in shares.items():
        _spikes(release, name, counts, wrong.setdefault(name, []))
    for column in readable_shares(release):
        problem, note = column.problem(release.plan.schema), column.note(release.plan.schema)
        if (words := problem or note) is not None:
            wrong.setdefault(column.column, []).append(_Wrong(words.partition(": ")[2], problem is not None))
    if synthetic is not None:
        rows = Rows.read(synthetic, release.plan.schema.as_written, "synthetic table")
        for name in set(rows.names) & set(shares):
            kind = rows.schema.columns[name]
            ours = rows.in_cells(name, axis_cells(kind)) if isinstance(kind, Numeric) else rows.coded(name)
            _departs(ours.shares(), shares[name], wrong.setdefault(name, []))
    return _judged(evidence(release), list(release.codec.schema.learned), release.rows_estimate, wrong)


@final
@dataclass(frozen=True)
class _Wrong:
    words: str
    ruins: bool  # nothing of the column can be used


def _judged(known: Evidence, names: list[str], rows: float, wrong: dict[str, list[_Wrong]]) -> Verdict:
    columns, pairs, groups, pair_groups = [], [], [], []
    holding = _holding(known.tables)
    for name in names:
        noise = _column_noise(known, name, holding[name,])
        error = 1.0 if noise is None else min(1.0, noise[1] / rows)
        found = wrong.get(name, [])
        colour = "red" if any(w.ruins for w in found) else _colour(error, GOOD, ROUGH)
        if found and colour == "green":
            colour = "yellow"
        columns.append(Light((name,), colour, error, tuple(w.words for w in found)))
        if noise is not None:
            groups.append(GROUP * noise[0])
    red = {c.columns[0] for c in columns if not c.visible}
    unmeasured = 0
    for pair in itertools.combinations(names, 2):
        sigma = _pair_noise(known, pair, holding[tuple(sorted(pair))])
        if sigma is None:
            unmeasured += 1
            continue
        error = min(1.0, GROUP * sigma / rows)
        why = tuple(f"'{name}' is red" for name in pair if name in red)
        pairs.append(Light(pair, "red" if why else _colour(error, GOOD_PAIR, ROUGH_PAIR), error, why))
        pair_groups.append(GROUP * sigma)
    return Verdict(tuple(columns), tuple(pairs), unmeasured, _median(groups), _median(pair_groups), rows)


def _holding(tables: Iterable[Counted]) -> defaultdict[tuple[str, ...], list[Counted]]:
    """Which tables hold a column, or a pair of columns in the order of their names."""
    found: defaultdict[tuple[str, ...], list[Counted]] = defaultdict(list)
    for table in tables:
        names = sorted(table.columns)
        for key in (*((name,) for name in names), *itertools.combinations(names, 2)):
            found[key].append(table)
    return found


def _column_noise(known: Evidence, name: str, tables: Sequence[Counted]) -> tuple[float, float] | None:
    """(noise of one cell, expected sum of absolute errors ÷ 2) in rows, by the tables that tell so many cells apart."""
    if not tables:
        return None
    cells = min(TEN, max(_size(known, t, name) for t in tables))
    sigma = _combined([t for t in tables if _size(known, t, name) >= cells], cells)
    return sigma, cells * sigma * math.sqrt(2 / math.pi) / 2


def _pair_noise(known: Evidence, pair: tuple[str, str], tables: Sequence[Counted]) -> float | None:
    """Noise of a count by both columns in rows, by every table that holds them; None: none does."""
    if not tables:
        return None
    return _combined(tables, math.prod(min(_size(known, t, name) for t in tables) for name in pair))


def _combined(tables: Sequence[Counted], cells: int) -> float:
    """Noise of one of so many cells, into which each table is summed: the weighted mean of all of them."""
    return 1 / math.sqrt(math.fsum(cells / (t.variance * t.values.size) for t in tables))


def _size(known: Evidence, table: Counted, name: str) -> int:
    return known.size(name, table.levels[table.columns.index(name)])


def _colour(error: float, good: float, rough: float) -> Colour:
    return "green" if error <= good else "yellow" if error <= rough else "red"


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None


def _spikes(release: Release, name: str, counts: NoisyCounts, why: list[_Wrong]) -> None:
    """Nearly all rows at a bound, or null: what a wrong notation or a wrong bound looks like."""
    column = release.codec.schema.columns[name]
    beyond = counts.shares - 3 * counts.noise
    if column.nullable and beyond[-1] > EMPTY:
        why.append(_Wrong("nearly all of its cells are null", True))
    ends = counts.shares[: len(counts.shares) - column.nullable]
    if name in release.codec.axes and len(ends) > 2:
        for place, end in ((0, "lower"), (len(ends) - 1, "upper")):
            if beyond[place] > SPIKE:
                why.append(_Wrong(f"nearly all of its rows lie at the {end} bound", False))


def _departs(ours: np.ndarray, released: NoisyCounts, why: list[_Wrong]) -> None:
    if len(ours) != len(released.shares):
        return
    apart = float(np.abs(ours - released.shares).sum()) / 2
    noise = float(released.noise.sum()) * math.sqrt(2 / math.pi) / 2
    if apart > 1.5 * noise + APART:
        why.append(_Wrong(f"synthetic rows depart from the released counts by {apart:.0%}", False))


# --- in words --------------------------------------------------------------------------------------------------------


def in_words(found: Verdict, sharp: Sharpness | None = None) -> list[str]:
    """For people: what will be visible, in numbers."""
    columns, pairs = found.visible
    lines = [f"Verdict: {found.colour}. {columns} of {len(found.columns)} columns will be visible"]
    total = len(found.pairs) + found.unmeasured
    if total:
        left = f", {found.unmeasured} are not measured" if found.unmeasured else ""
        more = f" and up to {found.again} more that the release picks to measure again" if found.again else ""
        lines[0] += f", {pairs} of {total} pairs{more}{left}"
    if found.group is not None:
        by_two = f", by two columns under {found.pair_group:,.0f}" if found.pair_group is not None else ""
        lines.append(f"Groups by one column under {found.group:,.0f} rows are noise{by_two}")
    noise = [c.columns[0] for c in found.columns if not c.visible]
    if noise:
        more = ", …" if len(noise) > 8 else ""
        lines.append(f"Only noise: {', '.join(noise[:8])}{more}")
    if sharp is not None and sharp.means:
        means = ", ".join(
            f"{name} ± {100 * half / sharp.ranges[name]:.2g} %" for name, half in list(sharp.means.items())[:4]
        )
        lines.append(f"Means, in parts of the declared range: {means}")
    return lines


def compared(plans: dict[str, Plan]) -> list[tuple[str, ...]]:
    """Plans side by side: a header and a line each."""
    lines: list[tuple[str, ...]] = [
        ("plan", "verdict", "columns visible", "pairs visible", "groups under … are noise", "a share is known to")
    ]
    for name, plan in plans.items():
        found, sharp = foreseen(plan), sharpness(plan)
        columns, pairs = found.visible
        group = "–" if found.group is None else f"{found.group:,.0f} rows"
        share = "–" if sharp.share is None else f"± {100 * sharp.share:.2g} points"
        total = len(found.pairs) + found.unmeasured
        lines.append((name, found.colour, f"{columns} of {len(found.columns)}", f"{pairs} of {total}", group, share))
    return lines
