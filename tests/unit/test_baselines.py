"""The benchmarks' baselines on small data: they run, keep the schema, learn something easy, and price what they say."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

pytest.importorskip("benchmarks", reason="the benchmarks are not beside the package")
pytest.importorskip("dp_accounting")
pytest.importorskip("opacus")

import dp_accounting
from benchmarks.baselines import BASELINES, dpsgd, pictures, reducedset
from benchmarks.baselines.pategan import vote_noise
from benchmarks.baselines.privbayes import Discrete, choose_network
from benchmarks.baselines.tabular import network
from benchmarks.methods import Task

from dpmerf.accounting.gaussian import delta_of
from dpmerf.features.fourier import Fourier
from dpmerf.schema import Schema

SCHEMA = Schema.parse(
    """
label = "y"
[columns.x]
kind = "number"
min = 0
max = 1
[columns.c]
kind = "category"
values = ["a", "b", "c"]
[columns.y]
kind = "category"
values = [0, 1]
dtype = "int64"
"""
)


def small(rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=rows)
    x = np.clip(0.25 + 0.5 * y + 0.1 * rng.standard_normal(rows), 0, 1)
    frame = pd.DataFrame({"x": x, "c": np.where(y == 1, "a", rng.choice(["b", "c"], rows)), "y": y})
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_gives_rows_of_the_schema(name):
    rows = BASELINES[name](Task(small(), SCHEMA, 1.0, 1e-5, seed=1, quick=True))
    assert rows.num_rows == 400
    assert set(rows.column_names) == {"x", "c", "y"}
    frame = rows.to_pandas()
    assert frame["x"].between(0, 1).all() and set(frame["c"]) <= {"a", "b", "c"} and set(frame["y"]) <= {0, 1}


def test_privbayes_learns_a_dependence_when_the_budget_is_large():
    frame = BASELINES["privbayes"](Task(small(4000), SCHEMA, 50.0, 1e-5, seed=0)).to_pandas()
    assert frame.loc[frame["y"] == 1, "x"].mean() - frame.loc[frame["y"] == 0, "x"].mean() > 0.3
    assert (frame.loc[frame["y"] == 1, "c"] == "a").mean() > 0.9


def test_privbayes_tables_stay_useful():
    codes = np.random.default_rng(0).integers(0, 8, (200, 4))
    network = choose_network(Discrete(codes, (8,) * 4), 0.5, 0.5, np.random.default_rng(1))
    assert sorted(c for c, _ in network) == [0, 1, 2, 3]
    assert all(parents == () for _, parents in network)  # 200 rows at ε = 1 cannot fill any pair of columns


def test_sgd_noise_grows_with_steps_and_falls_with_epsilon():
    base = dpsgd.noise_for(1.0, 1e-5, 0.01, 1000)
    assert dpsgd.noise_for(1.0, 1e-5, 0.01, 2000) > base > dpsgd.noise_for(2.0, 1e-5, 0.01, 1000)


def test_two_accountants_agree():
    noise = dpsgd.noise_for(1.0, 1e-5, 0.01, 1500)
    step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(noise))
    accountant = dp_accounting.rdp.RdpAccountant().compose(dp_accounting.SelfComposedDpEvent(step, 1500))
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.0, rel=0.01)


def test_one_unsampled_step_costs_at_least_the_exact_gaussian():
    noise = dpsgd.noise_for(1.0, 1e-5, 1.0, 1)
    assert delta_of(1 / noise, 1.0) <= 1e-5  # Rényi accounting never promises more than is true


def test_clipping_holds_for_every_row():
    model = torch.nn.Sequential(torch.nn.Linear(3, 1))
    gradient = dpsgd.NoisyGradient(model, torch.square, 1.0, 0.0, 1.0, torch.Generator())
    rows = 100 * torch.randn(50, 3)
    singles = [gradient(row[None]) for row in rows]
    assert all(math.sqrt(sum(float(g.square().sum()) for g in one)) <= 1 + 1e-5 for one in singles)
    together = gradient(rows)
    assert all(
        torch.allclose(a, torch.stack(b).sum(dim=0), atol=1e-4) for a, *b in zip(together, *singles, strict=True)
    )


def test_clipped_gradients_are_those_of_opacus():
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.manual_seed(0)
    model = network(5, (7, 6), 1)
    rows = 3 * torch.randn(20, 5)
    ours = dpsgd.NoisyGradient(model, torch.square, 0.7, 0.0, 20.0, torch.Generator())(rows)
    wrapped = GradSampleModule(model, loss_reduction="sum")
    optimiser = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), noise_multiplier=0.0, max_grad_norm=0.7, expected_batch_size=20
    )
    wrapped(rows).square().sum().backward()
    optimiser.pre_step()
    for one, two in zip(ours, optimiser.params, strict=True):
        assert torch.allclose(one, two.grad, atol=1e-6)


def test_dp_gan_learns_each_class_from_its_own_rows():
    frame = BASELINES["dp-gan"](Task(small(4000), SCHEMA, 50.0, 1e-5, seed=0)).to_pandas()
    assert frame.loc[frame["y"] == 1, "x"].mean() - frame.loc[frame["y"] == 0, "x"].mean() > 0.2


@pytest.mark.parametrize("name", pictures.SIZES)
def test_picture_gans_give_pictures_and_a_learning_curve(name):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300).astype(np.uint8)
    x = (rng.random((300, 8, 8)) * 80 * (1 + y[:, None, None])).astype(np.uint8)
    made, labels, cost = pictures.generate(name, x, y, 5.0, 1e-5, 50, seed=1, quick=True)
    assert made.shape == (50, 8, 8) and made.dtype == np.uint8 and set(labels) <= {0, 1, 2}
    assert cost["curve"][-1][0] == 10 and cost["steps"] == 10


def test_noise_has_its_scale_even_without_rows():
    model = torch.nn.Sequential(torch.nn.Linear(2000, 1))
    gradient = dpsgd.NoisyGradient(model, torch.square, 0.5, 3.0, 10.0, torch.Generator().manual_seed(0))
    weights, _ = gradient(torch.empty(0, 2000))
    assert float(weights.std()) == pytest.approx(0.5 * 3.0 / 10, rel=0.1)


def test_vote_noise_is_the_gaussian_price():
    assert delta_of(math.sqrt(2 * 64) / vote_noise(1.0, 1e-5, 64), 1.0) == pytest.approx(1e-5, rel=1e-3)


def test_reduced_set_comes_closer_with_more_points():
    rng = torch.Generator().manual_seed(0)
    phi = Fourier.draw(2, 200, (0.3,), seed=0)
    rows = torch.rand(1000, 2, generator=rng, dtype=torch.float64)
    target = reducedset.noisy_embedding(rows, phi, 10.0, 1e-5, rng)
    gaps = []
    for points in (1, 20):
        z, w = reducedset.reduced_set(target, phi, points, 2, 100, rng)
        gaps.append(float((w @ phi(z) - target.float()).norm()))
    assert gaps[1] < gaps[0]
