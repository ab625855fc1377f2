"""Images: MNIST and FashionMNIST, both presets, twelve classifiers and a CNN. Resumes cell by cell.

`python -m benchmarks run images` or `python -m benchmarks.images`; `--only /mnist/ --only /default/1/` picks cells.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import data
from benchmarks.image_scores import CNN, CNN_STEPS, SLUGS, TWELVE, score
from benchmarks.noiseless import Noiseless
from benchmarks.pages import table
from benchmarks.registry import FOLDER, Experiment, Run
from benchmarks.store import Store
from dpmerf import gallery
from dpmerf.presets import make_plan
from dpmerf.private.image_facts import declare
from dpmerf.private.measure import measure
from dpmerf.train import train

SETS = ("mnist", "fashion_mnist")
DELTA = 1e-5
NO_NOISE = "no-noise"  # NOT PRIVATE
VARIANTS = (
    *(("default", "1"), ("paper", "1"), ("fast", "1"), ("default", "0.2"), ("paper", "0.2")),
    *(("default", NO_NOISE), ("paper", NO_NOISE)),
)
DRAWN = 60_000  # synthetic pictures that classifiers are trained on, as in the paper
CACHE = FOLDER / "results" / "quick" / "pictures"  # synthetic pictures: large, made again when missing, not kept
QUICK_ROWS, QUICK_DRAWN, QUICK_STEPS = 6_000, 3_000, 100
QUICK_MODELS = ("Gaussian naive Bayes", "Logistic regression", CNN)
PAPER = {  # mean of twelve at ε = 1 and 0.2
    ("mnist", "1"): 0.652,
    ("mnist", "0.2"): 0.610,
    ("fashion_mnist", "1"): 0.616,
    ("fashion_mnist", "0.2"): 0.526,
}


def run(this: Run) -> None:
    torch.set_num_threads(1)
    for repeat in range(1, this.runs + 1):
        for preset, epsilon in VARIANTS:
            for name in SETS:
                _variant(this, f"images/{name}/{preset}/{epsilon}/{repeat}", name, preset, epsilon, repeat)


def _variant(this: Run, key: str, name: str, preset: str, epsilon: str, repeat: int) -> None:
    cells = {m: f"{key}/{slug}" for m, slug in SLUGS.items() if not this.quick or m in QUICK_MODELS}
    cells = {m: cell for m, cell in cells.items() if this.wants(f"/{cell}/")}
    if not cells:
        return
    cached = CACHE / key.removeprefix("images/") / ("quick.npz" if this.quick else "synthetic.npz")
    if not cached.exists():
        cost = make(this, cached, name, preset, epsilon, repeat)
        this.store.write(f"{key}/cost", cost, cost["cpu_release"] + cost["cpu_train"])
    real = data.images(name, this.data_dir)
    with np.load(cached) as found:
        x, y = found["x"], found["y"].astype(np.int64)
    test = (real["x_test"], real["y_test"].astype(np.int64))
    cnn_steps = QUICK_STEPS if this.quick else CNN_STEPS
    for model, cell in cells.items():
        this.store.cell(cell, partial(score, model, x, y, *test, repeat, cnn_steps))


def make(this: Run, target: Path, name: str, preset: str, epsilon: str, repeat: int) -> dict[str, Any]:
    """Release, train and sample one variant; the synthetic pictures go to the cache, the contact sheet beside them."""
    real = data.images(name, this.data_dir)
    rows = QUICK_ROWS if this.quick else len(real["x_train"])
    source = (real["x_train"][:rows], real["y_train"][:rows])
    schema = declare(source, classes=10).schema
    price = 1.0 if epsilon == NO_NOISE else float(epsilon)
    plan = make_plan(schema, price, DELTA, rows=rows, preset="default" if preset == "fast" else preset, seed=repeat)
    clock = [time.process_time()]
    noisy = measure(source, plan, noise=Noiseless() if epsilon == NO_NOISE else None)
    clock.append(time.process_time())
    model = train(noisy, seed=repeat, steps=QUICK_STEPS if this.quick else None, fast=preset == "fast")
    clock.append(time.process_time())
    target.parent.mkdir(parents=True, exist_ok=True)
    n = QUICK_DRAWN if this.quick else DRAWN
    gallery.write_npz(model.stream(n), target, schema, n)
    if not this.quick:
        sheet = this.store.folder / "images" / f"sheet_{name}_{preset}_{epsilon}.png"
        sheet.parent.mkdir(parents=True, exist_ok=True)
        sheet.write_bytes(gallery.contact_sheet(model))
    h = model.history
    return {
        "private": epsilon != NO_NOISE,
        "noise": noisy.noise,
        "epsilon": None if epsilon == NO_NOISE else price,
        "delta": DELTA,
        "coordinates": plan.coordinates,
        "steps": h.steps[-1],
        "cpu_release": round(clock[1] - clock[0], 1),
        "cpu_train": round(clock[2] - clock[1], 1),
        "noise_floor": h.floor,
        "loss": h.loss[-1],
        "held_out": h.held_out[-1],
    }


def means(store: Store) -> dict[tuple[str, str, str], dict[str, tuple[float, int]]]:
    """(set, preset, ε) -> classifier or "cost" -> its mean (accuracy, or CPU seconds) and number of runs."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for (name, preset, epsilon, _, what), result in store.cells("images"):
        if "error" not in result:
            value = result["cpu_release"] + result["cpu_train"] if what == "cost" else result["accuracy"]
            found.setdefault((name, preset, epsilon), {}).setdefault(what, []).append(value)
    names = {slug: m for m, slug in SLUGS.items()}
    return {
        key: {names.get(what, what): (float(np.mean(v)), len(v)) for what, v in values.items()}
        for key, values in found.items()
    }


def mean_of_twelve(scores: dict[str, tuple[float, int]]) -> str:
    known = [scores[m][0] for m in TWELVE if m in scores]
    return f"{np.mean(known):.3f}" if len(known) == len(TWELVE) else f"({len(known)} of 12)"


def page(store: Store) -> str:
    """One line per set, preset and ε: the mean of runs."""
    found = means(store)
    rows = []
    for key in sorted(found, key=lambda k: (SETS.index(k[0]), VARIANTS.index(k[1:]))):
        (name, preset, epsilon), scores = key, found[key]
        counts = {n for what, (_, n) in scores.items() if what in TWELVE}
        rows.append(
            [
                *(name, preset, f"{epsilon} (NOT PRIVATE)" if epsilon == NO_NOISE else epsilon),
                "–".join(str(n) for n in sorted({min(counts), max(counts)})) if counts else "",
                f"{scores['cost'][0] / 60:.1f}" if "cost" in scores else "",
                f"**{mean_of_twelve(scores)}**",
                f"{PAPER[name, epsilon]:.3f}" if (name, epsilon) in PAPER else "",
                *(f"{scores[m][0]:.3f}" if m in scores else "" for m in (CNN, *TWELVE)),
            ]
        )
    header = ["set", "preset", "ε", "runs", "CPU min", "mean of 12", "paper", CNN, *TWELVE]
    return table(header, rows) if rows else ""


EXPERIMENT = Experiment(
    "images",
    "MNIST and FashionMNIST: both presets at (1, 1e-5), (0.2, 1e-5) and without noise, 12 classifiers and a CNN",
    "about 6 CPU hours a run; --quick 10 minutes",
    run,
    page,
)

if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["run", "images", *sys.argv[1:]]))
