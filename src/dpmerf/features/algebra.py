"""FeatureMap: sums and products of maps in one normal form, with the norm bound and the diameter that follow.

Every map is a sum of blocks. A block is weight · dense ⊗ one-hot(cell): a dense vector (or the constant 1) placed in
the cell that the row's discrete variables name. `+` puts blocks side by side, `*` multiplies block by block, and the
sensitivity is read off the blocks; nobody types one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from dpmerf.encoding.codec import Batch, Variable
from dpmerf.errors import PlanError
from dpmerf.features.dense import Dense
from dpmerf.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

BITS = 24  # a row's features are truncated to multiples of 2⁻²⁴; sums are integers in that unit
MANY = 8  # variables tied to dense vectors, beyond which the diameter is bounded more simply


@final
@dataclass(frozen=True)
class Block:
    """weight · dense ⊗ one-hot of the joint code of `cells`."""

    weight: float
    dense: Dense | None  # None is the constant 1
    cells: tuple[Variable, ...]

    @property
    def name(self) -> str:
        parts = ([self.dense.name] if self.dense else []) + [v.name for v in self.cells]
        return " × ".join(parts) or "count"

    @property
    def size(self) -> int:
        """How many cells."""
        return math.prod(v.size for v in self.cells)

    @property
    def width(self) -> int:
        """How many coordinates a cell has."""
        return self.dense.dim if self.dense else 1

    @property
    def dim(self) -> int:
        return self.size * self.width

    @property
    def integer_norm(self) -> int:
        """The bound on a row's norm in this block, in units of the integer grid. Enforced row by row."""
        return math.ceil(self.weight * 2**BITS)

    @property
    def integer_reach(self) -> int:
        """The same for distances. Truncation moves a row by at most √dim, twice if it is shrunk too: the angle of two
        rows may then be slightly wider than their map allows. With this in place of the norm `Dense.apart` holds.
        """
        return self.integer_norm + (4 * math.isqrt(self.width) + 4 if self.dense and self.dense.apart < 4 else 0)

    @property
    def apart(self) -> int | Fraction:
        """Two rows in the same cell: their largest squared distance ÷ the squared norm."""
        return self.dense.apart if self.dense else 0

    def cell(self, codes: dict[str, Tensor]) -> Tensor | None:
        """(n,) joint code in row-major order; None when there is only one cell."""
        index: Tensor | None = None
        for v in self.cells:
            index = codes[v.name] if index is None else index * v.size + codes[v.name]
        return index


@final
@dataclass(frozen=True)
class FeatureMap:
    """A sum of blocks.

    >>> label, sex = Variable("label", 2), Variable("sex", 2)
    >>> from dpmerf.features.fourier import Fourier
    >>> f = of(Fourier.draw(3, 8, (1.0,), seed=0))
    >>> round(f.diameter, 6), round((f * onehot(label) + onehot(label)).diameter, 6)
    (2.0, 2.0)
    >>> round(((f + onehot(sex)) * onehot(label) + onehot(label)).diameter ** 2, 6)
    6.0
    """

    blocks: tuple[Block, ...]

    @property
    def dim(self) -> int:
        return sum(b.dim for b in self.blocks)

    @property
    def norm_bound(self) -> float:
        """sup ‖φ(r)‖."""
        return math.sqrt(sum(b.weight**2 for b in self.blocks))

    @property
    def diameter(self) -> float:
        """sup ‖φ(r) − φ(r′)‖."""
        return math.sqrt(squared_diameter([b.weight**2 for b in self.blocks], self.blocks))

    @property
    def integer_bounds(self) -> tuple[float, float]:
        """(norm bound, diameter) of truncated rows in units of the integer grid, rounded up."""
        squares = [b.integer_reach**2 for b in self.blocks]
        exact = (sum(squares), squared_diameter(squares, self.blocks))
        norm, diameter = (math.nextafter(math.sqrt(s), math.inf) for s in exact)
        return norm, diameter

    def __add__(self, other: FeatureMap) -> FeatureMap:
        return FeatureMap(self.blocks + other.blocks)

    def __mul__(self, other: FeatureMap) -> FeatureMap:
        return FeatureMap(tuple(_product(a, b) for a in self.blocks for b in other.blocks))

    def __rmul__(self, weight: float) -> FeatureMap:
        return FeatureMap(tuple(replace(b, weight=weight * b.weight) for b in self.blocks))

    def __call__(self, batch: Batch) -> Tensor:
        """(n, dim), written out in full: for tests and small maps."""
        parts = []
        for b in self.blocks:
            values = b.dense(batch.values) if b.dense else torch.ones(len(batch), 1, dtype=batch.numbers.dtype)
            cell = b.cell(batch.codes)
            if cell is not None:
                onehot = torch.nn.functional.one_hot(cell, b.size).to(values.dtype)
                values = (onehot[:, :, None] * values[:, None, :]).flatten(1)
            parts.append(b.weight * values)
        return torch.cat(parts, dim=1)


def constant() -> FeatureMap:
    """The constant 1: its sum is the number of rows."""
    return FeatureMap((Block(1.0, None, ()),))


def onehot(*variables: Variable) -> FeatureMap:
    """One cell of the joint table of the variables: its sum is their marginal."""
    return FeatureMap((Block(1.0, None, variables),))


def of(dense: Dense) -> FeatureMap:
    """A dense map alone."""
    return FeatureMap((Block(1.0, dense, ()),))


def total(maps: Sequence[FeatureMap]) -> FeatureMap:
    """The sum of many maps."""
    return FeatureMap(tuple(b for m in maps for b in m.blocks))


def squared_diameter(squares: Sequence[float], blocks: Sequence[Block]) -> float:
    """sup ‖φ(r) − φ(r′)‖² where block i has squared norm at most squares[i] (exact in integers if these are).

    Take two rows and the set S of variables on which they differ. A block whose cells meet S lies in two different
    cells: squared distance a² + b² ≤ 2·square. Otherwise both rows share the cell: at most (a + b)² ≤ 4·square for a
    dense vector, or what its map says of the angle of two rows; 0 for the constant. Variables tied to no dense vector
    do best to differ; over the others every S is tried. Only norms and equal constants are used, so truncation toward
    zero cannot break it; what it can do to an angle is in `integer_reach`.
    """
    tied = sorted({v.name for b in blocks if b.dense for v in b.cells})
    if len(tied) > MANY:
        return sum(max(b.apart, 2 if b.cells else 0) * s for s, b in zip(squares, blocks, strict=True))
    # (cells' tied names, has an untied cell, squared distance in the same cell) -> summed squares
    groups: dict[tuple[frozenset[str], bool, int | Fraction], Any] = {}
    for s, b in zip(squares, blocks, strict=True):
        names = {v.name for v in b.cells}
        key = (frozenset(names & set(tied)), bool(names - set(tied)), b.apart)
        groups[key] = groups.get(key, 0) + s
    return max(
        sum((2 if free or names & set(differ) else same) * s for (names, free, same), s in groups.items())
        for k in range(len(tied) + 1)
        for differ in itertools.combinations(tied, k)
    )


def _product(a: Block, b: Block) -> Block:
    if a.dense and b.dense:
        raise PlanError("a product of two dense maps is not offered: draw one Fourier map over all the columns instead")
    if {v.name for v in a.cells} & {v.name for v in b.cells}:
        raise PlanError("a variable appears twice in a product: multiply different variables")
    return Block(a.weight * b.weight, a.dense or b.dense, a.cells + b.cells)
