"""Hunt: look for the row with the largest norm, and the pair farthest apart, in integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from dpmerf.audit.canary import end_row, random_row, table
from dpmerf.encoding.codec import Batch, Codec
from dpmerf.features.algebra import BITS, Block, FeatureMap
from dpmerf.plan import Plan, View
from dpmerf.plan.queries import BrokenRelations
from dpmerf.private import contribute
from dpmerf.private.contribute import Sums


def integers(phi: FeatureMap, batch: Batch) -> list[list[int]]:
    """Each row's own integers: its contribution, as a table of one row."""
    found = []
    for i in range(len(batch)):
        sums = Sums(phi)
        sums.add(batch.rows(slice(i, i + 1)))
        found.append(sums.total().tolist())
    return found


def square(vector: list[int]) -> int:
    return sum(x * x for x in vector)


def largest(phi: FeatureMap, batch: Batch) -> tuple[int, int]:
    """(largest squared norm, largest squared distance) among these rows, exactly."""
    rows = integers(phi, batch)
    norm = max(square(r) for r in rows)
    floats = torch.tensor(rows, dtype=torch.float64)
    distance = torch.cdist(floats, floats, compute_mode="donot_use_mm_for_euclid_dist")
    best = torch.topk(distance.flatten(), min(20, distance.numel())).indices.tolist()
    pairs = [(rows[k // len(rows)], rows[k % len(rows)]) for k in best]
    return norm, max(square([a - b for a, b in zip(p, q, strict=True)]) for p, q in pairs)


def check(phi: FeatureMap, batch: Batch) -> tuple[float, float]:
    """Assert both bounds; returns how much of each was used."""
    norm, distance = largest(phi, batch)
    bounds = phi.integer_bounds
    assert norm <= bounds[0] ** 2 * (1 - 2**-53), "a row is longer than its bound"
    assert distance <= bounds[1] ** 2 * (1 - 2**-53), "two rows are farther apart than their bound"
    return (norm / bounds[0] ** 2) ** 0.5, (distance / bounds[1] ** 2) ** 0.5 if bounds[1] > 1 else 1.0


def rows_of(plan: Plan, count: int, seed: int) -> Batch:
    """Corner rows and random ones."""
    rng = np.random.default_rng(seed)
    rows = [end_row(plan.schema, 0), end_row(plan.schema, 1)]
    rows += [random_row(plan.schema, rng) for _ in range(count - 2)]
    return _codec(plan).encode(table(plan.schema, rows))


def illegal(plan: Plan, cells: list[object]) -> Batch:
    """Rows of cells that no column declared, each cell in every column at once."""
    array = pa.array([None if c is None else str(c) for c in cells], pa.large_string())
    return _codec(plan).encode(pa.table({name: array for name in plan.schema.columns}))


def _codec(plan: Plan) -> Codec:
    """One that says of every row which relations it breaks, where a plan asks."""
    return Codec(plan.schema, (), tuple(range(len(plan.schema.relations)))) if plan.has(BrokenRelations) else plan.codec


def climb(phi: FeatureMap, view: View, batch: Batch, steps: int = 40) -> Batch:
    """Move the numbers of the first rows apart from those of the last by gradient ascent on ‖φ(r) − φ(r′)‖².

    Only maps with dense parts have a gradient; for the others the rows come back as they are.
    """
    dense = [b for b in phi.blocks if b.dense is not None]
    if not dense or batch.numbers.shape[1] == 0:
        return batch
    half = len(batch) // 2
    x = batch.numbers.clone()
    low, high = min(0.0, float(x.min())), max(1.0, float(x.max()))  # numbers lie in [0, 1], scores on both sides of 0
    for _ in range(steps):
        leaf = x.clone().requires_grad_(True)
        values = torch.cat([b.weight * b.dense(leaf) for b in dense if b.dense is not None], dim=1)
        apart = ((values[:half] - values[half : 2 * half]) ** 2).sum()
        if not apart.requires_grad:  # a map without a derivative: random rows must do
            return batch
        apart.backward()
        assert leaf.grad is not None
        step = leaf.grad / (leaf.grad.norm(dim=1, keepdim=True) + 1e-12)
        x = (x + 0.05 * step).clamp(low, high)
    return Batch(x, batch.codes)


def longest_block(block: Block, numbers: Tensor) -> int:
    """Largest squared integer norm of a dense block over rows, as `contribute.bounded` makes it."""
    assert block.dense is not None
    whole = contribute.bounded(block.dense(numbers), block)
    return max(square([int(x) for x in row]) for row in whole.tolist())


__all__ = ["BITS", "check", "climb", "illegal", "integers", "largest", "longest_block", "rows_of", "square"]
