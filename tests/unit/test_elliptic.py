"""Wide tables: scores, directions and the elliptic generator."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

import dpmerf
from dpmerf.accounting.unit import Unit
from dpmerf.encoding.binning import FineGrid
from dpmerf.encoding.codec import Axis, Codec
from dpmerf.encoding.fine_cells import Fine
from dpmerf.encoding.normal_scores import LENGTHS, PARTS, STEP, Scores, lengths, pooled
from dpmerf.errors import ArtefactError
from dpmerf.features.moments import Moments
from dpmerf.generators.elliptic.elliptic import Elliptic
from dpmerf.generators.elliptic.elliptic_settings import EllipticSettings
from dpmerf.generators.shrinkage import (
    along,
    of_directions,
    positive_definite,
    smooth_spikes,
    spikes,
    stationary,
    toward_zero,
)
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.plan import Plan
from dpmerf.plan.queries import Directions, Tables
from dpmerf.private.measure import measure
from dpmerf.schema import Schema
from dpmerf.train import train

Q, N = 80, 6_000
SIGNALS = "".join(f'[columns.s{j}]\nkind = "number"\nmin = -5\nmax = 5\n' for j in range(Q))
SCHEMA = Schema.parse(f'label = "y"\n[columns.y]\nkind = "category"\nvalues = ["a", "b"]\n{SIGNALS}')


def waves(rows: int = N, seed: int = 0) -> pa.Table:
    """Neighbouring columns go together; class b is a fifth of the rows, shifted in the first half and twice as long."""
    rng = np.random.default_rng(seed)
    label = rng.random(rows) < 0.2
    common = rng.normal(size=(rows, Q // 10)).repeat(10, axis=1)
    values = 0.8 * common + 0.6 * rng.normal(size=(rows, Q)) + 0.8 * label[:, None] * (np.arange(Q) < Q // 2)
    values = values * np.where(label, 1.0, 0.5)[:, None]
    columns = {f"s{j}": np.clip(values[:, j], -5, 5) for j in range(Q)}
    return pa.table({"y": np.where(label, "b", "a"), **columns})


def matrix(table: pa.Table) -> np.ndarray:
    return np.stack([table[f"s{j}"].to_numpy() for j in range(Q)], axis=1)


def plan_of(epsilon: float = 1.0, unit: Unit | None = None, schema: Schema = SCHEMA, rows: int = N) -> Plan:
    return make_plan(schema, epsilon, 1e-5, rows=rows, unit=unit)


@pytest.fixture(scope="module")
def model() -> Model:
    return train(measure(waves(), plan_of()), seed=1)


def test_normal_scores_leave_the_numbers_of_a_batch_as_they_are(model: Model) -> None:
    release = model.release
    rows = release.codec.encode(waves(50))
    seen = release.embedding(release.plan.stage(Directions)).view(rows)
    assert torch.equal(seen.numbers, rows.numbers) and bool(((seen.numbers >= 0) & (seen.numbers <= 1)).all())
    assert seen.scores is not None and float(seen.scores.min()) < 0
    assert torch.equal(seen.rows(slice(0, 3)).values, seen.scores[:3])


def test_wide_tables_of_numbers_get_directions_and_others_tables() -> None:
    assert isinstance(plan_of().stages[-1].query, Directions)
    assert isinstance(plan_of(rows=10_000_000).stages[-1].query, Tables)  # all pairs can be paid for
    words = '[columns.w]\nkind = "category"\nvalues = ["a", "b", "c"]\n'
    mixed = Schema.parse(f"{SIGNALS}{words}")
    assert isinstance(make_plan(mixed, 1.0, 1e-5, rows=N).stages[-1].query, Tables)


def test_products_of_very_many_columns_are_bounded() -> None:
    many = "".join(f'[columns.s{j}]\nkind = "number"\nmin = 0\nmax = 1\n' for j in range(4_500))
    recipe = make_plan(Schema.parse(many), 1.0, 1e-5, rows=10_000_000).stages[-1].query
    assert isinstance(recipe, Directions) and recipe.group == 2
    assert recipe.moments(Codec(Schema.parse(many))).dim < 8e6


def test_rows_have_the_shape_of_the_real_ones(model: Model) -> None:
    real, made = waves(), model.sample(N)
    assert isinstance(model.generator, Elliptic)
    a, b = matrix(real), matrix(made)
    share = np.mean(np.array(made["y"]) == "b")
    assert abs(share - 0.2) < 0.02
    assert np.abs(a.std(0) - b.std(0)).mean() < 0.35 * a.std(0).mean()
    near = [np.corrcoef(x[:, j], x[:, j + 1])[0, 1] for x in (a, b) for j in range(0, Q, 10)]
    far = [np.corrcoef(b[:, j], b[:, j + 15])[0, 1] for j in range(0, Q - 20, 10)]
    assert np.mean(near[8:]) > 0.3 > 0.2 > abs(np.mean(far)) and np.mean(near[:8]) > 0.5
    for side in (a, b):  # the shift of class b, where it is
        label = np.array((real if side is a else made)["y"]) == "b"
        gap = side[label].mean(0) - side[~label].mean(0)
        assert gap[: Q // 2].mean() > 0.4 > 0.25 > abs(gap[Q // 2 :].mean())
        assert side[label].std() > 1.3 * side[~label].std()  # and its length


def test_conditions_are_kept_and_move_what_goes_with_them(model: Model) -> None:
    high = model.sample(2_000, given={"s15": 1.5, "y": "b"})
    assert set(high["y"].to_pylist()) == {"b"}
    assert np.allclose(high["s15"].to_numpy(), 1.5)
    plain = model.sample(2_000, given={"y": "b"})
    assert high["s14"].to_numpy().mean() > plain["s14"].to_numpy().mean() + 0.2  # its neighbour
    assert abs(high["s75"].to_numpy().mean() - plain["s75"].to_numpy().mean()) < 0.3
    likely = model.sample(2_000, given={"s5": 3.0})  # far out: class b, which is longer and shifted
    assert np.mean(np.array(likely["y"]) == "b") > 0.6


def test_a_model_is_stored_and_read_back(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    again = dpmerf.Model.load(tmp_path / "m")
    assert again.sample(50, seed=3).equals(model.sample(50, seed=3))
    state = model.generator.state()
    broken = type(state)(state.settings, {**state.tensors, "own": state.tensors["own"][:, 1:]})
    with pytest.raises(ArtefactError, match="do not fit"):
        Elliptic.from_state(model.release, broken)


def test_few_rows_and_constant_columns_come_through() -> None:
    """Noise is all there is: rows are legal and nothing fails."""
    few = waves(12)
    few = few.set_column(1, "s0", pa.array([2.0] * 12))
    made = train(measure(few, make_plan(SCHEMA, 0.1, 1e-5, rows=12))).sample(300)
    assert made.num_rows == 300 and bool((np.abs(matrix(made)) <= 5).all())
    assert set(made["y"].to_pylist()) <= {"a", "b"}


def test_a_release_with_damaged_scores_is_refused(model: Model) -> None:
    scores = model.release.scores
    assert scores is not None
    for damage in (torch.ones(1), torch.full((29,), float("nan"))):
        damaged = Scores(scores.grid, {**scores.mass, "s0": damage.double()})
        with pytest.raises(ArtefactError, match="damaged"):
            train(replace(model.release, derived={"directions": damaged}))


def test_other_units_labels_and_gaps() -> None:
    """Add/remove, no label, a number as label, nulls and flags: all go the same way."""
    table = waves(1_500)
    added = train(measure(table, plan_of(unit=Unit(neighbours="add-remove"), rows=1_500))).sample(200)
    assert added.num_rows == 200
    unlabelled = Schema.parse(SIGNALS.replace("s3]\nkind", "s3]\nnullable = true\nkind"))
    values = [None if i % 5 < 2 else v for i, v in enumerate(table["s3"].to_pylist())]
    gaps = pa.table({n: table[n] for n in unlabelled.columns} | {"s3": pa.array(values)})
    plan = make_plan(unlabelled, 4.0, 1e-5, rows=1_500)  # two fifths are null, give or take 0.03
    made = train(measure(gaps, plan)).sample(1_500)
    assert isinstance(plan.stages[-1].query, Directions)
    assert 0.25 < made["s3"].null_count / 1_500 < 0.55
    regression = Schema.parse(f'label = "s0"\n{SIGNALS}[columns.f]\nkind = "flag"\n')
    flagged = table.drop(["y"]).append_column("f", pa.array([True] * 300 + [False] * 1_200))
    rows = train(measure(flagged, make_plan(regression, 1.0, 1e-5, rows=1_500))).sample(1_500)
    assert 0.1 < np.mean(rows["f"].to_numpy(zero_copy_only=False)) < 0.35


def test_columns_on_one_axis_borrow_from_each_other() -> None:
    rng = torch.Generator().manual_seed(0)
    shapes = torch.rand(2, 16, generator=rng, dtype=torch.float64) * 200
    true = torch.rand(300, 2, generator=rng, dtype=torch.float64) @ shapes
    noisy = true + 50 * torch.randn(300, 16, generator=rng, dtype=torch.float64)
    assert float((pooled(noisy, 50.0, 16) - true).square().mean()) < 0.25 * 50**2
    sharp = true + 0.01 * torch.randn(300, 16, generator=rng, dtype=torch.float64)
    assert float((pooled(sharp, 0.01, 16) - true).abs().max()) < 0.1  # and where there is no noise nothing is lost


def test_scores_are_normal_and_lie_on_a_grid() -> None:
    codec = Codec(SCHEMA)
    grid = FineGrid(codec, 16)
    table = waves()
    batch = codec.encode(table)
    cells = grid.encode(batch)
    counts = {f"s{j}": torch.bincount(cells[f"s{j}"], minlength=grid.variables[f"s{j}"].size) for j in range(Q)}
    scores = Scores.estimate(grid, counts, 1e-3, N)
    z = scores(batch)
    assert float(z.mean().abs()) < 0.05 and abs(float(z.std()) - 1) < 0.2
    assert torch.equal(torch.round(z / STEP) * STEP, z)
    order = torch.argsort(batch.numbers[:, 0])
    assert bool((z[order, 0].diff() >= 0).all())
    again = Scores.from_json(grid, scores.to_json())
    assert torch.equal(again(batch), z)
    places = grid.encode(batch, PARTS)
    first = torch.from_numpy(grid.numeric["s0"].parts(PARTS).cumsum())
    assert torch.equal(torch.searchsorted(first, places["s0"], right=True), cells["s0"])
    found = lengths(z)
    assert int(found.min()) >= 0 and int(found.max()) <= len(LENGTHS)
    exact = (z.square().sum(1) / Q).sqrt()
    assert bool((found.diff()[exact.diff() == 0] == 0).all()) and bool((found[exact < LENGTHS[0]] == 0).all())


def test_moments_are_directions_and_the_products_of_group_means() -> None:
    x = torch.randn(50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moments = Moments(7, 3, 0.3)
    found = moments(x)
    u, products = moments.apiece(found)
    a = moments.parts(u)
    assert torch.allclose(u * x.norm(dim=1, keepdim=True), x)
    assert torch.allclose(products, a[:, :, None] * a[:, None, :])
    assert torch.allclose(a[:, 0], u[:, :3].sum(1) / 3**0.5) and torch.allclose(a[:, 2], u[:, 6])
    assert torch.allclose(found[:, :7].square().sum(1), torch.tensor(0.7, dtype=torch.float64))
    assert not bool(moments(torch.zeros(1, 7, dtype=torch.float64)).any())


def test_eigenvalues_of_noise_alone_vanish() -> None:
    noise = torch.randn(200, 200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    noise = (noise + noise.T) / 2**0.5
    assert float(spikes(noise, 1.02).abs().max()) < 1.0
    direction = torch.ones(200, dtype=torch.float64) / 200**0.5
    found = spikes(noise + 100 * torch.outer(direction, direction), 1.0)
    assert abs(float(direction @ found @ direction) - 100) < 10


def test_what_depends_on_distance_shows_where_no_entry_does() -> None:
    """Noise twice as large as any covariance: its diagonals' means still tell which distances go together."""
    k = 150
    lag = (torch.arange(k)[:, None] - torch.arange(k)).abs()
    true = torch.where(lag == 0, 1.0, torch.where(lag % 32 == 0, 0.9, 0.8**lag)).double()
    noise = torch.randn(k, k, generator=torch.Generator().manual_seed(1), dtype=torch.float64).triu()
    noise = 2 * (noise + noise.triu(1).T)
    found = stationary(true + noise, 2.0)
    weight = 1 - lag / k  # distant columns count less
    assert float((found - true * weight).abs()[lag > 0].mean()) < 0.1
    assert float(found[0, 1]) > 0.5 and float(found[0, 32]) > 0.1
    alone = stationary(noise, 2.0)[lag > 0]
    assert float((alone != 0).double().mean()) < 0.15  # what noise alone shows is mostly nothing


