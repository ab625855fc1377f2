"""Price: what a stage of a plan costs and how noisy it is. No rows here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dpmerf.accounting.events import Gaussian, Selection
from dpmerf.accounting.unit import Unit
from dpmerf.errors import PlanError
from dpmerf.features.algebra import BITS, Block, FeatureMap


@final
@dataclass(frozen=True)
class Price:
    """What a stage costs. `sigma` is the noise in units of the integer grid (2⁻²⁴).

    For a selection it is the scale of the noise on its scores, at most, with their sensitivity.
    """

    stage: str
    share: float
    event: Gaussian | Selection
    norm_bound: float
    diameter: float
    sensitivity: float
    noise_multiplier: float
    sigma: float
    coordinates: int
    groups: tuple[tuple[str, int, float], ...]  # (what, coordinates, noise of one count or feature sum)
    bounds: tuple[float, float]  # norm and diameter of a row in units of the integer grid: what σ was made for
    largest: int  # coordinates of the map at its largest; of a selection, of the tables that are scored

    @property
    def mu(self) -> float:
        """Of Gaussian noise; 0 for a selection, whose cost is a range."""
        return self.event.mu if isinstance(self.event, Gaussian) else 0.0

    def released(self, phi: FeatureMap) -> int:
        """How many numbers come out of a stage whose map is `phi`: its sums, or one, which candidate was selected."""
        return phi.dim if isinstance(self.event, Gaussian) else 1

    def check(self, phi: FeatureMap) -> None:
        """PlanError if `phi`, the stage's map as resolved by earlier stages, exceeds what was priced. Public facts."""
        if phi.dim > self.largest or any(
            real > priced for real, priced in zip(phi.integer_bounds, self.bounds, strict=True)
        ):
            raise PlanError(f"stage '{self.stage}' is larger than it was priced: make the plan with `dpmerf plan`")


def price_of_sums(stage: str, share: float, mu: float, phi: FeatureMap, unit: Unit) -> Price:
    """Gaussian noise on the sums of `phi`, which is then mu-GDP."""
    sigma = unit.sensitivity(*phi.integer_bounds) / mu
    groups = tuple(
        (what, sum(b.dim for b in blocks), sigma / (blocks[0].weight * 2**BITS))
        for what, blocks in _groups(phi).items()
    )
    moved = unit.sensitivity(phi.norm_bound, phi.diameter)
    return Price(
        stage,
        share,
        Gaussian(mu),
        phi.norm_bound,
        phi.diameter,
        moved,
        1 / mu,
        sigma,
        phi.dim,
        groups,
        phi.integer_bounds,
        phi.dim,
    )


def price_of_selection(stage: str, share: float, loss_range: float, phi: FeatureMap, unit: Unit) -> Price:
    """A row moves a score by less than 1, two by less than 2: by how much less depends on the classes' shares."""
    moved, multiplier = unit.sensitivity(1.0, 2.0), 2 / loss_range
    groups = (("one column, by noisy scores", 1, moved * multiplier),)
    sigma = moved * multiplier * 2**BITS
    event = Selection(loss_range)
    return Price(stage, share, event, 1.0, 2.0, moved, multiplier, sigma, 1, groups, phi.integer_bounds, phi.dim)


def _groups(phi: FeatureMap) -> dict[str, list[Block]]:
    """Blocks of the same make together: 'fourier × label', 'tables of 2', …"""
    found: dict[str, list[Block]] = {}
    for b in phi.blocks:
        kind = b.dense.name if b.dense else f"{len(b.cells)}-way tables" if b.cells else "count"
        key = f"{kind} (weight {b.weight:.3g})" if not b.dense else f"{kind} × {b.size} cells" if b.cells else kind
        found.setdefault(key, []).append(b)
    return found
