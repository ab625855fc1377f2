"""Errors that a person can act on: one message that says what is wrong and what to do.

No message ever quotes a cell, a row number or anything else derived from rows.
"""

from collections.abc import Sequence
from typing import Any


class DpmerfError(Exception):
    """Base of every error that dpmerf raises on purpose. The command line prints it and exits with 2."""


class SchemaError(DpmerfError):
    """The schema is incomplete or contradicts itself. `problems` are all of its problems, where they are known."""

    def __init__(self, message: str, problems: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class DataError(DpmerfError):
    """The data does not have the shape that the schema declares, or cannot be read."""


class PlanError(DpmerfError):
    """The plan asks for something that cannot be measured."""


class BudgetError(DpmerfError):
    """epsilon, delta or the unit of privacy makes no sense."""


class LedgerError(DpmerfError):
    """The ledger refuses: the budget is spent, or the file cannot be trusted or written."""


class ArtefactError(DpmerfError):
    """A saved release or model is damaged, incomplete or of an unknown format."""


class TrainError(DpmerfError):
    """A generator cannot be trained from this release with these settings."""


class AnswerError(DpmerfError):
    """A question that the release cannot answer, or that makes no sense for its columns."""
