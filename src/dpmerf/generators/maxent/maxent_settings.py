"""Settings: the tuned numbers of the tables model, in one place. ADR 11 says how they were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Settings:
    """Every default holds for all tables; none was chosen on the test rows of one."""

    # training
    steps: int = 160  # at most
    chains: int = 8_192  # of all classes together; more where classes are many and tables small
    most_work: int = 300_000_000  # chains of a class × positions², for those additional ones
    rate: float = 0.6  # of a step; halved where the loss grows, since columns that say the same overshoot
    slowing: float = 4.0  # by which the rate falls while parameters are averaged
    averaged: int = 40  # last steps, whose parameters are averaged
    kept_every: int = 5  # of these steps: the chains are kept, to start drawing from
    check_every: int = 10  # steps between looks at convergence
    tolerance: float = 0.03  # mean squared gradient of the penalised likelihood, in noise variances: converged below
    worse: float = 1.1  # times the least loss so far: above it the rate is halved
    few_bins: int = 7  # up to which the ridge is full, and less of it with more: interactions have heavy tails

    # cells that the release shows to be empty
    empty: float = 0.5  # probability above which a cell is taken for empty
    full_tables: float = 10.0  # tables without empty cells assumed beside the real ones

    # columns redrawn together
    together: float = 0.3  # share of the smaller entropy that two columns have in common
    most_states: int = 128  # joint values of such columns

    # drawing
    burn: int = 1  # Gibbs sweeps before rows are taken
    burn_given: int = 30  # the same, where columns are held
    drawn: int = 4_096  # chains moved at a time
    gain: float = 0.5  # how strongly the bins that earlier rows have too few of are favoured
    soft: float = 20.0  # counts below which a lack is hardly seen
    most_tilt: float = 0.3  # of a bin's log-frequency
