"""Tables: histograms, which cut the bins; then the tables that the noise allows; then the strongest pairs again."""

from __future__ import annotations

import itertools
import math

from dpmerf.methods.method import Request
from dpmerf.methods.settings import Shares
from dpmerf.plan import Stage
from dpmerf.plan.queries import Histograms, LabelTriples, PairsAgain, PreferredValues, Tables
from dpmerf.plan.queries.preferred_values import worth_counting


def stages(asked: Request) -> tuple[Stage, ...]:
    """What is measured of a table of usual size."""
    s, every_column = asked.settings.tables, asked.grid(asked.settings.tables.fine_cells[1])
    pairs = affordable_pairs(asked)
    shares, bins = _shares(asked, pairs)
    least = 0 if shares.histograms >= s.all_histograms else s.no_histogram
    drawn = tuple(name for name, v in every_column.items() if v.size > least) or tuple(asked.schema.learned)
    tables = shares.single + shares.pair + shares.label_pair
    cells = asked.fine_cells(len(drawn), shares.histograms)
    query = Tables(
        bins=bins,
        parts=s.parts,
        by_label=asked.by_label,
        pairs=tuple(pairs),
        share_single=shares.single / tables,
        share_pair=shares.pair / tables,
        share_label_pair=shares.label_pair / tables,
    )
    histograms = Histograms(cells=cells, columns=drawn)
    both = (Stage("discover", shares.histograms, histograms), Stage("tables", tables, query))
    if shares.again == 0:
        return _with_preferred_values(asked, histograms, *_with_triples(asked, *both))
    clear = int(shares.again * (asked.rows / (s.again_signal * asked.noise)) ** 2)
    count = max(1, min(len(pairs) // s.measured_again, clear))
    again = Stage("pairs again", shares.again, PairsAgain(count=count))
    return _with_preferred_values(asked, histograms, *_with_triples(asked, *both, again))


def _with_triples(asked: Request, *stages: Stage) -> tuple[Stage, ...]:
    """Last, label × triples of columns with few values, if rows are many enough to show them all."""
    s, sizes = asked.settings.tables, {v.name: v.size for v in asked.codec.variables}
    small = [name for name in asked.features if 2 <= sizes.get(name, 0) <= s.triple_values]
    triples = tuple(itertools.combinations(small, 3))
    if not triples or not asked.by_label:
        return stages
    cell = asked.rows / (asked.classes * math.prod(sorted(sizes[name] for name in small)[-3:]))
    if cell < s.bin_noise * asked.noise * math.sqrt(len(triples) / s.triples):
        return stages
    less = [Stage(stage.name, stage.share * (1 - s.triples), stage.query) for stage in stages]
    return (*less, Stage("label triples", s.triples, LabelTriples(triples=triples)))


def _with_preferred_values(asked: Request, histograms: Histograms, first: Stage, *later: Stage) -> tuple[Stage, ...]:
    """After the histograms, a small part of the budget for single values and round numbers, if it can show them."""
    s = asked.settings.tables
    columns = tuple(name for name in histograms.columns if worth_counting(asked.codec, name, histograms))
    if not columns:
        return (first, *later)
    query = PreferredValues(columns=columns)
    tables = sum(len(grain.sizes) for grain in query.grains(asked.codec, histograms).values())
    if s.preferred_share * asked.rows < s.preferred_noise * asked.noise * math.sqrt(tables / s.preferred):
        return (first, *later)
    less = [Stage(stage.name, stage.share * (1 - s.preferred), stage.query) for stage in (first, *later)]
    return (less[0], Stage("preferred values", s.preferred, query), *less[1:])


def affordable_pairs(asked: Request) -> list[tuple[str, str]]:
    """All pairs if the noise on a cell leaves them visible, else none: what rows there are then pays for columns alone.

    Which columns get a histogram decides how finely columns are cut, and that how many cells pairs have.
    """
    s, columns = asked.settings.tables, asked.features
    every_column = asked.grid(s.fine_cells[1])
    drawn = sum(v.size > s.no_histogram for v in every_column.values()) or len(asked.schema.learned)
    grid = asked.grid(asked.fine_cells(drawn, s.ample.histograms))
    positions = sum(min(grid[name].size, s.bins[0]) for name in columns)
    every = list(itertools.combinations(columns, 2))
    affordable = (s.ample.pair + s.ample.label_pair) * (asked.rows / (s.pair_signal * asked.noise)) ** 2
    return every if s.pairs and asked.classes * positions**2 <= s.most_cells and len(every) <= affordable else []


def _shares(asked: Request, pairs: list[tuple[str, str]]) -> tuple[Shares, int]:
    """How the budget is spent, and the bins of a column: as many as the noise of pairs allows."""
    s = asked.settings.tables

    def with_bins(shares: Shares) -> tuple[Shares, int]:
        if not asked.by_label:
            shares = shares._replace(pair=shares.pair + shares.label_pair, label_pair=0.0)
        bins = _bins(asked, len(pairs), shares)
        if shares.label_pair > 0 and pairs and _only_noise(asked, len(pairs), shares.label_pair, bins):
            shares = shares._replace(pair=shares.pair + shares.label_pair, label_pair=0.0)
            bins = _bins(asked, len(pairs), shares)
        return shares, bins

    if not pairs:
        return with_bins(s.alone)
    found, (least_bins, most_bins) = with_bins(s.ample), s.bins
    if len(pairs) >= s.measured_again and found[1] < most_bins:
        found = with_bins(s.usual)
    return with_bins(s.coarse) if found[1] == least_bins else found


def _only_noise(asked: Request, pairs: int, share: float, bins: int) -> bool:
    """Would label × pair tables be nothing but noise? Then their share is better spent on pairs."""
    noise = asked.noise * math.sqrt(pairs / share)
    return asked.rows / (asked.classes * bins**2) < asked.settings.tables.three_way_signal * noise


def _bins(asked: Request, pairs: int, shares: Shares) -> int:
    """As many bins as leave an average cell, of pairs if there are any, `bin_noise` times above its noise."""
    s, noise = asked.settings.tables, asked.noise
    if pairs == 0:
        columns = len(asked.features)
        bins = asked.rows / (asked.classes * s.bin_noise * noise * math.sqrt(columns / shares.single))
    else:
        precision = (shares.pair + shares.again + shares.label_pair / asked.classes) / pairs
        bins = math.sqrt(asked.rows * math.sqrt(precision) / (s.bin_noise * noise))
    return int(min(max(bins, s.bins[0]), s.bins[1]))
