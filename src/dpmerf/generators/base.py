"""Generator: what training makes and sampling uses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, final

import torch
from torch import Tensor, nn

from dpmerf.encoding.codec import Batch, Codec
from dpmerf.errors import ArtefactError
from dpmerf.plan.queries import Query
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release


@final
@dataclass(frozen=True)
class State:
    """A generator as plain data: JSON and tensors, never pickle."""

    settings: dict[str, Any]
    tensors: dict[str, Tensor]


@final
@dataclass(frozen=True)
class History:
    """How training went, judged by the release alone."""

    floor: float  # the loss that the noise alone would cause in a perfect generator
    steps: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)  # the same loss on features kept back; empty: none are
    stopped: str = ""  # why training ended: "converged", or which limit it met; empty: it has no steps to stop

    def note(self, step: int, loss: float, held_out: float | None = None) -> None:
        self.steps.append(step)
        self.loss.append(loss)
        if held_out is not None:
            self.held_out.append(held_out)

    def to_json(self) -> dict[str, Any]:
        found = {"floor": self.floor, "steps": self.steps, "loss": self.loss, "held_out": self.held_out}
        return found | {"stopped": self.stopped}

    @staticmethod
    def from_json(data: dict[str, Any]) -> History:
        return History(data["floor"], data["steps"], data["loss"], data["held_out"], str(data.get("stopped", "")))


@final
@dataclass(frozen=True)
class Given:
    """Columns to hold fixed, and one encoded row that holds their values, or one for each row that is drawn."""

    names: frozenset[str]
    row: Batch


class Generator(ABC):
    """Draws encoded rows. Holds nothing but what follows from the release."""

    kind: ClassVar[str]  # as a saved model names it
    reads: ClassVar[type[Query]]  # the query whose answers it is trained on
    takes: ClassVar[type[Any]]  # its settings: a frozen dataclass: every tuned number, each with a default

    @classmethod
    def settings_for(cls, release: Release) -> Any:
        """Those that suit a release, where nobody asks for others."""
        return cls.takes()

    @classmethod
    @abstractmethod
    def fit(
        cls, release: Release, settings: Any, seed: int, *, device: str = "cpu", bars: Bars = SILENT
    ) -> tuple[Self, History]:
        """Train on a release alone. The same release, settings and seed give the same generator."""

    @abstractmethod
    def draw(self, n: int, given: Given | None, rng: torch.Generator) -> Batch:
        """n encoded rows; the given columns among `conditions` hold their given value."""

    @property
    @abstractmethod
    def conditions(self) -> frozenset[str]:
        """Columns that `draw` can fix. Others are met by rejection."""

    @abstractmethod
    def state(self) -> State: ...

    @classmethod
    @abstractmethod
    def from_state(cls, release: Release, state: State) -> Generator: ...


def weights_of(body: nn.Module) -> dict[str, Tensor]:
    """A network's weights, under names of their own among a generator's tensors."""
    return {f"body.{name}": value.cpu() for name, value in body.state_dict().items()}


def load_weights(body: nn.Module, tensors: dict[str, Tensor]) -> None:
    """The way back."""
    found = {name.removeprefix("body."): value for name, value in tensors.items() if name.startswith("body.")}
    try:
        body.load_state_dict(found)
    except RuntimeError:
        raise ArtefactError("the model's weights do not fit its release: it is damaged") from None


def check_shares(shares: Tensor) -> None:
    """ArtefactError for stored shares of classes that nothing can be drawn by."""
    if not (bool((shares >= 0).all()) and 0 < float(shares.sum()) < math.inf):
        raise ArtefactError("the model's classes have no shares: it is damaged")


def apportion(shares: Tensor, n: int, rng: torch.Generator) -> Tensor:
    """Whole numbers that add up to n, as near to the shares as they can be; what is left over falls at random."""
    exact = shares.double() / shares.sum() * n
    counts = exact.floor().long()
    rest = n - int(counts.sum())
    if rest:
        extra = torch.multinomial((exact - counts).clamp_min(1e-12), rest, replacement=False, generator=rng)
        counts[extra] += 1
    return counts


def by_chance(shares: Tensor, n: int, rng: torch.Generator) -> Tensor:
    """How many of n independent rows fall in each class."""
    drawn = torch.multinomial(shares, n, replacement=True, generator=rng)
    return torch.bincount(drawn, minlength=len(shares))


def overwrite(batch: Batch, given: Given, codec: Codec) -> Batch:
    """A given number is that number, not just its bin."""
    numbers = batch.numbers.clone()
    for i, name in enumerate(codec.numeric):
        if name in given.names:
            numbers[:, i] = given.row.numbers[:, i]
    codes = dict(batch.codes)
    for name in given.names & codes.keys():
        codes[name] = given.row.codes[name].expand(len(batch))
    return Batch(numbers, codes)
