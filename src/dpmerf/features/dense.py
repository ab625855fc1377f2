"""Dense: a map from a row's numbers to a vector of bounded length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class Dense(ABC):
    """A function of one row's numbers with ‖value‖₂ ≤ 1.

    Two rows may then lie at most 2 apart. Given float64 numbers an implementation must return the same bits for a row
    whatever rows surround it; given float32 numbers it must be differentiable (the generator's side).
    """

    @property
    def apart(self) -> int | Fraction:
        """The largest squared distance of two values. A bound on their angle makes it less than 4."""
        return 4

    @property
    @abstractmethod
    def name(self) -> str:
        """What the plan and the report call it."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of the vector."""

    @abstractmethod
    def __call__(self, numbers: Tensor) -> Tensor:
        """(n, numeric columns) -> (n, dim), a new tensor that the caller may overwrite."""
