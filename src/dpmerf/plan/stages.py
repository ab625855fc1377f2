"""Stages: the parts of a plan, and which of them may stand together in which order."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dpmerf.errors import PlanError
from dpmerf.plan.queries import Query
from dpmerf.plan.queries.query import check_order
from dpmerf.schema import Schema

_NAME = re.compile(r"[a-z0-9][a-z0-9 -]{0,39}")


@final
@dataclass(frozen=True)
class Stage:
    """One query, and its share of μ²."""

    name: str
    share: float
    query: Query


def check_stages(stages: Sequence[Stage], schema: Schema) -> None:
    """PlanError unless the stages make sense as a whole, for this schema."""
    if not stages or not math.isclose(math.fsum(s.share for s in stages), 1, rel_tol=1e-9):
        raise PlanError("the shares of the stages must add up to 1")
    if any(not s.share > 0 for s in stages):
        raise PlanError("every stage needs a share above 0")
    _check_names([s.name for s in stages])
    before: list[Query] = []
    for stage in stages:
        check_order(stage.name, stage.query, before)
        if stage.query.pictures != (schema.image is not None):
            raise PlanError(
                f"stage '{stage.name}' does not fit the schema: pictures and tables are measured differently"
            )
        stage.query.check(stage.name, schema, before)
        before.append(stage.query)


def _check_names(names: list[str]) -> None:
    for name in names:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise PlanError("a stage's name has 1 to 40 small letters, digits, blanks and hyphens")
        if names.count(name) > 1:
            raise PlanError(f"two stages are called '{name}': give each its own name")
