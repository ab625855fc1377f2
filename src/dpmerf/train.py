"""Train: a release -> a model. Any number of times, with any settings, at no cost: no row is needed."""

from __future__ import annotations

import torch

from dpmerf.errors import TrainError
from dpmerf.generators.base import Generator, History
from dpmerf.generators.elliptic.elliptic import Elliptic
from dpmerf.generators.images.picture_network import Pictures
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.generators.network import Network
from dpmerf.generators.threads import in_few_threads
from dpmerf.model import Model, check_seed
from dpmerf.plan.queries import Directions, ImageEmbedding, MeanEmbedding
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release

MOST_STEPS = 10**9


@in_few_threads
def train(
    release: Release,
    *,
    seed: int = 0,
    steps: int | None = None,
    device: str = "cpu",
    fast: bool = False,
    bars: Bars = SILENT,
) -> Model:
    """Fit the generator that suits what was released. The same release and seed give the same model.

    Parameters
    ----------
    release : Release
        What was measured. No row is read and nothing is spent.
    seed : int
        Of everything that is random in training.
    steps : int, optional
        Training steps; a good number if left out.
    device : str
        For the networks; the tables model runs on the CPU, where it takes seconds.
    fast : bool
        Cuts the training of generators of pictures to a third.
    bars : Bars
        How progress is shown; silent if left out.

    Returns
    -------
    Model
        From which rows are drawn.

    Examples
    --------
    >>> train(Release.load("out/release"), seed=7).sample(1_000)  # doctest: +SKIP
    """
    generator: Generator
    history: History
    options = {} if steps is None else {"steps": steps}
    check_settings(seed, steps, device)
    if release.plan.has(ImageEmbedding):
        generator, history = Pictures.fit(release, seed, device=device, fast=fast, bars=bars, **options)
    elif release.plan.has(MeanEmbedding):
        generator, history = Network.fit(release, seed, device=device, bars=bars, **options)
    elif release.plan.has(Directions):
        generator, history = Elliptic.fit(release, seed, bars=bars)  # in closed form: there are no steps
    else:
        generator, history = MaxEnt.fit(release, seed, bars=bars, **options)
    return Model(release, generator, history, seed)


def check_settings(seed: int, steps: int | None, device: str) -> None:
    """TrainError for settings that no generator could be trained with: asked before anything is spent or computed."""
    check_seed(seed)
    if steps is not None and not 1 <= steps <= MOST_STEPS:
        raise TrainError(f"steps is {steps}: write a number from 1 to {MOST_STEPS:,}")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise TrainError(f"the device '{device}' is not there: write cpu, or one that PyTorch finds here") from None
