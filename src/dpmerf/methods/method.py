"""Method: which queries, in which shares, and which generator reads them. Chosen from public facts alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

from dpmerf.accounting.unit import Unit
from dpmerf.encoding.binning import FineGrid
from dpmerf.encoding.codec import Codec, Variable
from dpmerf.plan import Stage
from dpmerf.schema import Numeric, Schema

if TYPE_CHECKING:
    from dpmerf.methods.settings import MethodSettings


@final
@dataclass(frozen=True)
class Request:
    """What a plan is asked for: public facts, and the noise that the budget means."""

    schema: Schema  # as rows are measured
    rows: int  # expected
    noise: float  # of a table of norm 1 that gets the whole budget, in counts
    unit: Unit
    balanced: bool
    seed: int
    settings: MethodSettings

    @cached_property
    def codec(self) -> Codec:
        """From rows to tensors."""
        return Codec(self.schema)

    @cached_property
    def by_label(self) -> bool:
        """Is the label a class that tables are split by? One with many values is a column among the others."""
        schema, label = self.schema, self.codec.label
        if schema.label is None or isinstance(schema.columns[schema.label], Numeric) or len(schema.learned) < 2:
            return False
        return label is not None and label.size <= self.settings.tables.most_classes

    @cached_property
    def features(self) -> list[str]:
        """The columns that are modelled in each class."""
        return [name for name in self.schema.learned if not (self.by_label and name == self.schema.label)]

    @cached_property
    def classes(self) -> int:
        """How many classes tables are split by."""
        return self.codec.label.size if self.by_label and self.codec.label else 1

    def fine_cells(self, columns: int, share: float) -> int:
        """Fine cells of a column, where the histograms of so many have this share of the budget.

        A column with up to `whole_levels` times as many levels keeps each by itself: cells of two levels would hide
        which of them is the common one.
        """
        s = self.settings.tables
        least, most = s.fine_cells
        noise = self.noise * (columns / share) ** 0.5
        cells = int(min(max((s.fine_signal * self.rows / noise) ** 2, least), most))
        levels = [round((axis.high - axis.low) / axis.step) + 1 for axis in self.codec.axes.values() if axis.step]
        return max([cells, *(k for k in levels if k <= min(s.whole_levels * cells, most))])

    def grid(self, cells: int) -> dict[str, Variable]:
        """Column -> its fine cells."""
        return FineGrid(self.codec, cells).variables


@final
@dataclass(frozen=True)
class Method:
    """Queries for a request, and the kind of generator that is trained on their answers."""

    name: str
    words: str  # one line for people
    stages: Callable[[Request], tuple[Stage, ...]]
    generator: str
    pictures: bool = False
