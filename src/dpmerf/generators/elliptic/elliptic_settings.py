"""Elliptic settings: every tuned number of the model for wide tables (docs/adr/0006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class EllipticSettings:
    """How means and covariances are read off a release, and how rows are drawn."""

    least_own: float = 0.1  # of a column's variance: what the factors cannot take from it
    longest: float = 2.2  # norm ÷ √columns where the last bin ends
    by_distance: bool = True  # a covariance that depends on the distance of columns, and what stands out beside it
    smoothest: int = 8  # cosines among which axes that stand out are looked for first; 0: among all at once
    lag_noise: float = 2.0  # standard deviations of noise at which the mean of a diagonal counts as nothing
    directions: int = 2_048  # drawn to find the covariance behind that of directions,
    rounds: int = 20  # in so many steps
    count_rounds: int = 10  # that make noisy counts positive and fit them to their total
    along_axes: bool = True  # class means are shrunk axis by axis of the covariance; else alike in all directions
    ratios: tuple[float, float, int] = (-5.0, 0.5, 45)  # log10, first and last, and how many: of a mean's variance
    sure: float = 2.0  # standard deviations by which a norm must exceed another to be believed
    restored: bool = True  # classes lie as far from each other as the norm of their noisy means says
    least_kept: float = 0.5  # of that distance, once rows are divided by their norms
    moved: bool = True  # histograms are moved to the mean scores that were measured
    quantiles: int = 257  # of each column's scores as they are drawn
    simulated: int = 16_384  # rows from which these are taken
    drawn: int = 8_192  # rows at a time
