"""Dense: a map from a row's numbers to a vector of bounded length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor


class Dense(ABC):
    """A function of one row's numbers with ‖value‖₂ ≤ 1.

    Two rows may then lie at most 2 apart. Given float64 numbers an implementation must return the same bits for a row
    whatever rows surround it; given float32 numbers it must be differentiable (the generator's side).
    """

    acute: ClassVar[bool] = False  # two values never have a negative inner product: they lie at most √2 apart

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
