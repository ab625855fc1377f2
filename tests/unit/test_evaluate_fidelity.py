"""Fidelity and its parts, on tables small enough to know the answers."""

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.errors import DataError
from dpmerf.evaluate.association import association_matrix, correlation_ratio, cramers_v, pearson
from dpmerf.evaluate.fidelity import fidelity
from dpmerf.evaluate.marginals import column_sets, total_variation
from dpmerf.evaluate.twosample import detection_auc, kernel_mmd, negative_log_likelihood, random_feature_mmd
from dpmerf.evaluate.views import Coded, Design, Rows, shuffled
from dpmerf.schema import Schema

SCHEMA = Schema.parse("""
label = "ill"
[columns.key]
kind = "id"
[columns.age]
kind = "integer"
min = 0
max = 100
[columns.dose]
kind = "number"
min = 0
max = 1
nullable = true
[columns.ward]
kind = "category"
values = ["a", "b", "c"]
[columns.ill]
kind = "flag"
""")


def table(n: int = 1500, seed: int = 0) -> pa.Table:
    """Age and dose go together, ward follows age, illness follows both; a tenth of the doses are null."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, n)
    dose = np.clip(age / 100 + rng.normal(0, 0.1, n), 0, 1)
    ward = np.array(["a", "b", "c"])[np.clip(age // 34 + (rng.random(n) < 0.1), 0, 2)]
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 10))
    return pa.table(
        {
            "key": np.arange(n),
            "age": age,
            "dose": pa.array(dose, mask=rng.random(n) < 0.1),
            "ward": ward,
            "ill": ill,
        }
    )


def rows(n: int = 1500, seed: int = 0) -> Rows:
    return Rows.read(table(n, seed), SCHEMA)


def test_bins_are_public_and_nulls_have_their_own():
    coded = rows().coded("dose")
    assert coded.size == 21 and coded.nulls
    assert 0.05 < coded.shares()[20] < 0.15
    other = Rows.read(table().slice(0, 10), SCHEMA).coded("dose")
    assert other.size == coded.size  # the layout does not depend on the rows


def test_total_variation_by_hand():
    a = [Coded("x", np.array([0, 0, 1, 2]), 3, False)]
    b = [Coded("x", np.array([0, 1, 1, 1]), 3, False)]
    assert total_variation(a, b) == 0.5
    wide = [Coded(str(i), np.array([0, 1, 2, 3]), 4000, False) for i in range(2)]
    assert total_variation(wide, wide) == 0.0  # a joint table too large to write out


def test_column_sets_are_different_and_repeatable():
    drawn = list(column_sets(30, 4, 100, seed=3))
    assert len(set(drawn)) == 100 and all(len(set(s)) == 4 for s in drawn)
    assert drawn == list(column_sets(30, 4, 100, seed=3)) != list(column_sets(30, 4, 100, seed=4))
    assert len(list(column_sets(5, 2, 100, seed=0))) == 10


def test_association_measures_by_hand():
    assert pearson(np.array([1.0, 2, 3, np.nan]), np.array([2.0, 4, 6, 0])) == pytest.approx(1)
    assert pearson(np.ones(5), np.arange(5.0)) == 0
    assert cramers_v(np.array([0, 1, 0, 1]), 2, np.array([1, 0, 1, 0]), 2) == pytest.approx(1)
    assert cramers_v(np.array([0, 0, 1, 1]), 2, np.array([0, 1, 0, 1]), 2) == pytest.approx(0)
    assert correlation_ratio(np.array([1.0, 1, 5, 5]), np.array([0, 0, 1, 1]), 2) == pytest.approx(1)
    assert correlation_ratio(np.array([1.0, 5, 1, 5]), np.array([0, 0, 1, 1]), 2) == pytest.approx(0)


def test_association_matrix_sees_what_was_planted_and_shuffling_removes_it():
    real = rows()
    matrix = association_matrix(real)
    assert np.allclose(matrix, matrix.T) and np.all((matrix >= 0) & (matrix <= 1))
    assert matrix[0, 1] > 0.9  # age and dose
    apart = association_matrix(shuffled(real, seed=1))
    assert apart[~np.eye(4, dtype=bool)].max() < 0.1


def test_shuffling_keeps_every_column():
    real = rows()
    for a, b in zip(real.all_coded(), shuffled(real, seed=1).all_coded(), strict=True):
        assert np.array_equal(a.shares(), b.shares())


def test_a_copy_of_the_real_rows_is_perfect():
    real = rows()
    found = fidelity(real, real, quick=True)
    assert all(m.mean == 0 and m.largest == 0 for m in found.marginals) and len(found.marginals) == 4
    assert found.detection.auc == pytest.approx(0.5, abs=1e-9)
    assert found.kernel.exact == 0 and found.kernel.random_features == 0
    assert found.association.largest_difference == 0
    assert all(c.quantile_error in (None, 0) and c.null_real == c.null_synthetic for c in found.columns)
    assert all(g.excess == 0 for g in found.subgroups)


def test_fresh_rows_of_the_same_kind_are_not_told_apart_and_shuffled_ones_are():
    real, fresh = rows(seed=0), rows(seed=1)
    assert detection_auc(fresh, real, folds=5, seed=0) == pytest.approx(0.5, abs=0.05)
    assert detection_auc(shuffled(real, 2), real, folds=5, seed=0) > 0.8


def test_kernel_distance_and_its_random_features_agree():
    x, y = rows(600, 0).points(), shuffled(rows(600, 1), 0).points()
    exact = kernel_mmd(x, y, 1.0)
    assert exact > 0.05
    assert random_feature_mmd(x, y, 1.0, 20_000, seed=0) == pytest.approx(exact, rel=0.05)
    assert kernel_mmd(x, x, 1.0) == 0


def test_kernel_distance_by_hand():
    x, y = np.array([[0.0]]), np.array([[1.0]])
    assert kernel_mmd(x, y, 1.0) == pytest.approx(np.sqrt(2 - 2 * np.exp(-0.5)))


def test_negative_log_likelihood_by_hand():
    points = np.array([[0.0], [2.0]])
    assert negative_log_likelihood(points, lambda x: -(x[:, 0] ** 2) / 2) == 1.0


def test_the_worst_served_subgroup_is_found():
    real = rows(4000)
    spoiled = table(4000, seed=1).to_pandas()
    ours = spoiled["ward"] == "b"
    spoiled.loc[ours, "dose"] = 0.99  # ward b is ruined, the others are fine
    spoiled.loc[ours, "ill"] = ~spoiled.loc[ours, "ill"]
    found = fidelity(Rows.read(pa.Table.from_pandas(spoiled), SCHEMA), real, quick=True).subgroups
    assert (found[0].column, found[0].value) == ("ward", "b")
    assert found[0].excess > 0.2


def test_a_group_that_nobody_produced_scores_one():
    real = rows(3000)
    without = table(3000, 1).filter(pa.compute.not_equal(table(3000, 1)["ward"], "c"))
    found = fidelity(Rows.read(without, SCHEMA), real, quick=True).subgroups
    worst = {(g.column, g.value): g for g in found}
    assert worst["ward", "c"].tv == 1.0 and worst["ward", "c"].share_synthetic == 0


def test_null_rates_and_errors_of_means_are_in_units():
    ours = table().set_column(1, "age", pa.array(np.full(1500, 50)))
    found = {c.name: c for c in fidelity(Rows.read(ours, SCHEMA), rows(), quick=True).columns}
    assert found["dose"].null_real == pytest.approx(0.1, abs=0.03)
    mean = float(np.mean(table()["age"].to_numpy()))
    assert found["age"].mean_error == pytest.approx(50 - mean)
    assert found["ward"].mean_error is None


def test_only_the_shape_of_a_table_can_fail():
    with pytest.raises(DataError, match="names 'dose'; the synthetic table has no such column"):
        Rows.read(table().drop(["dose"]), SCHEMA, "synthetic table")
    with pytest.raises(DataError, match="no rows"):
        Rows.read(table().slice(0, 0), SCHEMA)
    garbage = pa.table({"age": ["x", "NaN"], "dose": ["inf", ""], "ward": ["?", None], "ill": ["maybe", "1"]})
    assert len(Rows.read(garbage, SCHEMA)) == 2


def test_design_is_fitted_on_the_training_rows_only():
    train = rows()
    design = Design.fit(train, without="ill")
    x = design(train)
    assert x.dtype == np.float32 and x.shape == (1500, 1 + 2 + 3)
    assert abs(x[:, 0].mean()) < 1e-4 and not np.isnan(x).any()
    assert design(rows(10, 5)).shape == (10, 6)


def test_a_category_of_very_many_values_has_few_places():
    many, few = Coded("x", np.arange(50_000), 50_000, False), Coded("y", np.array([2, 0, 1]), 3, False)
    assert many.onehot(np.float32).shape == (50_000, 512) and (many.onehot().sum(axis=1) == 1).all()
    assert (few.onehot() == np.eye(3)[few.codes]).all()
