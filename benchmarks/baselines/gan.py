"""DP-GAN (Xie et al. 2018) and DP-CGAN (Torkzadehmahani et al. 2019), compact, on tables.

Both train a discriminator with DP-SGD and a generator against it; only the discriminator's gradient on real rows
touches the data, so only it is clipped and noised (DP-CGAN's point), and the generator is post-processing. DP-GAN:
Wasserstein loss, weights kept in a box, the label is one more column. DP-CGAN: logistic loss, both networks are told
the label; the labels to generate are drawn from noisy class counts.

Accounting: `dpsgd` at (ε, δ) for DP-GAN; for DP-CGAN the class counts get a tenth of ε (Laplace, one row added or
removed changes one count by 1) and the discriminator the rest: simple composition. Reduced from the papers: small
networks, 1,500 steps.
"""

from __future__ import annotations

import pyarrow as pa
import torch
from torch import Tensor, nn

from benchmarks.baselines import dpsgd
from benchmarks.baselines.tabular import Layout, drawn, network
from benchmarks.methods import Task

LATENT, HIDDEN = 16, (128, 128)
STEPS, BATCH, RATE, CLIP, BOX = 1_500, 128, 2e-3, 1.0, 0.1
COUNTS = 0.1  # of ε, for the class counts of DP-CGAN


def dp_gan(task: Task) -> pa.Table:
    return _train(task, conditional=False)


def dp_cgan(task: Task) -> pa.Table:
    return _train(task, conditional=True)


def _train(task: Task, conditional: bool) -> pa.Table:
    layout = Layout.of(task.schema)
    x, y = layout.encode(task.rows)
    onehot = nn.functional.one_hot(y, layout.classes).float()
    n, steps = len(x), 20 if task.quick else STEPS
    rng = torch.Generator().manual_seed(task.seed)
    torch.manual_seed(task.seed)
    rate = min(1.0, BATCH / n)
    epsilon = task.epsilon * (1 - COUNTS) if conditional else task.epsilon
    noise = dpsgd.noise_for(epsilon, task.delta, rate, steps)
    shares = noisy_shares(y, layout.classes, COUNTS * task.epsilon, rng) if conditional else None
    generator = network(LATENT + (layout.classes if conditional else 0), HIDDEN, layout.width + layout.classes)
    critic = network(layout.width + layout.classes, HIDDEN, 1)
    opt_g = torch.optim.Adam(generator.parameters(), lr=RATE, betas=(0.5, 0.9))
    opt_d = torch.optim.Adam(critic.parameters(), lr=RATE, betas=(0.5, 0.9))

    def fake(size: int) -> Tensor:
        z = torch.randn(size, LATENT, generator=rng)
        if shares is None:
            out = generator(z)
            return torch.cat([layout.heads(out[:, : layout.width]), drawn(out[:, layout.width :])], dim=1)
        label = torch.multinomial(shares, size, replacement=True, generator=rng)
        told = nn.functional.one_hot(label, layout.classes).float()
        return torch.cat([layout.heads(generator(torch.cat([z, told], 1))[:, : layout.width]), told], dim=1)

    def real_loss(score: Tensor) -> Tensor:
        return nn.functional.softplus(-score) if conditional else -score

    noisy_gradient = dpsgd.NoisyGradient(critic, real_loss, CLIP, noise, rate * n, rng)
    everything = torch.cat([x, onehot], dim=1)
    for _ in range(steps):
        private = noisy_gradient(everything[dpsgd.poisson(n, rate, rng)])
        opt_d.zero_grad()
        score = critic(fake(BATCH).detach())
        (nn.functional.softplus(score) if conditional else score).mean().backward()
        for p, gradient in zip(critic.parameters(), private, strict=True):
            assert p.grad is not None
            p.grad += gradient
        opt_d.step()
        if not conditional:
            with torch.no_grad():
                for p in critic.parameters():
                    p.clamp_(-BOX, BOX)
        opt_g.zero_grad()
        score = critic(fake(BATCH))
        (nn.functional.softplus(-score) if conditional else -score).mean().backward()
        opt_g.step()
    with torch.no_grad():
        made = fake(n)
    labels = torch.multinomial(made[:, layout.width :].clamp_min(1e-9), 1, generator=rng).flatten()
    return layout.decode(made[:, : layout.width], labels, rng)


def noisy_shares(y: Tensor, classes: int, epsilon: float, rng: torch.Generator) -> Tensor:
    """Class frequencies from counts with Laplace noise: ε-DP when one row is added or removed."""
    u = torch.rand(classes, generator=rng).double() - 0.5
    laplace = -u.sign() * torch.log1p(-2 * u.abs()) / epsilon
    counts = (torch.bincount(y, minlength=classes).double() + laplace).clamp_min(1.0)
    return (counts / counts.sum()).float()
