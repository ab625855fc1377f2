"""GS-WGAN (Chen et al. 2020), compact, on tables: only the gradient that reaches the generator is private.

The rows are dealt at random into K shards, each with a critic of its own, trained without noise. In a generator step
one shard is drawn; the gradient of its critic with respect to each of B generated rows is clipped to norm 1 and
noised. The rest is post-processing.

Accounting: a row sits in one shard, which is drawn with probability 1/K. If it is drawn, adding or removing the row
may turn the critic, and so each of the B clipped gradients, into any other: the B gradients together move by at most
2√B. A step is therefore a Gaussian of noise multiplier s/(2√B), sampled with probability 1/K; Rényi accounting
composes the steps. Labels are drawn from class counts with Laplace noise for a tenth of ε. Reduced: 100 shards, 1,500
steps, small networks.
"""

from __future__ import annotations

import math

import pyarrow as pa
import torch
from torch import Tensor, nn

from benchmarks.baselines import dpsgd
from benchmarks.baselines.gan import COUNTS, LATENT, noisy_shares
from benchmarks.baselines.tabular import Layout, network
from benchmarks.methods import Task

SHARDS, STEPS, BATCH, CRITIC_STEPS, WARM = 100, 1_500, 16, 3, 20
RATE, PENALTY, HIDDEN = 1e-3, 10.0, (128, 128)


def gs_wgan(task: Task) -> pa.Table:
    layout = Layout.of(task.schema)
    x, y = layout.encode(task.rows)
    everything = torch.cat([x, nn.functional.one_hot(y, layout.classes).float()], dim=1)
    n = len(x)
    shards, steps, warm = (10, 10, 2) if task.quick else (min(SHARDS, max(2, n // 50)), STEPS, WARM)
    rng = torch.Generator().manual_seed(task.seed)
    torch.manual_seed(task.seed)
    multiplier = dpsgd.noise_for(task.epsilon * (1 - COUNTS), task.delta, 1 / shards, steps)
    sigma = multiplier * 2 * math.sqrt(BATCH)  # per coordinate, for gradients of norm 1
    shares = noisy_shares(y, layout.classes, COUNTS * task.epsilon, rng)
    generator = network(LATENT + layout.classes, HIDDEN, layout.width)
    optimiser = torch.optim.Adam(generator.parameters(), lr=RATE, betas=(0.5, 0.9))
    owner = torch.randint(shards, (n,), generator=rng)
    members = [torch.nonzero(owner == k).flatten() for k in range(shards)]
    critics = [network(layout.width + layout.classes, (64,), 1) for _ in range(shards)]
    tuners = [torch.optim.Adam(c.parameters(), lr=RATE, betas=(0.5, 0.9)) for c in critics]

    def fake(size: int) -> tuple[Tensor, Tensor, Tensor]:
        label = torch.multinomial(shares, size, replacement=True, generator=rng)
        told = nn.functional.one_hot(label, layout.classes).float()
        z = torch.randn(size, LATENT, generator=rng)
        return layout.heads(generator(torch.cat([z, told], 1))), told, label

    def tune(k: int, times: int) -> None:
        for _ in range(times if len(members[k]) else 0):
            pick = members[k][torch.randint(len(members[k]), (BATCH,), generator=rng)]
            made, told, _ = fake(BATCH)
            real, made = everything[pick], torch.cat([made, told], 1).detach()
            mix = torch.rand(BATCH, 1, generator=rng)
            between = (mix * real + (1 - mix) * made).requires_grad_()
            (slope,) = torch.autograd.grad(critics[k](between).sum(), between, create_graph=True)
            penalty = PENALTY * (slope.norm(dim=1) - 1).square().mean()
            tuners[k].zero_grad()
            (critics[k](made).mean() - critics[k](real).mean() + penalty).backward()
            tuners[k].step()

    for k in range(shards):
        tune(k, warm)
    for _ in range(steps):
        k = int(torch.randint(shards, (1,), generator=rng))
        tune(k, CRITIC_STEPS)
        made, told, _ = fake(BATCH)
        seen = torch.cat([made, told], 1).detach().requires_grad_()
        (upstream,) = torch.autograd.grad(-critics[k](seen).sum(), seen)
        upstream = upstream[:, : layout.width]
        upstream = upstream / upstream.norm(dim=1, keepdim=True).clamp_min(1.0)
        upstream = upstream + sigma * torch.randn(upstream.shape, generator=rng)
        optimiser.zero_grad()
        made.backward(upstream / BATCH)
        optimiser.step()
    with torch.no_grad():
        made, _, label = fake(n)
    return layout.decode(made, label, rng)
