"""Measure: the one private step. Spend, read, sum in integers, add noise, and let nothing else out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from torch import Tensor

from dpmerf.codec import Batch, Codec
from dpmerf.errors import DataError, PlanError
from dpmerf.features.algebra import FeatureMap
from dpmerf.grid import Binning
from dpmerf.plan import Plan, Stage
from dpmerf.private.contribute import Sums
from dpmerf.private.images import open_data
from dpmerf.private.ledger import Ledger
from dpmerf.private.noise import NoiseSource, OpenDPGaussian
from dpmerf.private.persons import PersonCap
from dpmerf.private.rows import Rows
from dpmerf.progress import SILENT, Bars
from dpmerf.recipes import Embedding, Histograms, ImageEmbedding, Tables, View
from dpmerf.release import Measurement, Release

Summer = Callable[[Rows, Plan, FeatureMap, View, Bars, str], tuple[Tensor, int]]


def measure(
    data: Any,
    plan: Plan,
    *,
    ledger: Ledger | None = None,
    noise: NoiseSource | None = None,
    bars: Bars = SILENT,
    summer: Summer | None = None,
) -> Release:
    """Release what the plan says of the data.

    Formal guarantee: the result is (plan.epsilon, plan.delta)-DP for plan.unit. The ledger is charged, durably, before
    the first row is read: a crash may waste budget, never leak it.
    """
    rows = open_data(data, plan.schema)
    rows.require(_columns(plan))
    noise = noise or OpenDPGaussian()
    if ledger is not None:
        ledger.spend(plan.hash, f"release ({plan.preset})", plan.mu, plan.discrete_delta_at(ledger.epsilon))
    summer = summer or sum_locally
    sums: dict[str, Tensor] = {}
    count: int | None = None
    binning: dict[str, Any] | None = None
    for stage, price in zip(plan.stages, plan.prices, strict=True):
        so_far = Release(plan, sums, count, noise.name, binning)
        phi = so_far.feature_map(stage)
        if phi.dim > price.coordinates:  # the discrete sampler's part of delta was counted for fewer. Not by any row
            raise PlanError(f"stage '{stage.name}' is larger than it was priced: make the plan with `dpmerf plan`")
        exact, n = summer(rows, plan, phi, _view(so_far, stage), bars, f"reading ({stage.name})")
        if plan.unit.rows_public:
            if n == 0:
                raise DataError("the table has no rows")
            if count is not None and n != count:
                raise DataError("the data changed while it was read: the number of rows differs between two passes")
            count = n
        with bars.task(f"noise ({stage.name})", total=phi.dim) as advance:
            sums = {**sums, stage.name: noise.add(exact, price.sigma, advance)}
        if isinstance(stage.recipe, Histograms) and any(isinstance(s.recipe, Tables) for s in plan.stages):
            binning = cut_bins(Release(plan, sums, count, noise.name, None), stage).to_json()
    return Release(plan, sums, count, noise.name, binning)


def cut_bins(release: Release, stage: Stage) -> Binning:
    """Bins from the noisy histograms: post-processing, kept here because the next stage measures in these bins."""
    plan = release.plan
    tables = next(s.recipe for s in plan.stages if isinstance(s.recipe, Tables))
    counts: dict[str, Measurement] = dict(zip(plan.schema.learned, release.measurements(stage), strict=True))
    whole = frozenset({plan.schema.label} if tables.by_label and plan.schema.label else ())
    sigma = next(iter(counts.values())).sigma
    noisy = {name: m.values.flatten() for name, m in counts.items()}
    grid = plan.histograms.grid(release.codec)
    return Binning.cut(grid, noisy, sigma, release.rows_estimate, tables.bins, whole)


def sum_locally(rows: Rows, plan: Plan, phi: FeatureMap, view: View, bars: Bars, what: str) -> tuple[Tensor, int]:
    """Σφ over all rows in this process, in constant memory."""
    sums, n = Sums(phi), 0
    public = plan.unit.rows_public
    total = rows.stored_count if public else None
    with bars.task(what, total=total, counted="rows" if public else "") as advance:
        for batch in encoded(rows, plan):
            sums.add(view(batch))
            n += len(batch)
            advance(len(batch))
    return sums.total(), n


def encoded(rows: Rows, plan: Plan) -> Iterator[Batch]:
    """Encoded rows, at most `max_rows` of each person."""
    codec, columns = plan.codec, _columns(plan)
    if plan.unit.person is None:
        for table in rows.batches(columns):
            yield codec.encode(table)
        return
    cap = PersonCap(plan.unit.max_rows)
    for table in rows.batches(columns):
        cap.see(_persons(table, plan), codec.encode(table))
    chosen = cap.chosen()
    for table in rows.batches(columns):
        batch = codec.encode(table)
        yield batch.rows(chosen.take(_persons(table, plan), batch))


def _persons(table: pa.RecordBatch, plan: Plan) -> pa.Array:
    return table.column(plan.unit.person)


def _columns(plan: Plan) -> list[str]:
    person = [plan.unit.person] if plan.unit.person and plan.unit.person not in plan.schema.learned else []
    return list(plan.schema.learned) + person


def _view(release: Release, stage: Stage) -> View:
    codec: Codec = release.codec
    match stage.recipe:
        case Tables():
            assert release.binning is not None  # the histogram stage before it cut the bins
            return stage.recipe.view(release.binning)
        case Histograms() | Embedding() | ImageEmbedding():
            return stage.recipe.view(codec)