def test_means_are_kept_where_rows_vary_and_dropped_elsewhere() -> None:
    rng = torch.Generator().manual_seed(0)
    variances = torch.cat([torch.full((5,), 50.0), torch.full((300,), 0.5)]).double()
    true = torch.randn(305, generator=rng, dtype=torch.float64) * (0.3 * variances).sqrt()
    noisy = true + torch.randn(305, generator=rng, dtype=torch.float64)
    found, plain = along(noisy, variances, 1.0), toward_zero(noisy, 305, 1.0)
    assert float((found - true).square().sum()) < 0.5 * float((plain - true).square().sum())
    assert not bool(along(torch.zeros(3).double(), torch.ones(3).double(), 1.0).any())
    assert not bool(toward_zero(torch.full((4,), 0.1), 4, 1.0).any())


def test_a_single_value_has_one_place_and_its_mean_score() -> None:
    """A heavy value at a bound is scored at the middle of its ranks, not at their lower end."""
    fine = Fine(Axis(0.0, 1.0, None), 16)
    parts = fine.parts(PARTS)
    assert parts[0] == 1 and parts.max() == PARTS
    units = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    assert fine.index(units, PARTS).tolist()[::2] == [0, parts.sum() - 1]
    schema = Schema.parse('[columns.x]\nkind = "number"\nmin = 0\nmax = 1\n')
    grid = FineGrid(Codec(schema), 16)
    mass = torch.full((grid.variables["x"].size,), 1e-4, dtype=torch.float64)
    mass[0] = 1.0
    scores = Scores(grid, {"x": mass / mass.sum()})
    batch = Codec(schema).encode(pa.table({"x": [0.0]}))
    assert abs(float(scores(batch))) < 0.05


