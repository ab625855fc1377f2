"""Network: the paper's conditional generator, trained to match a mean embedding (eqs. 6, 12 and 15).

Latent noise and the label's one-hot go through two hidden layers to one sigmoid per number and one softmax per
discrete variable. The softmaxes make the generator's side of every table exact in expectation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from dpmerf.encoding.binning import to_simplex
from dpmerf.encoding.codec import Batch, Variable
from dpmerf.errors import TrainError
from dpmerf.features.circle_means import mean_cos_sin
from dpmerf.features.fourier import Fourier
from dpmerf.generators.base import Generator, Given, History, State, load_weights, weights_of
from dpmerf.plan.queries import MeanEmbedding, Query
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release


@final
@dataclass(frozen=True)
class Settings:
    """How the paper's network is built and trained."""

    latent: int = 10  # numbers that the network turns into a row
    steps: int = 2_000
    batch: int = 500  # rows per step, at least `batch_per_class` of each class
    batch_per_class: int = 60
    rate: float = 1e-2
    held_out: float = 0.05  # of the Fourier frequencies, to judge by
    check_every: int = 100  # steps
    patience: int = 6  # checks without a better held-out error, after half of the steps, that end training
    averaged: float = 0.25  # the last part of the steps, whose weights are averaged
    least_width: int = 100  # of a hidden layer


@final
@dataclass(frozen=True)
class Target:
    """The released embedding, class by class, as means."""

    shares: Tensor  # (C,) label frequencies
    weight: Tensor  # (C,) how much a class counts: 1 where signal dominates, less where noise does
    fourier: Tensor | None  # (C, D)
    tables: list[tuple[Variable, Tensor]]  # variable, (C, K)
    sigma: Tensor  # (C,) noise of one mean of a Fourier feature
    table_sigma: Tensor  # (C,) noise of one frequency

    @property
    def classes(self) -> int:
        return len(self.shares)


