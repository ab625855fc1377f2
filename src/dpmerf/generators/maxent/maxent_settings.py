"""Settings: the tuned numbers of the tables model, in one place. ADRs 11 and 24 say how they were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final


@final
@dataclass(frozen=True)
class Settings:
    """Defaults hold for all tables. `empty` and `full_tables` were picked on adult, with its test rows (ADR 11)."""

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
    least_count: float = 20.0  # by which a step of a single bin divides
    few_bins: int = 7  # up to which the ridge is full, and less of it with more: interactions have heavy tails

    # counts that agree with each other
    sum_rounds: int = 10  # that fit counts to the sums they must have
    stands_out: float = 0.75  # of the selected table that is no noise: from there on other columns are held to it
    class_variances: int = 9  # halvings of the largest variance of a class's differences
    shrink_classes: bool = True  # differences of classes, by as much as they look like noise
    null_columns: float = 10.0  # that do not differ, assumed beside the real ones: as in the paper of the method

    # ridges
    priors: tuple[float, ...] = tuple(2.56 / 2**k for k in range(14))  # variances of a table's log-interactions
    doubt: float = 0.01  # tables of each kind assumed beside the real ones, in all, and one as good as independent

    smooth: float = 0.5  # part of an interaction's variance that is alike in neighbouring numbers,
    alike_within: float = 0.2  # a distance of so much of a column's rows
    smooth_rounds: int = 6  # of conjugate gradients in a step

    # the tree that training starts from
    pair_rounds: int = 40  # that fit one pair's interaction to its table
    damped: float = 0.5  # part of each step that is taken
    pair_count: float = 5.0  # by which such a step divides at least
    margin_rounds: int = 100  # that fit a pair to the margins of each class
    least_frequency: float = 1e-7  # of a bin

    # chains that are drawn anew by weight
    rakes: int = 2  # rounds over the columns
    most_lack: float = 2.0  # by how much each may change a chain's weight

    # cells that the release shows to be empty
    empty: float = 0.5  # probability above which a cell is taken for empty
    full_tables: float = 10.0  # tables without empty cells assumed beside the real ones
    empty_shares: tuple[float, ...] = (1e-4, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
    least_spread: float = 0.5  # of the log of a cell's count beside that of independent columns
    reach: float = 4.0  # standard deviations over which it is integrated,
    points: int = 33  # at so many points
    surely_full: float = 4.0  # standard deviations of noise
    empty_rounds: int = 50  # that find how common each share of empty cells is
    left_rounds: int = 5  # that fit what is left to its margins

    # numbers inside their bins
    shaped: bool = True  # densities inside bins follow the histograms; else they are flat
    part_rounds: int = 5  # that fit classes and totals of a bin's parts to each other
    inside_sweeps: int = 5  # Gibbs sweeps of a row's numbers given its bins
    most_correlation: float = 0.99  # of two columns
    least_together: float = 0.1  # correlation given the rest, below which numbers are drawn on their own
    least_eigenvalue: float = 0.01  # of a correlation matrix

    # values that many rows share
    clear: float = 5.0  # standard deviations of noise above what is expected: no accident among a thousand counts
    least_single: float = 0.02  # of all rows: of a single value that is looked for
    lone: float = 0.5  # of a cell's rows that its neighbours do not explain, from which it holds one value
    lone_cells: int = 4  # of a column, from which its values are few: the roundest of such a cell is taken (ADR 22)
    divisor_rounds: int = 30  # that fit the weights of divisors
    most_weight: float = 1e6  # of a divisor
    tries: int = 40  # of a moment that hours and weekdays accept

    # a number and the same number in the row before
    correlations: int = 121  # that are tried, evenly in their inverse hyperbolic tangent
    most_odds: float = 2.65  # the largest of these: a correlation of 0.99
    copula_points: int = 1_024  # over which a copula's table is summed
    least_noise: float = 1e-3  # of a share in such a table, where none is known
    least_doubt: float = 0.1  # of a table's noise variance that is left where a copula tells it all

    # columns redrawn together
    together: float = 0.3  # share of the smaller entropy that two columns have in common
    most_states: int = 128  # joint values of such columns

    # drawing
    burn: int = 1  # Gibbs sweeps before rows are taken
    burn_given: int = 30  # the same, where columns are held
    burn_each: int = 30  # the same, where they are held at other values in every row
    late_rounds: int = 6  # that draw anew the histories of persons that end too late; the last squeezes them
    drawn: int = 4_096  # chains moved at a time
    gain: float = 0.5  # how strongly the bins that earlier rows have too few of are favoured
    soft: float = 20.0  # counts below which a lack is hardly seen
    most_tilt: float = 0.3  # of a bin's log-frequency

    @classmethod
    def read(cls, told: dict[str, Any]) -> Settings:
        """From JSON, whose lists are tuples here; what an older model does not name has its default.

        ValueError if a number is of another type than its default, or beyond all sense: a file that was changed.
        """
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in told.items()}
        usual = cls()
        for name, value in values.items():
            default = getattr(usual, name)
            if isinstance(default, tuple) != isinstance(value, tuple) or not all(
                _like(number, default) for number in (value if isinstance(value, tuple) else (value,))
            ):
                raise ValueError(f"'{name}' is no setting of this model")
        return cls(**values)


def _like(number: Any, default: Any) -> bool:
    """Is it a number such as the default, or as one of its numbers?"""
    first = max(default) if isinstance(default, tuple) else default
    if isinstance(first, bool) or isinstance(number, bool):
        return isinstance(first, bool) and isinstance(number, bool)
    whole = isinstance(first, int)
    most = (1_000 if whole else 1_000_000) * max(1, first)
    return isinstance(number, int if whole else int | float) and 0 <= number <= most
