"""The one-call API: a table in, a synthetic table out. Joins the locked room to what comes after it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, final

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpmerf.accounting.unit import Unit
from dpmerf.errors import TrainError
from dpmerf.methods.presets import make_plan
from dpmerf.model import Model
from dpmerf.output.gallery import arrays
from dpmerf.plan import Plan
from dpmerf.private.count import public_rows
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release
from dpmerf.schema import Schema
from dpmerf.sources.picture_facts import declare
from dpmerf.sources.pictures import open_data
from dpmerf.sources.rows import Rows
from dpmerf.train import train

Kind = Literal["pandas", "polars", "pyarrow"]
UNSET = "unset"  # a label argument that was not given: the schema's own label holds


UNCOUNTED = "no ledger was charged: nothing counts this release together with others of the same data"
AnyLedger = Ledger | str | os.PathLike[str] | None


def release(
    data: Any, plan: Plan, *, ledger: AnyLedger = None, dataset: str | None = None, bars: Bars = SILENT
) -> Release:
    """The only private step. `ledger` is a ledger or its file; a missing file is opened with the plan's own budget."""
    charged = open_ledger(ledger, plan, dataset if dataset is not None else dataset_name(data))
    made = measure(data, plan, ledger=charged, bars=bars)
    if made.charge is None:
        _warn(f"{UNCOUNTED}. Name a file with `ledger`")
    return made


def _warn(words: str) -> None:
    warnings.warn(words, stacklevel=2)


def dataset_name(data: Any) -> str:
    """What a data set is called if nobody says: its file's or folder's name without the ending. A frame has none.

    >>> dataset_name("study/patients.csv"), dataset_name("postgresql://host/base")
    ('patients', '')
    """
    if not isinstance(data, str | os.PathLike) or "://" in str(data):
        return ""
    return Path(data).name.split(".")[0]


def open_ledger(ledger: AnyLedger, plan: Plan, dataset: str = "", say: Callable[[str], None] = _warn) -> Ledger | None:
    """A ledger from its file, which must be the data set's; a missing file allows this plan once, which is said."""
    if ledger is None:
        return None
    if not isinstance(ledger, Ledger) and not os.path.exists(ledger):
        opened = Ledger.open(ledger, plan.epsilon, plan.delta, dataset)
        limit = f"epsilon = {plan.epsilon:g}, delta = {plan.delta:g} in total"
        name = f" of '{dataset}'" if dataset else ""
        say(
            f"{os.fspath(ledger)} is a new ledger{name} that allows {limit}. If the data has one already, name that one"
        )
        return opened
    found = ledger if isinstance(ledger, Ledger) else Ledger.load(ledger)
    found.check_dataset(dataset)
    return found


def existing_ledger(ledger: AnyLedger) -> Ledger | None:
    """The same, where nothing may be made yet: None for a file that is not there."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    return Ledger.load(ledger) if os.path.exists(ledger) else None


def synthesize(
    data: Any,
    schema: Schema | str | os.PathLike[str],
    *,
    epsilon: float,
    delta: float | None = None,
    label: str | None = UNSET,
    n: int | None = None,
    rows: int | None = None,
    unit: Unit | str = "row",
    neighbours: str = "replace",
    preset: str = "default",
    balanced: bool = False,
    seed: int = 0,
    ledger: AnyLedger = None,
    progress: bool = False,
) -> Any:
    """Synthetic rows in the kind of table that came in (pandas, Polars or Arrow; a path gives Arrow)."""
    tool = Synthesizer(
        epsilon=epsilon,
        delta=delta,
        rows=rows,
        unit=unit,
        neighbours=neighbours,
        preset=preset,
        balanced=balanced,
        seed=seed,
        ledger=ledger,
        progress=progress,
    )
    return tool.fit(data, schema, label).sample(n)


def synthesize_images(
    x: Any,
    y: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    size: str | tuple[int, int] | None = None,
    channels: int | None = None,
    classes: int | Sequence[str] | None = None,
    pixel_range: tuple[float, float] | None = None,
    n: int | None = None,
    preset: str = "default",
    balanced: bool = False,
    fast: bool = False,
    seed: int = 0,
    ledger: AnyLedger = None,
    progress: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Synthetic pictures (uint8) and labels from arrays x and y, a path (.npz, class folders) or a torch dataset.

    Size, channels and pixel range come from the array's shape and type where it has them; the number of classes is
    declared (10 if left out), never looked up in y. Arrays without y are taken as unlabelled.
    """
    data = (np.asarray(x), y) if isinstance(x, np.ndarray) or y is not None else x
    declared = declare(
        data,
        size=size,
        channels=channels,
        classes=classes,
        pixel_range=pixel_range,
        labelled=not isinstance(data, tuple) or y is not None,
    )
    tool = Synthesizer(
        epsilon, delta, preset=preset, balanced=balanced, seed=seed, ledger=ledger, progress=progress, fast=fast
    )
    schema = declared.schema
    return arrays(tool.fit(open_data(data, schema), schema).sample(n), schema)


