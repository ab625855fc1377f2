"""Grid: every learned column as cells. Fine cells follow from the schema; bins group fine cells.

`Fine` is public. A `Binning` is public too (`Binning.equal`) or post-processing of noisy fine histograms
(`Binning.cut`); either way no row is needed to make one. Null is a cell of its own, the last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dpmerf.encoding.atoms import inside, refined, split_levels, subsets
from dpmerf.encoding.codec import Batch, Codec, Variable, null_name
from dpmerf.encoding.cuts import cut_categories, cut_numbers, cut_parts, most_categories, nearest_counts, support
from dpmerf.encoding.fine_cells import Fine, ValueDraw
from dpmerf.encoding.places import draw_inside
from dpmerf.lazy import torch
from dpmerf.schema import Numeric

if TYPE_CHECKING:
    from torch import Tensor

EVERY_VALUE = 2**16  # more than a column has cells
LEAST_PART = 2.0  # times the noise of its count: the least mass of a part
MOST_TILT = 8.0  # of a bin
NOTHING_PREFERRED: Mapping[str, ValueDraw] = {}
NOTHING_ALIKE: Mapping[str, str] = {}


@final
class FineGrid:
    """The fine cells of every learned column."""

    def __init__(self, codec: Codec, most: int, whole: Sequence[str] = ()) -> None:
        """At most so many cells of a column; of those in `whole`, one for each value."""
        self.codec = codec
        self.most = most
        self.numeric = {
            name: Fine(
                codec.axes[name],
                EVERY_VALUE if name in whole else most,
                partial(split_levels, codec, name),
                column.spans,
            )
            for name, column in codec.schema.columns.items()
            if isinstance(column, Numeric)
        }

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """Column -> its fine cells as a variable, null the last of them."""
        sizes = {v.name: v.size for v in self.codec.variables}
        found = {}
        for name, column in self.codec.schema.learned.items():
            size = self.numeric[name].size + column.nullable if isinstance(column, Numeric) else sizes[name]
            found[name] = Variable(f"{name}#fine", size)
        return found

    def cells_of(self, name: str, other: str) -> np.ndarray:
        """(cells,) of a column of numbers, without null: in which cell of a column like it each begins."""
        mine, theirs = self.numeric[name], self.numeric[other]
        return np.asarray(np.searchsorted(theirs.edges[:-1], mine.edges[:-1], side="right") - 1)

    def marks(self, name: str) -> list[np.ndarray]:
        """(cells,) each: which fine cells lie in the subsets that the schema's rules speak of."""
        fine, size = self.numeric.get(name), self.variables[name].size
        if fine is not None:
            return [inside(s, fine.edges[:-1], size, fine.axis, fine.step) for s in subsets(self.codec, name)]
        starts = np.arange(size - self.codec.schema.columns[name].nullable)
        return [inside(s, starts, size) for s in subsets(self.codec, name)]

    def encode(self, batch: Batch, most: int = 1) -> dict[str, Tensor]:
        """Column -> (n,) fine cells; of numbers, which of the (at most so many) parts of all cells; null comes last."""
        codes = {}
        for name, column in self.codec.schema.learned.items():
            if not isinstance(column, Numeric):
                codes[name] = batch.codes[name]
                continue
            fine = self.numeric[name]
            code = fine.index(batch.numbers[:, self.codec.numeric.index(name)], most)
            null = int(fine.parts(most).sum())
            codes[name] = torch.where(batch.codes[null_name(name)] == 1, null, code) if column.nullable else code
        return codes

    def decode(
        self,
        codes: dict[str, Tensor],
        within: dict[str, Tensor] | torch.Generator,
        preferred: Mapping[str, ValueDraw] = NOTHING_PREFERRED,
    ) -> Batch:
        """Column -> (n,) fine cells, back to a batch for the codec; with how far into them, or anywhere at random.

        Columns with `preferred` values draw these from their cells.
        """
        n = len(next(iter(codes.values())))
        numbers = torch.full((n, len(self.numeric)), 0.5, dtype=torch.float64)
        out = {}
        for name, column in self.codec.schema.learned.items():
            if not isinstance(column, Numeric):
                out[name] = codes[name]
                continue
            fine = self.numeric[name]
            absent = codes[name] >= fine.size
            cells = codes[name].clamp(max=fine.size - 1)
            if not isinstance(within, torch.Generator):
                drawn = fine.place(cells, within[name])
            elif name in preferred:
                drawn = torch.from_numpy(fine.axis.unit(preferred[name](cells.numpy(), within)))
            else:
                drawn = fine.place(cells, torch.rand(n, generator=within, dtype=torch.float64))
            numbers[:, self.codec.numeric.index(name)] = torch.where(absent, 0.5, drawn)
            if column.nullable:
                out[null_name(name)] = absent.long()
        return self.codec.with_label(Batch(numbers, out))


