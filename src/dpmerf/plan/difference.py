"""Difference: two plans side by side, from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from dpmerf.plan.plan import Plan


@final
@dataclass(frozen=True)
class Change:
    """One thing in which two plans differ; None: the plan does not have it."""

    what: str
    first: Any
    second: Any


def difference(first: Plan, second: Plan) -> list[Change]:
    """What differs, from the promise down to the noise of single tables and the facts of single columns.

    The noise of a table is shown where its stage or its size differs; equal plans give an empty list.
    """
    pairs = zip(_facts(first).items(), _facts(second).values(), strict=True)
    found = [Change(what, a, b) for (what, a), b in pairs if a != b]
    for words, one, other in (
        ("noise of", _noise(first), _noise(second)),
        ("column", _columns(first), _columns(second)),
    ):
        found += [
            Change(f"{words} {key}", one.get(key), other.get(key))
            for key in dict.fromkeys([*one, *other])
            if one.get(key) != other.get(key)
        ]
    return found


def _facts(plan: Plan) -> dict[str, Any]:
    return {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "protected": plan.unit.describe(),
        "attacker is right at most": round(plan.odds.accuracy, 4),
        "expected rows": plan.rows,
        "method": plan.method,
        "label": plan.schema.label,
        "classes known to be balanced": plan.balanced,
        "coordinates": plan.coordinates,
        "relations": len(plan.schema.relations),
    }


def _noise(plan: Plan) -> dict[str, str]:
    """Of the tables that are measured, ± in rows; tables of one kind and stage may be measured at several prices."""
    found: dict[str, list[str]] = {}
    for price in plan.prices:
        for name, _, noise in price.groups:
            found.setdefault(f"{price.stage}: {name.partition(' (weight')[0]}", []).append(f"{noise:.1f}")
    return {name: " and ".join(each) for name, each in found.items()}


def _columns(plan: Plan) -> dict[str, Any]:
    return dict(plan.schema.to_json()["columns"])
