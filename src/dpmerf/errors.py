"""Errors that a person can act on: one message that says what is wrong and what to do.

No message ever quotes a cell, a row number or anything else derived from rows.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

EXIT_CODES = {"usage": 2, "internal": 3, "data": 4, "budget": 5, "artefact": 6, "system": 7}  # of the command line


class DpmerfError(Exception):
    """Base of every error that dpmerf raises on purpose. The command line prints it and exits with its kind's code.

    Parameters
    ----------
    message : str
        What is wrong and what to do; never a cell.

    Examples
    --------
    >>> try:
    ...     raise LedgerError("the budget is spent")
    ... except DpmerfError as problem:
    ...     print(problem.kind, EXIT_CODES[problem.kind])
    budget 5
    """

    kind: ClassVar[str] = "usage"  # an argument, a schema, a plan or a question: what a person wrote


class SchemaError(DpmerfError):
    """The schema is incomplete or contradicts itself. `problems` are all of its problems, where they are known."""

    def __init__(self, message: str, problems: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class DataError(DpmerfError):
    """The data does not have the shape that the schema declares, or cannot be read; or a place cannot be written to."""

    kind = "data"


class ArrayError(DataError, ValueError):
    """An array does not have the shape of a table. A ValueError too, as scikit-learn expects."""


class UnreadableError(DataError):
    """Columns cannot be read as declared, beyond doubt: nothing but the look at them was spent. All of it is noisy."""


class PlanError(DpmerfError):
    """The plan asks for something that cannot be measured."""


class BudgetError(DpmerfError):
    """epsilon, delta or the unit of privacy makes no sense."""


class LedgerError(DpmerfError):
    """The ledger refuses: the budget is spent, or the file cannot be trusted or written."""

    kind = "budget"


class ArtefactError(DpmerfError):
    """A saved release or model is damaged, incomplete or of an unknown format, or is in the way of a new one."""

    kind = "artefact"


class TrainError(DpmerfError):
    """A generator cannot be trained from this release with these settings."""


class AnswerError(DpmerfError):
    """A question that the release cannot answer, or that makes no sense for its columns."""