@final
class Network(Generator):
    """A trained conditional generator."""

    kind: ClassVar[str] = "network"
    reads: ClassVar[type[Query]] = MeanEmbedding
    takes: ClassVar[type[Any]] = Settings

    def __init__(self, release: Release, body: nn.Module, shares: Tensor, settings: Settings) -> None:
        self._release, self._latent, self._least_width = release, settings.latent, settings.least_width
        self._body = body.eval()
        self._shares = shares
        self._query = _query(release)

    @property
    def conditions(self) -> frozenset[str]:
        label = self._release.codec.label
        return frozenset({label.name} & set(self._release.codec.schema.learned) if label else ())

    @torch.no_grad()
    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        codec, label = self._release.codec, self._release.codec.label
        classes = len(self._shares)
        if given and label and label.name in given.names:
            labels = given.row.codes[label.name].expand(n)
        else:
            labels = torch.multinomial(self._shares, n, replacement=True, generator=rng)
        device = next(self._body.parameters()).device
        latent = torch.randn(n, self._latent, generator=rng)
        numbers, tables = self._heads(self._body(_inputs(latent, labels, classes).to(device)))
        codes = {v.name: _drawn(p.cpu(), rng) for v, p in zip(self._query.onehots(codec), tables, strict=True)}
        if label is not None and label.name == codec.schema.label:
            codes[label.name] = labels
        return codec.with_label(Batch(numbers.double().cpu(), codes))

    def _heads(self, out: Tensor) -> tuple[Tensor, list[Tensor]]:
        return heads(out, len(self._release.codec.numeric), self._query.onehots(self._release.codec))

    def state(self) -> State:
        tensors = weights_of(self._body)
        return State({"latent": self._latent, "least_width": self._least_width}, {**tensors, "shares": self._shares})

    @classmethod
    def from_state(cls, release: Release, state: State) -> Network:
        settings = Settings(**{name: int(state.settings[name]) for name in ("latent", "least_width") if state.settings})
        body = build(release, settings)
        load_weights(body, state.tensors)
        return cls(release, body, state.tensors["shares"], settings)

    @classmethod
    def fit(
        cls, release: Release, settings: Settings, seed: int, *, device: str = "cpu", bars: Bars = SILENT
    ) -> tuple[Network, History]:
        """Minimise the noise-weighted distance between the released and the generated embedding."""
        s, steps = settings, settings.steps
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            body = build(release, s).to(device)
        rng = torch.Generator().manual_seed(seed)
        target, query = targets(release), _query(release)
        fourier = query.fourier(release.codec)
        train_on, held = _split(fourier, s.held_out, rng)
        loss_of = _Loss(release, target, query, s.latent, device)
        average = torch.optim.swa_utils.AveragedModel(body)
        optimiser = torch.optim.Adam(body.parameters(), lr=s.rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, eta_min=s.rate * 0.01)
        history = History(floor=loss_of.floor(train_on))
        per_class = max(s.batch // target.classes, s.batch_per_class)
        best, waited = math.inf, 0
        if train_on is None and not target.tables:  # nothing but a label: its frequencies are all there is
            return Network(release, body.cpu(), target.shares, s), history
        with bars.task("training", total=steps, counted="steps") as advance:
            for step in range(1, steps + 1):
                body.train()
                optimiser.zero_grad()
                loss_of(body, per_class, train_on, rng).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
                if step > steps * (1 - s.averaged):
                    average.update_parameters(body)
                advance(1)
                if step % s.check_every == 0 or step == steps:
                    with torch.no_grad():
                        seen = float(loss_of(body, 4 * per_class, train_on, rng))
                        unseen = float(loss_of(body, 4 * per_class, held, rng)) if held is not None else seen
                    history.note(step, seen, unseen if held is not None else None)
                    best, waited = (unseen, 0) if unseen < best * 0.999 else (best, waited + 1)
                    if step > steps // 2 and waited >= s.patience and step > steps * (1 - s.averaged):
                        break
        final_body = average.module
        _refresh_norms(final_body, target.classes, s.latent, rng, device)
        return Network(release, final_body.cpu(), target.shares, s), history


@final
class _Loss:
    """Σ_c weight_c · (‖Fourier difference‖² + mean over tables of ‖difference‖²)."""

    def __init__(self, release: Release, target: Target, query: MeanEmbedding, latent: int, device: str) -> None:
        self._target, self._latent, self._device = target, latent, device
        self._numeric = len(release.codec.numeric)
        self._onehots = query.onehots(release.codec)
        fourier = query.fourier(release.codec)
        self._frequencies = None if fourier is None else fourier.frequencies.float().to(device)
        self._fourier = None if target.fourier is None else target.fourier.float().to(device)
        self._cut: tuple[Tensor, Tensor, Tensor] | None = None
        self._tables = [t.float().to(device) for _, t in target.tables]
        self._weight = target.weight.float().to(device)

    def __call__(self, body: nn.Module, per_class: int, pairs: Tensor | None, rng: torch.Generator) -> Tensor:
        classes = self._target.classes
        labels = torch.arange(classes).repeat_interleave(per_class)
        latent = torch.randn(len(labels), self._latent, generator=rng)
        out = body(_inputs(latent, labels, classes).to(self._device))
        numbers, tables = heads(out, self._numeric, self._onehots)
        loss = torch.zeros(classes, device=self._device)
        if pairs is not None and (part := self._part(pairs)) is not None:
            frequencies, wanted = part
            means = mean_cos_sin(numbers @ frequencies, classes)  # classes are contiguous: no outer product
            loss = loss + (means - wanted).square().sum(dim=1)
        for probabilities, wanted in zip(tables, self._tables, strict=True):
            means = probabilities.view(classes, per_class, -1).mean(dim=1)
            loss = loss + (means - wanted).square().sum(dim=1) / len(self._tables)
        return (self._weight * loss).sum()

    def _part(self, pairs: Tensor) -> tuple[Tensor, Tensor] | None:
        """The chosen frequencies and their target, as if they were all there are. Cut out once, not every step."""
        if self._fourier is None or self._frequencies is None:
            return None
        if self._cut is None or self._cut[0] is not pairs:
            m = self._frequencies.shape[1]
            chosen = torch.cat([pairs, pairs + m])
            target = self._fourier[:, chosen] * math.sqrt(m / len(pairs))
            self._cut = pairs, self._frequencies[:, pairs].contiguous(), target
        return self._cut[1:]

    def floor(self, pairs: Tensor | None) -> float:
        """E of the loss when the generator is perfect: what the noise alone leaves."""
        t = self._target
        noise = torch.zeros(t.classes, dtype=torch.float64)
        if t.fourier is not None and pairs is not None:
            noise += t.fourier.shape[1] * t.sigma.square()
        cells = sum(table.shape[1] for _, table in t.tables)
        noise += cells * t.table_sigma.square() / max(len(t.tables), 1)
        return float((t.weight * noise).sum())


def targets(release: Release) -> Target:
    """Class means and label frequencies from the release. Classes are weighted as in the paper's Algorithm 1."""
    query, codec = _query(release), release.codec
    label = codec.label if query.by_label else None
    classes = label.size if label else 1
    found = release.answers(release.plan.stage(MeanEmbedding))  # not what a readability stage counted
    rows = release.rows_estimate
    counts = torch.full((classes,), rows / classes, dtype=torch.float64)
    for m in found:
        if m.dense is None and label and m.variables == (label,):
            counts = to_simplex(m.values.flatten() / rows) * rows
    counts = counts.clamp_min(1.0)
    fourier: Tensor | None = None
    sigma = table_sigma = torch.zeros(classes, dtype=torch.float64)
    tables = []
    for m in found:
        names = [v for v in m.variables if label is None or v != label]
        if m.dense is not None:
            fourier = m.values.view(classes, -1) / counts[:, None]
            sigma = m.sigma / counts
        elif names:
            by_class = m.values if label is None else m.values.movedim(m.variables.index(label), 0)
            tables.append((names[0], by_class.reshape(classes, -1) / counts[:, None]))
            table_sigma = m.sigma / counts
    noise = (fourier.shape[1] if fourier is not None else 0) * sigma.square() + table_sigma.square()
    return Target(counts / counts.sum(), 1 / (1 + noise), fourier, tables, sigma, table_sigma)


def build(release: Release, settings: Settings) -> nn.Module:
    """latent ++ one-hot label -> 4d -> 2d -> d, as in the paper, with a least width for narrow tables."""
    query, codec = _query(release), release.codec
    classes = codec.label.size if query.by_label and codec.label else 1
    d = max(1, len(codec.numeric) + sum(v.size for v in query.onehots(codec)))
    first, second = max(4 * d, settings.least_width), max(2 * d, settings.least_width)
    return nn.Sequential(
        nn.Linear(settings.latent + classes, first),
        nn.BatchNorm1d(first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.BatchNorm1d(second),
        nn.ReLU(),
        nn.Linear(second, d),
    )


def heads(out: Tensor, numeric: int, discrete: tuple[Variable, ...]) -> tuple[Tensor, list[Tensor]]:
    """(n, d) -> numbers in [0, 1] and one row of probabilities per discrete variable."""
    parts = out[:, numeric:].split([v.size for v in discrete], dim=1) if discrete else []
    return torch.sigmoid(out[:, :numeric]), [torch.softmax(p, dim=1) for p in parts]


def _drawn(probabilities: Tensor, rng: torch.Generator) -> Tensor:
    """(n, K) probabilities -> (n,) one of K each, by one uniform number a row."""
    ladder = probabilities.cumsum(dim=1)
    height = torch.rand(len(ladder), 1, generator=rng, dtype=ladder.dtype) * ladder[:, -1:]
    return (ladder <= height).sum(dim=1).clamp(max=ladder.shape[1] - 1)


def _inputs(latent: Tensor, labels: Tensor, classes: int) -> Tensor:
    return torch.cat([latent, nn.functional.one_hot(labels, classes).to(latent.dtype)], dim=1)


def _split(fourier: Fourier | None, share: float, rng: torch.Generator) -> tuple[Tensor | None, Tensor | None]:
    """Frequencies for training, and a few kept back to judge by."""
    if fourier is None:
        return None, None
    m = fourier.frequencies.shape[1]
    order = torch.randperm(m, generator=rng)
    held = int(m * share)
    return order[held:], order[:held] if held else None


def _refresh_norms(body: nn.Module, classes: int, latent: int, rng: torch.Generator, device: str) -> None:
    """Averaged weights need their own batch-norm statistics."""
    for layer in body.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.reset_running_stats()
            layer.momentum = None
    body.train()
    with torch.no_grad():
        for _ in range(20):
            labels = torch.arange(classes).repeat_interleave(200)
            body(_inputs(torch.randn(len(labels), latent, generator=rng), labels, classes).to(device))


def _query(release: Release) -> MeanEmbedding:
    if not release.plan.has(MeanEmbedding):
        raise TrainError("this generator needs a release made with a mean embedding (--preset paper)")
    return release.plan.query(MeanEmbedding)