def _numbered(groups: np.ndarray) -> int:
    """How many groups there are, if they are numbered from 0 without gaps; else 0."""
    found = np.unique(groups)
    return len(found) if np.array_equal(found, np.arange(len(found))) else 0


@final
class Binning:
    """The discrete view of a whole row: each learned column's fine cells in bins, and bins in parts.

    Pairs of columns are counted in bins; a column alone can afford parts.
    """

    def __init__(self, grid: FineGrid, bins: dict[str, np.ndarray], parts: dict[str, np.ndarray]) -> None:
        self.grid = grid
        self.bin_numbers = bins  # column -> (fine cells,) int64: which bin each lies in
        self.part_numbers = parts  # the same; cells of a part lie in one bin

    @cached_property
    def bin_of(self) -> dict[str, Tensor]:
        """`bin_numbers` as tensors."""
        return {name: torch.from_numpy(cells) for name, cells in self.bin_numbers.items()}

    @cached_property
    def part_of(self) -> dict[str, Tensor]:
        """`part_numbers` as tensors."""
        return {name: torch.from_numpy(cells) for name, cells in self.part_numbers.items()}

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """Column -> its bins as a variable."""
        return {name: Variable(f"{name}#bin", int(cells.max()) + 1) for name, cells in self.bin_numbers.items()}

    @cached_property
    def parts(self) -> dict[str, Variable]:
        """Column -> its parts as a variable."""
        return {name: Variable(f"{name}#part", int(cells.max()) + 1) for name, cells in self.part_numbers.items()}

    def bin_of_part(self, name: str) -> np.ndarray:
        """(parts,) int64."""
        found = np.zeros(self.parts[name].size, dtype=np.int64)
        found[self.part_numbers[name]] = self.bin_numbers[name]
        return found

    def encode(self, batch: Batch) -> dict[str, Tensor]:
        """Column -> (n,) bins."""
        return {name: self.bin_of[name][cells] for name, cells in self.grid.encode(batch).items()}

    def codes(self, batch: Batch) -> dict[str, Tensor]:
        """Variable -> (n,) codes, of bins and parts."""
        cells = self.grid.encode(batch)
        bins = {v.name: self.bin_of[name][cells[name]] for name, v in self.variables.items()}
        return bins | {v.name: self.part_of[name][cells[name]] for name, v in self.parts.items()}

    def decode(
        self,
        codes: dict[str, Tensor],
        shares: dict[str, Tensor],
        classes: Tensor,
        places: dict[str, Tensor],
        rng: torch.Generator,
        preferred: Mapping[str, ValueDraw] = NOTHING_PREFERRED,
        evened: bool = True,
    ) -> Batch:
        """Column -> (n,) bins, back to a batch; `shares` (C, cells) weigh the fine cells inside their bins by class.

        `places` (n,) say how far into its bin, from 0 to 1, a row's number lies; where they say nothing, anywhere.
        `evened`: rows of a bin share out its cells in the order of their places; else each lies at its own place.
        """
        fine = {name: torch.zeros_like(code) for name, code in codes.items()}
        for c in classes.unique().tolist():
            rows = torch.nonzero(classes == c).flatten()
            for name, code in codes.items():
                place = places[name][rows] if name in places else torch.rand(len(rows), generator=rng)
                fine[name][rows] = draw_inside(self.bin_of[name], shares[name][c], code[rows], place, rng, evened)
        return self.grid.decode(fine, rng, preferred)

    def to_json(self) -> dict[str, Any]:
        found = {"bins": self.bin_numbers, "parts": self.part_numbers}
        return {what: {name: cells.tolist() for name, cells in of.items()} for what, of in found.items()}

    @staticmethod
    def from_json(grid: FineGrid, data: dict[str, Any]) -> Binning:
        bins, parts = (
            {name: np.array(cells, dtype=np.int64) for name, cells in data[what].items()} for what in ("bins", "parts")
        )
        for name, variable in grid.variables.items():
            bin_of, part_of = bins[name], parts[name]
            inside = len({*zip(part_of.tolist(), bin_of.tolist(), strict=True)})  # as many as parts, if these are cut
            if not (len(bin_of) == variable.size and _numbered(bin_of) and _numbered(part_of) == inside):
                raise ValueError("bins that do not fit their columns")
        return Binning(grid, bins, parts)

    @staticmethod
    def equal(grid: FineGrid, bins: int, parts: int = 1) -> Binning:
        """Public bins: equal groups of fine cells; categories as they are."""
        return _without_mixed_cells(grid, _equal(grid, bins), _equal(grid, bins * parts))

    @staticmethod
    def cut(
        grid: FineGrid,
        counts: Mapping[str, np.ndarray],
        sigmas: Mapping[str, float],
        rows: float,
        bins: int,
        whole: frozenset[str],
        parts: int = 1,
        part_sigma: float = math.inf,
        alike: Mapping[str, str] = NOTHING_ALIKE,
    ) -> Binning:
        """Bins from noisy fine histograms (with the standard deviation of their noise): post-processing, no rows.

        Columns in `whole`, and those without a histogram, keep every cell. A bin of numbers is cut into at most `parts`
        parts of about equal mass, each of them LEAST_PART times the noise that its count will have. Columns in `alike`
        have the bins of another, undivided.
        """
        bin_of: dict[str, np.ndarray] = {}
        part_of: dict[str, np.ndarray] = {}
        most = most_categories([v.size for name, v in grid.variables.items() if name not in grid.numeric])
        for name, variable in grid.variables.items():
            if name in whole or name not in counts:
                bin_of[name] = part_of[name] = np.arange(variable.size)
                continue
            mass, sigma = nearest_counts(counts[name], rows), sigmas[name]
            if name in grid.numeric:
                nullable = grid.codec.schema.columns[name].nullable
                fine = grid.numeric[name]
                occupied = support(counts[name][: fine.size], sigma)
                mass[: occupied.start] = mass[occupied.stop : fine.size] = 0.0
                cut = cut_numbers(mass, fine.widths, nullable, sigma, rows, bins, fine.marks)
            else:
                cut = cut_categories(mass, sigma, most)
            bin_of[name] = part_of[name] = cut.astype(np.int64)
            if name in grid.numeric:
                part_of[name] = cut_parts(cut, mass, parts, LEAST_PART * part_sigma).astype(np.int64)
        for name, other in alike.items():
            own = bin_of[other][grid.cells_of(name, other)]
            bin_of[name] = part_of[name] = np.r_[own, [own.max() + 1] * grid.codec.schema.columns[name].nullable]
        return _without_mixed_cells(grid, bin_of, part_of)


