"""Conditional: one row for each given row, whose named columns it keeps. Conditions that differ from row to row.

Gibbs sweeps over the columns that are free. What the held ones say of them is summed once, so a sweep costs what the
free columns among themselves do. Where in their bins held numbers lie tells where in theirs the free ones do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dpmerf.encoding.codec import Batch
from dpmerf.encoding.places import place_of
from dpmerf.errors import TrainError
from dpmerf.generators.base import Given, overwrite
from dpmerf.generators.maxent.gibbs import LEAST
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.plan.queries import Tables

AT_ONCE = 16_384  # rows that are moved at a time


def draw_each(model: MaxEnt, given: Given, rng: torch.Generator) -> Batch:
    """As many rows as `given` has; where tables are split by a label, it must be among the given columns."""
    release, layout = model._release, model._layout
    binning, label = release.binning, release.plan.query(Tables).label(release.codec)
    if binning is None or (label is not None and label not in given.names):
        raise TrainError(f"rows that are drawn one by one must be given '{label}'")
    bins, n = binning.encode(given.row), len(given.row)
    classes = torch.zeros(n, dtype=torch.int64) if label is None else bins[label]
    held = {layout.names.index(name): bins[name] for name in given.names if name in layout.names}
    fine = binning.grid.encode(given.row)
    inside = {i: layout.names[j] for i, (j, _) in enumerate(model._numbers) if j in held}
    rows = torch.empty(n, len(layout.names), dtype=torch.int64)
    place = torch.zeros(n, len(model._numbers), dtype=torch.float64)
    for c in classes.unique().tolist():
        for own in torch.nonzero(classes == c).flatten().split(AT_ONCE):
            rows[own] = _settled(model, c, {j: b[own] for j, b in held.items()}, len(own), rng)
            known = {
                i: place_of(binning.bin_of[name], model._fine[name][c], fine[name][own], rng)
                for i, name in inside.items()
            }
            place[own] = model._places(c, rows[own], rng, known).double()
    codes = {name: rows[:, j] for j, name in enumerate(layout.names)}
    if label is not None:
        codes[label] = classes
    numbers = {layout.names[j]: place[:, i] for i, (j, _) in enumerate(model._numbers)}
    drawn = binning.decode(codes, model._fine, classes, numbers, rng, model._preferred, evened=False)
    return overwrite(drawn, given, release.codec)


def _settled(model: MaxEnt, c: int, held: dict[int, Tensor], n: int, rng: torch.Generator) -> Tensor:
    """(n, q) bins of one class, with these columns (n,) held."""
    f, layout = model.fitted, model._layout
    h, J = (part[0] for part in model._zeros.on(f.h[c : c + 1], f.J[c : c + 1], c))
    bins = f.states[c, torch.randint(f.states.shape[1], (n,), generator=rng)].long()  # (n, q)
    for j, column in held.items():
        bins[:, j] = column
    onehot = torch.zeros(layout.positions, n)
    onehot.scatter_(0, (bins + torch.tensor(layout.offsets[:-1])).T, 1.0)
    free = [j for j in range(len(layout.names)) if j not in held]
    if not free:
        return bins
    spans = [torch.arange(layout.span(j).start, layout.span(j).stop) for j in free]
    inside, outside = torch.cat(spans), _others(layout.positions, torch.cat(spans))
    base = h[inside, None] + J[inside][:, outside] @ onehot[outside]  # (free positions, n)
    between, moving = J[inside][:, inside], onehot[inside]
    starts = torch.tensor([0, *(len(s) for s in spans)]).cumsum(0).tolist()
    for _ in range(model.settings.burn_each):
        for k in torch.randperm(len(free), generator=rng).tolist():
            own = slice(starts[k], starts[k + 1])
            ladder = torch.addmm(base[own], between[own], moving)
            ladder.sub_(ladder.amax(dim=0)).clamp_min_(LEAST).exp_()
            for i in range(1, len(ladder)):  # far faster than cumsum along this axis
                ladder[i] += ladder[i - 1]
            picked = (ladder <= torch.rand(n, generator=rng) * ladder[-1]).sum(dim=0).clamp_max_(len(ladder) - 1)
            moving[own].zero_().scatter_(0, picked[None], 1.0)
            bins[:, free[k]] = picked
    return bins


def _others(positions: int, some: Tensor) -> Tensor:
    left = torch.ones(positions, dtype=torch.bool)
    left[some] = False
    return torch.nonzero(left).flatten()
