"""Settings: every tuned number of the methods, as data. They decide what is measured, and so are part of a plan's hash.

They were chosen on public tables, some of them on adult's test rows: benchmarks/README.md says which on which rows. An
ablation passes other ones: `make_plan(..., settings=replace(MethodSettings(), ...))`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, final


class Shares(NamedTuple):
    """Of μ²: fine histograms, label × column, pairs, label × pairs, and pairs measured again."""

    histograms: float
    single: float
    pair: float
    label_pair: float
    again: float = 0.0


@final
@dataclass(frozen=True)
class AutoSettings:
    """Which method a table gets (docs/adr/0006, 0007)."""

    wide: int = 64  # columns from which, if not all pairs can be paid for, directions are measured in their place
    few_rows: float = 28.0  # × noise · √columns: with fewer rows, one column is selected by noisy scores,
    too_few: float = 30.0  # × noise · log(columns): with more rows than that, else a selection finds nothing,
    selection_columns: int = 8  # among so many columns, at least


@final
@dataclass(frozen=True)
class TablesSettings:
    """Histograms, then contingency tables (docs/adr/0003)."""

    most_classes: int = 16  # a label with more classes is modelled as a column among the others
    no_histogram: int = 8  # cells up to which a column is a table of its own anyway
    fine_cells: tuple[int, int] = (8, 256)  # least and most
    fine_signal: float = 0.1  # × rows ÷ noise of a histogram: its square is how many fine cells a column gets
    whole_levels: float = 2.0  # × that: a column with no more levels has a cell for each (docs/adr/0018)
    bins: tuple[int, int] = (4, 20)  # least and most
    bin_noise: float = 6.0  # an average cell of a pair table holds at least this many times its noise
    parts: int = 8  # sub-bins of a bin, at most: what a label × column table resolves beyond the bins of pairs
    pairs: bool = True  # measure pairs of columns at all
    pair_signal: float = 16.0  # × noise on a cell of a pair: with fewer rows no pairs are measured
    three_way_signal: float = 0.5  # × noise in an average cell of label × pair tables: with less they are left out
    most_cells: float = 8e6  # classes × positions²: above it no pairs are measured
    measured_again: int = 3  # one in so many pairs, and no more than
    again_signal: float = 64.0  # × their noise on a cell is all rows: a quarter of a cell of 4 × 4 (docs/adr/0012)
    ample: Shares = field(default=Shares(0.20, 0.36, 0.24, 0.20))  # where noise allows the most bins
    usual: Shares = field(default=Shares(0.25, 0.27, 0.25, 0.03, 0.20))  # ADR 0024
    coarse: Shares = field(default=Shares(0.50, 0.30, 0.05, 0.00, 0.15))  # where it leaves the fewest bins (ADR 0021)
    alone: Shares = field(default=Shares(0.70, 0.30, 0.00, 0.00))  # where it drowns pairs: none are measured
    all_histograms: float = 0.5  # of μ²: from this share on, small columns have histograms, too
    preferred: float = 0.025  # of μ², for values that rows prefer (round numbers, hours, weekdays),
    preferred_share: float = 0.05  # if this share of rows
    preferred_noise: float = 6.0  # is so many times the noise of their count
    triples: float = 0.05  # of μ², for label × triples of small columns, if an average cell is `bin_noise` × its noise
    triple_values: int = 3  # values of a column, at most, whose triples are looked at


@final
@dataclass(frozen=True)
class FewRowsSettings:
    """One column is selected by noisy scores and measured closely (docs/adr/0007)."""

    histograms: float = 0.15
    single: float = 0.20  # label × column
    selection: float = 0.40
    selected: float = 0.25  # the selected table


@final
@dataclass(frozen=True)
class WideSettings:
    """Histograms, then means and products of groups of columns (docs/adr/0006)."""

    cells: tuple[int, int] = (16, 64)  # least and most fine cells of a column
    histograms: float = 0.3  # of μ²
    mean: float = 0.45  # of what is left
    products: float = 0.45
    norms: float = 0.1
    group_noise: float = 20.0  # × a group's variance: the largest eigenvalue that noise may give groups' covariance


@final
@dataclass(frozen=True)
class PaperSettings:
    """The paper's kernels: one mean embedding."""

    dim: int = 2_000  # features, at most
    scales: tuple[float, ...] = (1.0, 0.5, 0.25)  # × the root mean square distance of two uniform points
    image_dim: int = 10_000
    image_spread: float = 1 / 7  # squared length-scale per pixel: 112 for 28×28 (the paper: 105 and 127, from the data)


@final
@dataclass(frozen=True)
class ImageSettings:
    """Several views of a picture, and its tones (docs/adr/0004): the same for every data set.

    Length-scales lie around a third to a half of the typical distance of two pictures in each view. Edge vectors have
    length 1, so theirs hold for any size; pixels are as far apart as the root of their number.
    """

    views: tuple[str, ...] = ("pixels", "edges", "windows")
    pixel_dim: int = 3_000
    edge_dim: int = 6_000
    window_dim: int = 9_000
    pixel_scale: float = 1 / 7  # × √pixels: 4 for 28×28; and twice that
    edge_scales: tuple[float, float] = (0.2, 0.4)
    window_scales: tuple[float, float] = (0.2, 0.35)
    tones: float = 0.04  # share of the squared norm: at ε = 1 and 6,000 pictures a class, each is known to ± 0.6 %
    protected_counts: float = 0.3  # weight of counts where the number of rows is protected: the norm grows to 1.04
    most_pixels: int = 1024  # a larger picture is averaged first


@final
@dataclass(frozen=True)
class MethodSettings:
    """All of them."""

    readability: float = 0.02  # of μ², for asking whether columns can be read as declared, where that is in doubt
    broken: float = 0.01  # of μ², for each relation of which the share of rows that break it is asked for,
    most_broken: float = 0.1  # and for all of them
    auto: AutoSettings = field(default_factory=AutoSettings)
    tables: TablesSettings = field(default_factory=TablesSettings)
    few_rows: FewRowsSettings = field(default_factory=FewRowsSettings)
    wide: WideSettings = field(default_factory=WideSettings)
    paper: PaperSettings = field(default_factory=PaperSettings)
    images: ImageSettings = field(default_factory=ImageSettings)
