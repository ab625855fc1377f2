"""Image ablation: the default preset for pictures with one of its parts off at a time.

Trained on the first 50,000 training pictures and judged by the other 10,000: no test picture is looked at.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks import data
from benchmarks.ablation import DEFAULT, Variant
from benchmarks.image_scores import CNN, score
from benchmarks.images import DELTA
from benchmarks.images_page import SETS
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.generators.images.training_settings import ImageTraining
from dpmerf.methods.presets import make_plan
from dpmerf.output import gallery
from dpmerf.private.measure import measure
from dpmerf.sources.picture_facts import declare
from dpmerf.train import train

EPSILON, TRAIN, DRAWN = 1.0, 50_000, 10_000
QUICK_ROWS, QUICK_STEPS = 4_000, 100
EIGHT = (
    *("Gaussian naive Bayes", "Bernoulli naive Bayes", "LDA", "Bagging", "XGBoost", "Random forest"),
    *("Decision tree", "Logistic regression"),
)


TRAINING = ImageTraining()


def _views(*kept: str) -> Variant:
    """Some of the views, which share what all had."""
    return Variant(replace(DEFAULT, images=replace(DEFAULT.images, views=kept)))


def _training(**changed: Any) -> Variant:
    return Variant(training=replace(TRAINING, **changed))


VARIANTS: dict[str, Variant] = {
    "default": Variant(),
    "no grain": _training(finish=replace(TRAINING.finish, grains=(0.0,))),
    "no grain and no tone curves": _training(finish=replace(TRAINING.finish, on=False)),
    "pixels alone": _views("pixels"),
    "edges alone": _views("edges"),
    "windows alone": _views("windows"),
    "no windows": _views("pixels", "edges"),
    "as with --fast": _training(steps=round(TRAINING.fast * TRAINING.steps)),
    "three times the steps": _training(steps=3 * TRAINING.steps),
}


def run(this: Run) -> None:
    torch.set_num_threads(1)
    for repeat in range(1, this.runs + 1):
        for name in SETS[:1] if this.quick else SETS:
            for variant in VARIANTS:
                key = f"image_ablation/{name}/{variant}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, variant, repeat))


def cell(this: Run, name: str, variant: str, repeat: int) -> dict[str, Any]:
    found = data.images(name, this.data_dir)
    x, y = found["x_train"], found["y_train"]
    rows, drawn = (QUICK_ROWS, 2_000) if this.quick else (TRAIN, DRAWN)
    source = (x[:rows], y[:rows])
    schema = declare(source, classes=10).schema
    asked = VARIANTS[variant]
    plan = make_plan(schema, EPSILON, DELTA, rows=rows, seed=repeat, settings=asked.settings)
    model = train(
        measure(source, plan), seed=repeat, steps=QUICK_STEPS if this.quick else None, settings=asked.training
    )
    made, labels = gallery.arrays(model.sample(drawn), schema)
    judges = (x[TRAIN:], y[TRAIN:].astype(np.int64))
    names = EIGHT[:3] if this.quick else (*EIGHT, CNN)
    state, h = model.generator.state().settings, model.history
    return {
        **({"grain": state["grain"]} if "grain" in state else {}),
        "noise_floor": h.floor,
        "held_out": float(np.mean(h.held_out[-4:])),
        "accuracy": {m: score(m, made, np.asarray(labels, np.int64), *judges, repeat)["accuracy"] for m in names},
    }


def page(store: Store) -> str:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (name, variant, _), result in store.cells("image_ablation"):
        if "accuracy" in result:
            found.setdefault((name, variant), []).append(result)
    rows = []
    for key in ((s, v) for s in SETS for v in VARIANTS if (s, v) in found):
        runs = found[key]
        mean = {m: float(np.mean([r["accuracy"][m] for r in runs])) for m in runs[0]["accuracy"]}
        cheap = float(np.mean([v for m, v in mean.items() if m != CNN]))
        grain = [r["grain"] for r in runs if "grain" in r]
        rows.append(
            [
                *key,
                f"{cheap:.3f}",
                *(f"{mean[m]:.3f}" if m in mean else "" for m in (CNN, *EIGHT)),
                f"{np.mean(grain):g}" if grain else "none",
                f"{np.mean([r['held_out'] / r['noise_floor'] for r in runs]):.2f}",
                str(len(runs)),
            ]
        )
    header = ["set", "variant", "mean without CNN", CNN, *EIGHT, "grain", "held-out loss ÷ noise", "runs"]
    return table(header, rows) if rows else ""


EXPERIMENT = Experiment(
    "image_ablation",
    "The default preset for pictures with one part off at a time (eight classifiers and a CNN, on training pictures)",
    "about 3 CPU hours a run; --quick 5 minutes",
    run,
    page,
)
