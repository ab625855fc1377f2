"""MaxEnt: cells that are empty in the release stay empty; columns that decide each other move; rows are the model's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from dpmerf.generators.maxent.blocks import Block, blocks_of, holding, moves
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.generators.maxent.maxent import MaxEnt
from dpmerf.generators.maxent.maxent_settings import Settings
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.plan.noisy_tables import Layout
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

ROWS, KINDS = 30_000, 8


def near_function(seed: int) -> tuple[Schema, pa.Table]:
    """`number` follows from `degree`; `side` leans on both; `free` on nothing."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, KINDS + 1)
    degree = rng.choice(KINDS, ROWS, p=share / share.sum())
    number = rng.permutation(KINDS)[degree]
    side = (rng.random(ROWS) < 0.2 + 0.08 * degree).astype(int)
    columns = {"degree": degree, "number": number, "side": side, "free": rng.integers(0, KINDS, ROWS)}
    columns["y"] = (rng.random(ROWS) < 0.2 + 0.5 * side).astype(int)
    table = pa.table({name: [f"{name}{v}" for v in codes] for name, codes in columns.items()})
    text = 'label = "y"\n'
    for name, codes in columns.items():
        values = [f"{name}{v}" for v in range(codes.max() + 1)]
        text += f'[columns.{name}]\nkind = "category"\nvalues = {values}\n'
    return Schema.parse(text), table


@pytest.fixture(scope="module")
def fitted() -> tuple[pa.Table, Model]:
    schema, table = near_function(0)
    return table, train(measure(table, make_plan(schema, 1.0, 1e-5, rows=ROWS)), seed=0)


def generator_of(model: Model) -> MaxEnt:
    assert isinstance(model.generator, MaxEnt)
    return model.generator


def test_cells_that_no_row_has_are_seen_in_the_release_and_stay_empty(fitted: tuple[pa.Table, Model]) -> None:
    table, model = fitted
    known = set(zip(table["degree"].to_pylist(), table["number"].to_pylist(), strict=True))
    rows = model.sample(20_000, seed=1)
    drawn = list(zip(rows["degree"].to_pylist(), rows["number"].to_pylist(), strict=True))
    assert np.mean([pair not in known for pair in drawn]) < 0.01


def test_tables_without_empty_cells_keep_them_all(fitted: tuple[pa.Table, Model]) -> None:
    generator = generator_of(fitted[1])
    layout, empty = generator._layout, generator.fitted.empty
    free = layout.names.index("free")
    assert int(empty[layout.span(free)].sum()) == 0
    assert int(empty.sum()) > 0.8 * KINDS * (KINDS - 1)


def test_training_says_that_it_converged_and_says_so_when_it_could_not(fitted: tuple[pa.Table, Model]) -> None:
    assert fitted[1].history.stopped == "converged"
    assert fitted[1].history.loss[-1] < 1.5
    short = train(fitted[1].release, seed=0, steps=4)
    assert short.history.stopped == "the limit of 4 steps" and short.history.steps[-1] == 4


def test_rows_are_within_sampling_error_of_the_model(fitted: tuple[pa.Table, Model]) -> None:
    """Pair tables of many rows beside those of chains that walk for long."""
    generator, n = generator_of(fitted[1]), 400_000
    f, layout = generator.fitted, generator._layout
    rng = torch.Generator().manual_seed(3)
    for c in range(len(f.shares)):
        h, J = generator._zeros.on(f.h[c : c + 1], f.J[c : c + 1], c)
        long = Chains(layout, f.states[c].long()[None, :16_384])
        wanted = torch.zeros(layout.positions, layout.positions)
        for sweep in range(60):
            long.sweep(moves(generator._blocks, h, J), rng)
            wanted += long.counts()[0] / (50 * long.count) if sweep >= 10 else 0
        rows = Chains(layout, generator._draw_class(c, n, {}, rng)[None]).counts()[0] / n
        full = torch.triu(f.measured, 1) * wanted > 1e-4
        z = ((rows - wanted) / (wanted * (1 - wanted) / n).sqrt())[full]
        # single bins are met better than by chance; the fit of h to its targets is no closer than some of it
        assert float(z.square().mean()) < 3.0


def test_given_columns_are_held_and_what_follows_from_them_follows(fitted: tuple[pa.Table, Model]) -> None:
    table, model = fitted
    known = dict(zip(table["degree"].to_pylist(), table["number"].to_pylist(), strict=True))
    rows = model.sample(2_000, given={"degree": "degree2"}, seed=2)
    assert set(rows["degree"].to_pylist()) == {"degree2"}
    assert np.mean([v == known["degree2"] for v in rows["number"].to_pylist()]) > 0.98
    impossible = model.sample(500, given={"degree": "degree2", "number": known["degree0"]}, seed=2)
    assert set(impossible["number"].to_pylist()) == {known["degree0"]}


def test_columns_that_decide_each_other_are_one_block_and_still_change() -> None:
    layout = Layout(("a", "b", "c"), (3, 3, 2))
    barred = torch.zeros(8, 8, dtype=torch.bool)
    barred[:3, 3:6] = ~torch.eye(3, dtype=torch.bool)
    barred |= barred.T.clone()
    common = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    blocks = blocks_of(layout, common, barred, frozenset(), 0.3, 128)
    assert sorted(b.columns for b in blocks) == [(0, 1), (2,)]
    J = torch.where(barred, -25.0, 0.0)[None]
    h = torch.tensor([[0.0, 0.7, 1.1, 0.0, 0.0, 0.0, 0.0, 0.0]])
    chains = Chains(layout, torch.zeros(1, 30_000, 3, dtype=torch.int64))
    chains.sweep(moves(blocks, h, J), torch.Generator().manual_seed(0))
    a, b, _ = chains.bins[0].T
    assert bool((a == b).all())
    assert torch.bincount(a).div(30_000).tolist() == pytest.approx(torch.softmax(h[0, :3], 0).tolist(), abs=0.01)
    held = holding(layout, blocks, {0: 2})
    assert sorted(block.columns for block in held) == [(1,), (2,)]
    assert next(block for block in held if block.columns == (1,)).states.tolist() == [[0.0, 0.0, 1.0]]
    alone = blocks_of(layout, common, barred, frozenset({0}), 0.3, 128)
    assert len(alone) == 3 and all(isinstance(block, Block) and block.states is None for block in alone)


def test_settings_are_the_user_s_to_change(fitted: tuple[pa.Table, Model]) -> None:
    model = train(fitted[1].release, seed=0, settings=Settings(steps=4, empty=1.0))
    assert not bool(generator_of(model).fitted.empty.any())
