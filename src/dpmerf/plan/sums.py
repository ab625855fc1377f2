"""Sums: the noisy sums of a release's stages, as arrays; as tensors where somebody computes with them.

Checking a release needs no PyTorch, which takes longer to import than the check takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

Integers = npt.NDArray[np.int64]


@final
class StoredSums(Mapping[str, "Tensor"]):
    """Stage -> (dim,) int64, as they were read from a file."""

    def __init__(self, arrays: Mapping[str, Integers]) -> None:
        self.arrays = dict(arrays)

    def __getitem__(self, stage: str) -> Tensor:
        return torch.from_numpy(self.arrays[stage])

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __contains__(self, stage: object) -> bool:
        return stage in self.arrays

    def only(self, stages: set[str]) -> StoredSums:
        """Those of some stages."""
        return StoredSums({name: array for name, array in self.arrays.items() if name in stages})


def sums_of(sums: Mapping[str, Tensor], stage: str) -> Integers:
    """(dim,) a stage's sums as an array."""
    return sums.arrays[stage] if isinstance(sums, StoredSums) else sums[stage].numpy()
