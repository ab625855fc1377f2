"""GS-WGAN (Chen et al. 2020), compact, for tables and pictures: only the gradient that reaches the generator is
private.

The rows are dealt at random into K shards, each with a critic of its own, trained without noise. In a generator step
one shard is drawn; the gradient of its critic with respect to each of B generated rows is clipped to norm 1 and
noised. The rest is post-processing.

Accounting: a row sits in one shard, which is drawn with probability 1/K. If it is drawn, adding or removing the row
may turn the critic, and so each of the B clipped gradients, into any other: the B gradients together move by at most
2√B. A step is therefore a Gaussian of noise multiplier s/(2√B), sampled with probability 1/K; Rényi accounting
composes the steps. Labels are drawn from class counts with Laplace noise for a tenth of ε. Reduced: small networks and
few steps; on tables 100 shards (at least 50 rows each), on pictures 1,000, as in the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import pyarrow as pa
import torch
from torch import Tensor, nn

from benchmarks.baselines import dpsgd
from benchmarks.baselines.gan import COUNTS, Real, Size, Watch, noisy_shares, on_table
from benchmarks.baselines.tabular import network
from benchmarks.methods import Task

SHARDS, ROWS_EACH, CRITIC_STEPS, WARM, CRITIC = 100, 50, 3, 20, (64,)
PENALTY = 10.0
SANITISED = Size(batch=16, rate=1e-3)


def gs_wgan(task: Task) -> pa.Table:
    return on_table(task, sanitised, SANITISED)


def sanitised(
    real: Real,
    epsilon: float,
    delta: float,
    size: Size,
    steps: int,
    wanted: int,
    rng: torch.Generator,
    watch: Watch | None = None,
    most_shards: int = SHARDS,
) -> tuple[Tensor, Tensor]:
    """GS-WGAN: `wanted` rows and their labels."""
    n, width = real.x.shape
    everything = torch.cat([real.x, nn.functional.one_hot(real.y, real.classes).float()], dim=1)
    shards = min(most_shards, max(2, n // ROWS_EACH))
    multiplier = dpsgd.noise_for(epsilon * (1 - COUNTS), delta, 1 / shards, steps)
    sigma = multiplier * 2 * math.sqrt(size.batch)  # per coordinate, for gradients of norm 1
    shares = noisy_shares(real.y, real.classes, COUNTS * epsilon, rng)
    generator = network(size.latent + real.classes, size.hidden, width)
    optimiser = torch.optim.Adam(generator.parameters(), lr=size.rate, betas=(0.5, 0.9))
    members = torch.randint(shards, (n,), generator=rng)
    order, ends = members.argsort(), torch.bincount(members, minlength=shards).cumsum(0)

    def fake(count: int) -> tuple[Tensor, Tensor, Tensor]:
        label = torch.multinomial(shares, count, replacement=True, generator=rng)
        told = nn.functional.one_hot(label, real.classes).float()
        z = torch.randn(count, size.latent, generator=rng)
        return real.heads(generator(torch.cat([z, told], 1))), told, label

    critics = [
        Critic(everything[order[a:b]], lambda count: torch.cat(fake(count)[:2], 1).detach(), size, rng)
        for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    ]

    def draw(count: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            made, _, label = fake(count)
        return made, label

    for critic in critics:
        critic.tune(min(WARM, steps))
    for step in range(steps):
        critic = critics[int(torch.randint(shards, (1,), generator=rng))]
        critic.tune(CRITIC_STEPS)
        made, told, _ = fake(size.batch)
        upstream = critic.slope(torch.cat([made, told], 1).detach())[:, :width]
        upstream = upstream / upstream.norm(dim=1, keepdim=True).clamp_min(1.0)
        upstream = upstream + sigma * torch.randn(upstream.shape, generator=rng)
        optimiser.zero_grad()
        made.backward(upstream / size.batch)
        optimiser.step()
        if watch is not None and (step + 1) % max(1, steps // 8) == 0:
            watch(step + 1, draw)
    return draw(wanted)


@final
class Critic:
    """The critic of one shard: a Wasserstein loss with a penalty on its slope, without noise."""

    def __init__(self, rows: Tensor, fake: Callable[[int], Tensor], size: Size, rng: torch.Generator) -> None:
        self._rows, self._fake, self._batch, self._rng = rows, fake, size.batch, rng
        self._net = network(rows.shape[1], CRITIC, 1)
        self._optimiser = torch.optim.Adam(self._net.parameters(), lr=size.rate, betas=(0.5, 0.9))

    def tune(self, times: int) -> None:
        for _ in range(times if len(self._rows) else 0):
            real = self._rows[torch.randint(len(self._rows), (self._batch,), generator=self._rng)]
            made = self._fake(self._batch)
            mix = torch.rand(self._batch, 1, generator=self._rng)
            between = (mix * real + (1 - mix) * made).requires_grad_()
            (slope,) = torch.autograd.grad(self._net(between).sum(), between, create_graph=True)
            penalty = PENALTY * (slope.norm(dim=1) - 1).square().mean()
            self._optimiser.zero_grad()
            (self._net(made).mean() - self._net(real).mean() + penalty).backward()
            self._optimiser.step()

    def slope(self, rows: Tensor) -> Tensor:
        """(B, width) the direction in which the critic would like each row to move less."""
        rows = rows.requires_grad_()
        (found,) = torch.autograd.grad(-self._net(rows).sum(), rows)
        return found
