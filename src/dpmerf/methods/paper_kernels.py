"""Paper: DP-MERF as published. One mean embedding of random Fourier features, class counts measured with it."""

from __future__ import annotations

import math

from dpmerf.methods.method import Request
from dpmerf.plan import Stage
from dpmerf.plan import proposition1 as error
from dpmerf.plan.queries import MeanEmbedding


def stages(asked: Request) -> tuple[Stage, ...]:
    """One stage, with as many features as Proposition 1 recommends, up to a limit."""
    s, codec = asked.settings.paper, asked.codec
    p = len(codec.numeric)
    spread = math.sqrt(max(p, 1) / 6)  # root mean square distance of two uniform points of the unit cube
    classes = codec.label.size if codec.label else 1
    dim = min(s.dim, error.recommended_dim(asked.noise / math.sqrt(2), asked.rows, classes)) if p else 2
    by_label = asked.schema.label is not None
    counted = not asked.balanced if by_label else not asked.unit.rows_public
    query = MeanEmbedding(
        dim=dim,
        scales=tuple(spread * scale for scale in s.scales),
        seed=asked.seed,
        by_label=by_label,
        counts=1.0 if counted else 0.0,
    )
    return (Stage("embedding", 1.0, query),)
