"""Ask: a question of a release, answered from its noisy tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dpmerf.errors import AnswerError
from dpmerf.inference.answers import Answer, Line, critical
from dpmerf.inference.blue import Joint, solve
from dpmerf.inference.evidence import Evidence, evidence
from dpmerf.inference.intervals import Parts, of_ratios, of_sums, quantile, shown
from dpmerf.inference.linear import Axes, sum_of_numbers, sum_of_squares, value_part
from dpmerf.inference.questions import Condition, NoColumn, Question, question
from dpmerf.inference.table_cells import edges, numbers, own_counts
from dpmerf.inference.units import explained, unit_of
from dpmerf.release import Release

AT_BOUND = 0.02  # share of the numbers on a declared bound from which it is worth saying
TOO_FEW = "too few rows: with the noise, this group may be empty"


def answer(
    release: Release | Evidence,
    what: str,
    column: str | None = None,
    *,
    by: str | Iterable[str] = (),
    where: Mapping[str, Any] | Iterable[Condition] = (),
    value: Any = None,
    q: float = 0.5,
    population: bool = False,
    confidence: float = 0.95,
) -> Answer:
    """Answer a question from the released tables, with its errors. No row is read and nothing is spent.

    Parameters
    ----------
    release : Release or Evidence
        What was measured. If you have many questions, ask `evidence(release)`: tables that were weighed once stay so.
    what : str
        count, share, mean, sum, variance, quantile or crosstab.
    column : str, optional
        Of what; a count needs none.
    by : str or list of str
        Groups.
    where : dict or list of Condition
        Restricts the rows (see `question`).
    value : optional
        The value whose share is asked for; each of them if left out.
    q : float
        Which quantile.
    population : bool
        The interval is for the population from which the rows were drawn independently, else for the released table.
    confidence : float
        Of the intervals: 0.9, 0.95 or 0.99.

    Returns
    -------
    Answer
        One line a group, each with its estimate, its interval and where the error comes from.

    Examples
    --------
    >>> answer(release, "mean", "age", by="ward").lines[0].estimate  # doctest: +SKIP
    """
    known = release if isinstance(release, Evidence) else evidence(release)
    try:
        asked = question(known.codec.schema, what, column, by=by, where=where, value=value, q=q)
    except NoColumn as problem:
        raise explained(known.codec.declared, problem) from None
    return respond(known, asked, population=population, confidence=confidence)


def respond(known: Evidence, asked: Question, *, population: bool = False, confidence: float = 0.95) -> Answer:
    """The same for a question that is already made."""
    z = critical(confidence)
    joint = _joint(known, asked)
    inner = (asked.column,) if asked.what == "share" and asked.column and asked.values is None else ()
    axes = Axes.of(known, joint, asked, (*asked.by, *inner))
    groups = axes.groups()
    if asked.what == "quantile":
        lines, covariance = _quantiles(axes, asked, groups, population, z), None
    else:
        parts = _parts(axes, asked, population, z)
        lines = [_line(parts, i, group, _range(known, asked)) for i, group in enumerate(groups)]
        covariance = parts.privacy + parts.inside + (parts.sampling if parts.sampling is not None else 0.0)
    return Answer(
        question=asked,
        about="the population" if population else "this table",
        lines=tuple(lines),
        tables=joint.tables,
        margins=joint.margins,
        rests_on="measured tables",
        confidence=confidence,
        covariance=covariance,
        notes=(*known.notes, *_notes(axes, asked)),
        unit=unit_of(known.codec.declared, asked),
    )


def _joint(known: Evidence, asked: Question) -> Joint:
    columns = asked.columns
    if not columns:  # all rows: any table will do
        if not known.tables:
            raise AnswerError("this release holds no table of counts: train a model and ask its rows")
        columns = min(
            (t.columns for t in known.tables if len(t.columns) == 1), key=len, default=known.tables[0].columns
        )
    joint = solve(known, columns)
    if joint is None:
        raise AnswerError(
            f"no measured table holds {', '.join(columns)} together, so the release cannot answer by itself. "
            "Ask about fewer columns, or ask a trained model's folder: then the answer rests on the model"
        )
    return joint


def _parts(axes: Axes, asked: Question, population: bool, z: float) -> Parts:
    joint = axes.joint
    G = len(axes.groups()) if axes.grouped else 1
    cut, none = axes.cut_error(), np.zeros(G)
    if asked.what in ("count", "crosstab"):
        return of_sums(axes.weights(), joint.counts, joint.covariance, joint.rows, np.diag(cut), none, population, z)
    if asked.what == "share":
        top, bottom = _share(axes, asked)
        return of_ratios(top, bottom, joint.counts, joint.covariance, np.diag(cut), none, population, z)
    assert asked.column is not None
    s = sum_of_numbers(axes, asked.column)
    spread = np.diag(cut * _spread(axes, asked.column))
    if asked.what == "sum":
        level = np.diag(cut * _spread(axes, asked.column, about_zero=True))
        return of_sums(s.weights, joint.counts, joint.covariance, joint.rows, s.inside + level, s.placed, population, z)
    # numbers counted from a centre: the same ratio, without a large number that cancels
    found = of_ratios(s.weights, s.present, joint.counts, joint.covariance, s.inside + spread, s.placed, population, z)
    if asked.what == "mean":
        return found
    centres = np.nan_to_num(found.estimate)
    s2 = sum_of_squares(axes, asked.column, centres)
    second = of_ratios(
        s2.weights, s2.present, joint.counts, joint.covariance, s2.inside + spread**2, s2.placed, population, z
    )
    shift = found.privacy.diagonal() + found.inside.diagonal()  # the square of a noisy centre is too small
    return Parts(
        second.estimate + shift, second.low + shift, second.high + shift, second.privacy, second.inside, second.sampling
    )


def _share(axes: Axes, asked: Question) -> tuple[np.ndarray, np.ndarray]:
    if asked.column is None:
        top = axes.weights()
        whole = axes.by(()).weights()
        return top, np.repeat(whole, len(top), axis=0)
    if asked.values is None:
        bottom = axes.by(asked.by).weights()
        top = axes.weights()
        return top, np.repeat(bottom, len(top) // len(bottom), axis=0)
    return axes.weights({asked.column: value_part(axes, asked.column, asked.values)}), axes.weights()


def _spread(axes: Axes, column: str, about_zero: bool = False) -> float:
    """How far, squared, the column's numbers lie from their mean: what rows on the wrong side of a cut can do."""
    n, counts = numbers(axes.evidence, column, axes.level(column)), np.maximum(axes.along(column).sum(0), 0)
    weight = counts * n.present / max(float(counts @ n.present), 1e-9)
    centre = 0.0 if about_zero else float(weight @ n.value)
    return float(weight @ ((n.value - centre) ** 2 + n.spread))


