"""Train: a release -> a model. Any number of times, with any settings, at no cost: no row is needed."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from typing import Any

import torch

from dpmerf.errors import TrainError
from dpmerf.generators.base import Generator
from dpmerf.generators.registry import suited
from dpmerf.generators.threads import in_few_threads
from dpmerf.model import Model, check_seed
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
    settings: Any = None,
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
        Training steps; a good number if left out. Said, where the model has none.
    device : str
        For the networks; the tables model runs on the CPU, where it takes seconds.
    fast : bool
        Cuts the training of generators of pictures to a third.
    settings : optional
        Other tuned numbers than the default ones: an instance of the generator's `Settings`, for ablations.
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
    check_settings(seed, steps, device)
    kind = suited(release)
    chosen = kind.settings_for(release) if settings is None else settings
    if not isinstance(chosen, kind.takes):
        raise TrainError(f"this release is read by '{kind.kind}', which takes {kind.takes.__name__}")
    for words in without_effect(release, steps, fast):
        warnings.warn(words, stacklevel=3)
    if fast and "fast" in _fields(kind):
        chosen = replace(chosen, steps=round(chosen.steps * chosen.fast))
    if steps is not None and "steps" in _fields(kind):
        chosen = replace(chosen, steps=steps)
    generator, history = kind.fit(release, chosen, seed, device=device, bars=bars)
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


def without_effect(release: Release, steps: int | None, fast: bool) -> list[str]:
    """What was asked for and does nothing for this release, in words."""
    kind = suited(release)
    found = []
    if steps is not None and "steps" not in _fields(kind):
        found.append("steps has no effect: the model of this release is fitted in closed form")
    if fast and "fast" not in _fields(kind):
        found.append("fast has no effect: only the training of generators of pictures is cut short")
    return found


def _fields(kind: type[Generator]) -> set[str]:
    return {field.name for field in fields(kind.takes)}
