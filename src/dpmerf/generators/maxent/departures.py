"""Departures: what each measured pair of columns may be like beyond independence within classes, given its noisy table.

With scores u_r, v_s that are orthonormal under the columns' own margins, a table departs from independence by
n · p_k q_l · Σ ρ_rs u_rk v_sl (Lancaster's expansion): ρ_rs are correlations of scores. Numbers have a first score that
is linear in their rank, categories one that tells the most common from the rest. The noise of a cell is known, ρ has a
normal prior of mean zero, and how large it is for scores of each kind is found from all tables together, then table by
table (partial pooling), but between first scores never below that of moderate correlations: what an analysis asks for
must not be taken for nothing where noise hides it. The posterior is normal, in closed form. Post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.consistent import Targets

Kind = tuple[str, str]


@final
@dataclass(frozen=True)
class Settings:
    """Round numbers. `first` and `other` were raised after looking at coverage on adult (ADR 17)."""

    rounds: int = 12  # of expectation and maximisation
    pooled: float = 2.0  # tables' worth of scores that the pool counts beside a table's own
    least: float = 1e-6  # of a prior variance of ρ
    first: float = 0.05  # the same between first scores: correlations of 0.2 are common
    other: float = 0.02  # and between a number's trend and any category

    def floor(self, kind: Kind) -> float:
        """The least prior variance of a kind."""
        if set(kind) <= {"trend", "main"}:
            return self.first
        return self.other if set(kind) == {"trend", "category"} else self.least


@final
@dataclass(frozen=True)
class Scores:
    """(k, k − 1) scores of a column's bins, orthonormal under its margin, and the kind of each."""

    values: Tensor
    kinds: tuple[str, ...]

    @staticmethod
    def of(margin: Tensor, numbers: int) -> Scores:
        """`numbers` of the bins are numbers in order (0 for categories); others, as null, come after them.

        >>> s = Scores.of(torch.tensor([0.25, 0.5, 0.25]).double(), 3)
        >>> s.kinds, s.values[:, 0].round(decimals=2).abs().tolist()
        (('trend', 'shape'), [1.41, 0.0, 1.41])
        """
        k = len(margin)
        p = margin.double().clamp_min(1e-9)
        p = p / p.sum()
        columns, kinds = [torch.ones(k, dtype=torch.float64)], []
        if numbers > 1:
            rank = p.cumsum(0) - p / 2
            among = (torch.arange(k) < numbers).double()
            columns.append(torch.where(among > 0, rank - (p * among * rank).sum() / (p * among).sum(), 0.0))
            kinds.append("trend")
        others = torch.eye(k, dtype=torch.float64)[p.argsort(descending=True)]
        q, _r = torch.linalg.qr(torch.stack([*columns, *others[: k - len(columns)]], 1) * p.sqrt()[:, None])
        kinds += ["shape"] * (k - 2) if numbers > 1 else ["main", *["category"] * (k - 2)][: k - 1]
        return Scores(q[:, 1:] / p.sqrt()[:, None], tuple(kinds))


@final
@dataclass(frozen=True)
class Table:
    """The posterior of one pair's departure: `mean` (a, b), and a factor that turns normal numbers into a draw."""

    columns: tuple[int, int]
    mean: Tensor
    factor: Tensor  # (a · b, free)

    @property
    def variance(self) -> Tensor:
        """(a, b) of each cell."""
        return self.factor.square().sum(1).view(self.mean.shape)


@final
@dataclass(frozen=True)
class Departures:
    """Of all measured pairs."""

    tables: tuple[Table, ...]
    positions: int
    offsets: tuple[int, ...]

    def mean(self) -> Tensor:
        return self._laid(t.mean for t in self.tables)

    def variance(self) -> Tensor:
        return self._laid(t.variance for t in self.tables)

    def draw(self, rng: torch.Generator) -> Tensor:
        """(P, P) a draw of all tables."""
        z = (torch.randn(t.factor.shape[1], generator=rng, dtype=torch.float64) for t in self.tables)
        return self._laid(t.mean + (t.factor @ x).view(t.mean.shape) for t, x in zip(self.tables, z, strict=True))

    def _laid(self, found: Iterator[Tensor]) -> Tensor:
        out = torch.zeros(self.positions, self.positions)
        for t, cells in zip(self.tables, found, strict=True):
            i, j = (slice(self.offsets[c], self.offsets[c + 1]) for c in t.columns)
            out[i, j], out[j, i] = cells.float(), cells.T.float()
        return out


