"""Possible: do rows make sense? Relations that they break, and pairs of values that no known row has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpmerf.encoding.broken import broken
from dpmerf.encoding.codec import placed
from dpmerf.encoding.reading import read
from dpmerf.evaluate.marginals import column_sets
from dpmerf.evaluate.results import BrokenRelation, PairNovelty
from dpmerf.evaluate.views import BINS, Coded, Rows
from dpmerf.schema import Schema

MOST_PAIRS = 5_000  # of columns


def broken_shares(table: pa.Table, schema: Schema) -> list[tuple[str, float]]:
    """Each relation in words, and the share of rows that break it. For synthetic rows this needs no real row."""
    if not schema.relations or table.num_rows == 0:
        return []
    found = broken(placed(read(table, schema), schema), schema.program)  # as a release would see the cells
    names = [r.name or r.words for r in schema.relations]
    return [(names[i], float(rows.mean())) for i, rows in found.items()]


def broken_relations(synthetic: pa.Table, real: pa.Table, schema: Schema) -> list[BrokenRelation]:
    """Beside the shares of real rows, which may break what a person declared."""
    pairs = zip(broken_shares(synthetic, schema), broken_shares(real, schema), strict=True)
    return [BrokenRelation(relation=words, synthetic=ours, real=theirs) for (words, ours), (_, theirs) in pairs]


def pair_novelty(synthetic: Rows, real: Rows, train: Rows | None, seed: int = 0) -> PairNovelty:
    """Shares of rows with a pair of values that no training row has; without training rows, no real row."""
    known = (train or real).all_coded()
    ours = novel(synthetic.all_coded(), known, seed)
    theirs = None if train is None else float(novel(real.all_coded(), known, seed).mean())
    return PairNovelty(bins=BINS, synthetic=float(ours.mean()), baseline=theirs)


def novel(rows: list[Coded], known: list[Coded], seed: int = 0) -> np.ndarray:
    """(n,) whether a row holds a pair of values (in public bins) that no known row holds.

    >>> a = [Coded("x", np.array([0, 1]), 2, False), Coded("y", np.array([0, 1]), 2, False)]
    >>> b = [Coded("x", np.array([0, 1]), 2, False), Coded("y", np.array([0, 0]), 2, False)]
    >>> novel(b, a).tolist()
    [False, True]
    """
    found = np.zeros(len(rows[0].codes), dtype=bool)
    for i, j in column_sets(len(rows), 2, MOST_PAIRS, seed):
        seen = np.zeros(known[i].size * known[j].size, dtype=bool)
        seen[known[i].codes * known[j].size + known[j].codes] = True
        found |= ~seen[rows[i].codes * rows[j].size + rows[j].codes]
    return found
