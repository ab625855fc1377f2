"""Bug: one classic way of breaking the product, planted in its real code paths."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, final

import pyarrow as pa
import pytest
import torch

from dpmerf.features.algebra import FeatureMap
from dpmerf.private import measure
from dpmerf.release.release import CARD, DOCUMENT, Release
from dpmerf.sources.rows import Rows

Kind = Literal["sums", "bins", "selections", "counts", "metadata", "terminal", "files"]
Patch = Callable[[pytest.MonkeyPatch], None]


@final
@dataclass(frozen=True)
class Bug:
    """How to plant it, the case on which it shows, and the checks that must catch it."""

    name: str
    kind: Kind
    case: str
    plant: Patch
    by: tuple[str, ...]  # each must raise an alarm
    slow: tuple[str, ...] = ()  # likewise, in the full run

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            yield


@final
@dataclass
class Leak:
    """What a bug keeps from the reading of rows: the exact sums of every pass, their maps, and the number of rows."""

    sums: list[torch.Tensor]
    maps: list[FeatureMap]
    of_stage: dict[str, torch.Tensor] = field(default_factory=dict)
    rows: int = 0
    table: pa.Table | None = None


def leaking(patch: pytest.MonkeyPatch) -> Leak:
    """Note what is read, for bugs that use it without noise."""
    leak, real = Leak([], []), measure.sum_locally

    def noted(rows: Rows, *others: Any) -> tuple[torch.Tensor, int]:
        sums, n = real(rows, *others)
        leak.sums.append(sums.clone())
        leak.maps.append(others[1])
        leak.of_stage[str(others[4]).removeprefix("reading (").removesuffix(")")] = sums.clone()
        leak.rows = n
        leak.table = pa.Table.from_batches(list(rows.batches(measure.columns_of(others[0]))))
        return sums, n

    patch.setattr(measure, "sum_locally", noted)
    return leak


def publishing(patch: pytest.MonkeyPatch, more: Callable[[], dict[str, Any]]) -> None:
    """Write more fields into release.json."""
    real = Release.files

    def files(self: Release) -> dict[str, bytes]:
        found = real(self)
        document = json.loads(found[DOCUMENT])
        return {**found, DOCUMENT: (json.dumps({**document, **more()}, indent=1) + "\n").encode()}

    patch.setattr(Release, "files", files)


def on_the_card(patch: pytest.MonkeyPatch, line: Callable[[], str]) -> None:
    real = Release.files

    def files(self: Release) -> dict[str, bytes]:
        found = real(self)
        return {**found, CARD: found[CARD] + line().encode()}

    patch.setattr(Release, "files", files)


def beside(patch: pytest.MonkeyPatch, name: str, content: Callable[[], bytes]) -> None:
    """One more file."""
    real = Release.files
    patch.setattr(Release, "files", lambda self: {**real(self), name: content()})
