"""From pictures to synthetic pictures: classes are kept apart, models round-trip, seeds decide everything but noise."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as Pil

import dpmerf
from dpmerf.errors import DpmerfError, TrainError
from dpmerf.generators.images.picture_network import Loss, Pictures
from dpmerf.generators.images.training_settings import FinishSettings, ImageTraining
from dpmerf.generators.images.upsampling import doublings
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.output import gallery
from dpmerf.plan import Plan, Stage
from dpmerf.plan.queries import ImageBlock, ImageEmbedding
from dpmerf.private.measure import measure
from dpmerf.release import Release
from dpmerf.schema import Image, Schema
from dpmerf.sources.picture_facts import declare
from dpmerf.train import train
from fixed_noise import FixedNoise


def bars(n: int, channels: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Class 0: a bright upper half; class 1: a bright left half; class 2 never occurs."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.25).astype(np.uint8)
    x = rng.integers(0, 30, (n, 12, 12, channels))
    x[y == 0, :6] += 200
    x[y == 1, :, :6] += 200
    return (x[..., 0] if channels == 1 else x).astype(np.uint8), y


def small_plan(schema: Schema, epsilon: float, rows: int, **options: object) -> Plan:
    """The default plan with few features."""
    plan = make_plan(schema, epsilon, 1e-5, rows=rows, **options)  # type: ignore[arg-type]
    views = ("coarse", "edges", "windows")
    blocks = tuple(ImageBlock(view=v, dim=300, scales=(0.4, 1.0), share=0.32) for v in views)
    recipe = ImageEmbedding(blocks=blocks, tones=0.04, seed=0, counts=plan.stages[0].query.counts)  # type: ignore[union-attr]
    stages = (Stage("embedding", 1.0, recipe),)
    return Plan(schema, plan.epsilon, plan.delta, plan.unit, rows, plan.method, plan.balanced, stages)


@pytest.fixture(scope="module")
def release() -> Release:
    x, y = bars(3_000)
    return measure((x, y), small_plan(declare((x, y), classes=3).schema, 2.0, 3_000), noise=FixedNoise(1))


@pytest.fixture(scope="module")
def model(release: Release) -> Model:
    return train(release, seed=3, steps=150)


def halves(x: np.ndarray) -> np.ndarray:
    """How much brighter the upper half is than the lower one, minus the same of left and right."""
    x = x.reshape(len(x), 12, 12, -1).astype(float).mean(axis=3)
    return x[:, :6].mean((1, 2)) - x[:, 6:].mean((1, 2)) - x[:, :, :6].mean((1, 2)) + x[:, :, 6:].mean((1, 2))


def test_classes_are_learned_and_in_their_shares(model: Model) -> None:
    x, y = gallery.arrays(model.sample(600, seed=1), model.release.plan.schema)
    assert x.shape == (600, 12, 12) and x.dtype == np.uint8 and y is not None and y.dtype == np.uint8
    score = halves(x)
    assert np.mean(score[y == 0] > 0) > 0.9 and np.mean(score[y == 1] < 0) > 0.9
    assert abs(np.mean(y == 1) - 0.25) < 0.08 and np.mean(y == 2) < 0.03  # an empty class stays (nearly) empty


def test_history_is_judged_by_the_release(model: Model) -> None:
    h = model.history
    assert h.steps[-1] == 150 and len(h.held_out) == len(h.loss)
    assert h.loss[-1] < 3 * h.floor and h.held_out[-1] < 3 * h.floor


def test_unbiased_loss_of_a_perfect_generator_is_the_floor() -> None:
    x, y = bars(4_000)
    schema = declare((x, y), classes=2).schema
    made = measure((x, y), small_plan(schema, 1.0, 4_000), noise=FixedNoise(2))
    loss = Loss(made, 1, 0.04, torch.Generator().manual_seed(0), "cpu")
    index = np.concatenate([np.flatnonzero(y == c)[:500] for c in (0, 1)])
    pictures = torch.from_numpy(x[index].reshape(1000, -1) / 255).float()
    assert 0.7 < float(loss(pictures, torch.arange(2), 0, unbiased=True)) / loss.floor < 1.3


def test_round_trip_and_determinism(model: Model, release: Release, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = Model.load(tmp_path / "model", test_noise=True)
    assert again.sample(40, seed=5).equals(model.sample(40, seed=5))
    assert not again.sample(40, seed=6).equals(model.sample(40, seed=5))
    twin = train(release, seed=3, steps=5).sample(20)
    assert train(release, seed=3, steps=5).sample(20).equals(twin)
    assert not train(release, seed=4, steps=5).sample(20, seed=3).equals(twin)
    assert set(again.sample(9, given={"label": 2})["label"].to_pylist()) == {2}
    with pytest.raises(DpmerfError, match="does not declare"):
        again.sample(9, given={"label": 7})


def test_files(model: Model, tmp_path: Path) -> None:
    schema = model.release.plan.schema
    assert gallery.write_npz(model.stream(70, seed=2), tmp_path / "s.npz", schema, 70, model.release.guarantee()) == 70
    with np.load(tmp_path / "s.npz") as found:
        x, y = gallery.arrays(model.sample(70, seed=2), schema)
        assert np.array_equal(found["x"], x) and np.array_equal(found["y"], y)
    sheet = Pil.open(io.BytesIO(gallery.contact_sheet(model)))
    assert sheet.width > 3 * sheet.height and sheet.mode == "L"
    assert gallery.class_names(schema) == ("0", "1", "2")


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("size", [(4, 4, 1), (28, 28, 1), (32, 20, 3), (64, 64, 3)])
def test_any_size_can_be_built(size: tuple[int, int, int], preset: str) -> None:
    from dpmerf.generators.images.upsampling import default_body, paper_body

    image = Image(height=size[0], width=size[1], channels=size[2])
    body = (paper_body if preset == "paper" else default_body)(image, 7)
    assert body(torch.randn(3, 7)).shape == (3, image.pixels)
    levels, grid = doublings(image)
    assert max(grid) <= 8 or levels == 2


def test_the_papers_network_has_its_size() -> None:
    from dpmerf.generators.images.upsampling import paper_body

    body = paper_body(Image(height=28, width=28), 15)
    assert sum(p.numel() for p in body.parameters()) == 166_161


def test_one_call_colour_unlabelled_and_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmerf.api.make_plan", lambda schema, e, d, rows, **rest: small_plan(schema, e, rows, **rest))
    monkeypatch.setattr(Pictures, "settings_for", lambda release: ImageTraining(steps=2))
    x, y = bars(200, channels=3)
    sx, sy = dpmerf.synthesize_images(x, y, epsilon=1.0, classes=40, n=30)
    assert sx.shape == (30, 12, 12, 3) and sy is not None and sy.max() < 40
    sx, sy = dpmerf.synthesize_images(x, epsilon=1.0, n=20)
    assert sx.shape == (20, 12, 12, 3) and sy is None
    named = np.array(["cat", "dog"])[y]
    _, sy = dpmerf.synthesize_images(x, named, epsilon=1.0, classes=["cat", "dog"], n=20, balanced=True)
    assert sy is not None and set(sy) <= {"cat", "dog"}


def test_pictures_of_an_unknown_method_are_refused(release: Release) -> None:
    """Once they were trained with the default settings, silently."""
    unknown = replace(release, plan=replace(release.plan, method="colourful"))
    with pytest.raises(TrainError, match="no method 'colourful' for pictures"):
        train(unknown, steps=1)


def test_fast_and_settings(release: Release) -> None:
    """A third of the steps; and other settings are saved with what was built by them."""
    quick = ImageTraining(steps=10, latent=3, finish=FinishSettings(on=False))
    assert train(release, fast=True, settings=quick).history.steps == [3]
    model = train(release, settings=quick)
    again = Pictures.from_state(release, model.generator.state())
    drawn = [g.draw(4, None, torch.Generator().manual_seed(1)).numbers for g in (model.generator, again)]
    assert torch.equal(*drawn) and "grain" not in model.generator.state().settings