def test_histograms_are_moved_to_where_the_mean_scores_lie() -> None:
    """A histogram that noise shifted comes back nearer to the truth once the mean of its scores is known."""
    codec = Codec(SCHEMA)
    grid = FineGrid(codec, 16)
    offset = np.random.default_rng(1).normal(size=Q)  # every column lies elsewhere: pooling alone does not find it
    table = waves()
    shifted = {f"s{j}": np.clip(table[f"s{j}"].to_numpy() + offset[j], -5, 5) for j in range(Q)}
    batch = codec.encode(pa.table({"y": table["y"], **shifted}))
    cells = grid.encode(batch)
    sizes = {name: grid.variables[name].size for name in cells if name != "y"}
    true = {name: torch.bincount(cells[name], minlength=k).double() for name, k in sizes.items()}
    rng = torch.Generator().manual_seed(0)
    noisy = {name: v + 400 * torch.randn(len(v), generator=rng, dtype=torch.float64) for name, v in true.items()}
    scores = Scores.estimate(grid, noisy, 400.0, N)
    moved = scores.moved(scores(batch).mean(0))

    def error(found: Scores) -> float:
        return float(np.mean([(found.mass[n] - true[n] / N).abs().sum() / 2 for n in true]))

    assert error(moved) < 0.92 * error(scores)
    assert all(abs(float(m.sum()) - 1) < 1e-9 for m in moved.mass.values())
    still = scores.moved(torch.zeros(Q, dtype=torch.float64))
    assert all(torch.allclose(still.mass[n], m, atol=1e-2) for n, m in scores.mass.items())


