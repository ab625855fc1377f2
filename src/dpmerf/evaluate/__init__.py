"""Evaluation: scores of synthetic rows. Those that need real rows say so and are NOT COVERED by the guarantee."""

from dpmerf.evaluate.attack import clopper_pearson, membership_game, nearest_record
from dpmerf.evaluate.compare import evaluate
from dpmerf.evaluate.results import Evaluation, MembershipGame, json_schema, stored_schema

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
