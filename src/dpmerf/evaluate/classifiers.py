"""Classifiers and regressors that judge a table by what can be learned from it.

The twelve of the paper with its settings. A set is a mapping from a name to a maker, so that images, or a caller's own
models, use the same scoring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpmerf.errors import DpmerfError

Maker = Callable[[int], Any]  # seed -> an estimator with fit and predict
Makers = Mapping[str, Maker]

LEAD = "XGBoost"  # the model whose scores are quoted alone and used for subgroups


def require_sklearn() -> None:
    """One clear sentence when the optional packages are not installed."""
    try:
        import sklearn  # noqa: F401
        import xgboost  # noqa: F401
    except ImportError as error:
        raise DpmerfError(
            f"evaluation needs the package {error.name}. Install it with: pip install 'dpmerf[evaluate]'"
        ) from None


def table_classifiers() -> Makers:
    """The paper's settings for tables."""
    require_sklearn()
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import (
        AdaBoostClassifier,
        BaggingClassifier,
        GradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB, GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier
    from xgboost import XGBClassifier

    return {
        "Logistic regression": lambda seed: LogisticRegression(max_iter=2000),
        "Gaussian naive Bayes": lambda seed: GaussianNB(),
        "Bernoulli naive Bayes": lambda seed: BernoulliNB(alpha=0.02),
        "Linear SVM": lambda seed: LinearSVC(random_state=seed),
        "Decision tree": lambda seed: DecisionTreeClassifier(random_state=seed),
        "LDA": lambda seed: LinearDiscriminantAnalysis(),
        "AdaBoost": lambda seed: AdaBoostClassifier(random_state=seed),
        "Bagging": lambda seed: BaggingClassifier(random_state=seed),
        "Random forest": lambda seed: RandomForestClassifier(random_state=seed, n_jobs=1),
        "Gradient boosting": lambda seed: GradientBoostingClassifier(random_state=seed),
        "MLP": lambda seed: MLPClassifier(random_state=seed),
        LEAD: lambda seed: XGBClassifier(random_state=seed, n_jobs=1),
    }


def image_classifiers() -> Makers:
    """The paper's settings for images."""
    require_sklearn()
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import (
        AdaBoostClassifier,
        BaggingClassifier,
        GradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB, GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier
    from xgboost import XGBClassifier

    return {
        "Logistic regression": lambda seed: LogisticRegression(solver="lbfgs", max_iter=5000),
        "Gaussian naive Bayes": lambda seed: GaussianNB(),
        "Bernoulli naive Bayes": lambda seed: BernoulliNB(binarize=0.5),
        "Linear SVM": lambda seed: LinearSVC(loss="hinge", max_iter=10000, tol=1e-8, random_state=seed),
        "Decision tree": lambda seed: DecisionTreeClassifier(class_weight="balanced", random_state=seed),
        "LDA": lambda seed: LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.5, n_components=9),
        "AdaBoost": lambda seed: AdaBoostClassifier(n_estimators=100, random_state=seed),
        "Bagging": lambda seed: BaggingClassifier(n_estimators=20, max_samples=0.1, random_state=seed),
        "Random forest": lambda seed: RandomForestClassifier(class_weight="balanced", random_state=seed, n_jobs=1),
        "Gradient boosting": lambda seed: GradientBoostingClassifier(n_estimators=50, subsample=0.1, random_state=seed),
        "MLP": lambda seed: MLPClassifier(random_state=seed),
        LEAD: lambda seed: XGBClassifier(n_estimators=50, colsample_bytree=0.1, random_state=seed, n_jobs=1),
    }


def table_regressors() -> Makers:
    """A few of different kinds, for numeric targets."""
    require_sklearn()
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor
    from xgboost import XGBRegressor

    return {
        "Ridge regression": lambda seed: Ridge(),
        "Decision tree": lambda seed: DecisionTreeRegressor(random_state=seed, min_samples_leaf=20),
        "Random forest": lambda seed: RandomForestRegressor(
            n_estimators=50, min_samples_leaf=5, random_state=seed, n_jobs=1
        ),
        "Gradient boosting": lambda seed: GradientBoostingRegressor(random_state=seed),
        LEAD: lambda seed: XGBRegressor(random_state=seed, n_jobs=1),
    }