def test_directions_of_what_is_drawn_vary_as_those_of_the_rows() -> None:
    """A normal vector with the covariance of directions would have directions that vary less where most of it lies."""
    asked = torch.tensor([40.0, 20.0, *[0.5] * 30]).double()
    found, other = of_directions(asked, 0.25, 100)
    spread = torch.cat([found, torch.full((100,), other).double()]).sqrt()
    x = torch.randn(20_000, 132, generator=torch.Generator().manual_seed(5), dtype=torch.float64) * spread
    left = (x / x.norm(dim=1, keepdim=True)).square().mean(0) * (float(asked.sum()) + 25)
    assert torch.allclose(left[:2], asked[:2], rtol=0.03) and abs(float(left[32:].mean()) - 0.25) < 0.01
    alone, _ = of_directions(asked, 0.25, 0)
    assert bool(alone.isfinite().all() and (alone > 0).all())


def test_classes_are_as_far_apart_as_they_were_measured(model: Model) -> None:
    """Shrinkage, and the division by a row's length, would bring them nearer to each other."""
    release = model.release
    assert release.scores is not None

    def gap(table: pa.Table) -> float:
        batch = release.codec.encode(table)
        scores = release.scores(batch)  # type: ignore[misc]
        u, b = scores / scores.norm(dim=1, keepdim=True), batch.codes["y"] == 1
        return float((u[b].mean(0) - u[~b].mean(0)).norm())

    real, made = gap(waves()), gap(model.sample(2 * N))
    nearer = gap(train(release, seed=1, settings=EllipticSettings(restored=False)).sample(2 * N))
    assert nearer < 0.95 * made and abs(made - real) < 0.6 * abs(nearer - real)


