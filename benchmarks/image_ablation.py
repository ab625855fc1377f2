"""Image ablation: the default preset for pictures with one of its parts off at a time, reduced for one core.

Trained on the first 50,000 training pictures of MNIST, with the steps of `--fast`, and judged by the other 10,000: no
test picture is looked at.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import data, everything
from benchmarks.ablation import DEFAULT, Variant
from benchmarks.image_scores import CNN, score
from benchmarks.images import DELTA
from benchmarks.pages import table
from benchmarks.registry import Experiment, Run
from benchmarks.store import Store
from dpmerf.generators.images.training_settings import ImageTraining
from dpmerf.methods.presets import make_plan
from dpmerf.output import gallery
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.sources.picture_facts import declare
from dpmerf.train import train

EPSILON, TRAIN, DRAWN = 1.0, 50_000, 10_000
QUICK_ROWS, QUICK_STEPS = 4_000, 100
SETS = ("mnist",)  # both take an hour
FEW = ("Gaussian naive Bayes", "LDA", "Logistic regression", "Random forest")
CNN_STEPS = 500
TRAINING = replace(ImageTraining(), steps=round(ImageTraining().fast * ImageTraining().steps))


def _views(*kept: str) -> Variant:
    """Some of the views, which share what all had."""
    return Variant(replace(DEFAULT, images=replace(DEFAULT.images, views=kept)), TRAINING)


def _training(**changed: Any) -> Variant:
    return Variant(training=replace(TRAINING, **changed))


VARIANTS: dict[str, Variant] = {
    "default": _training(),
    "no grain": _training(finish=replace(TRAINING.finish, grains=(0.0,))),
    "no grain and no tone curves": _training(finish=replace(TRAINING.finish, on=False)),
    "pixels alone": _views("pixels"),
    "edges alone": _views("edges"),
    "windows alone": _views("windows"),
    "no windows": _views("pixels", "edges"),
    "a third of the steps": _training(steps=TRAINING.steps // 3),
    "three times the steps": _training(steps=3 * TRAINING.steps),
}


def run(this: Run) -> None:
    torch.set_num_threads(1)
    for repeat in range(1, this.runs + 1):
        for name in SETS:
            for variant in VARIANTS:
                key = f"image_ablation/{name}/{variant}/{repeat}"
                if this.wants(f"/{key}/"):
                    this.store.cell(key, partial(cell, this, name, variant, repeat))


@cache
def _released(name: str, views: tuple[str, ...], rows: int, repeat: int, place: Path | None) -> Release:
    """Variants that differ only in training share a release."""
    found = data.images(name, place)
    source = (found["x_train"][:rows], found["y_train"][:rows])
    settings = _views(*views).settings
    schema = declare(source, classes=10).schema
    return measure(source, make_plan(schema, EPSILON, DELTA, rows=rows, seed=repeat, settings=settings))


def cell(this: Run, name: str, variant: str, repeat: int) -> dict[str, Any]:
    rows, drawn = (QUICK_ROWS, 2_000) if this.quick else (TRAIN, DRAWN)
    asked = VARIANTS[variant]
    release = _released(name, asked.settings.images.views, rows, repeat, this.data_dir)
    model = train(release, seed=repeat, steps=QUICK_STEPS if this.quick else None, settings=asked.training)
    made, labels = gallery.arrays(model.sample(drawn), release.plan.schema)
    found = data.images(name, this.data_dir)
    judges = (found["x_train"][TRAIN:], found["y_train"][TRAIN:].astype(np.int64))
    names = FEW[:2] if this.quick else (*FEW, CNN)
    state, h = model.generator.state().settings, model.history
    learned = (made, np.asarray(labels, np.int64))
    return {
        **({"grain": state["grain"]} if "grain" in state else {}),
        "noise_floor": h.floor,
        "held_out": float(np.mean(h.held_out[-4:])),
        "accuracy": {m: score(m, *learned, *judges, repeat, CNN_STEPS)["accuracy"] for m in names},
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
                *(f"{mean[m]:.3f}" if m in mean else "" for m in (CNN, *FEW)),
                f"{np.mean(grain):g}" if grain else "none",
                f"{np.mean([r['held_out'] / r['noise_floor'] for r in runs]):.2f}",
                str(len(runs)),
            ]
        )
    header = ["set", "variant", "mean of four", CNN, *FEW, "grain", "held-out loss ÷ noise", "runs"]
    absent = everything.not_run({f"{s} {v}": [f"image_ablation/{s}/{v}/1"] for s in SETS for v in VARIANTS}, store)
    return "\n\n".join(filter(None, [table(header, rows) if rows else "", absent]))


EXPERIMENT = Experiment(
    "image_ablation",
    "The default preset for pictures with one part off at a time (four classifiers and a CNN, on training pictures)",
    "about 25 CPU minutes a run; --quick 5 minutes",
    run,
    page,
)
