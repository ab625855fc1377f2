"""Feature maps: their bounds, their algebra, and that a row's features depend on that row alone."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmerf.encoding.codec import Batch, Variable
from dpmerf.errors import PlanError
from dpmerf.features.algebra import Block, FeatureMap, constant, of, onehot, squared_diameter, total
from dpmerf.features.fourier import Fourier

LABEL, SEX, WARD = Variable("label", 3), Variable("sex", 2), Variable("ward", 4)
F = of(Fourier.draw(columns=3, dim=64, scales=(0.5, 1.0), seed=0))
SQRT = math.sqrt


@pytest.mark.parametrize(
    ("phi", "norm", "diameter"),
    [
        (constant(), 1, 0),
        (F, 1, 2),
        (onehot(SEX), 1, SQRT(2)),
        (1 / SQRT(2) * (onehot(SEX) + onehot(WARD)), 1, SQRT(2)),
        (F * onehot(LABEL), 1, 2),
        (F * onehot(LABEL) + onehot(LABEL), SQRT(2), 2),  # class counts are free
        ((F + onehot(SEX)) * onehot(LABEL) + onehot(LABEL), SQRT(3), SQRT(6)),  # not the paper's 2√2
        ((F + 1 / SQRT(2) * (onehot(SEX) + onehot(WARD))) * onehot(LABEL) + onehot(LABEL), SQRT(3), SQRT(6)),
        (F + constant(), SQRT(2), 2),
        (F * onehot(LABEL) + 3.0 * onehot(LABEL), SQRT(10), SQRT(20)),
        (onehot(SEX, WARD), 1, SQRT(2)),
        (F + F, SQRT(2), SQRT(8)),
    ],
    ids=str,
)
def test_bounds_follow_from_the_table_of_the_design(phi: FeatureMap, norm: float, diameter: float) -> None:
    assert phi.norm_bound == pytest.approx(norm)
    assert phi.diameter == pytest.approx(diameter)
    in_grid = [x / 2**24 for x in phi.integer_bounds]
    assert in_grid == pytest.approx([norm, diameter], rel=1e-5)
    assert in_grid[0] >= phi.norm_bound * (1 - 1e-12) and in_grid[1] >= phi.diameter * (1 - 1e-12)


def _batch(n: int, seed: int) -> Batch:
    rng = torch.Generator().manual_seed(seed)
    codes = {v.name: torch.randint(v.size, (n,), generator=rng) for v in (LABEL, SEX, WARD)}
    return Batch(torch.rand(n, 3, generator=rng, dtype=torch.float64), codes)


MAPS = st.lists(
    st.sampled_from(
        [F, F * onehot(LABEL), onehot(LABEL), onehot(SEX), onehot(SEX, LABEL), F * onehot(SEX, LABEL), constant()]
    ),
    min_size=1,
    max_size=4,
)


@given(MAPS, st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_no_pair_of_rows_is_further_apart_than_the_diameter(maps: list[FeatureMap], seed: int) -> None:
    phi = total(maps)
    rows = phi(_batch(40, seed))
    assert rows.shape == (40, phi.dim)
    assert rows.norm(dim=1).max() <= phi.norm_bound * (1 + 1e-12)
    assert torch.cdist(rows, rows).max() <= phi.diameter * (1 + 1e-9)


def test_the_diameter_of_many_tied_variables_is_still_a_bound() -> None:
    tied = [Variable(str(i), 2) for i in range(10)]
    blocks = tuple(Block(1.0, F.blocks[0].dense, (v,)) for v in tied)
    assert squared_diameter([1.0] * 10, blocks) == 40


def test_products_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PlanError, match="two dense"):
        F * F
    with pytest.raises(PlanError, match="twice"):
        onehot(SEX) * onehot(SEX, LABEL)


def test_a_product_is_the_tensor_product() -> None:
    batch = _batch(5, 0)
    got = (F * onehot(SEX))(batch).view(5, 2, 64)
    for i in range(5):
        sex = batch.codes["sex"][i]
        assert torch.equal(got[i, sex], F(batch)[i])
        assert got[i, 1 - sex].abs().sum() == 0


@pytest.mark.parametrize(
    ("columns", "dim", "scale"), [(1, 8, 0.01), (14, 400, 0.3), (784, 200, 10.0), (3, 10_000, 1.0)]
)
def test_a_row_has_the_same_fourier_features_in_any_company(columns: int, dim: int, scale: float) -> None:
    fourier = Fourier.draw(columns, dim, (scale, 2 * scale), seed=1)
    x = torch.rand(64, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    everyone = x @ fourier.frequencies if columns < 0 else fourier(x)
    for size in (1, 3, 17):
        for start in (0, 5, 40):
            assert torch.equal(fourier(x[start : start + size]), everyone[start : start + size])
    order = torch.randperm(64)
    assert torch.equal(fourier(x[order]), everyone[order])


def test_fourier_features_estimate_the_gaussian_kernel() -> None:
    x = torch.rand(50, 4, dtype=torch.float64)
    values = Fourier.draw(4, 20_000, (0.7,), seed=0)(x)
    kernel = torch.exp(-torch.cdist(x, x).square() / (2 * 0.7**2))
    assert (values @ values.T - kernel).abs().max() < 0.03
