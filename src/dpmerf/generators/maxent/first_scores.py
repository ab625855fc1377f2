"""First scores: one number a column that tells most of what an analysis asks for, and Newton steps that meet them.

The first score of a number is linear in its rank, that of a category tells the most common from the rest (see
`departures`). Regressions look at products of two such scores. Cell by cell, an ascent comes near to these slowly,
since one column says in part what others say; all of them together are few enough for Newton's method, whose curvature,
the covariance of the products, is seen from the chains once and serves all draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from dpmerf.generators.maxent.consistent import Targets
from dpmerf.generators.maxent.departures import Scores
from dpmerf.generators.maxent.gibbs import Chains
from dpmerf.plan.noisy_tables import Layout


def first_scores(totals: Tensor, layout: Layout, numbers: dict[int, int]) -> Tensor:
    """(P, q) the first score of each column's bins, of mean 0 and variance 1 under its counts (P,)."""
    found = torch.zeros(layout.positions, len(layout.sizes))
    for j in range(len(layout.sizes)):
        span = layout.span(j)
        values = Scores.of(totals[span], numbers.get(j, 0)).values
        if values.shape[1]:
            found[span, j] = values[:, 0].float()
    return found


@final
@dataclass(frozen=True)
class Newton:
    """Steps of interactions along products of first scores, of all classes together."""

    scores: Tensor  # (P, q)
    pairs: Tensor  # (K, 2) measured ones
    factor: Tensor  # (K, K) Cholesky factor of the curvature
    shift: Tensor  # (C, q, K) by which h makes up for what a step would do to single columns

    @staticmethod
    def of(t: Targets, scores: Tensor, chains: Chains, singular: float) -> Newton | None:
        """From chains that stand near the model; None where no pair was measured."""
        S = t.layout.members
        among = (S.T @ t.measured @ S > 0) & (scores.abs().sum(0) > 0)[:, None] & (scores.abs().sum(0) > 0)
        pairs = torch.nonzero(torch.triu(among, 1))
        if not len(pairs):
            return None
        curvature, shifts = torch.zeros(len(pairs), len(pairs)), []
        for c, hot in enumerate(chains.onehot):
            z = scores.T @ hot  # (q, N)
            z = z - z.mean(1, keepdim=True)
            product = z[pairs[:, 0]] * z[pairs[:, 1]]
            product = product - product.mean(1, keepdim=True)
            weight = float(t.classes[c]) / chains.count
            own = z @ z.T + torch.eye(len(z)) * (singular * chains.count)
            shift = torch.linalg.solve(own, z @ product.T)  # (q, K)
            rest = product - shift.T @ z
            curvature += weight * (rest @ rest.T)
            shifts.append(shift)
        curvature += torch.diag(curvature.diagonal() * singular + 1e-6 * float(t.classes.sum()))
        return Newton(scores, pairs, torch.linalg.cholesky(curvature), torch.stack(shifts))

    def step(self, lack: Tensor) -> tuple[Tensor, Tensor]:
        """(C, P) and (P, P): what to add to h and to the shared J for pair counts to grow by `lack` (P, P)."""
        q = self.scores.shape[1]
        i, j = self.pairs.T
        wanted = (self.scores.T @ lack @ self.scores)[i, j]
        found = torch.cholesky_solve(wanted[:, None], self.factor)[:, 0]
        of_pair = torch.zeros(q, q)
        of_pair[i, j] = of_pair[j, i] = found
        return -(self.shift @ found) @ self.scores.T, self.scores @ of_pair @ self.scores.T
