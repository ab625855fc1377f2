"""Broken, counted: a small stage that buys, by name, the share of real rows that break declared relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpmerf.errors import PlanError
from dpmerf.methods.settings import MethodSettings
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import BrokenRelations

ALL = "all"


def count_broken(plan: Plan, names: Sequence[str], settings: MethodSettings | None = None) -> Plan:
    """The same plan with that stage, which takes its share from all others; without names, the plan itself.

    A name is a relation's own, or its words; `all` is every relation.
    """
    if not names:
        return plan
    relations = plan.schema.relations
    known = {told: i for i, r in enumerate(relations) for told in (r.words, r.name) if told}
    if not relations:
        raise PlanError("the schema declares no relations: there is nothing to count")
    if unknown := [name for name in names if name not in known and name != ALL]:
        told = ", ".join(f"'{r.name or r.words}'" for r in relations)
        raise PlanError(f"the schema has no relation '{unknown[0]}'. It has: {told}; or write {ALL}")
    chosen = range(len(relations)) if ALL in names else sorted({known[name] for name in names})
    told_shares = settings or MethodSettings()
    share = min(told_shares.broken * len(chosen), told_shares.most_broken)
    others = tuple(replace(stage, share=stage.share * (1 - share)) for stage in plan.stages)
    stage = Stage("broken relations", share, BrokenRelations(relations=tuple(chosen)))
    return replace(plan, stages=(stage, *others))
