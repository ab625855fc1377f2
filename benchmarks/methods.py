"""Methods: whatever turns real rows into synthetic rows, under one signature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa

from benchmarks.noiseless import Noiseless
from dpmerf.accounting.unit import Unit
from dpmerf.methods.presets import make_plan
from dpmerf.methods.settings import MethodSettings
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

MOST_EPSILON = 10.0  # an ε = ∞ plan is made with this ε (bins, dimensions), then nothing is added


@final
@dataclass(frozen=True)
class Task:
    """What a method is given. ε = ∞ is only for those that say so."""

    rows: pa.Table
    schema: Schema
    epsilon: float
    delta: float
    seed: int
    quick: bool = False
    unit: Unit = field(default_factory=Unit)  # of privacy


Method = Callable[[Task], pa.Table]  # as many synthetic rows as there were real ones


def real(task: Task) -> pa.Table:
    return task.rows


def dpmerf_preset(preset: str, settings: MethodSettings | None = None, training: Any = None) -> Method:
    """One of the package's methods; ε = ∞ by the noiseless path of these benchmarks. Ablations pass settings."""

    def synthesize(task: Task) -> pa.Table:
        private = math.isfinite(task.epsilon)
        plan = make_plan(
            task.schema,
            task.epsilon if private else MOST_EPSILON,
            task.delta,
            rows=task.rows.num_rows,
            unit=task.unit,
            preset=preset,
            seed=task.seed,
            settings=settings,
        )
        release = measure(task.rows, plan, noise=None if private else Noiseless())
        steps = 100 if task.quick and preset == "paper" else None
        model = train(release, seed=task.seed, steps=steps, settings=training)
        return model.sample(task.rows.num_rows)

    return synthesize


METHODS: dict[str, Method] = {
    "real": real,
    "paper": dpmerf_preset("paper"),
    "default": dpmerf_preset("default"),
}
