"""Images: MNIST and FashionMNIST, both presets and the GANs, twelve classifiers and a CNN. Resumes cell by cell.

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
from benchmarks.baselines import pictures
from benchmarks.image_scores import CNN, CNN_STEPS, SLUGS, score
from benchmarks.images_page import NO_NOISE, SETS, VARIANTS, page
from benchmarks.noiseless import Noiseless
from benchmarks.registry import FOLDER, Experiment, Run
from dpmerf.methods.presets import make_plan
from dpmerf.output import gallery
from dpmerf.private.measure import measure
from dpmerf.sources.picture_facts import declare
from dpmerf.train import train

DELTA = 1e-5
DRAWN = 60_000  # synthetic pictures that classifiers are trained on, as in the paper
REDUCED = 6_000  # of the GANs, of real pictures and of `FEW`: sixty thousand take a quarter of an hour each
REDUCED_CNN_STEPS = 1_000
FEW = {("paper", "0.2"), ("paper", NO_NOISE)}  # variants of ours that are reduced like baselines
CACHE = FOLDER / "results" / "quick" / "pictures"  # synthetic pictures: large, made again when missing, not kept
QUICK_ROWS, QUICK_DRAWN, QUICK_STEPS = 6_000, 3_000, 100
BASELINES = (*pictures.SIZES, "real")
QUICK_MODELS = ("Gaussian naive Bayes", "Logistic regression", CNN)


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
        cost = (baseline if preset in BASELINES else make)(this, cached, name, preset, epsilon, repeat)
        this.store.write(f"{key}/cost", cost, cost["cpu_release"] + cost["cpu_train"])
    real = data.images(name, this.data_dir)
    with np.load(cached) as found:
        x, y = found["x"], found["y"].astype(np.int64)
    test = (real["x_test"], real["y_test"].astype(np.int64))
    reduced = preset in BASELINES or (preset, epsilon) in FEW
    cnn_steps = QUICK_STEPS if this.quick else REDUCED_CNN_STEPS if reduced else CNN_STEPS
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
    n = QUICK_DRAWN if this.quick else REDUCED if (preset, epsilon) in FEW else DRAWN
    gallery.write_npz(model.stream(n), target, schema, n, noisy.guarantee())
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


def baseline(this: Run, target: Path, name: str, method: str, epsilon: str, repeat: int) -> dict[str, Any]:
    """The pictures of a GAN, or real ones, into the cache, with a contact sheet."""
    known = data.images(name, this.data_dir)
    rows = QUICK_ROWS if this.quick else len(known["x_train"])
    x, y = known["x_train"][:rows], known["y_train"][:rows]
    cost: dict[str, Any] = {"cpu_release": 0.0, "cpu_train": 0.0}
    if method == "real":
        pick = np.random.default_rng(repeat).permutation(rows)[:REDUCED]
        x, y = x[pick], y[pick]
    else:
        x, y, cost = pictures.generate(method, x, y, float(epsilon), DELTA, REDUCED, repeat, this.quick)
        cost = {"epsilon": float(epsilon), "delta": DELTA, **cost}
        if not this.quick:
            save_sheet(x, y, this.store.folder / "images" / f"sheet_{name}_{method}_{epsilon}.png")
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, x=x, y=y)
    return cost


def save_sheet(x: np.ndarray, y: np.ndarray, path: Path) -> None:
    """Ten pictures of every class, a row a class."""
    from PIL import Image

    blank = np.zeros((10, *x.shape[1:]), x.dtype)
    rows = [np.concatenate([*x[y == c][:10], *blank][:10], axis=1) for c in range(10)]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(rows, axis=0)).save(path)


EXPERIMENT = Experiment(
    "images",
    "MNIST and FashionMNIST: both presets at ε = 1, 0.2 and without noise, three GANs, 12 classifiers and a CNN",
    "about 6 CPU hours a run; --quick 10 minutes",
    run,
    page,
    runs=3,
)

if __name__ == "__main__":
    from benchmarks.__main__ import main

    sys.exit(main(["run", "images", *sys.argv[1:]]))
