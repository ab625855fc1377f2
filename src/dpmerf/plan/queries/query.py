"""Query: what one stage of a release measures, as plain data. One file a kind; nothing else knows the kinds apart.

A query is public and complete: with the schema, and with what earlier stages released, it gives the same embedding on
every machine. Its weights, and so its sensitivity, never depend on what was measured.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from dpmerf.accounting.events import Event, Gaussian
from dpmerf.encoding.codec import Codec
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap, onehot, total
from dpmerf.plan.embedding import Embedding

if TYPE_CHECKING:
    from dpmerf.plan.known import Known
    from dpmerf.plan.plan import Plan
    from dpmerf.schema import Schema

Weights = tuple[Annotated[float, Field(ge=1e-3, le=1e3)], ...]  # one for each table; none: all 1
Scale = Annotated[float, Field(gt=1e-9, lt=1e9)]  # a length-scale of a kernel on [0, 1]
MOST_COUNTS = 4.0  # the weight of counts: squares of whole numbers stay below 2⁵³
Q = TypeVar("Q", bound="Query")


class Derived(Protocol):
    """What a query is resolved with, by a fixed rule from what earlier stages released: bins, scores, pairs."""

    def to_json(self) -> dict[str, Any]: ...


class Frozen(BaseModel):
    """Public data that does not change. Numbers are finite; where shares are named they add up to 1."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def _shares(self) -> tuple[float, ...]:
        return (1.0,)

    @model_validator(mode="after")
    def _shares_add_up(self) -> Frozen:
        if not math.isclose(math.fsum(self._shares()), 1, rel_tol=1e-9):
            raise ValueError("the shares of a query must add up to 1")
        return self


class Query(Frozen, ABC):
    """What a stage measures. A new kind is a new file here, and a line in `__init__`."""

    words: ClassVar[str]  # what people call it
    event: ClassVar[type[Event]] = Gaussian  # how it is made private, and so what it costs
    once: ClassVar[bool] = False  # a plan has at most one: it is resolved by name
    after: ClassVar[type[Query] | None] = None  # must stand before it
    pictures: ClassVar[bool] = False  # measures pictures; all others measure tables
    derives: ClassVar[tuple[str, ...]] = ()  # the fields of what it derives, as stored; none: it derives nothing
    drawn: ClassVar[bool] = True  # rows that are drawn can be held against it; else it says how a file was written
    recounts: ClassVar[bool] = False  # measures again what stood out before: the noise of the first helped it
    newer: ClassVar[tuple[str, ...]] = ()  # fields that are not stored where they are empty: as older plans mean

    @model_serializer(mode="wrap")
    def _stored(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        return {name: value for name, value in found.items() if value or name not in self.newer}

    @abstractmethod
    def nominal(self, plan: Plan) -> FeatureMap:
        """The map at its largest size, which is what is priced. Weights are those of the real one."""

    @abstractmethod
    def resolve(self, known: Known) -> Embedding:
        """What is really measured, given what was released and derived before."""

    def expected(self, plan: Plan) -> FeatureMap:
        """The map at the size to be expected, for errors that are foretold before any spending."""
        return self.nominal(plan)

    def derive(self, known: Known) -> Derived | None:
        """What this query needs to be resolved, from what earlier stages released. A fixed rule: `verify` repeats it.

        A change of any such rule needs another number (`release.RULES`), or old releases would no longer follow from
        their sums.
        """
        return None

    def read_derived(self, plan: Plan, data: dict[str, Any]) -> Derived:
        """The way back from what `Derived.to_json` gave."""
        raise ValueError(f"{self.words} derive nothing")

    @property
    def fourier_features(self) -> int | None:
        """How many random Fourier features it draws: what the paper's error bounds speak of. None: none."""
        return None

    def check(self, stage: str, schema: Schema, before: Sequence[Query]) -> None:
        """PlanError unless it makes sense for this schema and after these queries."""


def check_order(stage: str, query: Query, before: Sequence[Query]) -> None:
    """A query whose map depends on earlier answers stands once, and after what it needs.

    Else two of them would be resolved with one result, at weights that only one of them was priced for.
    """
    if query.once and any(isinstance(other, type(query)) for other in before):
        raise PlanError(f"a plan has {query.words} once: stage '{stage}' is one too many")
    if query.after is not None and not any(isinstance(other, query.after) for other in before):
        raise PlanError(f"{query.words} needs {query.after.words} before it: move stage '{stage}'")


def find(queries: Iterable[Query], kind: type[Q]) -> Q | None:
    """The first query of a kind."""
    return next((query for query in queries if isinstance(query, kind)), None)


def check_label(stage: str, by_label: bool, schema: Schema) -> None:
    """PlanError if rows are split by a label that there is not."""
    if by_label and schema.label is None:
        raise PlanError(f"stage '{stage}' is split by the label, and the schema names none")


def check_each(stage: str, items: Sequence[object], legal: Callable[..., bool]) -> None:
    """PlanError if a column or a pair of columns is named twice, or does not exist."""
    if len(set(items)) < len(items):
        raise PlanError(f"stage '{stage}' measures a column or a pair of columns twice: name each once")
    if not all(legal(item) for item in items):
        raise PlanError(f"stage '{stage}' names a column or a pair that the schema does not have")


def check_weights(stage: str, weights: Sequence[float], items: Sequence[object]) -> None:
    """PlanError unless there are no weights, or one for each."""
    if len(weights) not in (0, len(items)):
        raise PlanError(
            f"stage '{stage}' has {len(weights)} weights for {len(items)} tables: leave them out, or one each"
        )


def weighed(maps: Sequence[FeatureMap], weights: Sequence[float]) -> FeatureMap:
    """Side by side, in the proportions of the weights; the squares of what they become add up to 1."""
    size = math.sqrt(math.fsum(w * w for w in weights))
    return total([w / size * phi for w, phi in zip(weights, maps, strict=True)])


def features(codec: Codec, by_label: bool) -> tuple[str, ...]:
    """The learned columns, without the label where rows are split by it."""
    label = codec.schema.label if by_label else None
    return tuple(name for name in codec.schema.learned if name != label)


def label_of(codec: Codec, by_label: bool) -> FeatureMap | None:
    """The label's one-hot, where rows are split by it."""
    return onehot(codec.label) if by_label and codec.label else None


def split(phi: FeatureMap, label: FeatureMap | None) -> FeatureMap:
    """The map in each class."""
    return phi if label is None else label * phi
