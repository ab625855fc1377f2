"""Planted bugs: each breaks the product in one classic way. A suite that does not catch them proves nothing."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmerf.audit.canary import Neighbours, tile
from dpmerf.budget import Unit
from dpmerf.codec import Batch, Codec
from dpmerf.features.algebra import BITS
from dpmerf.plan import Plan, Stage
from dpmerf.private import contribute, measure, persons
from dpmerf.private.noise import NoiseSource, OpenDPGaussian
from dpmerf.release import Release
from fixed_noise import FixedNoise
from privacy.variants import ADD, LABEL, NUMBERS, VARIANTS, WHO, embedding, worst

EPSILON = 10.0
Patch = Callable[[pytest.MonkeyPatch], None]


@final
@dataclass(frozen=True)
class Bug:
    """How to plant it, and the tables on which it shows."""

    name: str
    plant: Patch
    pair: Callable[[], Neighbours]


class Recorder(NoiseSource):
    """Notes what was to be given noise, and how much; adds none."""

    name: ClassVar[str] = "TEST-ONLY recorder"

    def __init__(self) -> None:
        self.calls: list[tuple[torch.Tensor, float]] = []

    def add(self, sums: torch.Tensor, sigma: float, advance: Callable[[int], object] | None = None) -> torch.Tensor:
        self.calls.append((sums.clone(), sigma))
        return sums

    def choose(self, scores: list[int], scale: float) -> int:
        return scores.index(max(scores))


def exact(table: pa.Table, plan: Plan) -> list[tuple[torch.Tensor, float]]:
    """What the mechanism, bugs and all, would have given noise: an attacker who knows the code can compute it."""
    recorder = Recorder()
    measure.measure(table, plan, noise=recorder)
    return recorder.calls


def noisy(calls: list[tuple[torch.Tensor, float]], count: int) -> list[torch.Tensor]:
    """`count` releases of the same table, drawn by the production source (or what a bug made of it) in one call."""
    return [OpenDPGaussian().add(tile(sums, count), sigma) for sums, sigma in calls]


# --- the bugs --------------------------------------------------------------------------------------------------------

_ADD = OpenDPGaussian.add


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OpenDPGaussian, "add", lambda self, sums, sigma, advance=None: _ADD(self, sums, sigma / 2, advance))


def sensitivity_too_small(patch: pytest.MonkeyPatch) -> None:
    real = Unit.sensitivity
    patch.setattr(Unit, "sensitivity", lambda self, norm, diameter: real(self, norm, diameter) / math.sqrt(2))


def mean_of_private_rows(patch: pytest.MonkeyPatch) -> None:
    """Σφ/n with noise for sensitivity Δ/n: n is private and steers the noise."""
    real = measure.sum_locally
    counts: list[int] = []

    def mean(*arguments: Any) -> tuple[torch.Tensor, int]:
        sums, n = real(*arguments)
        counts.append(n)
        return torch.div(sums, max(n, 1), rounding_mode="trunc"), n

    add = Recorder.add

    def scaled(self: Recorder, sums: torch.Tensor, sigma: float, advance: Any = None) -> torch.Tensor:
        return add(self, sums, sigma / max(counts[-1], 1), advance)

    patch.setattr(measure, "sum_locally", mean)
    patch.setattr(Recorder, "add", scaled)


def counts_without_noise(patch: pytest.MonkeyPatch) -> None:
    def add(self: NoiseSource, sums: torch.Tensor, sigma: float, advance: Any = None) -> torch.Tensor:
        found = _ADD(self, sums, sigma, advance)  # type: ignore[arg-type]
        found[..., -2:] = sums[..., -2:]  # the class counts are the last block
        return found

    patch.setattr(OpenDPGaussian, "add", add)


def bounds_from_data(patch: pytest.MonkeyPatch) -> None:
    real = Codec.encode

    def fitted(self: Codec, table: pa.Table) -> Batch:
        batch = real(self, table)
        low, high = batch.numbers.amin(dim=0), batch.numbers.amax(dim=0)
        return Batch((batch.numbers - low) / (high - low).clamp_min(1e-9), batch.codes)

    patch.setattr(Codec, "encode", fitted)


def round_to_nearest(patch: pytest.MonkeyPatch) -> None:
    def rounded(values: torch.Tensor, block: Any) -> torch.Tensor:
        return torch.round(values * (block.weight * 2**BITS))

    for name in ("bounded", "_bound"):
        patch.setattr(contribute, name, rounded)


def no_cap(patch: pytest.MonkeyPatch) -> None:
    real = persons.PersonCap.__init__
    patch.setattr(persons.PersonCap, "__init__", lambda self, most: real(self, 10**9))


def shares_above_one(patch: pytest.MonkeyPatch) -> None:
    real = Plan._prices
    patch.setattr(Plan, "_prices", lambda self, mu, choices: real(self, mu * math.sqrt(len(self.stages)), choices))


def noise_reused(patch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[int, ...], torch.Tensor] = {}

    def add(self: NoiseSource, sums: torch.Tensor, sigma: float, advance: Any = None) -> torch.Tensor:
        shape = tuple(sums.shape)
        if shape not in kept:
            kept[shape] = _ADD(self, sums, sigma, advance) - sums  # type: ignore[arg-type]
        return sums + kept[shape]

    patch.setattr(OpenDPGaussian, "add", add)


def seed_fixed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OpenDPGaussian, "add", FixedNoise(7).add.__func__.__get__(FixedNoise(7)))  # type: ignore[attr-defined]


# --- the tables on which they show -----------------------------------------------------------------------------------


def imbalanced() -> Neighbours:
    return worst(VARIANTS["labelled, imbalanced"](EPSILON))


def two_stages() -> Neighbours:
    """Two measurements that share the budget."""
    one = embedding(NUMBERS + LABEL, "y", Unit(), 1.0, EPSILON, dim=2)
    halves = tuple(Stage(name, 0.5, one.stages[0].recipe) for name in ("first", "second"))
    return worst(replace(one, stages=halves))


def two_rows() -> Neighbours:
    """One row, or two that are far apart."""
    plan = embedding(NUMBERS, None, ADD, 1.0, EPSILON)
    far = worst(embedding(NUMBERS, None, Unit(), 1.0, EPSILON))
    rows = [far.out.slice(far.out.num_rows - 1), far.inside.slice(far.inside.num_rows - 1)]
    return Neighbours(plan, rows[0], pa.concat_tables(rows), far.canary)


def outlier() -> Neighbours:
    """Many rows close together, and one that may lie far away."""
    plan = embedding(NUMBERS, None, Unit(), 0.0, EPSILON)
    near = {"x": np.linspace(0.0, 0.1, 20).tolist(), "t": [0, 1] * 10}
    out, inside = ({"x": [*near["x"], last], "t": [*near["t"], 0]} for last in (0.1, 1.0))
    return Neighbours(plan, pa.table(out), pa.table(inside), {"x": 1.0, "t": 0})


def crowd() -> Neighbours:
    """A person with five times as many rows as the cap allows."""
    plan = embedding(NUMBERS + LABEL + WHO, "y", Unit("who", 3, "add-remove"), 1.0, EPSILON)
    base = {"x": [0.2, 0.8], "t": [3, 4], "y": [True, False], "who": ["a", "b"]}
    many = {"x": [1.0] * 15, "t": [9] * 15, "y": [True] * 15, "who": ["z"] * 15}
    return Neighbours(plan, pa.table(base), pa.table({k: base[k] + many[k] for k in base}), {})


PRODUCT = Bug("none (the product)", lambda patch: None, imbalanced)
BUGS = (
    Bug("half the noise", half_the_noise, imbalanced),
    Bug("sensitivity √2 too small", sensitivity_too_small, imbalanced),
    Bug("mean instead of sum with private n", mean_of_private_rows, two_rows),
    Bug("un-noised counts", counts_without_noise, imbalanced),
    Bug("bounds from data", bounds_from_data, outlier),
    Bug("float round-to-nearest", round_to_nearest, imbalanced),
    Bug("contribution cap off", no_cap, crowd),
    Bug("budget shares that add to more than 1", shares_above_one, two_stages),
    Bug("noise reused", noise_reused, imbalanced),
    Bug("seed fixed", seed_fixed, imbalanced),
)


@contextlib.contextmanager
def planted(bug: Bug) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        yield


__all__ = ["BUGS", "PRODUCT", "Bug", "Release", "exact", "noisy", "planted"]
