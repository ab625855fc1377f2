"""Combinations: lists of what two or three columns can be together, learned as one column or kept as boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dpmerf.schema.boxes import Box, Subset, domain, of_codes
from dpmerf.schema.derivations import Joined
from dpmerf.schema.expressions import ExpressionError
from dpmerf.schema.making import level_of
from dpmerf.schema.quantities import Fact, Facts
from dpmerf.schema.relations import Combination

MOST_JOINED = 256  # combinations that are learned as one column
FEW = 2  # times as many as the largest column has values: then one column shows more than several do
MOST_PLACES = 1_000_000


def joined_of(i: int, relation: Combination, facts: Facts, free: Sequence[str]) -> Joined | None:
    """One column in place of several, where few combinations are allowed; None where boxes serve better."""
    own = _facts(relation, facts)
    if not relation.allowed or any(name not in free for name in relation.columns):
        return None
    if any(f.nullable or not f.levels for f in own):
        return None
    rows = _rows(relation, relation.allowed, own)
    if len(rows) > min(MOST_JOINED, FEW * max(f.size for f in own)) or math.prod(f.size for f in own) > MOST_PLACES:
        return None
    nearest = []
    for place in itertools.product(*(range(f.size) for f in own)):
        # leading columns are kept as far as they can be; of several, the first that is listed
        kept = [tuple(a == b for a, b in zip(place, row, strict=True)) for row in rows]
        nearest.append(max(range(len(rows)), key=lambda k: (kept[k], -k)))
    words = [" + ".join(str(f.levels[k]) for f, k in zip(own, row, strict=True)) for row in rows]
    if len(set(words)) < len(words):
        words = [f"{k}: {word}" for k, word in enumerate(words)]
    return Joined(relation.columns, i, " + ".join(relation.columns), tuple(rows), tuple(nearest), tuple(words))


def boxes_of(i: int, relation: Combination, facts: Facts) -> list[Box]:
    """What a list forbids, one box per beginning of a combination. Null is always allowed."""
    own = _facts(relation, facts)
    last: dict[tuple[int, ...], set[int]] = {}
    for row in _rows(relation, relation.allowed or relation.forbidden, own):
        last.setdefault(row[:-1], set()).add(row[-1])
    whole = Subset(domain(own[-1]).spans)
    found = []
    if relation.allowed:
        if math.prod(f.size for f in own[:-1]) > MOST_PLACES:
            raise ExpressionError("its columns have too many combinations")
        beginnings = itertools.product(*(range(f.size) for f in own[:-1]))
        ends = {b: whole.without(of_codes(sorted(last.get(b, ())))) for b in beginnings}
    else:
        ends = {b: of_codes(sorted(codes)) for b, codes in last.items()}
    grouped: dict[tuple[tuple[int, ...], Subset], list[int]] = {}
    for (first, *middle), end in ends.items():
        if end:
            grouped.setdefault((tuple(middle), end), []).append(first)
    for (middle_codes, end), firsts in grouped.items():
        sets = [of_codes(firsts), *(of_codes([m]) for m in middle_codes), end]
        found.append(Box(tuple(sorted(zip(relation.columns, sets, strict=True))), frozenset({i})))
    return found


def _facts(relation: Combination, facts: Facts) -> list[Fact]:
    for name in relation.columns:
        if name not in facts:
            raise ExpressionError(f"there is no column '{name}' to combine")
        if not facts[name].levels and (facts[name].size == 0 or facts[name].kind != "number"):
            raise ExpressionError(
                f"column '{name}' has no list of values: write a rule, such as never {name} > 5 and …"
            )
    return [facts[name] for name in relation.columns]


def _rows(relation: Combination, listed: Sequence[Sequence[object]], own: Sequence[Fact]) -> list[tuple[int, ...]]:
    found = []
    for row in listed:
        levels = [level_of(f, cell, name) for f, cell, name in zip(own, row, relation.columns, strict=True)]  # type: ignore[arg-type]
        if any(level == f.size for level, f in zip(levels, own, strict=True)):
            raise ExpressionError("null is in no list of combinations: it is always allowed")
        found.append(tuple(levels))
    return list(dict.fromkeys(found))
