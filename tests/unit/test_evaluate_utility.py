"""Utility: floor, ceiling, degenerate data, each kind of label."""

import builtins

import numpy as np
import pyarrow as pa
import pytest

from dpmerf.errors import DpmerfError
from dpmerf.evaluate import classifiers
from dpmerf.evaluate.arrays import array_utility
from dpmerf.evaluate.utility import Split, compare, fit_models, table_utility
from dpmerf.evaluate.views import Rows
from dpmerf.schema import Schema

TEXT = """
label = "{label}"
[columns.x]
kind = "number"
min = -4
max = 4
[columns.noise]
kind = "number"
min = -4
max = 4
[columns.kind]
kind = "category"
values = ["low", "middle", "high"]
[columns.yes]
kind = "flag"
"""
FEW = ("Logistic regression", "Linear SVM", "Decision tree", "XGBoost")


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    kind = np.array(["low", "middle", "high"])[np.digitize(x + rng.normal(0, 0.3, n), [-0.5, 0.5])]
    return pa.table({"x": x, "noise": rng.normal(size=n), "kind": kind, "yes": x + rng.normal(0, 0.7, n) > 0.6})


def score(label: str, synthetic: pa.Table, makers=None, train: bool = True):
    schema = Schema.parse(TEXT.format(label=label))
    ours, real, before = (Rows.read(t, schema) for t in (synthetic, table(1500, 1), table(1500, 2)))
    if makers is None and label != "x":
        makers = {name: classifiers.table_classifiers()[name] for name in FEW}
    return table_utility(ours, real, before if train else None, label, makers=makers)


def test_there_are_twelve_classifiers_with_the_papers_settings():
    for makers in (classifiers.table_classifiers(), classifiers.image_classifiers()):
        assert len(makers) == 12
    tables, images = classifiers.table_classifiers(), classifiers.image_classifiers()
    assert tables["Logistic regression"](0).max_iter == 2000
    assert tables["Bernoulli naive Bayes"](0).alpha == 0.02
    assert images["Logistic regression"](0).max_iter == 5000
    assert images["LDA"](0).shrinkage == 0.5
    assert images["XGBoost"](0).n_estimators == 50


def test_binary_between_floor_and_ceiling():
    result = score("yes", table(1500, 3)).result
    assert (result.task, result.metric, result.positive) == ("binary", "roc_auc", "yes")
    for metric in ("roc_auc", "pr_auc", "roc_auc_hard", "pr_auc_hard"):
        assert result.mean.synthetic[metric] == pytest.approx(result.mean.ceiling[metric], abs=0.04)
        assert result.mean.synthetic[metric] > result.mean.floor[metric] + 0.1
    assert result.mean.floor["roc_auc"] == pytest.approx(0.5, abs=0.04)
    assert result.mean.ratio["roc_auc"] == pytest.approx(1, abs=0.15)


def test_the_training_rows_themselves_score_the_ceiling_exactly():
    result = score("yes", table(1500, 2)).result
    assert all(m.synthetic == m.ceiling for m in result.models)
    assert all(ratio == 1 for ratio in result.mean.ratio.values())


def test_shuffled_labels_score_the_floor():
    wrong = table(3000, 3).to_pandas()
    wrong["yes"] = np.random.default_rng(0).permutation(wrong["yes"])
    result = score("yes", pa.Table.from_pandas(wrong)).result
    assert result.mean.synthetic["roc_auc_hard"] == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("label", ["yes", "kind"])
def test_one_class_only_scores_the_floor(label):
    one = table(500, 3).to_pandas()
    one[label] = one[label].iloc[0]
    result = score(label, pa.Table.from_pandas(one)).result
    assert all(m.synthetic == m.floor and "one class" in m.note for m in result.models)
    assert all(ratio == 0 for ratio in result.mean.ratio.values())
    assert "score the floor" in result.mean.note


def test_a_single_synthetic_row_does_not_crash():
    assert score("yes", table(1, 3)).result.mean.ratio["roc_auc"] == 0


