"""Run: the whole path on canaries (release, train, sample), and how well each part of it kept them."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from dpmerf.accounting.gaussian import epsilon_of
from dpmerf.audit.bounds import MuBound, _spread_factors, mu_bound
from dpmerf.audit.canary import Neighbours, neighbours, tile
from dpmerf.encoding.codec import Batch
from dpmerf.errors import PlanError
from dpmerf.evaluate.attack import membership_game
from dpmerf.evaluate.results import MembershipGame
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.private.measure import measure
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release
from dpmerf.train import train

CONFIDENCE = 0.95  # of the figures that are reported
SURE = 1 - 1e-6  # before a claim is called false: a tight audit passes the truth at 95 % once in twenty runs
MOST_DRAWS = 20_000
LEAST_TRIALS = 30
STEPS = 40  # of training: any number is post-processing
SYNTHETIC = 200  # rows per model


@final
@dataclass(frozen=True)
class Audit:
    """What was claimed, and what an attacker who knows everything but one unit could show."""

    epsilon: float
    delta: float
    mu: float
    choices: tuple[float, ...]  # ranges of their losses, beside μ
    best_accuracy: float  # of any attack that the claim allows
    reached: float  # share of the claimed μ that the canary pair can show at all
    attack: MuBound  # on released vectors, by likelihood ratio
    attack_epsilon: float
    noise_ratio: float  # measured noise ÷ claimed noise
    noise_epsilon: float  # ε that follows from the measured noise, at least
    contradicted: bool  # by either of them, beyond all chance
    rows: MembershipGame | None  # on synthetic rows alone; None: no time
    attribute: tuple[float, float] | None  # share of right guesses of the canary's secret: with it, and without it
    seconds: float

    @property
    def holds(self) -> bool:
        """Did nothing contradict the claim?"""
        return not self.contradicted and not (self.rows is not None and self.rows.exceeds_claim)

    def to_json(self) -> dict[str, Any]:
        found = {**asdict(self), "rows": None if self.rows is None else self.rows.model_dump(), "holds": self.holds}
        return found


def audit(plan: Plan, minutes: float = 2.0, seed: int = 0, bars: Bars = SILENT) -> Audit:
    """Try to break a plan's claim with canaries, for about `minutes`. Reads no data: its rows are made up."""
    if not 0 < minutes < 10_000:
        raise PlanError(f"minutes is {minutes}: write a number above 0, for example 2")
    start = time.monotonic()
    pair = neighbours(plan, seed=seed)
    with bars.task("attacking releases") as _:
        release = measure(pair.out, plan)
        seen = attack_vectors(
            [(*pair.exact(release, stage), price.sigma) for stage, price in pair.gaussian], start + 20 * minutes
        )
    with bars.task("attacking synthetic rows") as _:
        rows, attribute = _attack_rows(pair, start + 60 * minutes, seed)
    return judged(plan, seen, plan.selections, rows, attribute, start)


def judged(
    plan: Plan | PersonPlan,
    seen: Seen,
    choices: tuple[float, ...],
    rows: MembershipGame | None,
    attribute: tuple[float, float] | None,
    start: float,
) -> Audit:
    """What was seen beside what was claimed."""
    attack = mu_bound(seen.out, seen.inside, CONFIDENCE)
    return Audit(
        epsilon=plan.epsilon,
        delta=plan.delta,
        mu=plan.mu,
        choices=choices,
        best_accuracy=plan.odds.accuracy,
        reached=seen.own_mu / plan.mu,
        attack=attack,
        attack_epsilon=attack.epsilon_lower(plan.delta),
        noise_ratio=seen.noise,
        noise_epsilon=epsilon_of(seen.noise_mu(CONFIDENCE), plan.delta),
        contradicted=max(mu_bound(seen.out, seen.inside, SURE).lower, seen.noise_mu(SURE)) > plan.mu,
        rows=rows,
        attribute=attribute,
        seconds=time.monotonic() - start,
    )


@final
@dataclass(frozen=True)
class Seen:
    """What the attack on noisy vectors saw."""

    out: np.ndarray  # scores without the canary
    inside: np.ndarray  # and with it
    noise: float  # measured ÷ claimed
    count: int  # of noises measured
    own_mu: float  # the most that this pair of tables can show

    def noise_mu(self, confidence: float) -> float:
        """μ is at least this, by the largest true noise that the measured one leaves possible."""
        return self.own_mu * _spread_factors(self.count, 1 - confidence)[0] / self.noise