def test_smooth_axes_show_where_noise_hides_them_among_all() -> None:
    rng = torch.Generator().manual_seed(0)
    noise = torch.randn(300, 300, generator=rng, dtype=torch.float64)
    noise = (noise + noise.T) / 2**0.5  # its eigenvalues reach 35; one of 17 cannot be seen among them
    wave = torch.sin(torch.arange(300) / 40).double()
    smooth = 15 * torch.outer(wave, wave) / wave.square().sum()
    error = [float((find(noise + smooth, 1.0) - smooth).norm()) for find in (smooth_spikes, spikes)]
    assert error[0] < 0.6 * float(smooth.norm()) < 0.95 * float(smooth.norm()) < error[1]
    assert float(smooth_spikes(noise, 1.05).norm()) < 5


def test_a_covariance_keeps_its_trace_when_it_is_made_positive() -> None:
    noisy = torch.randn(40, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix = (noisy + noisy.T) / 2 + 3 * torch.eye(40)
    values, _ = positive_definite(matrix, 0.1)
    assert float(values.min()) >= 0.1 and abs(float(values.sum()) - float(matrix.trace())) < 1e-6


def test_no_column_has_rows_at_ends_where_all_of_them_together_show_none() -> None:
    rng = torch.Generator().manual_seed(0)
    inner = torch.rand(100, 6, generator=rng) * 3_000
    inner[:, 3] = 0  # a gap inside is no end
    true = torch.cat([torch.zeros(100, 4), inner, torch.zeros(100, 10), torch.full((100, 1), 500.0)], dim=1).double()
    found = pooled(true + 200 * torch.randn(100, 21, generator=rng, dtype=torch.float64), 200.0, 20)
    assert not bool(found[:, :4].any()) and not bool(found[:, 10:20].any())
    assert float((found[:, 20] - 500).abs().mean()) < 60  # null, which comes after the range
    assert bool((found[:, 4:10].abs().sum(0) > 0).all())
    few = pooled(true[:3] + 200 * torch.randn(3, 21, generator=rng, dtype=torch.float64), 200.0, 20)
    assert bool(few[:, :4].any())  # three columns do not tell an empty end from a thin one
