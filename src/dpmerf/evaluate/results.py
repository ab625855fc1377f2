"""Results: what an evaluation says, as typed values that are written as JSON.

Every score that was computed from real rows carries `covered: false`: the privacy guarantee of the release does not
extend to it. `evaluation.schema.json` beside this file is generated from these types.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT = 1
WARNING = (
    "NOT COVERED: computed from real rows, so the privacy guarantee of the release does not extend to this. "
    "Publishing it reveals something about those rows."
)

Task = Literal["binary", "multiclass", "regression"]
Metrics = dict[str, float]


class Value(BaseModel):
    """A frozen value without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NotCovered(Value):
    """Computed from real rows."""

    covered: Literal[False] = False


class Scores(NotCovered):
    """One model's scores; `ratio` is 0 at the floor and 1 at the ceiling."""

    model: str
    synthetic: Metrics
    floor: Metrics
    ceiling: Metrics | None
    ratio: dict[str, float | None]
    note: str = ""


class Utility(NotCovered):
    """Train on synthetic rows, test on real ones; the ceiling trains on real rows, the floor on unrelated columns."""

    task: Task
    label: str
    classes: list[str]
    positive: str | None
    metric: str = Field(description="the metric to quote when only one is wanted")
    rows_synthetic: int
    rows_real_train: int
    rows_test: int
    ceiling_from: str
    models: list[Scores]
    mean: Scores
    note: str = ""


class WorstMarginal(NotCovered):
    """The column whose values differ most."""

    columns: list[str]
    tv: float


class Marginals(NotCovered):
    """Total variation over marginals of one order: half the summed difference of shares, 0 equal, 1 disjoint."""

    order: int
    measured: int
    possible: int
    mean: float
    largest: float
    baseline_mean: float | None = Field(description="the real training rows against the real test rows")
    worst: list[WorstMarginal]


class ColumnError(NotCovered):
    """One column. Quantile error is a share of the declared range; the mean's error is in the column's units."""

    name: str
    kind: str
    tv: float
    null_real: float
    null_synthetic: float
    mean_error: float | None = None
    quantile_error: float | None = None


class WorstPair(NotCovered):
    """The pair of columns whose association differs most."""

    columns: tuple[str, str]
    measure: str
    real: float
    synthetic: float


class Association(NotCovered):
    """|Pearson| between numbers, Cramér's V between categories, correlation ratio between the two; 0 to 1."""

    columns: list[str]
    real: list[list[float]]
    synthetic: list[list[float]]
    mean_difference: float
    largest_difference: float
    baseline_mean_difference: float | None
    worst: list[WorstPair]


class KernelDistance(NotCovered):
    """Maximum mean discrepancy of a Gaussian kernel: exact on a subsample, and by random features."""

    rows: int
    length_scale: float
    exact: float
    random_features: float
    features: int
    baseline_exact: float | None


class Detection(NotCovered):
    """How well a classifier tells real from synthetic rows: 0.5 cannot, 1 always."""

    auc: float
    folds: int
    rows: int
    baseline_auc: float | None


class Subgroup(NotCovered):
    """Rows that share a value. `excess` is the total variation beyond what so few rows show by chance."""

    column: str
    value: str
    share_real: float
    share_synthetic: float
    tv: float
    excess: float
    score_real: float | None = Field(default=None, description="accuracy (or R²) in this group, trained on real rows")
    score_synthetic: float | None = Field(default=None, description="the same, trained on synthetic rows")


class Fidelity(NotCovered):
    """How close the synthetic rows are to the real ones, in units."""

    bins: int
    marginals: list[Marginals]
    columns: list[ColumnError]
    association: Association
    kernel: KernelDistance
    detection: Detection
    subgroups: list[Subgroup]
    negative_log_likelihood: float | None = None


class NearestRecord(NotCovered):
    """Distances from synthetic to real rows, beside those of other real rows. Not a guarantee of anything."""

    guarantee: Literal[False] = False
    compared_with: str
    rows: int
    copies: float
    baseline_copies: float | None
    median_distance: float
    baseline_median_distance: float | None
    closer_than_real: float | None = Field(
        description="share of synthetic rows nearer than the nearest 5 % of real ones"
    )
    note: str = "shown for orientation only: a distance to real rows is not a privacy guarantee"


class BrokenRelation(NotCovered):
    """The shares of rows that break a relation of the schema."""

    relation: str
    synthetic: float
    real: float


class PairNovelty(NotCovered):
    """Shares of rows with a pair of values, in public bins, that no training row has (no real row, without these)."""

    bins: int
    synthetic: float
    baseline: float | None = Field(description="the same for the real test rows")


class IntervalsHeld(NotCovered):
    """How many of the release's 95 % intervals hold what the real rows say; about 0.95 is right."""

    about: str
    shares: int = Field(description="intervals of one-way shares")
    shares_held: float | None
    means: int = Field(description="intervals of means")
    means_held: float | None


class MembershipGame(Value):
    """Releases with and without one row, and how well an attacker tells them apart."""

    trials: int
    confidence: float
    true_positive_rate: float
    false_positive_rate: float
    advantage: float
    mu_lower: float
    epsilon_lower: float = Field(description="for Gaussian noise: lower bound on ε at the claimed δ")
    epsilon_lower_any: float = Field(description="the same without assuming Gaussian noise; weaker")
    epsilon_claimed: float | None
    delta: float
    exceeds_claim: bool


class Evaluation(NotCovered):
    """Everything that one evaluation says."""

    format: Literal[1] = 1
    kind: Literal["dpmerf-evaluation"] = "dpmerf-evaluation"
    warning: str = WARNING
    seed: int
    quick: bool
    rows_synthetic: int
    rows_real: int
    rows_train: int | None
    utility: Utility | None
    fidelity: Fidelity
    nearest: NearestRecord
    relations: list[BrokenRelation] = []
    novelty: PairNovelty | None = None
    intervals: IntervalsHeld | None = None

    def to_json(self) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of an evaluation, from the types."""
    schema = Evaluation.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def stored_schema() -> dict[str, Any]:
    """The JSON Schema file that ships with the package."""
    text = resources.files("dpmerf.evaluate").joinpath("evaluation.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