def _quantiles(axes: Axes, asked: Question, groups: list[dict[str, Any]], population: bool, z: float) -> list[Line]:
    column, joint = asked.column, axes.joint
    assert column is not None
    low, high, _ = edges(axes.evidence, column)
    fine = axes.evidence.fine(column)
    assert fine is not None
    n = numbers(axes.evidence, column, axes.level(column))
    part = axes.part[column] * n.present
    below = _cumulative(axes, column) * part  # (K + 1, k) which part of a cell lies below an edge
    W = np.stack([axes.weights({column: row}) for row in below], 1)  # (G, K + 1, N)
    whole = axes.weights({column: part})  # (G, N)
    counts = np.maximum(axes.along(column, part), 0)  # (G, k)
    found = []
    for g, group in enumerate(groups):
        rows = float(whole[g] @ joint.counts)
        rows_error = math.sqrt(max(float(whole[g] @ joint.covariance @ whole[g]), 0.0))
        if rows < 1 or rows < 2 * z * rows_error:
            found.append(Line(group, None, math.inf, 0.0, None, None, None, TOO_FEW))
            continue
        D = W[g] - asked.q * whole[g]
        value = D @ joint.counts
        privacy = np.maximum(np.einsum("ei,ei->e", D @ joint.covariance, D), 0)
        split = below * (part - below)  # cells cut by an edge: how their rows divide is known by rule only
        inside = (split / np.maximum(part, 1e-9)) @ counts[g] + 0.25 * split**2 @ counts[g] ** 2
        sampling = asked.q * (1 - asked.q) * rows if population else 0.0
        error = np.sqrt(privacy + inside + sampling)
        at = quantile(value, error, low, high, fine.step, z)
        slope = max(at.high - at.low, 0.0) / (2 * z)  # per standard error of the distribution function
        i = int(np.argmin(np.abs(value)))
        total = max(float(error[i]), 1e-12)
        found.append(
            Line(
                group,
                at.at,
                slope * math.sqrt(privacy[i]) / total,
                slope * math.sqrt(inside[i]) / total,
                slope * math.sqrt(sampling) / total if population else None,
                at.low,
                at.high,
            )
        )
    return found


