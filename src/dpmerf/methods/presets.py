"""Presets: a plan from public facts alone (schema, rows, ε, δ, unit), so that nobody tunes anything."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpmerf.accounting.gaussian import check_delta, check_epsilon, mu_of
from dpmerf.accounting.unit import Unit
from dpmerf.encoding.binning import FineGrid
from dpmerf.encoding.codec import Codec, Variable
from dpmerf.errors import BudgetError, PlanError
from dpmerf.methods.image_presets import image_stages
from dpmerf.plan import Plan, Stage
from dpmerf.plan import proposition1 as error
from dpmerf.plan.queries import (
    ColumnSelection,
    Directions,
    Histograms,
    MeanEmbedding,
    PairsAgain,
    PreferredValues,
    SelectedTable,
    Tables,
)
from dpmerf.plan.queries.preferred_values import worth_counting
from dpmerf.schema import Numeric, Schema

MOST_EPSILON = 1e6  # any promise has ended long before
MOST_ROWS = 2**53  # whole numbers are exact so far
DEFAULT_ROWS = 10_000  # assumed when nobody says how many rows to expect
PAPER_DIM = 2_000
LOOKED_AT_TWICE = 3  # one in so many pairs
MOST_CELLS = 8e6  # classes × positions²: above it no pairs are measured, and groups of columns are larger
MOST_CLASSES = 16  # a label with more classes is modelled as a column among the others
NO_HISTOGRAM = 8  # cells up to which a column is a table of its own anyway
FINE_CELLS = (8, 256)  # least and most
BINS = (4, 20)  # least and most
PARTS = 8  # of a bin, at most: what a label × column table resolves beyond the bins of pairs
WIDE = 64  # columns from which, if not all pairs can be paid for, means and covariances are measured in their place
WIDE_CELLS = (16, 64)  # least and most fine cells of such a column
WIDE_HISTOGRAMS = 0.3  # of μ², for their histograms
GROUP_NOISE = 20.0  # times a group's variance: the largest eigenvalue that noise alone may give groups' covariance
WIDE_SHARES = (0.45, 0.45, 0.1)  # means, products, lengths
FEW_ROWS = 28.0  # times the noise of a label × column cell: with fewer rows, one column is chosen by noisy scores,
TOO_FEW = 30.0  # times noise · log(columns), with more rows than that: else a choice finds nothing
CHOICE_COLUMNS = 8  # of how many, at least
PREFERRED = 0.025  # of μ², for values that rows prefer,
PREFERRED_SHARE, PREFERRED_NOISE = 0.05, 6.0  # if this share of rows is so many times the noise of their count
BIN_NOISE = 6.0  # an average cell of a pair table holds at least this many times its noise


class Shares(NamedTuple):
    """Of μ²: fine histograms, label × column, pairs, label × pairs, and a second look at some of the pairs."""

    histograms: float
    single: float
    pair: float
    label_pair: float
    again: float = 0.0


AMPLE = Shares(0.20, 0.36, 0.24, 0.20)  # where noise allows the most bins, or not all pairs
USUAL = Shares(0.15, 0.38, 0.15, 0.09, 0.23)
COARSE = Shares(0.15, 0.50, 0.13, 0.00, 0.22)  # where it leaves no more than the least number: pairs show little
CHOSEN = (0.15, 0.20, 0.40, 0.25)  # histograms, label × column, the choice of a column, a closer look at it
COARSE_SINGLE = 0.48  # label × column there, at least, if there is no second look


def make_plan(
    schema: Schema,
    epsilon: float,
    delta: float | None = None,
    *,
    rows: int | None = None,
    unit: Unit | None = None,
    preset: str = "default",
    balanced: bool = False,
    seed: int = 0,
) -> Plan:
    """Price a release before any row is read. The schema says which column is the label.

    Parameters
    ----------
    schema : Schema
        The public facts about the table.
    epsilon : float
        The privacy budget, above 0.
    delta : float, optional
        The smaller of 1e-5 and 1/(10 rows) if left out.
    rows : int, optional
        The expected number of rows: a public fact or a guess. What is measured is cut to it.
    unit : Unit, optional
        What is protected; one row, replaced by any other, if left out.
    preset : {"default", "paper"}
        Noisy tables, or the paper's mean embedding.
    balanced : bool
        Classes are known to be equally frequent: their counts are not measured.
    seed : int
        Of random features. Has nothing to do with the noise.

    Returns
    -------
    Plan
        With its price, its noise and its size.

    Examples
    --------
    >>> schema = Schema.from_dict({"columns": {"age": {"kind": "integer", "min": 0, "max": 99}}})
    >>> make_plan(schema, epsilon=1.0, rows=5_000).delta
    1e-05
    """
    rows = DEFAULT_ROWS if rows is None else rows
    if not 1 <= rows <= MOST_ROWS:
        said = rows if abs(rows) <= MOST_ROWS else "too large"
        raise PlanError(f"rows is {said}: write the expected number of rows, 1 or more")
    schema.check_ids(rows)
    epsilon = check_epsilon(epsilon)
    if epsilon > MOST_EPSILON:
        raise BudgetError(f"epsilon is {epsilon:g}: that promises nothing. Write a small number, for example 1")
    delta = check_delta(min(1e-5, 0.1 / rows) if delta is None else delta)
    unit = unit or Unit()
    if balanced and schema.measured.label is None:
        raise PlanError("balanced classes need a label: name one with --label or in the schema")
    if schema.image is not None:
        stages = image_stages(schema, preset, balanced, unit, seed)
        return Plan(schema, epsilon, delta, unit, rows, preset, balanced, stages)
    if preset not in _PRESETS:
        raise PlanError(f"there is no preset '{preset}'. Choose one of {', '.join(_PRESETS)}")
    noise = unit.sensitivity(1.0, math.sqrt(2)) / mu_of(epsilon, delta)  # of a unit-norm table, in counts
    stages = _PRESETS[preset](schema.measured, rows, noise, balanced, unit, seed)
    return Plan(schema, epsilon, delta, unit, rows, preset, balanced, stages)


def _default(schema: Schema, rows: int, noise: float, balanced: bool, unit: Unit, seed: int) -> tuple[Stage, ...]:
    """Histograms first, which cut the bins; then the tables that the noise allows; then the strongest again."""
    codec = Codec(schema)
    every_column = FineGrid(codec, FINE_CELLS[1]).variables
    drawn = tuple(name for name, v in every_column.items() if v.size > NO_HISTOGRAM) or tuple(schema.learned)
    by_label = _has_classes(schema, codec)
    features = [name for name in schema.learned if not (by_label and name == schema.label)]
    classes = codec.label.size if by_label and codec.label else 1
    cells = _cells(rows, noise, len(drawn), AMPLE.histograms)
    grid = FineGrid(codec, cells).variables
    positions = sum(min(grid[name].size, BINS[0]) for name in features)
    affordable = classes * positions**2 <= MOST_CELLS
    pairs = _pairs(features, rows, noise, AMPLE.pair + AMPLE.label_pair) if affordable else []
    every = len(pairs) == len(features) * (len(features) - 1) // 2 > 0
    if len(features) >= WIDE and not every and _ordered(grid, features, schema):
        return _wide(rows, noise, features, cells, by_label, classes)
    if classes > 1 and _worth_a_choice(rows / noise, len(features)):
        return _chosen(schema, rows, noise)
    shares, bins = _shares(rows, noise, len(features), len(pairs), every, by_label, classes)
    tables = shares.single + shares.pair + shares.label_pair
    stages: tuple[Stage, ...] = (
        Stage(
            "discover",
            shares.histograms,
            Histograms(cells=_cells(rows, noise, len(drawn), shares.histograms), columns=drawn),
        ),
        Stage(
            "tables",
            tables,
            Tables(
                bins=bins,
                parts=PARTS,
                by_label=by_label,
                pairs=tuple(pairs),
                share_single=shares.single / tables,
                share_pair=shares.pair / tables,
                share_label_pair=shares.label_pair / tables,
            ),
        ),
    )
    if shares.again > 0:
        again = Stage("second look", shares.again, PairsAgain(count=len(pairs) // LOOKED_AT_TWICE))
        stages = (*stages, again)
    return _with_preferred_values(stages, codec, rows, noise)


def _with_preferred_values(stages: tuple[Stage, ...], codec: Codec, rows: int, noise: float) -> tuple[Stage, ...]:
    """After the histograms, a small part of the budget for single values and round numbers, if it can show them."""
    first, *later = stages
    histograms = first.query
    assert isinstance(histograms, Histograms)
    columns = tuple(name for name in histograms.columns if worth_counting(codec, name, histograms))
    if not columns:
        return stages
    query = PreferredValues(columns=columns)
    tables = sum(len(grain.sizes) for grain in query.grains(codec, histograms).values())
    if PREFERRED_SHARE * rows < PREFERRED_NOISE * noise * math.sqrt(tables / PREFERRED):
        return stages
    less = [Stage(s.name, s.share * (1 - PREFERRED), s.query) for s in (first, *later)]
    return (less[0], Stage("preferred values", PREFERRED, query), *less[1:])


def _worth_a_choice(rows: float, columns: int) -> bool:
    """`rows` in units of the noise: tables of all columns by label show little, and the best of them can be found.

    Their noise grows with √columns, the number of rows by which the best must stand out with log(columns).
    """
    return columns >= CHOICE_COLUMNS and TOO_FEW * math.log(columns) < rows < FEW_ROWS * math.sqrt(columns)


def _chosen(schema: Schema, rows: int, noise: float) -> tuple[Stage, ...]:
    """Few rows for so many columns: each alone and, roughly, by label; then, closely, the one that tells it most."""
    histograms, single, choice, closer = CHOSEN
    names = tuple(schema.learned)
    tables = Tables(
        bins=BINS[0], parts=1, by_label=True, pairs=(), share_single=1.0, share_pair=0.0, share_label_pair=0.0
    )
    return (
        Stage("discover", histograms, Histograms(cells=_cells(rows, noise, len(names), histograms), columns=names)),
        Stage("tables", single, tables),
        Stage("choice", choice, ColumnSelection()),
        Stage("closer look", closer, SelectedTable()),
    )


def _cells(rows: int, noise: float, columns: int, share: float) -> int:
    """Fine cells of a column."""
    noise_histograms = noise * math.sqrt(columns / share)
    return int(min(max((0.1 * rows / noise_histograms) ** 2, FINE_CELLS[0]), FINE_CELLS[1]))


def _shares(
    rows: int, noise: float, columns: int, pairs: int, every: bool, by_label: bool, classes: int
) -> tuple[Shares, int]:
    """How the budget is spent, and the bins of a column: as many as the noise of pairs allows."""

    def with_bins(shares: Shares) -> tuple[Shares, int]:
        if not by_label:
            shares = shares._replace(pair=shares.pair + shares.label_pair, label_pair=0.0)
        return shares, _bins(rows, noise, columns, pairs, shares, classes)

    found = with_bins(AMPLE)
    if every and pairs >= LOOKED_AT_TWICE:
        if found[1] < BINS[1]:
            found = with_bins(USUAL)
        return with_bins(COARSE) if found[1] == BINS[0] else found
    least = AMPLE.single if every else columns / (columns + pairs) * (1 - AMPLE.histograms)
    found = with_bins(_more_single(least))
    return with_bins(_more_single(max(least, COARSE_SINGLE))) if found[1] == BINS[0] else found


def _more_single(least: float) -> Shares:
    """AMPLE with at least so much for label × column; pairs and label × pairs share what is left."""
    single = max(AMPLE.single, least)
    left = max(1 - AMPLE.histograms - single, 0.0) / (AMPLE.pair + AMPLE.label_pair)
    return AMPLE._replace(single=single, pair=AMPLE.pair * left, label_pair=AMPLE.label_pair * left)


def _wide(rows: int, noise: float, features: list[str], cells: int, by_label: bool, classes: int) -> tuple[Stage, ...]:
    """Histograms that borrow from each other; then means and covariances of groups of neighbouring columns.

    The noise of k groups' covariance has eigenvalues up to a multiple of k^1.5: fewer groups where it would drown them,
    and where their products would be more than pairs of columns may have cells.
    """
    fine = min(max(2 * cells, WIDE_CELLS[0]), WIDE_CELLS[1])
    mean, products, length = WIDE_SHARES
    room = GROUP_NOISE * rows * math.sqrt(2 * products * (1 - WIDE_HISTOGRAMS)) / (2 * noise)  # groups^1.5
    groups = min(room ** (2 / 3), math.sqrt(MOST_CELLS / classes))
    query = Directions(
        group=math.ceil(len(features) / max(1.0, groups)),
        by_label=by_label,
        share_mean=mean,
        share_products=products,
        share_length=length,
    )
    return (
        Stage("discover", WIDE_HISTOGRAMS, Histograms(cells=fine, columns=tuple(features))),
        Stage("directions", 1 - WIDE_HISTOGRAMS, query),
    )


def _ordered(grid: dict[str, Variable], features: list[str], schema: Schema) -> bool:
    """Numbers and columns of two values: a score can stand for them."""
    return all(isinstance(schema.columns[name], Numeric) or grid[name].size <= 2 for name in features)


def _has_classes(schema: Schema, codec: Codec) -> bool:
    if schema.label is None or isinstance(schema.columns[schema.label], Numeric) or len(schema.learned) < 2:
        return False
    return codec.label is not None and codec.label.size <= MOST_CLASSES


def _pairs(columns: list[str], rows: int, noise: float, share: float) -> list[tuple[str, str]]:
    """All pairs if the noise on a cell stays below rows/16; else those nearest in the schema's order."""
    affordable = share * (rows / (16 * noise)) ** 2
    q = len(columns)
    width = q - 1
    while width > 0 and sum(q - d for d in range(1, width + 1)) > affordable:
        width -= 1
    return [(columns[i], columns[j]) for i in range(q) for j in range(i + 1, min(i + width, q - 1) + 1)]