@final
class Synthesizer:
    """The scikit-learn shape: settings, then `fit`, which returns a fitted thing that samples.

    >>> Synthesizer(epsilon=1.0).epsilon
    1.0
    """

    def __init__(
        self,
        epsilon: float,
        delta: float | None = None,
        *,
        rows: int | None = None,
        unit: Unit | str = "row",
        neighbours: str = "replace",
        preset: str = "default",
        balanced: bool = False,
        seed: int = 0,
        ledger: AnyLedger = None,
        progress: bool = False,
        fast: bool = False,
    ) -> None:
        self.epsilon, self.delta, self.rows = epsilon, delta, rows
        self.unit = unit if isinstance(unit, Unit) else Unit.parse(unit, neighbours)
        self.preset, self.balanced, self.seed, self.ledger = preset, balanced, seed, ledger
        self.progress, self.fast = progress, fast

    def fit(self, data: Any, schema: Schema | str | os.PathLike[str], label: str | None = UNSET) -> Fitted:
        declared = schema if isinstance(schema, Schema) else Schema.load(schema)
        if label != UNSET:
            declared = declared.with_label(label)
        bars = Bars(self.progress)
        source = open_data(data, declared)
        plan = make_plan(
            declared,
            self.epsilon,
            self.delta,
            rows=self.rows if self.rows is not None else public_rows(source, self.unit, existing_ledger(self.ledger)),
            unit=self.unit,
            preset=self.preset,
            balanced=self.balanced,
        )
        noisy = release(source, plan, ledger=self.ledger, bars=bars)
        return Fitted(
            train(noisy, seed=self.seed, fast=self.fast, bars=bars), _kind_of(source if declared.image else data)
        )


@final
class Fitted:
    """A model that gives rows in the kind of table it was fitted on."""

    def __init__(self, model: Model, kind: Kind) -> None:
        self.model = model
        self._kind = kind

    @property
    def release(self) -> Release:
        return self.model.release

    def sample(self, n: int | None = None, given: dict[str, Any] | None = None, seed: int | None = None) -> Any:
        """n rows, as many as the data had (or is estimated to have) by default."""
        if n is not None and n < 1:
            raise TrainError(f"n is {n}: ask for 1 row or more")
        table = self.model.sample(n or round(self.release.rows_estimate), given, seed)
        return nw.from_arrow(table, backend=self._kind).to_native()


def _kind_of(data: Any) -> Kind:
    if isinstance(data, str | os.PathLike | pa.Table | pa.RecordBatch | Rows):
        return "pyarrow"
    implementation = nw.from_native(data).implementation
    if implementation.is_pandas():
        return "pandas"
    return "polars" if implementation.is_polars() else "pyarrow"
