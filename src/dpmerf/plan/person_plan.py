"""Person plan: what will be measured of persons with histories, and what it costs, before any row is read.

Every table of rows (and the table of persons, if there is one) is a part: an ordinary plan over extended rows, with a
share of the budget. One person moves the sums of all parts at once; Gaussian releases compose exactly, so the whole is
μ-GDP with μ² = Σμᵢ².
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

from dpmerf.accounting.events import Added, Event, Gaussian
from dpmerf.accounting.gaussian import AttackerOdds, attacker_odds, check_delta, check_epsilon, compose, delta_of
from dpmerf.accounting.unit import Unit
from dpmerf.errors import ArtefactError, DpmerfError, PlanError
from dpmerf.plan.plan import Plan, digest
from dpmerf.schema import Schema
from dpmerf.schema.extended_schema import extended, person_table
from dpmerf.schema.person_schema import Persons

FORMAT = 1
_FIELDS = {"format", "kind", "persons", "epsilon", "delta", "rows", "parts"}


@final
@dataclass(frozen=True)
class PersonPlan:
    """A schema of persons, a budget, and one plan a part."""

    persons: Persons
    epsilon: float
    delta: float
    rows: int  # expected number of persons: a public fact or a guess
    parts: dict[str, Plan]  # table -> the plan of its extended rows

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        wanted = part_schemas(self.persons)
        if list(self.parts) != list(wanted):
            raise PlanError("a plan of persons has one part for each table: make it with `dpmerf plan`")
        for name, plan in self.parts.items():
            if plan.schema != wanted[name]:
                raise PlanError(f"the part '{name}' measures other columns than its table has: make the plan anew")
            if (
                plan.unit != part_unit(self.persons, name, plan.unit.neighbours)
                or plan.unit.neighbours != self.neighbours
            ):
                raise PlanError(f"the part '{name}' protects somebody else: make the plan with `dpmerf plan`")
            if plan.selections or plan.rows != self.rows:
                raise PlanError(f"the part '{name}' does not fit the others: make the plan with `dpmerf plan`")
        if self.cost > self.delta:
            raise PlanError("the parts cost more than the plan's budget: make the plan with `dpmerf plan`")

    @property
    def neighbours(self) -> str:
        return next(iter(self.parts.values())).unit.neighbours

    @property
    def unit(self) -> Unit:
        """Who is protected: a person with all rows in all tables."""
        most = max(plan.unit.max_rows for plan in self.parts.values())
        return Unit(self.persons.key, most, next(iter(self.parts.values())).unit.neighbours, mean=True)

    @cached_property
    def mu(self) -> float:
        """All parts together are μ-GDP."""
        return compose(*(plan.mu for plan in self.parts.values()))

    def discrete_delta_at(self, epsilon: float) -> float:
        """What the discrete sampler adds to δ, at some ε, in all parts."""
        return sum(plan.discrete_delta_at(epsilon) for plan in self.parts.values())

    def events(self, epsilon: float) -> tuple[Event, ...]:
        """What the release costs. `epsilon` is where the sampler's part is computed: a ledger's limit."""
        return Gaussian(self.mu), Added(self.discrete_delta_at(epsilon))

    @cached_property
    def discrete_delta(self) -> float:
        return self.discrete_delta_at(self.epsilon)

    @cached_property
    def cost(self) -> float:
        """The δ of all parts at the plan's ε."""
        return delta_of(self.mu, self.epsilon) + self.discrete_delta

    @cached_property
    def odds(self) -> AttackerOdds:
        """What an attacker can still learn about one person."""
        return attacker_odds(self.epsilon, self.delta, self.mu, (), adaptive=True)

    @property
    def coordinates(self) -> int:
        return sum(plan.coordinates for plan in self.parts.values())

    def summary(self) -> dict[str, Any]:
        """The plan's price for machines and people."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "noise_multiplier": 1 / self.mu,
            "discrete_delta": self.discrete_delta,
            "coordinates": self.coordinates,
            "bytes": 8 * self.coordinates,
            "unit": self.unit.describe(),
            "persons": self.rows,
            "parts": {name: plan.summary()["stages"] for name, plan in self.parts.items()},
            "hash": self.hash,
        }

    @cached_property
    def hash(self) -> str:
        return digest(self.to_json())

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": "plan of persons",
            "persons": self.persons.to_json(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rows": self.rows,
            "parts": [{"name": name, "plan": plan.to_json()} for name, plan in self.parts.items()],
        }

    @staticmethod
    def from_json(data: Any, source: str = "the plan") -> PersonPlan:
        try:
            if set(data) != _FIELDS or data["format"] != FORMAT or data["kind"] != "plan of persons":
                raise ArtefactError(
                    f"{source} is not a plan of persons of format {FORMAT}. Make one with `dpmerf plan`"
                )
            if type(data["rows"]) is not int:
                raise ValueError
            parts = {str(p["name"]): Plan.from_json(p["plan"], source) for p in data["parts"]}
            return PersonPlan(Persons.from_json(data["persons"]), data["epsilon"], data["delta"], data["rows"], parts)
        except DpmerfError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise ArtefactError(f"{source} is not a plan of persons. Make one with `dpmerf plan`") from None

    def save(self, path: str | Path) -> None:
        """Write plan.json: the plan, its hash, and its price for people to read."""
        document = {"plan": self.to_json(), "hash": self.hash, "price": self.summary()}
        Path(path).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: str | Path) -> PersonPlan:
        """Read plan.json, which must be as it was written."""
        found = load_plan(path)
        if not isinstance(found, PersonPlan):
            raise ArtefactError(f"{path} is a plan for single rows, not for persons with histories")
        return found


def load_plan(path: str | Path) -> Plan | PersonPlan:
    """A plan file of either kind, which must be as it was written."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        ours = document["plan"]["kind"] == "plan of persons"
        data, claimed = document["plan"], document["hash"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Plan.load(path)  # which says what is wrong
    if not ours:
        return Plan.load(path)
    plan = PersonPlan.from_json(data, str(path))
    try:
        whole = plan.hash == claimed
    except ValueError:  # a number that JSON does not have
        whole = False
    if not whole:
        raise ArtefactError(f"{path}: the plan was changed after it was priced. Make it anew with `dpmerf plan`")
    return plan


def part_schemas(persons: Persons) -> dict[str, Schema]:
    """Part -> the schema of its extended rows; the persons' own table first."""
    own = {persons.parent[0]: person_table(persons)} if persons.parent else {}
    return own | {history.name: extended(history) for history in persons.histories}


def part_unit(persons: Persons, part: str, neighbours: str) -> Unit:
    """A person, by the mean of at most so many rows: of the table of persons, one."""
    most = next((h.facts.most for h in persons.histories if h.name == part), 1)
    return Unit(persons.key, most, neighbours, mean=True)  # type: ignore[arg-type]  # checked by Unit
