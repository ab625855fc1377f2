"""Bugs of the noise and of its price."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dpmerf.accounting.unit import Unit
from dpmerf.plan import Plan
from dpmerf.private import measure
from dpmerf.private.noise import OpenDPGaussian
from fixed_noise import FixedNoise
from privacy.bugs.bug import Bug, leaking

_ADD = OpenDPGaussian.add
Add = Callable[[OpenDPGaussian, torch.Tensor, float], torch.Tensor]


def _add(patch: pytest.MonkeyPatch, broken: Add) -> None:
    """Replace the sampler's addition."""

    def add(self: OpenDPGaussian, sums: torch.Tensor, sigma: float, advance: Any = None) -> torch.Tensor:
        if advance is not None:
            advance(sums.numel())
        return broken(self, sums, sigma)

    patch.setattr(OpenDPGaussian, "add", add)


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    _add(patch, lambda self, sums, sigma: _ADD(self, sums, sigma / 2))


def one_per_cent(patch: pytest.MonkeyPatch) -> None:
    _add(patch, lambda self, sums, sigma: _ADD(self, sums, 0.99 * sigma))


def sensitivity_too_small(patch: pytest.MonkeyPatch) -> None:
    real = Unit.sensitivity
    patch.setattr(Unit, "sensitivity", lambda self, norm, diameter: real(self, norm, diameter) / math.sqrt(2))


def shares_above_one(patch: pytest.MonkeyPatch) -> None:
    real = Plan._prices
    patch.setattr(Plan, "_prices", lambda self, mu, choices: real(self, mu * math.sqrt(len(self.stages)), choices))


def noise_reused(patch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[int, ...], torch.Tensor] = {}

    def add(self: OpenDPGaussian, sums: torch.Tensor, sigma: float) -> torch.Tensor:
        shape = tuple(sums.shape)
        if shape not in kept:
            kept[shape] = _ADD(self, sums, sigma) - sums
        return sums + kept[shape]

    _add(patch, add)


def seed_fixed(patch: pytest.MonkeyPatch) -> None:
    _add(patch, lambda self, sums, sigma: FixedNoise(7).add(sums, sigma))


def shared_by_stages(patch: pytest.MonkeyPatch) -> None:
    """One vector is drawn per release; every stage takes it times its own sigma."""
    fine = 2.0**40

    def add(self: OpenDPGaussian, sums: torch.Tensor, sigma: float) -> torch.Tensor:
        if not hasattr(self, "kept"):
            self.kept = _ADD(self, torch.zeros(512, dtype=torch.int64), fine)  # type: ignore[attr-defined]
        return sums + (self.kept[: len(sums)].double() * (sigma / fine)).round().long()  # type: ignore[attr-defined]

    _add(patch, add)


def shared_by_numbers(patch: pytest.MonkeyPatch) -> None:
    _add(patch, lambda self, sums, sigma: sums + _ADD(self, torch.zeros(1, dtype=torch.int64), sigma))


def counts_without_noise(patch: pytest.MonkeyPatch) -> None:
    def add(self: OpenDPGaussian, sums: torch.Tensor, sigma: float) -> torch.Tensor:
        found = _ADD(self, sums, sigma)
        found[..., -2:] = sums[..., -2:]  # class counts are the last block
        return found

    _add(patch, add)


def empty_cells_without_noise(patch: pytest.MonkeyPatch) -> None:
    _add(patch, lambda self, sums, sigma: torch.where(sums == 0, 0, _ADD(self, sums, sigma)))


def small_cells_suppressed(patch: pytest.MonkeyPatch) -> None:
    """Counts below 5 are set to 0 before noise is added, as statistical offices do."""
    real = measure.sum_locally

    def suppressed(*arguments: Any) -> tuple[torch.Tensor, int]:
        sums, n = real(*arguments)
        norms = torch.cat([torch.full((b.dim,), float(b.integer_norm)) for b in arguments[2].blocks])
        return torch.where(sums < 5 * norms, 0, sums), n

    patch.setattr(measure, "sum_locally", suppressed)


