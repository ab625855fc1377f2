"""The GANs of the paper's image table: pixels in [0, 1], fully connected networks, sizes that a CPU can train.

DP-CGAN's networks have the size of the original (one hidden layer of 128); DP-GAN is an ensemble of one such pair a
class; GS-WGAN's original is a residual network trained for 20,000 steps on a GPU, here one of 256 units. Accounting as
on tables (`gan`, `gswgan`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from benchmarks.baselines.gan import Real, Size, conditional, per_class
from benchmarks.baselines.gswgan import sanitised

SIZES: dict[str, tuple[Callable[..., tuple[Tensor, Tensor]], Size]] = {
    "dp-cgan": (conditional, Size(latent=32, hidden=(128,), steps=2_000, batch=600, rate=3e-3)),
    "dp-gan": (per_class, Size(latent=32, hidden=(128,), steps=120, batch=400, rate=1e-3)),
    "gs-wgan": (
        partial(sanitised, most_shards=1_000),
        Size(latent=32, hidden=(256,), steps=3_000, batch=32, rate=1e-3),
    ),
}
LOOKED_AT = 2_000  # synthetic pictures for a point of the learning curve


def generate(
    method: str, x: np.ndarray, y: np.ndarray, epsilon: float, delta: float, wanted: int, seed: int, quick: bool
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """`wanted` synthetic pictures (uint8) and labels, and what they cost with the learning curve.

    A point of the curve is the accuracy on the last 2,000 of the private pictures of a logistic regression that learnt
    from synthetic ones: NOT COVERED by the guarantee, and nothing is chosen by it.
    """
    play, size = SIZES[method]
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    flat = torch.from_numpy(x.reshape(len(x), -1).astype(np.float32) / 255)
    labels = torch.from_numpy(y.astype(np.int64))
    judge = flat[-LOOKED_AT:].numpy(), labels[-LOOKED_AT:].numpy()
    curve: list[tuple[int, float]] = []
    start = time.process_time()
    spent_looking = 0.0

    def watch(step: int, draw: Any) -> None:
        nonlocal spent_looking
        before = time.process_time()
        made, told = draw(LOOKED_AT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fifty iterations are enough for a glance
            model = LogisticRegression(max_iter=50).fit(made.numpy(), told.numpy())
        curve.append((step, round(float(model.score(*judge)), 4)))
        spent_looking += time.process_time() - before

    real = Real(flat, labels, int(labels.max()) + 1, torch.sigmoid)
    steps = 10 if quick else size.steps
    made, told = play(real, epsilon, delta, size, steps, wanted, rng, watch)
    cost = {
        "steps": steps,
        "parameters": f"latent {size.latent}, hidden {size.hidden}, batch {size.batch}",
        "cpu_release": 0.0,
        "cpu_train": round(time.process_time() - start - spent_looking, 1),
        "curve": curve,
    }
    return _pictures(made, x.shape[1:]), told.numpy(), cost


def _pictures(made: Tensor, shape: tuple[int, ...]) -> np.ndarray:
    return (made * 255).round().to(torch.uint8).numpy().reshape(-1, *shape)
