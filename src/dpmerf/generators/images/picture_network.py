"""Pictures: a conditional convolutional generator, trained to match the mean embedding of each class.

The embedding of a batch is the class-wise mean of its features: classes are contiguous, so no outer product with the
label is ever formed. A step may look at one part of the features only: an unbiased estimate of the loss at a fraction
of its cost. A few frequencies are kept back, and never trained on, to judge by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from dpmerf.encoding.binning import to_simplex
from dpmerf.encoding.codec import Batch
from dpmerf.errors import TrainError
from dpmerf.features.circle_means import mean_cos_sin
from dpmerf.features.filter_bank import FourierOf, projected
from dpmerf.features.tones import Tones
from dpmerf.generators.base import Generator, Given, History, State, load_weights, weights_of
from dpmerf.generators.images.finish import AT_ONCE, Finish, fitted, released_tones
from dpmerf.generators.images.training_settings import PAPER, ImageTraining
from dpmerf.generators.images.upsampling import Upsampler, default_body, paper_body
from dpmerf.plan.queries import ImageEmbedding, Query
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release


@final
class Pictures(Generator):
    """A trained generator of labelled pictures."""

    kind: ClassVar[str] = "pictures"
    reads: ClassVar[type[Query]] = ImageEmbedding
    takes: ClassVar[type[Any]] = ImageTraining

    def __init__(
        self, release: Release, body: Upsampler, shares: Tensor, finish: Finish | None, settings: ImageTraining
    ) -> None:
        self._release, self._settings = release, settings
        self._body = body.eval()
        self._shares = shares
        self._finish = finish  # None: tones were not released, and pictures stay as the network makes them

    @property
    def conditions(self) -> frozenset[str]:
        label = self._release.codec.label
        return frozenset({label.name} if label else ())

    @torch.no_grad()
    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        label = self._release.codec.label
        if given and label and label.name in given.names:
            labels = given.row.codes[label.name].expand(n)
        else:
            labels = torch.multinomial(self._shares, n, replacement=True, generator=rng)
        latent = torch.randn(n, self._settings.latent, generator=rng)
        inputs = with_label(latent, labels, len(self._shares))
        parts = zip(inputs.split(AT_ONCE), labels.split(AT_ONCE), strict=True)
        numbers = torch.cat([self._finished(self._body(part), code, rng) for part, code in parts])
        return Batch(numbers, {label.name: labels} if label else {})

    def _finished(self, pictures: Tensor, labels: Tensor, rng: torch.Generator) -> Tensor:
        return self._finish(pictures, labels, rng) if self._finish else pictures

    def state(self) -> State:
        tensors = weights_of(self._body)
        built = {"body": self._settings.body, "latent": self._settings.latent}
        if (f := self._finish) is None:
            return State(built, {**tensors, "shares": self._shares})
        return State(
            {**built, "grain": f.grain}, {**tensors, "before": f.before, "after": f.after, "shares": self._shares}
        )

    @classmethod
    def from_state(cls, release: Release, state: State) -> Pictures:
        settings = cls.settings_for(release)
        if "body" in state.settings:  # not said by old models, which had the default settings
            settings = replace(settings, body=state.settings["body"], latent=int(state.settings["latent"]))
        body = build(release, settings)
        load_weights(body, state.tensors)
        tensors, grain = state.tensors, state.settings.get("grain")
        finish = None if grain is None else Finish(tensors["before"], float(grain), tensors["after"])
        return cls(release, body, tensors["shares"], finish, settings)

    @classmethod
    def settings_for(cls, release: Release) -> ImageTraining:
        """Those of the plan's method."""
        found = {"images": ImageTraining(), "default": ImageTraining(), "paper": PAPER}.get(release.plan.method)
        if found is None:
            raise TrainError(
                f"there is no method '{release.plan.method}' for pictures: make the plan with `dpmerf plan`"
            )
        return found

    @classmethod
    def fit(
        cls, release: Release, settings: ImageTraining, seed: int, *, device: str = "cpu", bars: Bars = SILENT
    ) -> tuple[Pictures, History]:
        """Minimise the distance between the released and the generated mean embedding, class by class."""
        s, steps = settings, settings.steps
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            body = build(release, s).to(device)
        rng = torch.Generator().manual_seed(seed)
        loss_of = Loss(release, s.parts, s.held_out, rng, device)
        classes = loss_of.classes
        shown = min(classes, s.most_classes)
        per_class = max(s.least_per_class, s.batch // shown)
        optimiser = torch.optim.Adam(body.parameters(), lr=s.rate)
        history = History(floor=loss_of.floor)

        def drawn(chosen: Tensor, per: int) -> Tensor:
            labels = chosen.repeat_interleave(per)
            latent = torch.randn(len(labels), s.latent, generator=rng)
            return body(with_label(latent, labels, classes).to(device))

        with bars.task("training", total=steps, counted="steps") as advance:
            for step in range(steps):
                for group in optimiser.param_groups:
                    group["lr"] = s.rate_at(step, steps)
                chosen = torch.randperm(classes, generator=rng)[:shown] if classes > shown else torch.arange(classes)
                optimiser.zero_grad()
                loss_of(drawn(chosen, per_class), chosen, step % s.parts).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                advance(1)
                if (step + 1) % s.check_every == 0 or step + 1 == steps:
                    with torch.no_grad():
                        pictures = drawn(chosen, 4 * per_class)
                        seen = loss_of(pictures, chosen, step % s.parts, unbiased=True)
                        unseen = loss_of(pictures, chosen, Loss.HELD_OUT, unbiased=True)
                    history.note(step + 1, float(seen), float(unseen))
            _settle_norms(body, lambda: drawn(torch.randperm(classes, generator=rng)[:shown], per_class))
        body = body.cpu().eval()
        return Pictures(release, body, loss_of.shares, _finish(release, body, s, loss_of, rng), s), history


@final
class Loss:
    """Σ over classes and blocks of share · ‖mean feature of the batch − released mean‖², on a part of the features."""

    HELD_OUT: ClassVar[int] = -1

    def __init__(self, release: Release, parts: int, held_out: float, rng: torch.Generator, device: str) -> None:
        query, codec = query_of(release), release.codec
        self.classes = codec.label.size if codec.label else 1
        counts = _counts(release, self.classes)
        self.shares = counts / counts.sum()
        self._views, self._device = query.dense(codec)[0].views, device
        self._names = {b.view for b in query.blocks}
        noise = torch.zeros(self.classes, dtype=torch.float64)  # E‖noise‖² of a class mean
        cut: list[list[tuple[str, float, Tensor, Tensor]]] = [[] for _ in range(parts + 1)]  # the last is held out
        dense = [m for m in release.measurements if isinstance(m.dense, FourierOf)]
        for block, fourier, m in zip(query.blocks, query.dense(codec), dense, strict=True):
            frequencies = fourier.frequencies
            windows, size = frequencies.shape[0], frequencies.shape[2]
            means = (m.values / counts[:, None]).view(self.classes, 2, windows, size)
            noise += block.share * fourier.dim * (m.sigma / counts).square()
            order = torch.randperm(size, generator=rng)
            held = int(size * held_out)
            for k, index in enumerate([*order[held:].chunk(parts), order[:held]]):
                if len(index):
                    target = means[..., index].flatten(1) * math.sqrt(size / len(index))
                    part = frequencies[..., index].float().contiguous().to(device)
                    cut[k].append((block.view, block.share, part, target.float().to(device)))
        self._parts = cut
        weight = 1 / (1 + noise)  # classes drowned in noise count less
        self._weight = (weight / weight.sum()).float().to(device)
        self.floor = float((weight / weight.sum() * noise).sum())

    def __call__(self, pictures: Tensor, classes: Tensor, part: int, unbiased: bool = False) -> Tensor:
        """`pictures` hold equally many of each of `classes`, in that order.

        A batch mean is farther from the target than the true mean by its own variance. That share is kept for
        training, where it rewards pictures that resemble each other; `unbiased` takes it off, for judging.
        """
        per = len(pictures) // len(classes)
        views = self._views(pictures.to(self._device), self._names)
        weight = self._weight[classes.to(self._device)]
        total = torch.zeros(len(classes), device=self._device)
        for view, share, frequencies, target in self._parts[part]:
            means = mean_cos_sin(projected(views[view], frequencies), len(classes))
            distance = (means - target[classes.to(self._device)]).square().sum(dim=1)
            if unbiased and per > 1:
                distance = distance - (1 - means.square().sum(dim=1)) / (per - 1)
            total = total + share * distance
        return (weight / weight.sum() * total).sum()


def build(release: Release, settings: ImageTraining) -> Upsampler:
    """An untrained network for the release's pictures."""
    image, label = release.plan.schema.image, release.codec.label
    if image is None:
        raise TrainError("this generator needs a release of pictures")
    make = paper_body if settings.body == "paper" else default_body
    return make(image[1], settings.latent + (label.size if label else 1))


def query_of(release: Release) -> ImageEmbedding:
    """What was measured of the pictures."""
    if not release.plan.has(ImageEmbedding):
        raise TrainError("this generator needs a release of pictures")
    return release.plan.query(ImageEmbedding)


def with_label(latent: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Latent numbers with the one-hot of a label behind them."""
    return torch.cat([latent, nn.functional.one_hot(labels, classes).to(latent.dtype)], dim=1)


def _counts(release: Release, classes: int) -> Tensor:
    """(C,) pictures of each class: released, or (balanced) all the same."""
    rows = release.rows_estimate
    for m in () if release.plan.balanced else release.measurements:
        if m.dense is None and m.cells == classes > 1:
            return (to_simplex(m.values.flatten() / rows) * rows).clamp_min(1.0)
    return torch.full((classes,), max(rows / classes, 1.0), dtype=torch.float64)


@torch.no_grad()
def _finish(release: Release, body: nn.Module, s: ImageTraining, loss_of: Loss, rng: torch.Generator) -> Finish | None:
    """Grain and tone curves of a trained network, where tones were released, by features it was not trained on."""
    tones = [(m, m.dense) for m in release.measurements if isinstance(m.dense, Tones)]
    if not tones or not s.finish.on:
        return None
    classes, channels, pixels = loss_of.classes, tones[0][1].channels, tones[0][1].pixels
    shares = released_tones(tones[0][0], _counts(release, classes), channels)
    least, most = s.finish.pictures
    per = min(most, max(least, s.finish.numbers // (classes * channels * pixels)))
    judged = torch.arange(min(classes, s.most_classes))
    outputs = []
    for label in torch.arange(classes):
        inputs = with_label(torch.randn(per, s.latent, generator=rng), label.expand(per), classes)
        outputs.append(body(inputs).view(per, channels, -1))

    def distance(pictures: Tensor) -> float:
        return float(loss_of(pictures[: per * len(judged)], judged, Loss.HELD_OUT, unbiased=True))

    return fitted(shares, torch.stack(outputs), distance, s.finish, rng)


def _settle_norms(body: nn.Module, draw: Callable[[], Tensor]) -> None:
    """Batch-norm statistics of the final weights, as a plain average over batches."""
    norms = [m for m in body.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    body.train()
    with torch.no_grad():
        for _ in range(40):
            draw()