def coarse_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise on a grid 16 times coarser than that of the sums, as single precision would have it."""
    _add(patch, lambda self, sums, sigma: sums + 16 * _ADD(self, torch.zeros_like(sums), sigma / 16))


def exact_total(patch: pytest.MonkeyPatch) -> None:
    """Noisy counts are moved so that they add up to the exact total, which is private."""

    def add(self: OpenDPGaussian, sums: torch.Tensor, sigma: float) -> torch.Tensor:
        found = _ADD(self, sums, sigma)
        found[-1] += sums.sum() - found.sum()
        return found

    _add(patch, add)


def _scaled(patch: pytest.MonkeyPatch, factor: Callable[[int], float]) -> None:
    """The release's noise is scaled by a function of the number of rows."""
    leak = leaking(patch)

    class Scaled(OpenDPGaussian):  # type: ignore[misc]
        def add(self, sums: torch.Tensor, sigma: float, advance: Any = None) -> torch.Tensor:
            return super().add(sums, sigma * factor(leak.rows), advance)

    patch.setattr(measure, "OpenDPGaussian", Scaled)


def larger_if_odd(patch: pytest.MonkeyPatch) -> None:
    _scaled(patch, lambda n: 1.05 if n % 2 else 1.0)


def mean_of_private_rows(patch: pytest.MonkeyPatch) -> None:
    """Σφ/n with noise for sensitivity Δ/n: n is private and steers the noise."""
    _scaled(patch, lambda n: 1 / max(n, 1))
    real = measure.sum_locally

    def mean(*arguments: Any) -> tuple[torch.Tensor, int]:
        sums, n = real(*arguments)
        return torch.div(sums, max(n, 1), rounding_mode="trunc"), n

    patch.setattr(measure, "sum_locally", mean)


def choice_too_sharp(patch: pytest.MonkeyPatch) -> None:
    real = measure.choose
    patch.setattr(
        measure,
        "choose",
        lambda exact, phi, shares, unit, loss_range, noise: real(exact, phi, shares, unit, 2 * loss_range, noise),
    )


def choice_without_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OpenDPGaussian, "choose", lambda self, scores, scale: scores.index(max(scores)))


BUGS = (
    Bug("half the noise", "sums", "embedding", half_the_noise, ("attack", "noise")),
    Bug("noise 1 % too small", "sums", "embedding", one_per_cent, ("sampler",)),
    Bug("sensitivity √2 too small", "sums", "embedding", sensitivity_too_small, ("bounds",)),
    Bug("sensitivity √2 too small, wide", "sums", "wide", sensitivity_too_small, ("bounds",)),
    Bug("budget shares that add to more than 1", "sums", "embedding, two stages", shares_above_one, ("bounds",)),
    Bug("noise reused", "sums", "embedding", noise_reused, ("noise",)),
    Bug("seed fixed", "sums", "images", seed_fixed, ("noise",)),
    Bug("one noise vector shared by stages", "sums", "embedding, two stages", shared_by_stages, ("noise",)),
    Bug("one noise vector shared by stages, wide", "sums", "wide", shared_by_stages, ("noise",), ("black box",)),
    Bug("one draw for all numbers", "sums", "images", shared_by_numbers, ("noise",)),
    Bug("un-noised counts", "counts", "embedding", counts_without_noise, ("noise",), ("black box",)),
    Bug("un-noised counts of pictures", "counts", "images", counts_without_noise, ("noise",), ("black box",)),
    Bug("empty cells without noise", "counts", "tables", empty_cells_without_noise, ("noise",)),
    Bug("small cells suppressed before the noise", "counts", "tables, rare", small_cells_suppressed, ("bounds",)),
    Bug("noise on a coarse grid", "sums", "wide", coarse_noise, ("noise",), ("black box",)),
    Bug("counts add up to the exact total", "counts", "tables, add-remove", exact_total, ("noise",), ("black box",)),
    Bug(
        "noise 5 % larger if n is odd",
        "counts",
        "embedding, many features",
        larger_if_odd,
        ("replay", "noise"),
        ("black box",),
    ),
    Bug(
        "mean instead of sum with private n",
        "counts",
        "embedding, two rows",
        mean_of_private_rows,
        ("replay",),
        ("attack",),
    ),
    Bug("a choice twice as sharp as priced", "selections", "few rows, close", choice_too_sharp, ("bounds",)),
    Bug("a choice without noise", "selections", "few rows", choice_without_noise, ("black box",)),
)
