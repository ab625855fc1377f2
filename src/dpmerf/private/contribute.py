"""Contribute: what one row adds to the sums, as integers with an enforced norm.

Float64 holds the integers: every value, square and partial sum below stays under 2⁵³, so sums and matrix products of
them are exact whatever their order. A row's integers are a function of that row alone.
"""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from dpmerf.codec import Batch
from dpmerf.features.algebra import BITS, Block, FeatureMap
from dpmerf.features.dense import Dense

CHUNK = 1024  # rows through a dense map at a time; shorter batches are padded to this shape
FEW_CELLS = 64  # grouped by a matrix product up to here, by scattered adds beyond


@final
class Sums:
    """Σφ over rows, in integers of the grid 2⁻²⁴."""

    def __init__(self, phi: FeatureMap) -> None:
        if any(b.integer_norm > 2**26 for b in phi.blocks):  # keeps squares below 2⁵³
            raise ValueError("a block's weight is above 4: scale the map down")
        self._phi = phi
        self._blocks = [torch.zeros(b.size, b.width, dtype=torch.int64) for b in phi.blocks]
        self._dense: dict[int, Dense] = {id(b.dense): b.dense for b in phi.blocks if b.dense}

    def add(self, batch: Batch) -> None:
        """Add rows; the order and the size of batches do not change the result."""
        for block, sums in zip(self._phi.blocks, self._blocks, strict=True):
            if block.dense is None:
                _add_constant(block, batch, sums)
        if self._dense:
            for start in range(0, len(batch), CHUNK):
                self._add_dense(batch.rows(slice(start, start + CHUNK)))

    def _add_dense(self, batch: Batch) -> None:
        values = {key: _padded(dense, batch.numbers) for key, dense in self._dense.items()}
        for block, sums in zip(self._phi.blocks, self._blocks, strict=True):
            if block.dense is not None:
                _add_grouped(bounded(values[id(block.dense)], block), block.cell(batch.codes), sums)

    def merge(self, other: Tensor) -> None:
        """Add partial sums (dim,) of the same map, made elsewhere."""
        for sums, part in zip(self._blocks, other.split([b.dim for b in self._phi.blocks]), strict=True):
            sums += part.view_as(sums)

    def total(self) -> Tensor:
        """(dim,) int64."""
        return torch.cat([sums.flatten() for sums in self._blocks])


def bounded(values: Tensor, block: Block) -> Tensor:
    """(n, width) features -> whole numbers (in float64), truncated toward zero, each row within the block's norm.

    The bound does not rest on the map: a row that is too long is shrunk, one that is not finite counts as zero.
    """
    whole = torch.trunc(values * (block.weight * 2**BITS))
    if not bool(torch.isfinite(whole).all()):
        whole[~torch.isfinite(whole).all(dim=1)] = 0.0
    square = (whole * whole).sum(dim=1)
    limit = block.integer_norm
    over = square > limit * limit
    if bool(over.any()):  # rounding in cos and sin; shrink, truncate again
        shrink = limit / (square[over].sqrt().ceil() + 1)
        whole[over] = torch.trunc(whole[over] * shrink[:, None])
        whole[(whole * whole).sum(dim=1) > limit * limit] = 0.0  # beyond what floats can shrink
    return whole


def _add_constant(block: Block, batch: Batch, sums: Tensor) -> None:
    weight = math.floor(block.weight * 2**BITS)
    cell = block.cell(batch.codes)
    if cell is None:
        sums += weight * len(batch)
    else:
        sums += weight * torch.bincount(cell, minlength=block.size)[:, None]


def _padded(dense: Dense, numbers: Tensor) -> Tensor:
    """The dense features of up to CHUNK rows, computed at the full shape always."""
    n = numbers.shape[0]
    if n < CHUNK:
        numbers = torch.cat([numbers, numbers.new_zeros(CHUNK - n, numbers.shape[1])])
    return dense(numbers.contiguous())[:n]


def _add_grouped(whole: Tensor, cell: Tensor | None, sums: Tensor) -> None:
    if cell is None:
        sums += whole.sum(dim=0, keepdim=True).long()
    elif sums.shape[0] <= FEW_CELLS:
        onehot = torch.nn.functional.one_hot(cell, sums.shape[0]).to(whole.dtype)
        sums += (onehot.T @ whole).long()
    else:
        sums.index_add_(0, cell, whole.long())
