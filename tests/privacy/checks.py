"""Checks: each looks at a case in its own way and says what is wrong, or nothing. False alarms: below 1 in 10⁶."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import torch
from scipy import stats

from dpmerf.audit.artefact import Artefact
from dpmerf.audit.bounds import Claim, mu_bound
from dpmerf.audit.canary import tile
from dpmerf.audit.distinguish import distinguish
from dpmerf.encoding.codec import Batch
from dpmerf.features.algebra import Block, FeatureMap
from dpmerf.features.dense import Dense
from dpmerf.plan.queries import ColumnSelection
from dpmerf.private import measure
from dpmerf.private.noise import OpenDPGaussian
from privacy.cases import Case
from privacy.harness import Call, publish, replay, watched
from privacy.hunt import integers, longest_block, square
from privacy.variants import ALARM, FULL

DRAWS = 8_000 if FULL else 4_000  # of noise, for the likelihood ratio
SAMPLES = 1_000_000 if FULL else 500_000  # of noise, for its variance: one per cent is ten standard errors
LOOKED_AT = 200 if FULL else 60  # whole releases whose noise is looked at, on each side
RELEASES = 400 if FULL else 100  # whole ones, on each side
SURE = -NormalDist().inv_cdf(ALARM / 100)  # standard errors: several comparisons each
Check = Callable[[Case], list[str]]


def replayed(case: Case) -> list[str]:
    """The same noisy answers: everything else must be the same for any table, and noise as large as for any other."""
    (first, calls), *others = replay([case.out, case.inside, *case.far], case.fresh)
    found = []
    for artefact, its_calls in others:
        if [c.public for c in calls] != [c.public for c in its_calls]:
            found.append("the noise depends on rows")
        if different := first.features().differences(artefact.features()):
            kept = [d for d in different if "sha256" not in d and not d.endswith("hash")] or different
            found.append(f"depends on rows: {kept[0]}")
    return list(dict.fromkeys(found))[:2]


def bounded(case: Case) -> list[str]:
    """With the same answers before, neighbours move sums, and the scores of a choice, no farther than was priced."""
    (_, before), (_, after) = replay([case.out, case.inside], case.fresh)
    if [c.public[:2] for c in before] != [c.public[:2] for c in after]:
        return ["what is measured depends on rows"]
    square_mu, found = 0.0, []
    for a, b in zip(before, after, strict=True):
        moved = (b.exact - a.exact).double()
        if a.what == "add":
            square_mu += float((moved / min(a.scale, b.scale)).square().sum())
        elif (loss := float(moved.max() - moved.min()) / min(a.scale, b.scale)) > sum(case.plan.selections) * (
            1 + 1e-9
        ):
            found.append(f"a choice loses {loss:.3f}, {sum(case.plan.selections):.3f} claimed")
    mu = math.sqrt(square_mu)
    return found + (
        [f"sums move by μ = {mu:.3f}, {case.plan.mu:.3f} claimed"] if mu > case.plan.mu * (1 + 1e-9) else []
    )


def attacked(case: Case) -> list[str]:
    """The likelihood ratio, the best attack on sums, over noise from the production source."""
    (_, before), (_, after) = replay([case.out, case.inside], case.fresh)
    pairs = [(a, b) for a, b in zip(before, after, strict=False) if a.what == "add" and a.exact.shape == b.exact.shape]
    scores = []
    for side in (0, 1):
        ratio = torch.zeros(DRAWS, dtype=torch.float64)
        for pair in pairs:
            mine = pair[side]
            where = torch.nonzero(pair[0].exact != pair[1].exact).flatten()
            if pair[0].scale != pair[1].scale:
                where = torch.arange(len(mine.exact))
            y = OpenDPGaussian().add(tile(mine.exact[where], DRAWS), mine.scale)
            ratio += _log_density(y, pair[1], where) - _log_density(y, pair[0], where)
        scores.append(ratio.numpy())
    shown = mu_bound(scores[0], scores[1], 1 - ALARM).lower
    return [f"sums show μ ≥ {shown:.2f}, {case.plan.mu:.2f} claimed"] if shown > case.plan.mu else []


def _log_density(y: torch.Tensor, call: Call, where: torch.Tensor) -> torch.Tensor:
    z = (y - call.exact[where]).double() / call.scale
    return -z.square().sum(dim=1) / 2 - len(where) * math.log(call.scale)


def lawful(case: Case) -> list[str]:
    """The noise of whole releases: on every number, fresh, of the stated size on both sides, independent."""
    sigmas = {p.stage: p.sigma for p in case.plan.prices}
    found: list[str] = []
    for rows in (case.out, case.inside):
        noises = _noises(case, rows)
        if not noises:
            return ["what is released are not the noisy sums"]
        for stage, noise in noises.items():
            z = np.concatenate(noise) / sigmas[stage]
            off = (np.mean(z**2) - 1) / math.sqrt(2 / len(z))
            firsts = [n[0] for n in noise if len(n)]
            if _bare(noise):
                found.append("numbers without noise")
            elif len(set(firsts)) < 0.9 * len(firsts):
                found.append("noise repeats")
            elif _dependent(z[:-1], z[1:]):
                found.append("numbers share noise")
            elif abs(off) > SURE:
                found.append(f"noise {math.sqrt(np.mean(z**2)):.3f} times what was claimed")
            if stats.chisquare(np.bincount(np.concatenate(noise) % 16, minlength=16)).pvalue < ALARM / 100:
                found.append("low bits of the noise are not even")
        found += _stages_share(list(noises.values()))
    return list(dict.fromkeys(found))


def _noises(case: Case, rows: pa.Table) -> dict[str, list[np.ndarray]]:
    """Stage -> noise of each release: the numbers in the artefact less the sums that were to be hidden."""
    plan = case.fresh
    noises: dict[str, list[np.ndarray]] = {}
    for _ in range(LOOKED_AT):
        with watched() as calls:
            release = measure.measure(rows, plan)
        stages = [s.name for s in plan.stages if not isinstance(s.query, ColumnSelection)]
        if len(stages) != len(calls):
            return {}
        for name, call in zip(stages, calls, strict=True):
            if release.sums[name].shape != call.exact.shape:
                return {}
            noises.setdefault(name, []).append((release.sums[name] - call.exact).numpy())
    return noises


def _bare(noise: list[np.ndarray]) -> bool:
    """Is there a number that mostly has none?"""
    shortest = min(len(n) for n in noise)
    zero = np.mean([n[:shortest] == 0 for n in noise], axis=0)
    return bool((zero > 0.5).any()) or float(np.mean(np.concatenate(noise) == 0)) > 0.05


def _stages_share(noises: list[list[np.ndarray]]) -> list[str]:
    for i, first in enumerate(noises):
        for second in noises[i + 1 :]:
            cut = [(a[: len(b)], b[: len(a)]) for a, b in zip(first, second, strict=True)]
            if _dependent(np.concatenate([a for a, _ in cut]), np.concatenate([b for _, b in cut])):
                return ["stages share noise"]
    return []


def _dependent(a: np.ndarray, b: np.ndarray) -> bool:
    if len(a) < 30 or not (a.std() > 0 and b.std() > 0):
        return False
    return bool(abs(np.corrcoef(a, b)[0, 1]) * math.sqrt(len(a)) > SURE)


def sampled(case: Case) -> list[str]:
    """The sampler's variance, to one per cent."""
    sigma = 16.0
    noise = OpenDPGaussian().add(torch.zeros(SAMPLES, dtype=torch.int64), sigma).double() / sigma
    off = (float(noise.square().mean()) - 1) / math.sqrt(2 / SAMPLES)
    return [f"sampler: noise {float(noise.square().mean()) ** 0.5:.4f} times what was asked"] if abs(off) > 5 else []