def independent(t: Targets) -> Tensor:
    """(P, P) expected counts if columns were independent within classes."""
    return (t.singles[:, :, None] * t.singles[:, None, :] / t.classes[:, None, None]).sum(0)


def departures(t: Targets, numbers: dict[int, int], s: Settings | None = None) -> Departures:
    """The posterior, given noisy tables. `numbers` says how many bins of a column hold numbers."""
    s = s or Settings()
    layout, rows = t.layout, float(t.classes.sum())
    apart, totals = (t.pairs - independent(t)).double(), t.singles.sum(0)
    spans = [layout.span(j) for j in range(len(layout.sizes))]
    scores = [Scores.of(totals[span], numbers.get(j, 0)) for j, span in enumerate(spans)]
    weighted = [
        x.values * (totals[span].double().clamp_min(1e-6) / rows)[:, None]
        for x, span in zip(scores, spans, strict=True)
    ]
    asked = []
    for i, j in _pairs(t):
        if not (scores[i].kinds and scores[j].kinds):
            continue
        map_ = rows * torch.kron(weighted[i].contiguous(), weighted[j].contiguous())  # (a·b, free)
        noise = float(t.pair_variance[spans[i], spans[j]].mean())
        kinds = [(min(a, b), max(a, b)) for a in scores[i].kinds for b in scores[j].kinds]
        asked.append(_Asked((i, j), map_, apart[spans[i], spans[j]].reshape(-1), noise, kinds))
    priors = _priors(asked, s)
    tables = []
    for one, prior in zip(asked, priors, strict=True):
        mean, factor = one.posterior(prior)
        shape = (layout.sizes[one.columns[0]], layout.sizes[one.columns[1]])
        tables.append(Table(one.columns, (one.map @ mean).view(shape), one.map @ factor))
    return Departures(tuple(tables), layout.positions, tuple(layout.offsets))


@final
class _Asked:
    """One pair's linear problem: departure = map · ρ + noise."""

    def __init__(self, columns: tuple[int, int], map_: Tensor, apart: Tensor, noise: float, kinds: list[Kind]) -> None:
        self.columns, self.map, self.kinds = columns, map_, kinds
        self._precision = map_.T @ map_ / noise
        self._weighted = map_.T @ apart / noise

    def posterior(self, prior: Tensor) -> tuple[Tensor, Tensor]:
        """(free,) mean of ρ and a factor F of its covariance FFᵀ."""
        root = torch.linalg.cholesky(self._precision + torch.diag(1 / prior))
        mean = torch.cholesky_solve(self._weighted[:, None], root)[:, 0]
        factor = torch.linalg.solve_triangular(root.T, torch.eye(len(prior), dtype=torch.float64), upper=True)
        return mean, factor


def _priors(asked: list[_Asked], s: Settings) -> list[Tensor]:
    """(free,) each: the variance of ρ, by kind of score, by expectation and maximisation over all tables."""
    kinds = sorted({kind for one in asked for kind in one.kinds})
    index = [torch.tensor([kinds.index(k) for k in one.kinds]) for one in asked]
    own = torch.full((len(asked), len(kinds)), s.other, dtype=torch.float64)
    counts = torch.stack([torch.bincount(i, minlength=len(kinds)) for i in index]).double() if asked else own
    floor = torch.tensor([s.floor(kind) for kind in kinds], dtype=torch.float64)
    for _ in range(s.rounds):
        squares = torch.zeros_like(own)
        for row, (one, at) in enumerate(zip(asked, index, strict=True)):
            mean, factor = one.posterior(own[row][at])
            squares[row] = torch.zeros(len(kinds), dtype=torch.float64).index_add(
                0, at, mean.square() + factor.square().sum(1)
            )
        pool = squares.sum(0) / counts.sum(0).clamp_min(1)
        own = torch.maximum((s.pooled * pool + squares) / (s.pooled + counts), floor)
    return [own[row][at] for row, at in enumerate(index)]


def _pairs(t: Targets) -> list[tuple[int, int]]:
    S = t.layout.members
    row, column = torch.nonzero(torch.triu(S.T @ t.measured @ S, 1), as_tuple=True)
    return list(zip(row.tolist(), column.tolist(), strict=True))