def attack_vectors(sums: list[tuple[Tensor, Tensor, float]], deadline: float) -> Seen:
    """Of every stage the exact sums of both neighbours and σ: draw noise where they differ, while time allows.

    Elsewhere noise tells nothing.
    """
    source, parts = OpenDPGaussian(), []
    for out, inside, sigma in sums:
        where = torch.nonzero(out != inside).flatten()
        parts.append((out[where], inside[where], sigma))
    width = sum(len(out) for out, _, _ in parts)
    scores: tuple[list[float], list[float]] = ([], [])
    squares, count, some = 0.0, 0, max(LEAST_TRIALS, 20_000 // max(width, 1))
    while len(scores[0]) < LEAST_TRIALS or (len(scores[0]) < MOST_DRAWS and time.monotonic() < deadline):
        for side in (0, 1):
            ratio = np.zeros(some)
            for out, inside, sigma in parts:
                mine = (out, inside)[side]
                noise = (source.add(tile(mine, some), sigma) - mine).double() / sigma
                change = (inside - out).double() / sigma
                ratio += ((noise + side * change - change / 2) @ change).numpy()
                squares, count = squares + float((noise**2).sum()), count + noise.numel()
            scores[side].extend(ratio.tolist())
    own = sum(float((((inside - out).double() / sigma) ** 2).sum()) for out, inside, sigma in parts) ** 0.5
    return Seen(np.array(scores[0]), np.array(scores[1]), (squares / count) ** 0.5, count, own)


def _attack_rows(
    pair: Neighbours, deadline: float, seed: int
) -> tuple[MembershipGame | None, tuple[float, float] | None]:
    """A membership game and attribute inference on synthetic rows alone, or None when there is no time for it."""
    guesses: tuple[list[bool], list[bool]] = ([], [])

    def play(is_in: bool, trial: int) -> float:
        synthetic = _whole_path(pair.plan, pair.inside if is_in else pair.out, seed + trial)
        match = _alike(pair, synthetic)  # (n, columns)
        secret = match[:, -1] > 0.9
        near = torch.argsort(match[:, :-1].sum(dim=1), descending=True)[:5]
        guesses[is_in].append(bool(secret[near].double().mean() > 0.5))
        likeness = match.mean(dim=1)
        return float(likeness.mean() + likeness.max())

    play(True, 0)  # the first call is slow: it loads and draws what later ones reuse
    start = time.monotonic()
    play(True, 0)
    trials = int((deadline - time.monotonic()) / (2.2 * (time.monotonic() - start)))
    if trials < LEAST_TRIALS:
        return None, None
    guesses[1].clear()
    game = membership_game(play, min(trials, 3_000), pair.plan.delta, pair.plan.epsilon, CONFIDENCE)
    return game, (float(np.mean(guesses[1])), float(np.mean(guesses[0])))


def _whole_path(plan: Plan, data: Any, seed: int) -> Batch:
    """Release, save, load, train, save, load, sample: what the commands do, through the same files."""
    with tempfile.TemporaryDirectory(prefix="dpmerf-audit-") as folder:
        measure(data, plan).save(Path(folder) / "release")
        release = Release.load(Path(folder) / "release")
        train(release, seed=seed, steps=STEPS).save(Path(folder) / "model")
        model = Model.load(Path(folder) / "model")
        return plan.codec.encode(model.sample(SYNTHETIC, seed=seed))


def _alike(pair: Neighbours, synthetic: Batch) -> torch.Tensor:
    """(n, columns), from 0 (far) to 1 (the canary's own value); the last column is the label, if there is one."""
    plan = pair.plan
    canary = plan.codec.encode(pair.inside.slice(pair.inside.num_rows - 1))
    columns = [1 - (synthetic.numbers[:, i] - canary.numbers[0, i]).abs() for i in range(len(plan.codec.numeric))]
    names = sorted(canary.codes, key=lambda name: plan.codec.label is not None and name == plan.codec.label.name)
    columns += [(synthetic.codes[name] == canary.codes[name][0]).double() for name in names]
    return torch.stack(columns, dim=1)
