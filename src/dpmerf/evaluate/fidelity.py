"""Fidelity: how close two tables are, in units that can be read (NOT COVERED)."""

from __future__ import annotations

import numpy as np

from dpmerf.evaluate.association import association
from dpmerf.evaluate.marginals import marginals, total_variation
from dpmerf.evaluate.results import ColumnError, Fidelity
from dpmerf.evaluate.subgroups import worst_subgroups
from dpmerf.evaluate.ticks import Step, silent
from dpmerf.evaluate.twosample import detection, kernel_distance
from dpmerf.evaluate.utility import TableUtility
from dpmerf.evaluate.views import BINS, Rows

QUANTILES = np.arange(0.05, 0.96, 0.05)
STEPS = 5  # how many times `fidelity` reports a step
ALL_PAIRS = 5000


def fidelity(
    synthetic: Rows,
    real: Rows,
    train: Rows | None = None,
    utility: TableUtility | None = None,
    quick: bool = False,
    seed: int = 0,
    step: Step = silent,
) -> Fidelity:
    """Every fidelity score of `synthetic` against `real`; `train` gives what real rows themselves would score."""
    step("marginals")
    coded = [r.all_coded() if r else None for r in (synthetic, real, train)]
    ours, theirs, baseline = coded
    assert ours is not None and theirs is not None
    sampled = 50 if quick else 300
    most = {1: ALL_PAIRS, 2: ALL_PAIRS, 3: sampled, 4: sampled}
    orders = [marginals(ours, theirs, baseline, k, most[k], seed) for k in range(1, min(4, len(theirs)) + 1)]
    step("association")
    pairs = association(synthetic, real, train)
    step("kernel distance")
    distance = kernel_distance(synthetic, real, train, 1500 if quick else 5000, seed)
    step("real or synthetic?")
    told_apart = detection(synthetic, real, train, 5000 if quick else 20_000, seed)
    step("subgroups")
    return Fidelity(
        bins=BINS,
        marginals=orders,
        columns=[column_error(synthetic, real, name) for name in real.names],
        association=pairs,
        kernel=distance,
        detection=told_apart,
        subgroups=worst_subgroups(synthetic, real, utility),
    )


def column_error(synthetic: Rows, real: Rows, name: str) -> ColumnError:
    """One column: total variation, null rates and, for numbers, the errors of its mean and its quantiles."""
    mean_error = quantile_error = None
    if real.numeric(name):
        ours, theirs = (r.values(name)[~r.null(name)] for r in (synthetic, real))
        if len(ours) and len(theirs):
            axis = real.codec.axes[name]
            mean_error = float(ours.mean() - theirs.mean())
            gap = np.abs(np.quantile(ours, QUANTILES) - np.quantile(theirs, QUANTILES))
            quantile_error = float(gap.mean() / (axis.high - axis.low))
    return ColumnError(
        name=name,
        kind=real.schema.columns[name].kind,
        tv=total_variation([synthetic.coded(name)], [real.coded(name)]),
        null_real=float(real.null(name).mean()),
        null_synthetic=float(synthetic.null(name).mean()),
        mean_error=mean_error,
        quantile_error=quantile_error,
    )