def test_multiclass_and_a_class_that_never_occurs():
    result = score("kind", table(1500, 3)).result
    assert result.task == "multiclass" and set(result.mean.synthetic) == {"f1_weighted", "f1_macro", "accuracy"}
    assert result.mean.synthetic["accuracy"] > result.mean.floor["accuracy"] + 0.2
    without = table(1500, 3).to_pandas().query("kind != 'middle'")
    lacking = score("kind", pa.Table.from_pandas(without, preserve_index=False)).result
    assert lacking.mean.synthetic["f1_macro"] < result.mean.synthetic["f1_macro"]


def test_a_numeric_label_is_scored_by_r2():
    result = score("x", table(1500, 3)).result
    assert result.task == "regression" and list(result.mean.synthetic) == ["r2"]
    assert 0.5 < result.mean.synthetic["r2"] < 1
    assert result.mean.floor["r2"] < 0.1


def test_without_training_rows_the_real_rows_are_split():
    result = score("yes", table(1500, 3), train=False).result
    assert (result.rows_real_train, result.rows_test) == (1050, 450)
    assert "30 %" in result.ceiling_from


def test_equal_inputs_and_seeds_give_equal_scores():
    assert score("yes", table(800, 3)).result == score("yes", table(800, 3)).result


def test_the_set_of_models_is_a_parameter_for_arrays_too():
    rng = np.random.default_rng(0)
    x = rng.random((300, 16)).astype(np.float32)
    y = (x[:, 0] > 0.5).astype(int) + 2 * (x[:, 1] > 0.5)
    makers = {"Random forest": classifiers.image_classifiers()["Random forest"]}
    fitted = fit_models(Split(x[:200], y[:200]), Split(x[200:], y[200:]), makers, "multiclass", seed=0)
    floor = fit_models(Split(x[:200], rng.permutation(y[:200])), Split(x[200:], y[200:]), makers, "multiclass", seed=0)
    models, mean = compare(fitted, None, floor)
    assert models[0].ceiling is None and mean.synthetic["accuracy"] > mean.floor["accuracy"]


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "xgboost":
            raise ImportError("no", name="xgboost")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DpmerfError, match=r"needs the package xgboost.*pip install 'dpmerf\[evaluate\]'"):
        classifiers.table_classifiers()


def test_rows_are_ranked_by_log_odds_where_probabilities_round_to_one():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    x = np.where(y == 1, 100.0, 99.0)[:, None] + rng.normal(0, 0.01, (400, 1))
    train, test = Split(x, y), Split(np.array([[101.0], [102.0], [103.0], [104.0]]), np.array([0, 0, 1, 1]))
    makers = {name: classifiers.table_classifiers()[name] for name in ("Gaussian naive Bayes", "LDA")}
    assert set(makers["Gaussian naive Bayes"](0).fit(x, y).predict_proba(test.x)[:, 1]) == {1.0}  # all tie
    for fitted in fit_models(train, test, makers, "binary", seed=0).values():
        assert fitted.metrics["roc_auc"] in (0.0, 1.0)  # told apart, either way


def test_arrays_have_the_same_scores_as_tables():
    rng = np.random.default_rng(0)

    def draw(n: int) -> Split:
        y = rng.integers(0, 3, n)
        return Split((np.eye(3)[y].repeat(4, axis=1) + rng.normal(0, 1.5, (n, 12))).astype(np.float32), y)

    makers = {name: classifiers.image_classifiers()[name] for name in ("Gaussian naive Bayes", "Random forest")}
    synthetic, train, test = draw(300), draw(300), draw(300)
    found = array_utility(synthetic, test, ("a", "b", "c"), train, makers=makers)
    assert (found.task, found.metric, found.covered) == ("multiclass", "accuracy", False)
    assert found.mean.synthetic["accuracy"] > found.mean.floor["accuracy"] + 0.2
    assert array_utility(synthetic, test, ("a", "b", "c"), makers=makers).mean.ceiling is None
    with pytest.raises(DpmerfError, match="flat vectors"):
        array_utility(Split(synthetic.x.reshape(-1, 3, 4), synthetic.y), test, ("a", "b", "c"), makers=makers)
