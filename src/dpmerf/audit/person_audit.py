"""Person audit: two neighbouring sets of persons that a plan finds hardest to hide, and the attack on their releases.

The person who is replaced has one row of first values. The other has far more rows than are used, all of them the row
of last values at the same moment: whichever window is kept, its rows are later ones and lie in one cell of every
table, so the mean is as far from the first person as one row can be.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
from torch import Tensor

from dpmerf.audit.canary import Row, end_row, random_row, table
from dpmerf.audit.run import Audit, attack_vectors, judged
from dpmerf.errors import PlanError
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.private.person_measure import exact_sums, measure_persons
from dpmerf.private.persons import KEY_BYTES
from dpmerf.progress import SILENT, Bars
from dpmerf.release.person_release import PersonRelease

Tables = dict[str, pa.Table]
OTHERS, MOST = 12, 3  # persons beside the canary, and their rows
TIMES = 10  # as many rows as are used of a person: those of the canary
KEY = bytes(KEY_BYTES)  # an attacker who knows everything but one person knows which rows are kept, too


def audit_persons(plan: PersonPlan, minutes: float = 2.0, seed: int = 0, bars: Bars = SILENT) -> Audit:
    """Try to break a plan's claim for persons, for about `minutes`. Reads no data: its persons are made up."""
    if not 0 < minutes < 10_000:
        raise PlanError(f"minutes is {minutes}: write a number above 0, for example 2")
    start = time.monotonic()
    out, inside = person_neighbours(plan, seed)
    with bars.task("attacking releases"):
        release = measure_persons(out, plan)
        seen = attack_vectors(person_sums(plan, release, out, inside), start + 60 * minutes)
    return judged(plan, seen, (), None, None, start)


def person_neighbours(plan: PersonPlan, seed: int = 0) -> tuple[Tables, Tables]:
    """Tables of made-up persons, and the same with one person replaced (or added) by the hardest to hide."""
    persons, rng = plan.persons, np.random.default_rng(seed)
    out: Tables = {}
    inside: Tables = {}
    for name in persons.tables:
        schema, history = persons.schema_of(name), next((h for h in persons.histories if h.name == name), None)

        def own(person: str, row: Row) -> Row:
            return {**row, persons.key: person}

        others = [
            own(f"other{i}", random_row(schema, rng))
            for i in range(OTHERS)
            for _ in range(1 if history is None else int(rng.integers(0, MOST + 1)))
        ]
        replaced = [own("canary0", end_row(schema, 0))] if plan.neighbours == "replace" else []
        many = 1 if history is None else TIMES * history.facts.most
        canary = [own("canary1", end_row(schema, 1))] * many
        out[name], inside[name] = table(schema, others + replaced), table(schema, others + canary)
    return out, inside


def person_sums(
    plan: PersonPlan, release: PersonRelease, out: Tables, inside: Tables
) -> list[tuple[Tensor, Tensor, float]]:
    """Of every stage of every part: the sums before noise of both, for the map a release really used, and σ."""
    found = []
    for name, part in plan.parts.items():
        for stage, price in zip(part.stages, part.prices, strict=True):
            e = release.parts[name].embedding(stage)
            without, with_it = (exact_sums(tables, plan.persons, name, e, KEY) for tables in (out, inside))
            found.append((without, with_it, price.sigma))
    return found