def _cumulative(axes: Axes, column: str) -> np.ndarray:
    """(K + 1, k): of each cell of the level, the part that lies below each edge of the fine cells."""
    evidence = axes.evidence
    fine, group_of = evidence.fine(column), evidence.group_of[column, axes.level(column)]
    assert fine is not None
    own = own_counts(evidence, column)
    mass = np.maximum(own.counts[: fine.size], 0) + 1e-9 if own is not None else fine.widths.astype(float)
    size = evidence.size(column, axes.level(column))
    total = np.bincount(group_of[: fine.size], mass, size)
    steps = np.zeros((fine.size + 1, size))
    steps[np.arange(1, fine.size + 1), group_of[: fine.size]] = mass
    return np.cumsum(steps, 0) / np.where(total > 0, total, 1.0)


def _line(parts: Parts, i: int, group: dict[str, Any], allowed: tuple[float, float]) -> Line:
    estimate = shown(parts.estimate[i])
    if estimate is None:
        return Line(group, None, math.inf, 0.0, None, None, None, TOO_FEW)
    privacy, inside = (math.sqrt(max(float(v[i, i]), 0.0)) for v in (parts.privacy, parts.inside))
    sampling = None if parts.sampling is None else math.sqrt(max(float(parts.sampling[i, i]), 0.0))
    low, high = (float(min(max(end, allowed[0]), allowed[1])) for end in (parts.low[i], parts.high[i]))
    return Line(group, estimate, privacy, inside, sampling, low, high)


def _range(known: Evidence, asked: Question) -> tuple[float, float]:
    """What the answer can be at all."""
    if asked.what in ("count", "crosstab"):
        return 0.0, float(known.rows) if known.rows is not None else math.inf
    if asked.what == "share":
        return 0.0, 1.0
    assert asked.column is not None
    axis = known.codec.axes[asked.column]
    if asked.what == "variance":
        return 0.0, (axis.high - axis.low) ** 2 / 4
    if asked.what == "sum":
        return -math.inf, math.inf
    return axis.low, axis.high


def _notes(axes: Axes, asked: Question) -> list[str]:
    found = []
    for column, part in axes.part.items():
        if bool(((part > 0) & (part < 1)).any()):
            found.append(f"a condition on '{column}' cuts through a measured cell: the interval is wider for it")
    if asked.what in ("mean", "sum", "variance", "quantile") and asked.column is not None:
        own, fine = own_counts(axes.evidence, asked.column), axes.evidence.fine(asked.column)
        if own is not None and fine is not None:
            rows = float(own.counts[: fine.size].sum())
            for cell, words in ((0, "lower"), (fine.size - 1, "upper")):
                share, error = own.counts[cell] / rows, math.sqrt(own.covariance[cell, cell]) / rows
                if fine.widths[cell] == 1 and share > max(AT_BOUND, 3 * error):
                    found.append(
                        f"about {share:.0%} of the numbers lie at the {words} bound of '{asked.column}': values beyond "
                        "a declared bound count as the bound"
                    )
    return found
