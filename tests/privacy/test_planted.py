"""Each planted bug is caught, by name; the product passes the same checks on the same tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from dpmerf.audit.bounds import mu_bound
from dpmerf.audit.canary import Neighbours
from privacy.hunt import longest_block
from privacy.planted import BUGS, PRODUCT, Bug, exact, noisy, planted
from privacy.variants import ALARM, FULL

pytestmark = pytest.mark.privacy
DRAWS = 8_000 if FULL else 2_000


@dataclass(frozen=True)
class Finding:
    """What the checks say of one mechanism."""

    claim: float  # μ
    shown: float  # μ that an attacker shows, wrong with probability 10⁻⁶
    repeats: bool  # noise seen twice
    bare: bool  # coordinates without noise
    too_long: bool  # a row beyond its bound, in integers

    @property
    def alarms(self) -> list[str]:
        found = [f"μ ≥ {self.shown:.2f} shown, {self.claim:.2f} claimed"] if self.shown > self.claim else []
        found += ["noise repeats"] if self.repeats else []
        found += ["coordinates without noise"] if self.bare else []
        return found + (["a row is longer than its bound"] if self.too_long else [])


def examine(bug: Bug, pair: Neighbours) -> Finding:
    """All checks on one pair of tables, with the bug planted."""
    with planted(bug):
        plan = bug.pair().plan  # priced with the bug in place
        before, after = exact(pair.out, plan), exact(pair.inside, plan)
        sides = [noisy(before, DRAWS), noisy(after, DRAWS)]
        scores = [_likelihood_ratio(side, before, after) for side in sides]
        noises = [
            torch.cat([y - s for y, (s, _) in zip(side, calls, strict=True)], dim=1)
            for side, calls in ((sides[0], before), (sides[1], after))
        ]
        too_long = _too_long(pair)
    everything = torch.cat(noises)
    bare = bool(((everything == 0).double().mean(dim=0) > 0.5).any())
    noise = everything[:, 0]  # the chance of one accidental repeat is small, of many none
    repeats = not bare and len(torch.unique(noise)) < 0.9 * len(noise)
    shown = mu_bound(scores[0], scores[1], 1 - ALARM).lower
    return Finding(plan.mu, shown, repeats, bare, too_long)


def _likelihood_ratio(side: list[torch.Tensor], before: list, after: list) -> np.ndarray:
    """Of Gaussian releases whose noise may itself depend on the table."""
    total = torch.zeros(len(side[0]), dtype=torch.float64)
    for y, (s0, sigma0), (s1, sigma1) in zip(side, before, after, strict=True):
        total += (((y - s0).double() / sigma0) ** 2).sum(dim=1) / 2 - (((y - s1).double() / sigma1) ** 2).sum(dim=1) / 2
    return total.numpy()


def _too_long(pair: Neighbours) -> bool:
    phi = pair.plan.nominal_map(pair.plan.stages[0])
    numbers = torch.rand(
        500, len(pair.plan.codec.numeric), generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    return any(longest_block(b, numbers) > b.integer_norm**2 for b in phi.blocks if b.dense is not None)


@pytest.fixture(scope="module")
def table() -> dict[str, tuple[Finding, Finding]]:
    """Bug -> (the product, the product with the bug), on the tables where the bug shows."""
    sound = {pair: examine(Bug(PRODUCT.name, PRODUCT.plant, pair), pair()) for pair in {bug.pair for bug in BUGS}}
    return {bug.name: (sound[bug.pair], examine(bug, bug.pair())) for bug in BUGS}


@pytest.mark.xdist_group("planted")
@pytest.mark.parametrize("bug", [b.name for b in BUGS])
def test_each_planted_bug_is_caught_and_the_product_passes(
    bug: str, table: dict[str, tuple[Finding, Finding]], record_property: Callable[[str, Any], None]
) -> None:
    product, broken = table[bug]
    verdict = "passes" if not product.alarms else "FAILS"
    record_property("planted", f"| {bug:<38} | product {verdict} | {'; '.join(broken.alarms) or 'NOT CAUGHT'}")
    assert not product.alarms, f"the product fails the check for '{bug}'"
    assert broken.alarms, f"'{bug}' was not caught"
