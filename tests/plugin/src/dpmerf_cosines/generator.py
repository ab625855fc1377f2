"""What the plugin draws: every column by itself, a number from its cosine series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from dpmerf.encoding.codec import Batch
from dpmerf.generators.base import Generator, Given, History, State, overwrite
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release
from dpmerf_cosines.query import Cosines


@final
@dataclass(frozen=True)
class Settings:
    """What could be tuned."""

    grid: int = 512  # points at which a density is evaluated


@final
class CosineSeries(Generator):
    """Columns are independent. p(x) = 1 + 2 · Σ E[cos kπx] · cos kπx, cut off at 0."""

    kind: ClassVar[str] = "cosine-series"
    reads: ClassVar[type[Cosines]] = Cosines
    takes: ClassVar[type[Settings]] = Settings

    def __init__(self, release: Release, densities: Tensor, shares: dict[str, Tensor]) -> None:
        self._codec, self._densities, self._shares = release.codec, densities, shares

    @classmethod
    def fit(
        cls, release: Release, settings: Settings, seed: int, *, device: str = "cpu", bars: Bars = SILENT
    ) -> tuple[CosineSeries, History]:
        """In closed form, from the noisy sums alone."""
        rows, stage = release.rows_estimate, release.plan.stage(Cosines)
        grid, shares = settings.grid, {}
        densities = torch.ones(len(release.codec.numeric), grid, dtype=torch.float64)
        with bars.task("cosine series"):
            for found in release.answers(stage):
                if found.dense is None:
                    shares[found.variables[0].name] = found.values.clamp_min(0) / found.values.clamp_min(0).sum()
                    continue
                order = release.plan.query(Cosines).order
                moments = found.values.view(-1, order) * math.sqrt(found.dense.dim) / rows  # (columns, order)
                x = (torch.arange(grid, dtype=torch.float64) + 0.5) / grid
                basis = torch.cos(math.pi * torch.arange(1, order + 1)[:, None] * x)
                densities = (1 + 2 * moments @ basis).clamp_min(0) + 1e-9
        return cls(release, densities / densities.sum(1, keepdim=True), shares), History(floor=1.0)

    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        """n encoded rows."""
        numbers = torch.empty(n, len(self._densities), dtype=torch.float64)
        for i, density in enumerate(self._densities):
            cell = torch.multinomial(density, n, replacement=True, generator=rng)
            numbers[:, i] = (cell + torch.rand(n, generator=rng, dtype=torch.float64)) / len(density)
        codes = {k: torch.multinomial(p, n, replacement=True, generator=rng) for k, p in self._shares.items()}
        batch = Batch(numbers.float(), codes)
        return batch if given is None else overwrite(batch, given, self._codec)

    @property
    def conditions(self) -> frozenset[str]:
        """Any column can be held: none depends on another."""
        return frozenset(self._codec.schema.learned)

    def state(self) -> State:
        """Densities and shares."""
        return State({}, {"densities": self._densities, **{f"share.{k}": v for k, v in self._shares.items()}})

    @classmethod
    def from_state(cls, release: Release, state: State) -> CosineSeries:
        """The way back."""
        shares = {k.removeprefix("share."): v for k, v in state.tensors.items() if k.startswith("share.")}
        return cls(release, state.tensors["densities"], shares)
