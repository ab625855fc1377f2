"""Evaluation: scores of synthetic rows. Those that need real rows say so and are NOT COVERED by the guarantee.

A name is imported when it is asked for: a plan's verdict needs none of the scores.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmerf.evaluate.attack import clopper_pearson, membership_game, nearest_record
    from dpmerf.evaluate.compare import evaluate
    from dpmerf.evaluate.results import Evaluation, MembershipGame, json_schema, stored_schema

_HOMES = {
    "Evaluation": "results",
    "MembershipGame": "results",
    "clopper_pearson": "attack",
    "evaluate": "compare",
    "json_schema": "results",
    "membership_game": "attack",
    "nearest_record": "attack",
    "stored_schema": "results",
}

__all__ = [
    "Evaluation",
    "MembershipGame",
    "clopper_pearson",
    "evaluate",
    "json_schema",
    "membership_game",
    "nearest_record",
    "stored_schema",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpmerf.evaluate' has no attribute '{name}'")
    return getattr(importlib.import_module(f"dpmerf.evaluate.{_HOMES[name]}"), name)
