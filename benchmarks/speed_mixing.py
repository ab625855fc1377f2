"""Mixing: are rows drawn by one sweep from kept chains as good as the model, and how fast do chains forget?

Both are asked of the model itself, at no cost in privacy: a reference walks for long, rows are drawn as `sample` does.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.data import SETS
from benchmarks.protocols import split
from benchmarks.store import Store

LAGS = (1, 3, 10, 30)  # sweeps
SETTLING, WALKED = 20, 60  # sweeps of the reference: before it counts, and while it does


def mixing(what: str, rows: int, quick: bool) -> dict[str, Any]:
    """Mean squared error of pair tables in sampling variances, and what chains remember after some sweeps.

    Of a column's bin, the share of chains that still have it, beyond what chance gives: 1 at first, 0 when forgotten.
    """
    from dpmerf.generators.maxent.blocks import moves
    from dpmerf.generators.maxent.gibbs import Chains
    from dpmerf.methods.presets import make_plan
    from dpmerf.private.measure import measure
    from dpmerf.train import train
    from fixed_noise import SeededNoise  # type: ignore[import-not-found]  # of the tests: no privacy

    torch.set_num_threads(1)
    data = split(SETS[what], "honest", 1, None, quick)
    plan = make_plan(data.schema, 1.0, 1e-5, rows=data.train.num_rows)
    model: Any = train(measure(data.train, plan, noise=SeededNoise()), seed=0).generator
    f, layout, rng = model.fitted, model._layout, torch.Generator().manual_seed(3)
    squares, cells, kept = 0.0, 0, {lag: torch.zeros(len(layout.sizes)) for lag in LAGS}
    for c, share in enumerate(f.shares.tolist()):
        h, J = model._zeros.on(f.h[c : c + 1], f.J[c : c + 1], c)
        bar, prepared = model._zeros.bars([c]), moves(model._blocks, h, J)
        long = Chains(layout, f.states[c, -16_384:].long()[None])
        start, halves = long.bins[0], torch.zeros(2, layout.positions, layout.positions)
        for sweep in range(1, SETTLING + WALKED + 1):
            long.sweep(prepared, rng, bar)
            if sweep in kept:
                kept[sweep] += share * (long.bins[0] == start).float().mean(0)
            if sweep > SETTLING:
                parts = long.onehot[0].chunk(2, dim=1)
                halves += torch.stack([part @ part.T / (WALKED * part.shape[1]) for part in parts])
        n, wanted = round(rows * share), halves.mean(0)
        by_reference = (halves[0] - halves[1]).square() / 4  # what its own chance puts into its tables
        drawn = torch.zeros_like(wanted)
        for part in model._draw_class(c, n, {}, rng).split(50_000):
            drawn += Chains(layout, part[None]).counts()[0] / n
        full = torch.triu(f.measured, 1) * wanted > 1e-4
        apart = (drawn - wanted).square() - by_reference
        squares += float((apart / (wanted * (1 - wanted) / n))[full].sum())
        cells += int(full.sum())
    by_chance = ((f.shares.float()[:, None] * f.singles.square()) @ layout.members).sum(0)
    memory = {lag: (same - by_chance) / (1 - by_chance) for lag, same in kept.items()}
    slowest = int(memory[LAGS[-1]].argmax())
    return {
        "what": what,
        "rows": rows,
        "squared_error": squares / cells,
        "cells": cells,
        "slowest": layout.names[slowest],
        "memory": {str(lag): [float(left.mean()), float(left[slowest])] for lag, left in memory.items()},
    }


def page(store: Store) -> str:
    """A sentence a table."""
    found = []
    for _, cell in store.cells("speed/mixing"):
        if "error" not in cell:
            left = ", ".join(f"{lag}: {mean:.2f} ({most:.2f})" for lag, (mean, most) in cell["memory"].items())
            found.append(
                f"Mixing, {cell['what']}: pair tables of {cell['rows']:,} drawn rows are {cell['squared_error']:.2f} "
                f"sampling variances from those of chains that walk for {SETTLING + WALKED} sweeps ({cell['cells']:,} "
                f"cells; 1 is chance alone). What a chain remembers of its bins after so many sweeps, mean of columns "
                f"(slowest, {cell['slowest']}): {left}."
            )
    return "\n\n".join(found)
