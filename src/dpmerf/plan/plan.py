"""Plan: what will be measured and what it costs, complete before any row is read. Public and hashable."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, final

from pydantic import ValidationError

from dpmerf.accounting.events import Added, Event, Gaussian, Selection
from dpmerf.accounting.gaussian import (
    AttackerOdds,
    attacker_odds,
    check_delta,
    check_epsilon,
    discrete_delta,
    mu_of,
    selection_range,
    warnings_for,
)
from dpmerf.accounting.unit import Unit
from dpmerf.encoding.codec import Codec
from dpmerf.errors import ArtefactError, DpmerfError, PlanError
from dpmerf.plan import proposition1 as error
from dpmerf.plan.price import Price, price_of_selection, price_of_sums
from dpmerf.plan.queries import Query, find, read_query
from dpmerf.plan.stages import Stage, check_stages
from dpmerf.schema import Schema
from dpmerf.shown import Shown

FORMAT = 1
LEAST_RANGE = 1e-6  # of a selection: below it nothing is selected but by chance
_FIELDS = {"format", "schema", "epsilon", "delta", "unit", "rows", "preset", "balanced", "stages"}
Q = TypeVar("Q", bound=Query)


@final
@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """A schema, a budget, a unit of privacy, and the stages that share the budget. Made by `make_plan` or `Plan.load`.

    Parameters
    ----------
    schema, epsilon, delta, unit, rows, method, balanced
        As in `make_plan`.
    stages : tuple of Stage
        What is measured, in order, each with its share of the budget.

    Examples
    --------
    >>> Plan.load("plan.json").prices[0].sigma  # doctest: +SKIP
    """

    schema: Schema
    epsilon: float
    delta: float
    unit: Unit
    rows: int  # expected number of rows: public, or a person's guess
    method: str  # its name; "default" in old plans. Stored as `preset`
    balanced: bool  # classes are declared to be equally frequent: their counts are not measured
    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if self.rows < 1:
            raise PlanError(f"rows is {self.rows}: write the expected number of rows, 1 or more")
        check_stages(self.stages, self.schema.measured)
        if self.unit.person is not None and self.unit.person not in self.schema.columns:
            raise PlanError(
                f"the unit names the person column '{self.unit.person}', which the schema does not have. "
                f'Add [columns.{self.unit.person}] with kind = "id"'
            )

    @cached_property
    def codec(self) -> Codec:
        return Codec(self.schema)

    def has(self, kind: type[Query]) -> bool:
        """Is there a query of that kind?"""
        return find((s.query for s in self.stages), kind) is not None

    def query(self, kind: type[Q]) -> Q:
        """The first query of that kind, or PlanError."""
        found = find((s.query for s in self.stages), kind)
        if found is None:
            raise PlanError(f"this plan has no {kind.words}. Make another with `dpmerf plan`")
        return found

    def stage(self, kind: type[Query]) -> Stage:
        """The stage of that query."""
        query = self.query(kind)
        return next(s for s in self.stages if s.query is query)

    def price_of(self, stage: Stage) -> Price:
        """What it costs."""
        return next(p for p in self.prices if p.stage == stage.name)

    @cached_property
    def _whole_mu(self) -> float:
        """The μ of a release of Gaussian stages alone; δ less what the discrete sampler adds."""
        return mu_of(self.epsilon, self.delta - self.discrete_delta)

    @cached_property
    def mu(self) -> float:
        """The Gaussian stages together are μ-GDP: all of the release, unless it has a selection."""
        gaussian = [s.share for s in self.stages if s.query.event is Gaussian]
        if len(gaussian) == len(self.stages):
            return self._whole_mu
        return self._whole_mu * math.sqrt(math.fsum(gaussian) / _total(self.stages))

    @cached_property
    def selections(self) -> tuple[float, ...]:
        """The range of a selection's loss, if there is one: all that (ε, δ) leaves beside the Gaussian stages."""
        if all(s.query.event is Gaussian for s in self.stages):
            return ()
        found = selection_range(self.epsilon, self.delta - self.discrete_delta, self.mu)
        if found < LEAST_RANGE:
            raise PlanError("the selection has too small a share of the budget: make the plan with `dpmerf plan`")
        return (found,)

    @cached_property
    def discrete_delta(self) -> float:
        """Upper bound on what the discrete sampler adds to δ, at the least noise this budget could mean."""
        added = self.discrete_delta_at(self.epsilon)
        if added > self.delta / 10:
            raise PlanError(
                f"the discrete sampler alone would add {added:.1e} to delta = {self.delta:g}: "
                "raise delta or lower epsilon"
            )
        return added

    def discrete_delta_at(self, epsilon: float) -> float:
        """The same at another ε: a ledger's limit, at which its entries add up."""
        prices = self._prices(mu_of(self.epsilon, self.delta), ())
        return sum(discrete_delta(epsilon, p.coordinates, p.sigma) for p in prices)

    def events(self, epsilon: float) -> tuple[Event, ...]:
        """What the release costs. `epsilon` is where the sampler's part is computed: a ledger's limit."""
        gaussian: tuple[Event, ...] = (Gaussian(self.mu),)
        selections = tuple(Selection(r) for r in self.selections)
        return (*gaussian, *selections, Added(self.discrete_delta_at(epsilon)))

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """One price per stage."""
        return tuple(self._prices(self._whole_mu, self.selections))

    def _prices(self, mu: float, ranges: tuple[float, ...]) -> Iterator[Price]:
        total = _total(self.stages)
        for stage in self.stages:
            phi = stage.query.nominal(self)
            if stage.query.event is Gaussian:
                part = mu * math.sqrt(stage.share / total)
                yield price_of_sums(stage.name, stage.share, part, phi, self.unit)
            elif ranges:
                yield price_of_selection(stage.name, stage.share, ranges[0], phi, self.unit)

    @property
    def coordinates(self) -> int:
        return sum(p.coordinates for p in self.prices)

    @property
    def classes(self) -> int:
        return self.codec.label.size if self.codec.label else 1

    @cached_property
    def odds(self) -> AttackerOdds:
        """What an attacker can still learn. Stages after the first may depend on what was released before them."""
        return attacker_odds(self.epsilon, self.delta, self.mu, self.selections, adaptive=len(self.stages) > 1)

    def expected_error(self) -> dict[str, Any] | None:
        """Proposition 1 for the plan's Fourier features: both bounds, and the D it recommends. None: there are none."""
        used = next((d for s in self.stages if (d := s.query.fourier_features) is not None), None)
        if used is None:
            return None
        multiplier = 1 / self.mu
        best = error.recommended_dim(multiplier, self.rows, self.classes)
        return {
            "dim": used,
            "recommended_dim": best,
            "paper_bound": error.paper_bound(used, multiplier, self.rows),
            "tight_bound": error.tight_bound(used, multiplier, self.rows, self.classes),
        }

    def facts(self) -> dict[str, Any]:
        """At a glance."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "protects": self.unit.describe().removeprefix("Protected: "),
            "rows": self.rows,
            "columns": len(self.schema.columns),
            "stages": ", ".join(f"{s.name} {s.share:.0%}" for s in self.stages),
            "coordinates": self.coordinates,
            "attacker": f"right at most {self.odds.accuracy:.1%} of the time (50 % is guessing)",
        }

    def summary(self) -> dict[str, Any]:
        """The plan's price for machines and people."""
        main = self.prices[-1]
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "noise_multiplier": 1 / self.mu,
            "choices": list(self.selections),
            "discrete_delta": self.discrete_delta,
            "diameter": main.diameter,
            "norm_bound": main.norm_bound,
            "coordinates": self.coordinates,
            "bytes": 8 * self.coordinates,
            "shares": {p.stage: p.share for p in self.prices},
            "stages": [
                {
                    "name": p.stage,
                    "share": p.share,
                    "mu": p.mu,
                    "noise_multiplier": p.noise_multiplier,
                    "diameter": p.diameter,
                    "norm_bound": p.norm_bound,
                    "sensitivity": p.sensitivity,
                    "coordinates": p.coordinates,
                    "blocks": [{"name": n, "coordinates": c, "noise": s} for n, c, s in p.groups],
                }
                for p in self.prices
            ],
            "unit": self.unit.describe(),
            "rows": self.rows,
            "rows_public": self.unit.rows_public,
            "method": self.method,
            "label": self.schema.label,
            "expected_error": self.expected_error(),
            "warnings": warnings_for(self.epsilon, self.delta, self.rows),
            "hash": self.hash,
        }

    @cached_property
    def hash(self) -> str:
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """As files hold it."""
        return {
            "format": FORMAT,
            "schema": self.schema.to_json(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit.to_dict(),
            "rows": self.rows,
            "preset": self.method,
            "balanced": self.balanced,
            "stages": [
                {"name": s.name, "share": s.share, "recipe": s.query.model_dump(mode="json")} for s in self.stages
            ],
        }

    @staticmethod
    def from_json(data: Any, source: str = "the plan") -> Plan:
        """From what `to_json` gave."""
        try:
            if data["format"] != FORMAT:
                raise ArtefactError(f"{source} has format {data['format']!r}; this version reads format {FORMAT}")
            if set(data) != _FIELDS or any(set(s) != {"name", "share", "recipe"} for s in data["stages"]):
                raise ArtefactError(f"{source} has other fields than a plan. Make one with `dpmerf plan`")
            if type(data["rows"]) is not int or type(data["balanced"]) is not bool:
                raise ValueError
            return Plan(
                schema=Schema.from_json(data["schema"]),
                epsilon=data["epsilon"],
                delta=data["delta"],
                unit=Unit.from_dict(data["unit"]),
                rows=data["rows"],
                method=str(data["preset"]),
                balanced=data["balanced"],
                stages=tuple(Stage(str(s["name"]), float(s["share"]), read_query(s["recipe"])) for s in data["stages"]),
            )
        except DpmerfError:
            raise
        except (KeyError, TypeError, ValueError, ValidationError, AttributeError, OverflowError):
            raise ArtefactError(f"{source} is not a plan. Make one with `dpmerf plan`") from None

    def save(self, path: str | Path) -> None:
        """Write plan.json."""
        Path(path).write_text(self.document(), encoding="utf-8")

    def document(self) -> str:
        """plan.json: the plan, its hash, and its price for people to read."""
        document = {"plan": self.to_json(), "hash": self.hash, "price": self.summary()}
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read plan.json, which must be as it was written."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            data, claimed = document["plan"], document["hash"]
        except OSError as problem:
            raise ArtefactError(f"cannot read the plan {path}: {problem.strerror}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ArtefactError(f"{path} is not a plan. Make one with `dpmerf plan`") from None
        plan = Plan.from_json(data, str(path))
        try:
            whole = plan.hash == claimed
        except ValueError:  # a number that JSON does not have
            whole = False
        if not whole:
            raise ArtefactError(
                f"{path} was changed after it was made: its hash differs. Make it anew with `dpmerf plan`"
            )
        return plan


def _total(stages: tuple[Stage, ...]) -> float:
    """Of the shares, which may miss 1 by a rounding: never overspend."""
    return max(1.0, math.fsum(s.share for s in stages))


def digest(data: Any) -> str:
    """SHA-256 of canonical JSON."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
