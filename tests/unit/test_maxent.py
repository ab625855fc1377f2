"""MaxEnt: how strongly pairs go together is read off all noisy tables at once; numbers go together inside bins too."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from dpmerf.encoding.binning import Binning
from dpmerf.encoding.codec import Codec
from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.generators.maxent.ridges import prior_variance
from dpmerf.methods.presets import make_plan
from dpmerf.plan.noisy_tables import Layout
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

ROWS = 10_000.0


def _found(size: int, variance_of: Tensor, noise: float) -> Tensor:
    """(q, q) prior variances found where (q, q) are true: q columns of so many equal bins.

    Tables lie on their margins; `noise` is relative to a cell's count.
    """
    rng = torch.Generator().manual_seed(0)
    q = len(variance_of)
    layout = Layout(tuple(f"c{j}" for j in range(q)), (size,) * q)
    P, seg = layout.positions, layout.column_of
    expected, sigma = torch.full((P, P), ROWS / size**2), noise * ROWS / size**2
    true = torch.randn(P, P, generator=rng) * variance_of[seg][:, seg].sqrt() * expected
    noisy = (true + sigma * torch.randn(P, P, generator=rng)).triu(1)
    blocks = (noisy + noisy.T).view(q, size, q, size)
    blocks = blocks - blocks.mean(1, keepdim=True)
    departure = (blocks - blocks.mean(3, keepdim=True)).view(P, P)
    measured = (seg[:, None] != seg).float()
    variance = torch.full((P, P), sigma**2)
    none = torch.zeros(1)
    targets = Targets(layout, none, none, none, None, variance, None, measured)
    found = prior_variance(targets, departure, expected, variance, Settings())
    return found[::size, ::size]


@pytest.mark.parametrize("size", [2, 6])
def test_tables_that_go_together_are_told_from_those_that_show_only_noise(size: int) -> None:
    strong = torch.zeros(12, 12)
    strong[:6, :6] = 0.64
    found = _found(size, strong, 0.15)
    together = torch.triu(torch.ones(12, 12), 1).bool()
    assert float(found[together & (strong > 0)].mean()) > 5 * float(found[together & (strong == 0)].mean())
    assert float(found[together & (strong == 0)].mean()) < 0.06
    assert bool((found == found.T).all())


@pytest.mark.parametrize(("size", "true"), [(2, 0.64), (3, 0.32), (6, 0.2)])
def test_what_moving_tables_onto_their_margins_takes_from_noise_is_not_taken_from_the_signal(
    size: int, true: float
) -> None:
    found = _found(size, torch.full((24, 24), true), 0.8)
    mean = float(found[torch.triu(torch.ones(24, 24), 1).bool()].mean())
    assert mean == pytest.approx(true, rel=0.25)


def test_numbers_that_go_together_do_so_inside_bins_too_and_keep_their_histograms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 8_000)
    table = pa.table({"x": x, "y": np.clip(x + rng.normal(0, 0.1, 8_000), 0, 1)})
    schema = Schema.model_validate({"columns": {name: {"kind": "number", "min": 0, "max": 1} for name in "xy"}})
    release = measure(table, make_plan(schema, 1, 1e-5, rows=8_000))
    model = train(release, seed=0)
    tilted = model.sample(8_000, seed=1)
    monkeypatch.setattr(MaxEnt, "_places", lambda self, c, bins, rng: torch.rand(len(bins), 2, generator=rng).double())
    flat = model.sample(8_000, seed=1)
    assert release.binning is not None
    inside = [_inside_bins(release.binning, release.codec, rows) for rows in (table, tilted, flat)]
    assert inside[1] - inside[2] > 0.3 * inside[0] and inside[1] < 1.2 * inside[0]
    for name in "xy":
        counts = [np.histogram(rows[name].to_numpy(), 20, (0, 1))[0] for rows in (tilted, flat)]
        assert np.abs(counts[0] - counts[1]).max() < 0.01 * 8_000


def _inside_bins(binning: Binning, codec: Codec, rows: pa.Table) -> float:
    """The mean correlation of x and y among rows with the same bin of x."""
    bins = binning.encode(codec.encode(rows))["x"].numpy()
    x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
    return float(np.mean([np.corrcoef(x[bins == b], y[bins == b])[0, 1] for b in np.unique(bins)]))


def test_where_noise_drowns_all_tables_they_are_taken_for_independent() -> None:
    assert float(_found(4, torch.zeros(12, 12), 200.0).max()) < 0.02


@pytest.mark.parametrize(("alike", "epsilon"), [(False, 0.5), (True, 5.0)])
def test_columns_that_say_the_same_do_not_overshoot_together(alike: bool, epsilon: float) -> None:
    """Sixteen columns that follow one hidden state: their steps add up."""
    rng = np.random.default_rng(0)
    frequent = 1 / np.arange(1, 13) ** 1.5
    hidden, kinds = rng.choice(12, 50_000, p=frequent / frequent.sum()), rng.integers(0, 6, (16, 12))
    followed = (rng.random((16, 50_000)) < 0.99) & alike
    codes = np.where(followed, kinds[:, hidden], rng.integers(0, 6, (16, 50_000)))
    names, values = [f"c{j}" for j in range(16)], np.array([f"v{i}" for i in range(6)])
    table = pa.table({name: values[code] for name, code in zip(names, codes, strict=True)})
    text = "".join(f'[columns.{n}]\nkind = "category"\nvalues = {values.tolist()}\n' for n in names)
    release = measure(table, make_plan(Schema.parse(text), epsilon, 1e-5, rows=50_000))
    history = train(release, seed=0).history
    assert history.loss[-1] < (8 if alike else 1.2)
    assert max(history.loss) < 2 * history.loss[0]


def test_settings_come_back_from_a_file_as_they_were() -> None:
    asked = Settings(priors=(1.0, 0.5), clear=4.0)
    assert Settings.read(json.loads(json.dumps(asdict(asked)))) == asked
    assert Settings.read({"chains": 99}) == Settings(chains=99)  # a model from before the others were named