def _bins(rows: int, noise: float, columns: int, pairs: int, shares: Shares, classes: int) -> int:
    """As many bins as leave an average cell, of pairs if there are any, BIN_NOISE times above its noise."""
    if pairs == 0:
        return _limited(rows / (classes * BIN_NOISE * noise * math.sqrt(columns / shares.single)))
    precision = (shares.pair + shares.again + shares.label_pair / classes) / pairs
    return _limited(math.sqrt(rows * math.sqrt(precision) / (BIN_NOISE * noise)))


def _limited(bins: float) -> int:
    return int(min(max(bins, BINS[0]), BINS[1]))


def _paper(schema: Schema, rows: int, noise: float, balanced: bool, unit: Unit, seed: int) -> tuple[Stage, ...]:
    """The paper's kernels: one mean embedding, class counts measured with it."""
    codec = Codec(schema)
    p = len(codec.numeric)
    spread = math.sqrt(max(p, 1) / 6)  # root mean square distance of two uniform points of the unit cube
    classes = codec.label.size if codec.label else 1
    dim = min(PAPER_DIM, error.recommended_dim(noise / math.sqrt(2), rows, classes)) if p else 2
    by_label = schema.label is not None
    counted = not balanced if by_label else not unit.rows_public
    query = MeanEmbedding(
        dim=dim,
        scales=(spread, spread / 2, spread / 4),
        seed=seed,
        by_label=by_label,
        counts=1.0 if counted else 0.0,
    )
    return (Stage("embedding", 1.0, query),)


_PRESETS = {"default": _default, "paper": _paper}
