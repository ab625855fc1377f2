"""Copies: each from its own draw of the model given the release, spread as the noise and the sampling demand."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import dpmerf
from command import dpmerf as command
from conftest import mixed_rows
from dpmerf.errors import TrainError
from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.departures import Scores, departures, independent
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.generators.maxent.posterior import noise_alone, sampling_error
from dpmerf.inference.by_model import needs_model, respond_by_model
from dpmerf.inference.evidence import evidence
from dpmerf.inference.questions import question
from dpmerf.methods.presets import make_plan
from dpmerf.plan.noisy_tables import Layout
from dpmerf.private.measure import measure
from dpmerf.release.release import TRUSTED_NOISE
from dpmerf.schema import Schema
from fixed_noise import SeededNoise

ROWS = 4_000


@pytest.fixture(scope="module")
def model(mixed_schema: Schema) -> dpmerf.Model:
    release = measure(mixed_rows(ROWS), make_plan(mixed_schema, 1.0, 1e-5, rows=ROWS), noise=SeededNoise())
    return dpmerf.train(replace(release, noise=TRUSTED_NOISE), seed=1, steps=60)


def test_copies_differ_by_more_than_rows_do(model: dpmerf.Model) -> None:
    tables = list(model.copies(8, seed=3))
    assert all(t.num_rows == ROWS and t.schema == model.sample(10).schema for t in tables)
    again = next(model.copies(1, seed=3))
    assert again.equals(tables[0]) and not again.equals(tables[1])
    ages = np.array([t["age"].to_numpy(zero_copy_only=False).astype(float) for t in tables])
    spread, rows = np.nanmean(ages, 1).std(ddof=1), np.nanstd(ages[0]) / math.sqrt(ROWS)
    pooled = dpmerf.analyse(ages, lambda x: (np.nanmean(x), np.nanvar(x) / ROWS))["0"]
    real = np.nanmean(mixed_rows(ROWS)["age"].to_numpy(zero_copy_only=False).astype(float))
    assert spread > rows and abs(pooled.estimate - real) < 4 * pooled.error


def test_another_number_of_rows_and_bad_numbers(model: dpmerf.Model) -> None:
    assert next(model.copies(1, n=50)).num_rows == 50
    with pytest.raises(TrainError, match="copies is 0"):
        next(model.copies(0))
    with pytest.raises(TrainError, match="n is 0"):
        next(model.copies(2, n=0))


def test_noise_alone_is_as_large_as_the_noise_was(model: dpmerf.Model) -> None:
    noise = noise_alone(model.release, torch.Generator().manual_seed(0))
    for stage in model.release.plan.stages:
        sums = noise.sums[stage.name].double()
        assert float(sums.std()) == pytest.approx(
            model.release.plan.price_of(stage).sigma, rel=6 / math.sqrt(len(sums))
        )


def test_the_sampling_error_is_that_of_as_many_rows() -> None:
    rng = torch.Generator().manual_seed(0)
    layout, classes = Layout(("a", "b"), (2, 3)), torch.tensor([300.0, 100.0])
    shares = torch.tensor([[0.7, 0.3, 0.2, 0.3, 0.5], [0.5, 0.5, 0.6, 0.2, 0.2]])
    columns = [torch.multinomial(shares[:, layout.span(j)], 2_000, replacement=True, generator=rng) for j in (0, 1)]
    chains = Chains(layout, torch.stack(columns, dim=2))
    errors = torch.stack([sampling_error(chains, classes, rng) for _ in range(600)])
    share = chains.counts() / 2_000 * (classes / classes.sum())[:, None, None]
    expected = (400 * share * (1 - share)).sqrt()
    cells = share > 0
    ratio = errors.std(0)[cells] / expected[cells]
    assert float(ratio.min()) > 0.88 and float(ratio.max()) < 1.12
    assert float(errors.diagonal(dim1=2, dim2=3)[:, :, :2].sum((1, 2)).abs().max()) < 0.01  # the total is fixed


def test_scores_are_orthonormal_under_the_margin() -> None:
    p = torch.tensor([0.1, 0.4, 0.3, 0.15, 0.05]).double()
    for numbers, first in ((5, "trend"), (4, "trend"), (0, "main")):
        s = Scores.of(p, numbers)
        gram = s.values.T @ (p[:, None] * s.values)
        assert torch.allclose(gram, torch.eye(4).double(), atol=1e-9) and s.kinds[0] == first
        assert torch.allclose(p @ s.values, torch.zeros(4).double(), atol=1e-9)


@pytest.mark.parametrize("sigma", [5.0, 60.0])
def test_the_posterior_of_a_departure_covers_it(sigma: float) -> None:
    """Six numeric columns with moderate trends: intervals hold the true correlation as often as they say."""
    rng, torch_rng = np.random.default_rng(0), torch.Generator().manual_seed(0)
    k, q, rows = 5, 6, 20_000.0
    layout = Layout(tuple(f"c{i}" for i in range(q)), (k,) * q)
    singles = torch.full((1, k * q), rows / k)
    trend = Scores.of(torch.full((k,), 1 / k), k).values[:, 0].float()
    measured = 1 - torch.block_diag(*[torch.ones(k, k)] * q)
    hits, total, width = 0, 0, []
    for _ in range(12):
        pairs, truth = torch.zeros(k * q, k * q), {}
        for i in range(q):
            for j in range(i):
                truth[j, i] = float(rng.normal(0, 0.15))
                noise = torch.from_numpy(rng.normal(0, sigma, (k, k))).float()
                noise = noise - noise.mean(0) - noise.mean(1, keepdim=True) + noise.mean()
                block = rows / k**2 * (1 + truth[j, i] * trend[:, None] * trend[None]) + noise
                pairs[layout.span(j), layout.span(i)], pairs[layout.span(i), layout.span(j)] = block, block.T
        variance = torch.full((k * q, k * q), sigma**2)
        t = Targets(layout, torch.tensor([rows]), singles, pairs, None, variance, None, measured)
        beyond = departures(t, {j: k for j in range(q)})
        drawn = torch.stack([beyond.draw(torch_rng) for _ in range(40)])
        for (j, i), rho in truth.items():
            part = drawn[:, layout.span(j), layout.span(i)]
            found = torch.einsum("dab,a,b->d", part, trend, trend) / rows
            hits += abs(float(found.mean()) - rho) < 2.1 * float(found.std())
            total += 1
            width.append(float(found.std()))
    assert 0.90 < hits / total <= 1.0
    assert np.mean(width) < 1.15 * sigma * k / rows  # never wider than the noise alone
    assert float(independent(t).sum()) == pytest.approx(q * q * rows, rel=1e-4)


def test_the_command_line(model: dpmerf.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    done = command("sample", tmp_path / "model", "--copies", "2", "-n", "300", "-o", tmp_path / "copies")
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "copies").iterdir())
    assert [f.name for f in files] == ["copy-1.parquet", "copy-2.parquet"] and "dpmerf.analyse" in done.stdout
    assert all(pq.read_table(f).num_rows == 300 for f in files)
    for words, says in (
        (["--copies", "2", "-o", tmp_path / "copies"], "exists already"),
        (["--copies", "2", "--given", "ill=true", "-o", tmp_path / "c"], "whole tables"),
        (["-o", tmp_path / "x.parquet"], "how many rows"),
    ):
        ended = command("sample", tmp_path / "model", *words)
        assert ended.returncode != 0 and says in ended.stderr and len(ended.stderr.strip().splitlines()) == 1


def test_what_no_table_holds_rests_on_the_model(model: dpmerf.Model, tmp_path: Path) -> None:
    """Each kind of question, beside the exact answer of the real rows; and the command line says what it rests on."""
    known, rows = evidence(model.release), mixed_rows(ROWS).to_pandas()
    few, copies = {"ward": "a", "ill": True}, list(model.copies(6))
    for what, column, where, exact in (
        ("count", None, few | {"age": (20, 60)}, len(rows[(rows.ward == "a") & rows.ill & rows.age.between(20, 60)])),
        ("mean", "age", few, rows[(rows.ward == "a") & rows.ill].age.mean()),
    ):
        asked = question(known.codec.schema, what, column, where=where)
        (line,) = respond_by_model(known, copies, asked).lines
        assert line.estimate is not None and abs(line.estimate - exact) < 5 * max(line.error, 1e-9), what
    asked = question(known.codec.schema, "share", "ill", by=["ward"])
    found = respond_by_model(known, copies, asked)
    assert found.rests_on == "the model" and all(0 <= x.estimate <= 1 for x in found.lines if x.estimate is not None)
    assert needs_model(known, question(known.codec.schema, "crosstab", by=["age", "dose", "seen", "ward"]))
    for what, q in (("variance", 0.5), ("sum", 0.5), ("quantile", 0.5)):
        (line,) = respond_by_model(known, copies, question(known.codec.schema, what, "age", q=q)).lines
        assert line.low is not None and line.low < line.estimate < line.high
    model.save(tmp_path / "asked")
    done = command("answer", tmp_path / "asked", "mean of age where ward = a and ill = true and dose > 1")
    assert done.returncode == 0 and "Rests on the model." in done.stdout, done.stderr
