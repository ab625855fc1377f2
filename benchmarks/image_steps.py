"""Image steps: a training step of the paper preset against a straightforward one that forms the n × D × C product."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.noiseless import Noiseless
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.generators.images.picture_network import Loss, build, query_of, with_label
from dpmerf.generators.images.training_settings import PAPER
from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.sources.picture_facts import declare

BATCH, CLASSES, LATENT = 100, 10, 5


def run(this: Run) -> None:
    if this.wants("/image_steps/paper/"):
        this.store.cell("image_steps/paper", lambda: cell(8 if this.quick else 30))


def cell(steps: int) -> dict[str, Any]:
    """CPU milliseconds of a whole step (network, features, loss, gradients), medians of interleaved steps."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (200, 28, 28), dtype=np.uint8), rng.integers(0, CLASSES, 200)
    plan = make_plan(declare((x, y), classes=CLASSES).schema, 1.0, 1e-5, rows=200, preset="paper")
    release = measure((x, y), plan, noise=Noiseless())  # random pictures: nobody's
    body, seed = build(release, PAPER), torch.Generator().manual_seed(0)
    labels = torch.arange(CLASSES).repeat_interleave(BATCH // CLASSES)
    grouped = Loss(release, 1, PAPER.held_out, seed, "cpu")
    frequencies = query_of(release).dense(release.codec)[0].frequencies[0].float()
    target = torch.randn(2 * frequencies.shape[1], CLASSES)

    def ours(pictures: Tensor) -> Tensor:
        return grouped(pictures, torch.arange(CLASSES), 0)

    def straightforward(pictures: Tensor) -> Tensor:
        """As the method is usually written: every feature times every label, then the mean."""
        angles = pictures @ frequencies
        features = torch.cat([torch.cos(angles), torch.sin(angles)], dim=1) / math.sqrt(frequencies.shape[1])
        onehot = torch.nn.functional.one_hot(labels, CLASSES).float()
        embedding = torch.einsum("ki,kj->kij", features, onehot).mean(dim=0)
        return (embedding - target).square().sum()

    def step(loss: Callable[[Tensor], Tensor]) -> float:
        start = time.process_time()
        body.zero_grad()
        loss(body(with_label(torch.randn(BATCH, LATENT), labels, CLASSES))).backward()
        return 1000 * (time.process_time() - start)

    kinds = {"class-grouped": ours, "n × D × C": straightforward}
    for loss in kinds.values():
        step(loss)
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(steps):
        for name, loss in kinds.items():
            found[name].append(step(loss))
    medians = {name: round(statistics.median(times), 1) for name, times in found.items()}
    ratio = medians["class-grouped"] / medians["n × D × C"]
    return {"batch": BATCH, "dim": 2 * frequencies.shape[1], "ms": medians, "ratio": round(ratio, 3)}


def page(store: Store) -> str:
    found = store.read("image_steps/paper")
    if not found or "error" in found:
        return ""
    rows = [[name, f"{ms} ms"] for name, ms in found["ms"].items()] + [["ratio", f"{found['ratio']:.2f}"]]
    return table(["step of the paper preset (batch 100, D = 10,000, one thread)", "CPU time"], rows)


EXPERIMENT = Experiment(
    "image_steps",
    "A training step of the paper preset for images against the n × D × C implementation",
    "1 CPU minute",
    run,
    page,
)
