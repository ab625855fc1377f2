"""The paper's 2-D mixture at ε = 1: all modes, few strays, right labels, and a picture of it."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest

from dpmerf.methods.presets import make_plan
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

SCHEMA = Schema.parse(
    "".join(f'[columns.{a}]\nkind = "number"\nmin = -1.5\nmax = 5.5\n' for a in "xy")
    + '[columns.c]\nkind = "category"\nvalues = [0, 1, 2, 3, 4]\n'
).with_label("c")
DEVIATION = 0.2
CENTRES = np.array([(i, j) for i in range(5) for j in range(5)], dtype=float)
CLASSES = (CENTRES[:, 0] + 2 * CENTRES[:, 1]).astype(int) % 5  # five centres each


def mixture(per_mode: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    mode = np.repeat(np.arange(25), per_mode)
    points = CENTRES[mode] + rng.normal(0, DEVIATION, (len(mode), 2))
    return pa.table({"x": points[:, 0], "y": points[:, 1], "c": CLASSES[mode]})


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default"])
def test_all_modes_are_covered(preset: str, tmp_path: Path) -> None:
    plan = make_plan(SCHEMA, 1, 1e-5, rows=90_000, preset=preset, balanced=True)
    model = train(measure(mixture(3_600, seed=0), plan), seed=0)
    rows = model.sample(25_000)
    points = np.stack([rows["x"].to_numpy(), rows["y"].to_numpy()], axis=1)
    label = rows["c"].to_numpy()
    distance = np.linalg.norm(points[:, None] - CENTRES[None], axis=2)  # (n, 25)
    nearest = distance.argmin(axis=1)
    near = distance.min(axis=1) <= 3 * DEVIATION
    right = near & (CLASSES[nearest] == label)
    counts = np.bincount(nearest[right], minlength=25)

    figure, axis = plt.subplots(figsize=(5, 5))
    axis.scatter(*points.T, c=label, s=1, cmap="tab10")
    axis.scatter(*CENTRES.T, c="black", marker="+")
    picture = tmp_path / f"mixture-{preset}.png"
    figure.savefig(picture)
    plt.close(figure)

    assert right.mean() >= 0.9, right.mean()
    assert counts.min() >= 0.5 * 1_000, counts
    assert picture.stat().st_size > 5_000
