"""Canaries: the pair of neighbouring tables that a plan finds hardest to hide, made up from its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from dpmerf.accounting.events import Gaussian
from dpmerf.errors import PlanError
from dpmerf.features.algebra import FeatureMap
from dpmerf.plan import Plan, Stage, View
from dpmerf.plan.embedding import codec_of
from dpmerf.plan.price import Price
from dpmerf.private.contribute import Sums
from dpmerf.private.local import sum_locally
from dpmerf.progress import SILENT
from dpmerf.release import Release
from dpmerf.schema import Schema
from dpmerf.sources.rows import Frame

Row = dict[str, Any]
SEARCHED = 2**22  # features of candidate rows in memory


@final
@dataclass(frozen=True)
class Neighbours:
    """Two tables that differ in one unit: without the canary, and with it."""

    plan: Plan
    out: pa.Table
    inside: pa.Table
    canary: Row

    def exact(self, release: Release, stage: Stage) -> tuple[Tensor, Tensor]:
        """The sums before noise of both tables, for the map a release really used. An attacker can compute them."""
        e = release.embedding(stage)
        return self._sums(self.out, e.phi, e.view), self._sums(self.inside, e.phi, e.view)

    def _sums(self, rows: pa.Table, phi: FeatureMap, view: View) -> Tensor:
        if self.plan.unit.person is not None:  # the cap needs two readings
            return sum_locally(Frame(rows), self.plan, phi, view, SILENT, "")[0]
        sums = Sums(phi)
        sums.add(view(codec_of(self.plan, phi).encode(rows)))
        return sums.total()

    @property
    def gaussian(self) -> list[tuple[Stage, Price]]:
        """The stages that release vectors: all but a selection."""
        both = zip(self.plan.stages, self.plan.prices, strict=True)
        return [(stage, price) for stage, price in both if stage.query.event is Gaussian]

    def score(self, release: Release) -> float:
        """The log-likelihood ratio: the best statistic there is for telling the tables apart.

        It is Gaussian with means ∓μ²/2 and variance μ², where μ² is the sum of ‖difference of sums‖²/σ² over stages.
        """
        total = 0.0
        for stage, price in self.gaussian:
            out, inside = self.exact(release, stage)
            change = (inside - out).double() / price.sigma
            middle = (release.sums[stage.name] - out).double() / price.sigma - change / 2
            total += float(middle @ change)
        return total

    def true_mu(self, release: Release) -> float:
        """The μ that this very pair can reach: at most the plan's."""
        total = 0.0
        for stage, price in self.gaussian:
            out, inside = self.exact(release, stage)
            total += float((((inside - out).double() / price.sigma) ** 2).sum())
        return total**0.5


def neighbours(plan: Plan, rows: int = 12, seed: int = 0) -> Neighbours:
    """Made-up rows, plus a unit that lies as far as can be found from the one it replaces."""
    schema, unit = plan.schema, plan.unit
    if schema.image is not None:
        raise PlanError("the audit makes up tables, not pictures: audit a plan for a table")
    rng = np.random.default_rng(seed)
    base = [random_row(schema, rng) for _ in range(rows)]
    low, high = _far_rows(plan, rng)
    others = [_named(row, unit.person, f"other{i}") for i, row in enumerate(base)]
    replaced = [_named(low, unit.person, "canary0")] * unit.max_rows if unit.neighbours == "replace" else []
    canary = [_named(high, unit.person, "canary1")] * unit.max_rows
    return Neighbours(plan, table(schema, others + replaced), table(schema, others + canary), high)


def _far_rows(plan: Plan, rng: np.random.Generator) -> tuple[Row, Row]:
    """Two rows far apart: the ends of every column, or what a search finds where features are dense."""
    ends = end_row(plan.schema, 0), end_row(plan.schema, 1)
    phi = plan.stages[0].query.nominal(plan)
    if all(b.dense is None for b in phi.blocks):
        return ends
    rows = [*ends, *(random_row(plan.schema, rng) for _ in range(max(2, min(400, SEARCHED // phi.dim))))]
    values = phi(plan.codec.encode(table(plan.schema, rows)))
    apart = torch.cdist(values, values)
    far = int(apart.argmax())
    found = rows[far // len(rows)], rows[far % len(rows)]
    return found if float(apart.max()) > float(apart[0, 1]) * (1 + 1e-6) else ends


def end_row(schema: Schema, end: int) -> Row:
    """The row of all first (0) or last (1) values."""
    return {name: column.at(float(end)) for name, column in schema.columns.items()}


def random_row(schema: Schema, rng: np.random.Generator) -> Row:
    """A row of values drawn evenly, one by one."""
    return {
        name: None if column.nullable and rng.random() < 0.05 else column.at(rng.random())
        for name, column in schema.columns.items()
    }


def table(schema: Schema, rows: list[Row]) -> pa.Table:
    """Rows as an Arrow table with the types that the schema writes."""
    return pa.table({name: pa.array([row[name] for row in rows], c.audited) for name, c in schema.columns.items()})


def _named(row: Row, person: str | None, name: str) -> Row:
    return row if person is None else {**row, person: name}


def tile(sums: Tensor, times: int) -> Tensor:
    """Many copies of a vector under each other, to be given noise in one call."""
    return torch.as_tensor(sums)[None].repeat(times, 1)
