"""DP-GAN and DP-CGAN (Torkzadehmahani et al. 2019), compact, for tables and pictures.

Both train a discriminator with DP-SGD and a generator against it, with the logistic loss; only the discriminator's
gradient on real rows touches the data, so only it is clipped and noised (DP-CGAN's point), and the generator is
post-processing. DP-GAN is the paper's own: an ensemble, one pair of networks a class, with clipped gradients in place
of the clipped weights of Xie et al. (2018). In DP-CGAN one pair of networks is told the label. The labels to generate
are drawn from noisy class counts.

Accounting: the class counts get a tenth of ε (Laplace, one row added or removed changes one count by 1) and the
discriminators the rest: simple composition. Classes are disjoint sets of rows, so the discriminators of DP-GAN cost as
much as one of them (a row that is added or removed is in one class); their sampling rates follow from the noisy counts.
Reduced from the papers: small networks and few steps, see `Size`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import pyarrow as pa
import torch
from torch import Tensor, nn

from benchmarks.baselines import dpsgd
from benchmarks.baselines.tabular import Layout, network
from benchmarks.methods import Task

COUNTS = 0.1  # of ε, for the class counts
LATENT = 16
Watch = Callable[[int, Callable[[int], tuple[Tensor, Tensor]]], None]  # (steps done, draw(n) -> rows, labels)


@final
@dataclass(frozen=True)
class Size:
    """How large the networks are and how long they train; the same for every table."""

    latent: int = LATENT
    hidden: tuple[int, ...] = (128, 128)
    steps: int = 1_500
    batch: int = 128  # real rows a step, on average, and generated ones
    rate: float = 2e-3
    clip: float = 1.0


@final
@dataclass(frozen=True)
class Real:
    """The private rows as matrices, and what the last layer of a generator becomes."""

    x: Tensor  # (n, width)
    y: Tensor  # (n,)
    classes: int
    heads: Callable[[Tensor], Tensor]


CONDITIONAL = Size()
PER_CLASS = Size(steps=100, batch=1_024, rate=5e-3)  # of each class; few steps over many rows need less noise


def dp_gan(task: Task) -> pa.Table:
    return on_table(task, per_class, PER_CLASS)


def dp_cgan(task: Task) -> pa.Table:
    return on_table(task, conditional, CONDITIONAL)


def on_table(task: Task, method: Callable[..., tuple[Tensor, Tensor]], size: Size) -> pa.Table:
    layout, rng = Layout.of(task.schema), _seeded(task.seed)
    real = Real(*layout.encode(task.rows), layout.classes, layout.heads)
    steps = 20 if task.quick else size.steps
    made, labels = method(real, task.epsilon, task.delta, size, steps, len(real.x), rng)
    return layout.decode(made, labels, rng)


def per_class(
    real: Real,
    epsilon: float,
    delta: float,
    size: Size,
    steps: int,
    wanted: int,
    rng: torch.Generator,
    watch: Watch | None = None,
) -> tuple[Tensor, Tensor]:
    """DP-GAN: one generator a class, each trained on the rows of its class alone; `wanted` rows and their labels."""
    counts = noisy_counts(real.y, real.classes, COUNTS * epsilon, rng)
    width = real.x.shape[1]
    nets = [network(size.latent, size.hidden, width) for _ in range(real.classes)]

    def fakes(c: int) -> Callable[[int], Tensor]:
        return lambda n: real.heads(nets[c](torch.randn(n, size.latent, generator=rng)))

    def draw(n: int) -> tuple[Tensor, Tensor]:
        labels = torch.multinomial((counts / counts.sum()).float(), n, replacement=True, generator=rng)
        made = torch.empty(n, width)
        with torch.no_grad():
            for c in range(real.classes):
                made[labels == c] = fakes(c)(int((labels == c).sum()))
        return made, labels

    games = []
    for c in range(real.classes):
        rate = min(1.0, size.batch / float(counts[c]))
        noise = dpsgd.noise_for(epsilon * (1 - COUNTS), delta, round(rate, 6), steps)
        critic = network(width, size.hidden, 1)
        games.append(Game(real.x[real.y == c], fakes(c), nets[c], critic, rate, noise, float(counts[c]), size, rng))
    _play(games, steps, draw, watch)
    return draw(wanted)


def conditional(
    real: Real,
    epsilon: float,
    delta: float,
    size: Size,
    steps: int,
    wanted: int,
    rng: torch.Generator,
    watch: Watch | None = None,
) -> tuple[Tensor, Tensor]:
    """DP-CGAN: one generator that is told the label; `wanted` rows and their labels."""
    n, width = real.x.shape
    rate = min(1.0, size.batch / n)
    noise = dpsgd.noise_for(epsilon * (1 - COUNTS), delta, rate, steps)
    shares = noisy_shares(real.y, real.classes, COUNTS * epsilon, rng)
    generator = network(size.latent + real.classes, size.hidden, width)
    critic = network(width + real.classes, size.hidden, 1)

    def fake(size_: int) -> Tensor:
        told = _onehot(torch.multinomial(shares, size_, replacement=True, generator=rng), real.classes)
        z = torch.randn(size_, size.latent, generator=rng)
        return torch.cat([real.heads(generator(torch.cat([z, told], 1))), told], dim=1)

    def draw(size_: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            made = fake(size_)
        return made[:, :width], made[:, width:].argmax(1)

    told = torch.cat([real.x, _onehot(real.y, real.classes)], 1)
    _play([Game(told, fake, generator, critic, rate, noise, n, size, rng)], steps, draw, watch)
    return draw(wanted)


@final
class Game:
    """A generator against a discriminator. A step draws each real row with probability `rate`, clips and adds noise."""

    def __init__(
        self,
        real: Tensor,
        fake: Callable[[int], Tensor],
        generator: nn.Module,
        critic: nn.Sequential,
        rate: float,
        noise: float,
        rows: float,
        size: Size,
        rng: torch.Generator,
    ) -> None:
        self._real, self._fake, self._critic, self._rate, self._size, self._rng = real, fake, critic, rate, size, rng
        self._opt_g = torch.optim.Adam(generator.parameters(), lr=size.rate, betas=(0.5, 0.9))
        self._opt_d = torch.optim.Adam(critic.parameters(), lr=size.rate, betas=(0.5, 0.9))
        self._gradient = dpsgd.NoisyGradient(
            critic, lambda score: nn.functional.softplus(-score), size.clip, noise, rate * rows, rng
        )

    def step(self) -> None:
        softplus = nn.functional.softplus
        private = self._gradient(self._real[dpsgd.poisson(len(self._real), self._rate, self._rng)])
        self._opt_d.zero_grad()
        softplus(self._critic(self._fake(self._size.batch).detach())).mean().backward()
        for p, gradient in zip(self._critic.parameters(), private, strict=True):
            assert p.grad is not None
            p.grad += gradient
        self._opt_d.step()
        self._opt_g.zero_grad()
        softplus(-self._critic(self._fake(self._size.batch))).mean().backward()
        self._opt_g.step()


def _play(games: list[Game], steps: int, draw: Callable[[int], tuple[Tensor, Tensor]], watch: Watch | None) -> None:
    for step in range(steps):
        for game in games:
            game.step()
        if watch is not None and (step + 1) % max(1, steps // 8) == 0:
            watch(step + 1, draw)


def noisy_counts(y: Tensor, classes: int, epsilon: float, rng: torch.Generator) -> Tensor:
    """Class counts with Laplace noise, at least 1: ε-DP when one row is added or removed."""
    u = torch.rand(classes, generator=rng).double() - 0.5
    laplace = -u.sign() * torch.log1p(-2 * u.abs()) / epsilon
    return (torch.bincount(y, minlength=classes).double() + laplace).clamp_min(1.0)


def noisy_shares(y: Tensor, classes: int, epsilon: float, rng: torch.Generator) -> Tensor:
    """Class frequencies from noisy counts."""
    counts = noisy_counts(y, classes, epsilon, rng)
    return (counts / counts.sum()).float()


def _onehot(labels: Tensor, classes: int) -> Tensor:
    return nn.functional.one_hot(labels, classes).float()


def _seeded(seed: int) -> torch.Generator:
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)
