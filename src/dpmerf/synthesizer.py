"""Synthesizer: a table in, synthetic tables out, in the shape of scikit-learn's estimators."""

from __future__ import annotations

import inspect
import os
from typing import Any, final

import numpy as np
import pyarrow as pa

from dpmerf.accounting.unit import Unit
from dpmerf.api import AnyLedger, dataset_name, priced, release
from dpmerf.errors import SchemaError, TrainError
from dpmerf.model import Model
from dpmerf.output.as_given import Given, Kind
from dpmerf.progress import Bars
from dpmerf.schema import Schema
from dpmerf.shown import Shown
from dpmerf.sources.matrix import is_sparse, named
from dpmerf.sources.pictures import open_data
from dpmerf.train import train

AnySchema = Schema | dict[str, Any] | str | os.PathLike[str]


@final
class SchemaLabel:
    """A label that was not given: the schema's own holds. A class and no text, so that no column can have its name."""


AnyLabel = str | type[SchemaLabel] | None


@final
class Synthesizer(Shown):
    """Settings, then `fit`, then `sample`: an estimator in the shape of scikit-learn, without depending on it.

    Parameters
    ----------
    epsilon : float
        The privacy budget, above 0. It has no default: a budget is never assumed.
    delta : float, optional
        The smaller of 1e-5 and 1/(10 rows) if left out.
    schema : Schema, dict or path
        The public facts about the table. An array's columns are the schema's, in order.
    bounds : tuple of float, optional
        In place of a schema, for arrays of numbers: the smallest and the largest value of every column.
    label : str or None, optional
        The label column; the schema's own if left out, None for unlabelled.
    rows : int, optional
        The expected number of rows, where it is not public or shall not be counted.
    unit : Unit or str
        What is protected: "row" or "person:COLUMN,ROWS".
    neighbours : {"replace", "add-remove"}
        Whether a unit is exchanged for another, or is there or not.
    method : {"auto", "tables", "few-rows", "wide", "paper", "images"}, or a plugin's
        What is measured, and which generator reads it; by default the one that suits the table and the budget.
    balanced : bool
        Classes are known to be equally frequent: their counts are not measured.
    random_state : int, RandomState or None
        Of everything but the noise, which takes no seed; None: other rows every time.
    ledger : Ledger or path, optional
        Charged before a row is read. Every `fit` is a release and is paid for.
    dataset : str, optional
        What the data set is called, as its ledger knows it.
    progress : bool
        Show bars, in a terminal or a notebook.
    fast : bool
        Pictures: train for a third of the steps.
    output : {"pandas", "polars", "pyarrow", "numpy"}, optional
        The kind of table that `sample` gives; that of the data, with its index and its own types, if left out.

    Attributes
    ----------
    model_ : Model
        The fitted model, for more rows, `save` and reports.
    release_ : Release
        What was measured: the product, from which anything can be trained or asked again at no cost.
    n_features_in_, feature_names_in_
        As scikit-learn names them: the columns that were read.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(300, 2))
    >>> Synthesizer(epsilon=1.0, bounds=(-4, 4)).fit(points).sample(5).shape
    (5, 2)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float | None = None,
        *,
        schema: AnySchema | None = None,
        bounds: tuple[float, float] | None = None,
        label: AnyLabel = SchemaLabel,
        rows: int | None = None,
        unit: Unit | str = "row",
        neighbours: str = "replace",
        method: str = "auto",
        balanced: bool = False,
        random_state: Any = 0,
        ledger: AnyLedger = None,
        dataset: str | None = None,
        progress: bool = False,
        fast: bool = False,
        output: Kind | None = None,
    ) -> None:
        self.epsilon, self.delta, self.schema, self.bounds, self.label = epsilon, delta, schema, bounds, label
        self.rows, self.unit, self.neighbours = rows, unit, neighbours
        self.method, self.balanced, self.random_state = method, balanced, random_state
        self.ledger, self.dataset = ledger, dataset
        self.progress, self.fast, self.output = progress, fast, output

    def fit(self, X: Any, y: Any = None) -> Synthesizer:
        """Release and train. Spends the budget, each time that it is called.

        Parameters
        ----------
        X
            A pandas, Polars or Arrow table, a path, or an array with two dimensions.
        y
            Left unread, as by scikit-learn's density estimators: the label is a column of the table.
        """
        table = named(X, self._names(X)) if isinstance(X, np.ndarray) or is_sparse(X) else X
        schema = self._declared(table)
        unit = self.unit if isinstance(self.unit, Unit) else Unit.parse(self.unit, self.neighbours)
        bars, source = Bars(self.progress), open_data(table, schema)
        plan = priced(
            source,
            schema,
            self.epsilon,
            self.delta,
            rows=self.rows,
            unit=unit,
            method=self.method,
            balanced=self.balanced,
            ledger=self.ledger,
        )
        name = self.dataset if self.dataset is not None else dataset_name(X)
        noisy = release(source, plan, ledger=self.ledger, dataset=name, bars=bars)
        given = Given("numpy") if isinstance(X, np.ndarray) else Given.of(source if schema.image or is_sparse(X) else X)
        return self._fitted(train(noisy, seed=seed_of(self.random_state), fast=self.fast, bars=bars), given)

    def _fitted(self, model: Model, given: Given) -> Synthesizer:
        self.model_, self.release_, self._given = model, model.release, given
        self.feature_names_in_ = np.asarray(model.release.plan.schema.needed, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def _names(self, X: Any) -> list[str] | None:
        """Of an array's columns: the schema's. None: by number, as `bounds` declare them."""
        return None if self.schema is None else list(_schema(self.schema).columns)

    def _declared(self, table: Any) -> Schema:
        if (self.schema is None) == (self.bounds is None):
            raise SchemaError("name the schema with `schema`, or for an array of numbers its `bounds`: one of the two")
        if self.schema is not None:
            found = _schema(self.schema)
        elif isinstance(table, pa.Table):
            low, high = self.bounds or (0.0, 1.0)
            facts = {"kind": "number", "min": float(low), "max": float(high)}
            found = Schema.from_dict({"columns": {name: dict(facts) for name in table.column_names}})
        else:
            raise SchemaError("`bounds` are for an array of numbers: a table needs a schema. Schema.draft begins one")
        return found if isinstance(self.label, type) else found.with_label(self.label)

    def sample(
        self, n_samples: int | None = None, given: dict[str, Any] | None = None, random_state: Any = None
    ) -> Any:
        """Synthetic rows, as often as you like, at no cost.

        Parameters
        ----------
        n_samples : int, optional
            How many; as many as the data had (or is estimated to have) if left out.
        given : dict, optional
            Columns to hold fixed, by name; None holds a column at null.
        random_state : int or RandomState, optional
            Other rows for another one; the fitted model's own if left out.
        """
        if not self.__sklearn_is_fitted__():
            raise _not_fitted()
        if n_samples is not None and n_samples < 1:
            raise TrainError(f"n is {n_samples}: ask for 1 row or more")
        seed = None if random_state is None else seed_of(random_state)
        table = self.model_.sample(n_samples or round(self.release_.rows_estimate), given, seed)
        form = Given(self.output) if self.output else self._given
        if form.kind == "numpy":
            return np.column_stack([column.to_numpy() for column in table.columns])
        return form.back(table, self.release_.plan.schema)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder: JSON and arrays, no pickle. `load` and `dpmerf sample` read it."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted()
        self.model_.save(os.fspath(path))

    @staticmethod
    def load(path: str | os.PathLike[str], output: Kind = "pyarrow") -> Synthesizer:
        """A fitted synthesizer from a folder that `save`, `Model.save` or `dpmerf train` wrote."""
        model = Model.load(os.fspath(path))
        plan = model.release.plan
        tool = Synthesizer(
            plan.epsilon,
            plan.delta,
            schema=plan.schema,
            rows=plan.rows,
            unit=plan.unit,
            neighbours=plan.unit.neighbours,
            method=plan.method,
            balanced=plan.balanced,
            random_state=model.seed,
            output=output,
        )
        return tool._fitted(model, Given(output))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **params: Any) -> Synthesizer:
        """Change settings by name."""
        for name, value in params.items():
            if name not in _PARAMETERS:
                raise ValueError(f"there is no setting '{name}'. Choose from: {', '.join(_PARAMETERS)}")
            setattr(self, name, value)
        return self

    def facts(self) -> dict[str, Any]:
        """At a glance: the settings that are not as by default."""
        told = {name: getattr(self, name) for name in _PARAMETERS if getattr(self, name) is not _DEFAULTS[name]}
        return {**told, **({"fitted": self.model_} if self.__sklearn_is_fitted__() else {})}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        inputs = InputTags(string=True, categorical=True, allow_nan=True)  # any cell is legal
        return Tags(None, TargetTags(required=False), input_tags=inputs, non_deterministic=True)  # noise takes no seed


_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(Synthesizer.__init__).parameters.items()
    if name != "self"
}
_PARAMETERS = tuple(_DEFAULTS)


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state.

    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int.from_bytes(os.urandom(4))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(random_state)


def _schema(given: AnySchema) -> Schema:
    if isinstance(given, Schema):
        return given
    return Schema.from_dict(given) if isinstance(given, dict) else Schema.load(given)


def _not_fitted() -> Exception:
    try:
        from sklearn.exceptions import NotFittedError
    except ModuleNotFoundError:
        return TrainError("nothing was fitted yet: call fit first")
    return NotFittedError("nothing was fitted yet: call fit first")
