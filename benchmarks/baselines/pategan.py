"""PATE-GAN (Jordon et al. 2019), compact: teachers on disjoint rows vote, with noise, on whether a row looks real.

A student critic learns from those noisy votes on generated rows alone, and the generator learns from the student.

Accounting: adding or removing a row changes one teacher, so one vote of each query moves: the pair (real, generated)
of vote counts changes by at most √2. Votes get Gaussian noise of scale s; Q queries are one Gaussian with μ =
√(2Q)/s, exactly. We choose s for (0.9 ε, δ); class counts get Laplace noise for 0.1 ε. This holds for any data; the
original's moments accountant is data-dependent, and its ε is itself not private. Reduced: at most 200 teachers, 60
rounds of 32 queries, small networks.
"""

from __future__ import annotations

import math

import pyarrow as pa
import torch
from torch import Tensor, nn

from benchmarks.baselines.gan import COUNTS, LATENT, noisy_shares
from benchmarks.baselines.tabular import Layout, network
from benchmarks.methods import Task
from dpmerf.accounting.gaussian import mu_of

TEACHERS, ROWS_EACH, ROUNDS, QUERIES, TEACHER_STEPS, STUDENT_STEPS = 200, 50, 60, 32, 3, 5
RATE, HIDDEN = 1e-3, (128, 128)


def vote_noise(epsilon: float, delta: float, queries: int) -> float:
    """The scale s of the noise on each vote count.

    >>> round(vote_noise(1.0, 1e-5, 1) / (2**0.5 * 3.73), 2)
    1.0
    """
    return math.sqrt(2 * queries) / mu_of(epsilon, delta)


def pate_gan(task: Task) -> pa.Table:
    layout = Layout.of(task.schema)
    x, y = layout.encode(task.rows)
    everything = torch.cat([x, nn.functional.one_hot(y, layout.classes).float()], dim=1)
    n = len(x)
    teachers, rounds = (5, 3) if task.quick else (min(TEACHERS, max(2, n // ROWS_EACH)), ROUNDS)
    rng = torch.Generator().manual_seed(task.seed)
    torch.manual_seed(task.seed)
    sigma = vote_noise(task.epsilon * (1 - COUNTS), task.delta, rounds * QUERIES)
    shares = noisy_shares(y, layout.classes, COUNTS * task.epsilon, rng)
    parts = torch.randint(teachers, (n,), generator=rng)
    members = [torch.nonzero(parts == k).flatten() for k in range(teachers)]
    width = layout.width + layout.classes
    bench = [nn.Linear(width, 1) for _ in range(teachers)]
    tuners = [torch.optim.Adam(t.parameters(), lr=5e-3) for t in bench]
    generator, student = network(LATENT + layout.classes, HIDDEN, layout.width), network(width, (64,), 1)
    opt_g = torch.optim.Adam(generator.parameters(), lr=RATE)
    opt_s = torch.optim.Adam(student.parameters(), lr=RATE)
    says = nn.functional.binary_cross_entropy_with_logits

    def fake(size: int) -> tuple[Tensor, Tensor]:
        label = torch.multinomial(shares, size, replacement=True, generator=rng)
        told = nn.functional.one_hot(label, layout.classes).float()
        z = torch.randn(size, LATENT, generator=rng)
        return torch.cat([layout.heads(generator(torch.cat([z, told], 1))), told], dim=1), label

    for _ in range(rounds):
        for teacher, tuner, own in zip(bench, tuners, members, strict=True):
            for _ in range(TEACHER_STEPS if len(own) else 0):
                made = fake(len(own))[0].detach()
                tuner.zero_grad()
                truth = torch.cat([torch.ones(len(own)), torch.zeros(len(own))])
                says(teacher(torch.cat([everything[own], made])).flatten(), truth).backward()
                tuner.step()
        asked = fake(QUERIES)[0].detach()
        with torch.no_grad():
            votes = sum((teacher(asked).flatten() > 0).double() for teacher in bench)
        noise = sigma * torch.randn(2, QUERIES, generator=rng, dtype=torch.float64)
        answers = (votes + noise[0] > teachers - votes + noise[1]).float()
        for _ in range(STUDENT_STEPS):
            opt_s.zero_grad()
            says(student(asked).flatten(), answers).backward()
            opt_s.step()
            opt_g.zero_grad()
            says(student(fake(QUERIES)[0]).flatten(), torch.ones(QUERIES)).backward()
            opt_g.step()
    with torch.no_grad():
        made, label = fake(n)
    return layout.decode(made[:, : layout.width], label, rng)
