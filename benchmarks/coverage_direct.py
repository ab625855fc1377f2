"""Coverage of direct answers: how often 95 % intervals hold the truth."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.populations import Population
from dpmerf.inference.answers import Line
from dpmerf.inference.ask import answer
from dpmerf.inference.blue import Joint, solve
from dpmerf.inference.evidence import Evidence, evidence, expected
from dpmerf.inference.predict import sharpness
from dpmerf.methods.presets import make_plan
from dpmerf.plan import Plan
from dpmerf.private.measure import measure

ROWS = 20_000
Z = 1.959964
LEAST_SHARE = 0.01  # of two-way cells that count
PAIRS, GROUPS = 40, 24  # of columns, at most: of two-way tables and of differences of means


def releases(people: Population, epsilon: float, seeds: range, timed: bool = True) -> dict[str, Any]:
    """Several releases of freshly drawn rows: hits by family; of intervals about the table, how wide they are beside
    the noise that the best linear estimate has (what is unknown inside cells widens them)."""
    plan = make_plan(people.schema, epsilon, 1e-5, rows=ROWS)
    found: dict[str, dict[str, Any]] = {}
    seconds = None
    for seed in seeds:
        drawn = people.draw(ROWS, seed)
        known = evidence(measure(people.table.take(drawn), plan))
        if timed and seed == seeds[0]:
            start = time.monotonic()
            every_table(known)
            seconds = time.monotonic() - start
        for family, about, line, truth in _asked(known, people, drawn, seed):
            to = found.setdefault(f"{family}/{about}", {"n": 0, "hits": 0, "none": 0})
            if line.low is None or line.high is None:
                to["none"] += 1
                continue
            slack = 1e-9 * max(1.0, abs(truth))
            to["n"] += 1
            to["hits"] += bool(line.low - slack <= truth <= line.high + slack)
            if about == "table" and line.privacy_error > 0:
                to.setdefault("widths", []).append((line.high - line.low) / (2 * Z * line.privacy_error))
    for to in found.values():
        if "widths" in to:
            to["width"] = float(np.median(to.pop("widths")))
    return {"releases": len(seeds), "families": found, "seconds_all_tables": seconds}


def foretold(people: Population, epsilon: float, seeds: range) -> dict[str, Any]:
    """Half-widths that the plan foretells, beside those that answers about fresh releases have (means over them)."""
    plan = make_plan(people.schema, epsilon, 1e-5, rows=ROWS)
    seen = [_half_widths(evidence(measure(people.table.take(people.draw(ROWS, seed)), plan))) for seed in seeds]
    means = {name: float(np.mean([s["means"][name] for s in seen])) for name in seen[0]["means"]}
    share = float(np.mean([s["share"] for s in seen]))
    told = sharpness(plan, _fine_counts(plan, people)).means
    return {
        "releases": len(seeds),
        "foretold": sharpness(plan).to_json(),
        "told": told,
        "seen": {"share": share, "means": means},
    }


def _fine_counts(plan: Plan, people: Population) -> dict[str, np.ndarray]:
    """Column -> expected counts of its fine cells in a table drawn from the population."""
    known = expected(plan)
    scale = ROWS / people.table.num_rows
    return {n: scale * np.bincount(x, minlength=known.size(n, "fine")) for n, x in people.cells(known).items()}


def every_table(known: Evidence) -> None:
    """All one- and two-way tables that were measured, with errors."""
    names = list(known.codec.schema.learned)
    for i, a in enumerate(names):
        if solve(known, (a,)) is not None:
            answer(known, "crosstab", by=a)
        for b in names[i + 1 :]:
            if solve(known, (a, b)) is not None:
                answer(known, "crosstab", by=(a, b))


def _half_widths(known: Evidence) -> dict[str, Any]:
    shares, means = [], {}
    for name in known.codec.schema.learned:
        if name in known.codec.axes:
            means[name] = Z * answer(known, "mean", name).lines[0].privacy_error
        else:
            rows = known.rows or 1
            shares.append(np.median([Z * x.privacy_error / rows for x in answer(known, "count", by=name).lines]))
    return {"share": float(np.median(shares)), "means": means}


def _asked(known: Evidence, people: Population, drawn: np.ndarray, seed: int) -> Iterator[tuple[str, str, Line, float]]:
    rng = np.random.default_rng(seed)
    names = list(known.codec.schema.learned)
    categories = [n for n in names if n not in known.codec.axes]
    for about, truth in (("table", 0), ("population", 1)):
        other = bool(truth)
        for name in categories:
            lines = answer(known, "count", by=name, population=other).lines
            for line, shares in zip(lines, _shares(known, people, drawn, (name,)), strict=True):
                yield "one-way share", about, _scaled(line, ROWS), shares[truth]
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if _held(known, a, b)]
        for k in rng.permutation(len(pairs))[:PAIRS] if truth == 0 else []:
            for also in (0, 1):
                lines = answer(known, "crosstab", by=pairs[k], population=bool(also)).lines
                for line, shares in zip(lines, _shares(known, people, drawn, pairs[k]), strict=True):
                    if shares[1] >= LEAST_SHARE:
                        yield "two-way share", ("table", "population")[also], _scaled(line, ROWS), shares[also]
        for name, values in people.numbers.items():
            own = (values[drawn], values)[truth]
            own = own[~np.isnan(own)]
            yield "mean", about, answer(known, "mean", name, population=other).lines[0], float(own.mean())
            median = float(np.quantile(own, 0.5, method="inverted_cdf"))
            yield "median", about, answer(known, "quantile", name, population=other).lines[0], median
        yield from _differences(known, people, drawn, truth, about)


def _differences(
    known: Evidence, people: Population, drawn: np.ndarray, truth: int, about: str
) -> Iterator[tuple[str, str, Line, float]]:
    """Means of a number in the two largest groups of a category."""
    cells = people.cells(known)
    categories = [n for n in known.codec.schema.learned if n not in known.codec.axes]
    wanted = [(number, by) for by in categories[::-1] for number in people.numbers if _held(known, by, number)]
    for number, by in wanted[:: -(-len(wanted) // GROUPS)]:
        found = answer(known, "mean", number, by=by, population=bool(truth))
        joint = solve(known, (by, number))
        assert joint is not None
        group_of = known.group_of[by, joint.levels[0]][cells[by]]
        one, other = np.argsort(-np.bincount(group_of, minlength=len(found.lines)))[:2]
        values, groups = people.numbers[number], group_of
        if truth == 0:
            values, groups = values[drawn], groups[drawn]
        gap = float(np.nanmean(values[groups == one]) - np.nanmean(values[groups == other]))
        yield "difference of means", about, found.difference(found.lines[one].group, found.lines[other].group), gap


def _held(known: Evidence, by: str, number: str) -> bool:
    return frozenset((by, number)) in known.measured


def _shares(
    known: Evidence, people: Population, drawn: np.ndarray, columns: tuple[str, ...]
) -> list[tuple[float, float]]:
    """(table, population) of each cell of a joint table."""
    joint = solve(known, columns)
    assert joint is not None
    here, there = (_counted(known, people, joint, rows) for rows in (drawn, None))
    return list(zip(here / here.sum(), there / there.sum(), strict=True))


def _counted(known: Evidence, people: Population, joint: Joint, rows: np.ndarray | None) -> np.ndarray:
    cells, code = people.cells(known), np.zeros(1, np.int64)
    for column, level, size in zip(joint.columns, joint.levels, joint.shape, strict=True):
        own = cells[column] if rows is None else cells[column][rows]
        code = code * size + known.group_of[column, level][own]
    return np.bincount(code, minlength=len(joint.counts)).astype(float)


def _scaled(line: Line, rows: int) -> Line:
    assert line.estimate is not None and line.low is not None and line.high is not None
    return Line(
        line.group,
        line.estimate / rows,
        line.privacy_error / rows,
        line.inside_error / rows,
        None if line.sampling_error is None else line.sampling_error / rows,
        line.low / rows,
        line.high / rows,
    )
