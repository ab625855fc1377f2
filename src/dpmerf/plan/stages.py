"""Stages: the parts of a plan, and which of them may stand together in which order."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from dpmerf.errors import PlanError
from dpmerf.plan.queries import (
    AnyRecipe,
    Choice,
    CloserLook,
    Directions,
    Embedding,
    Histograms,
    ImageEmbedding,
    Recipe,
    SecondLook,
    Tables,
)
from dpmerf.schema import Schema

_NAME = re.compile(r"[a-z0-9][a-z0-9 -]{0,39}")
# What a stage is resolved with: it stands once in a plan, after the stage that tells it.
_AFTER: dict[type[Recipe], type[Recipe] | None] = {
    Histograms: None,
    Tables: Histograms,
    Directions: Histograms,
    SecondLook: Tables,
    Choice: Tables,
    CloserLook: Choice,
}
_WORDS = {
    Histograms: "histograms",
    Tables: "tables",
    Directions: "directions",
    SecondLook: "a second look",
    Choice: "a choice",
    CloserLook: "a closer look",
}


@final
@dataclass(frozen=True)
class Stage:
    """One Gaussian measurement, or a choice: a recipe and its share of μ²."""

    name: str
    share: float
    recipe: AnyRecipe


def check_stages(stages: Sequence[Stage], schema: Schema) -> None:
    """PlanError unless the stages make sense as a whole, for this schema.

    A stage's map may depend on what earlier stages released. So each such stage stands once and after what it needs:
    else two of them would be resolved with one result, at weights that only one of them was priced for.
    """
    if not stages or not math.isclose(math.fsum(s.share for s in stages), 1, rel_tol=1e-9):
        raise PlanError("the shares of the stages must add up to 1")
    if any(not s.share > 0 for s in stages):
        raise PlanError("every stage needs a share above 0")
    _check_names([s.name for s in stages])
    before: list[type[Recipe]] = []
    for stage in stages:
        kind = type(stage.recipe)
        if kind in _AFTER:
            if kind in before:
                raise PlanError(f"a plan has {_WORDS[kind]} once: stage '{stage.name}' is one too many")
            needed = _AFTER[kind]
            if needed is not None and needed not in before:
                raise PlanError(f"{_WORDS[kind]} needs {_WORDS[needed]} before it: move stage '{stage.name}'")
        before.append(kind)
        _check_columns(stage, schema)
    if Tables in before and Directions in before:
        raise PlanError("a plan has tables or directions, not both: bins or scores follow from its histograms")
    _check_what_tables_give(stages)


def _check_names(names: list[str]) -> None:
    for name in names:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise PlanError("a stage's name has 1 to 40 small letters, digits, blanks and hyphens")
        if names.count(name) > 1:
            raise PlanError(f"two stages are called '{name}': give each its own name")


def _check_columns(stage: Stage, schema: Schema) -> None:
    recipe = stage.recipe
    if isinstance(recipe, Tables | Directions | Embedding) and recipe.by_label and schema.label is None:
        raise PlanError(f"stage '{stage.name}' is split by the label, and the schema names none")
    if isinstance(recipe, ImageEmbedding) != (schema.image is not None):
        raise PlanError(f"stage '{stage.name}' does not fit the schema: pictures and tables are measured differently")
    learned = set(schema.learned)
    if isinstance(recipe, Histograms):
        _check_each(stage, recipe.columns, lambda name: name in learned)
    if isinstance(recipe, Tables):
        binned = learned - {schema.label if recipe.by_label else None}
        pairs = [tuple(sorted(pair)) for pair in recipe.pairs]
        _check_each(stage, pairs, lambda pair: pair[0] != pair[1] and set(pair) <= binned)


def _check_each(stage: Stage, found: Sequence[object], legal: Callable[..., bool]) -> None:
    if len(set(found)) < len(found):
        raise PlanError(f"stage '{stage.name}' measures a column or a pair of columns twice: name each once")
    if not all(legal(item) for item in found):
        raise PlanError(f"stage '{stage.name}' names a column or a pair that the schema does not have")


def _check_what_tables_give(stages: Sequence[Stage]) -> None:
    tables = next((s.recipe for s in stages if isinstance(s.recipe, Tables)), None)
    for stage in stages:
        if isinstance(stage.recipe, Choice) and not (tables and tables.by_label):
            raise PlanError("a choice among columns needs tables by label before it")
        measured = len(tables.pairs) if tables and tables.share_pair > 0 else 0
        if isinstance(stage.recipe, SecondLook) and stage.recipe.count > measured:
            raise PlanError("a second look takes at most as many pairs as the tables before it have")