class TooLong(Dense):
    """Vectors far beyond the norm that the map promises, or not finite."""

    apart = 4
    name = "too long"
    dim = 4

    def __call__(self, numbers: torch.Tensor) -> torch.Tensor:
        values = torch.full((len(numbers), 4), 3.0, dtype=torch.float64)
        values[numbers[:, 0] > 0.5] = 1e200
        values[numbers[:, 0] > 0.9] = math.inf
        return values


def enforced(case: Case) -> list[str]:
    """A row's integers never pass its bound, in any form of block, even if a map breaks its word."""
    plan, found = case.fresh, []
    blocks = [b for stage in plan.stages for b in stage.query.nominal(plan).blocks if b.dense is not None]
    rng = torch.Generator().manual_seed(1)
    numbers = torch.rand(300, max(1, len(plan.codec.numeric)), generator=rng, dtype=torch.float64)
    for block in blocks:
        if plan.schema.image is None and longest_block(block, numbers) > block.integer_norm**2:
            found.append("a row is longer than its bound")
        broken = replace(block, dense=TooLong())
        codes = {v.name: torch.zeros(10, dtype=torch.int64) for v in block.cells}
        rows = integers(FeatureMap((broken,)), Batch(numbers[:10], codes))
        if max(square(row) for row in rows) > broken.integer_norm**2:
            found.append(f"the norm is not enforced: {_form(block)}")
    return list(dict.fromkeys(found))


def _form(block: Block) -> str:
    return " × ".join(["dense", *("cells" for _ in block.cells[:1])])


def artefacts(case: Case, releases: int) -> list[list[Artefact]]:
    """As many whole artefacts of each of both tables."""
    plan = case.fresh
    return [[publish(rows, plan) for _ in range(releases)] for rows in (case.out, case.inside)]


def black_box(case: Case) -> list[str]:
    """Whole artefacts of both tables, told apart by rules that are learned on half of them."""
    refuted = distinguish(*artefacts(case, RELEASES), ALARM).refutes(Claim.of(case.plan))
    return [f"artefacts differ, {refuted} of {case.plan.mu:.2f}"] if refuted else []


CHECKS: dict[str, Check] = {
    "replay": replayed,
    "bounds": bounded,
    "attack": attacked,
    "noise": lawful,
    "sampler": sampled,
    "norm": enforced,
    "black box": black_box,
}