def _without_mixed_cells(grid: FineGrid, bins: dict[str, np.ndarray], parts: dict[str, np.ndarray]) -> Binning:
    """No bin reaches across a cut of the schema's rules: what they forbid are whole cells of tables."""
    bin_of, part_of = dict(bins), dict(parts)
    for name in bin_of:
        marks = grid.marks(name)
        bin_of[name], part_of[name] = refined(bin_of[name], marks), refined(part_of[name], marks)
    return Binning(grid, bin_of, part_of)


def _equal(grid: FineGrid, bins: int) -> dict[str, np.ndarray]:
    bin_of = {}
    for name, variable in grid.variables.items():
        bin_of[name] = np.arange(variable.size)
        if name in grid.numeric:
            size = grid.numeric[name].size
            cut_by_rules = len(split_levels(grid.codec, name, grid.numeric[name].step))
            most = min(bins + cut_by_rules, size)  # no fewer than bins cut by mass can be, which are divided, too
            bin_of[name] = np.where(bin_of[name] < size, bin_of[name] * most // size, most)
    return bin_of


def tilted(place: Tensor, tilt: Tensor) -> Tensor:
    """Even places from 0 to 1 -> places with a density that grows by e^tilt from one end to the other.

    >>> tilted(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 4.0])).round(decimals=2).tolist()
    [0.5, 0.83]
    """
    place, t = place.double(), tilt.double().clamp(-MOST_TILT, MOST_TILT)
    return torch.where(t.abs() > 1e-6, torch.log1p(place * torch.expm1(t)) / t, place)


def to_simplex(v: Tensor, total: float | Tensor = 1.0) -> Tensor:
    """Euclidean projection of each row on {p ≥ 0, Σp = total}.

    >>> to_simplex(torch.tensor([0.9, 0.6, -0.5])).tolist()
    [0.6499999761581421, 0.3500000238418579, 0.0]
    """
    totals = torch.as_tensor(total, dtype=v.dtype).clamp_min(1e-9)
    ordered, _ = torch.sort(v, dim=-1, descending=True)
    excess = ordered.cumsum(-1) - totals[..., None]
    k = torch.arange(1, v.shape[-1] + 1, dtype=v.dtype)
    last = ((ordered - excess / k) > 0).sum(-1, keepdim=True).clamp_min(1) - 1
    return (v - torch.gather(excess, -1, last) / (last + 1)).clamp_min(0)
