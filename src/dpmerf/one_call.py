"""One call: a table or pictures in, synthetic ones out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpmerf.accounting.unit import Unit
from dpmerf.api import AnyLedger
from dpmerf.output.as_given import Given
from dpmerf.output.gallery import arrays
from dpmerf.person_run import fit_persons
from dpmerf.progress import Bars
from dpmerf.schema.person_schema import Persons, load_schema
from dpmerf.sources.picture_facts import declare
from dpmerf.sources.pictures import open_data
from dpmerf.synthesizer import AnyLabel, AnySchema, SchemaLabel, Synthesizer


def synthesize(
    data: Any,
    schema: AnySchema | Persons,
    *,
    epsilon: float,
    delta: float | None = None,
    label: AnyLabel = SchemaLabel,
    n: int | None = None,
    rows: int | None = None,
    unit: Unit | str = "row",
    neighbours: str = "replace",
    method: str = "auto",
    balanced: bool = False,
    seed: int = 0,
    ledger: AnyLedger = None,
    progress: bool = False,
) -> Any:
    """Synthetic rows in the kind of table that came in; a path gives Arrow. One release, trained and sampled once.

    Parameters
    ----------
    data
        A pandas, Polars or Arrow table, or the path of a file (CSV, Parquet, …) or a folder of them. Of persons with
        several tables: a dict of them by name, and a dict comes back.
    schema : Schema, Persons, dict or path
        The public facts about the table; `Persons.load(path)` of one with a [person] section.
    n : int, optional
        How many synthetic rows; as many as the data has (or is estimated to have) if left out.
    seed : int
        Of everything but the noise.
    epsilon, delta, label, rows, unit, neighbours, method, balanced, ledger, progress
        As in `Synthesizer`, which keeps the release and the model for more rows.

    Returns
    -------
    table
        Of the kind that came in.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": [30, 40, 50] * 100, "ill": [True, False, False] * 100})
    >>> schema = {"columns": {"age": {"kind": "integer", "min": 0, "max": 99}, "ill": {"kind": "flag"}}}
    >>> synthesize(table, schema, epsilon=1.0, delta=1e-5, n=5).column_names
    ['age', 'ill']
    """
    persons = _persons(schema)
    if persons is not None:
        model = fit_persons(data, persons, epsilon, delta, rows, neighbours, seed, ledger, Bars(progress))
        return _as_given(model.sample(n), data, persons)
    assert not isinstance(schema, Persons)
    tool = Synthesizer(
        epsilon,
        delta,
        schema=schema,
        label=label,
        rows=rows,
        unit=unit,
        neighbours=neighbours,
        method=method,
        balanced=balanced,
        random_state=seed,
        ledger=ledger,
        progress=progress,
    )
    return tool.fit(data).sample(n)


def _persons(schema: AnySchema | Persons) -> Persons | None:
    if isinstance(schema, str | os.PathLike):
        found = load_schema(schema)
        return found if isinstance(found, Persons) else None
    return schema if isinstance(schema, Persons) else None


def _as_given(made: dict[str, pa.Table], data: Any, persons: Persons) -> Any:
    """One table for one, a dict of tables for a dict, in the kind that came in."""
    given = data if isinstance(data, Mapping) else dict.fromkeys(made, data)
    found = {name: Given.of(given[name]).back(table, persons.schema_of(name)) for name, table in made.items()}
    return found if isinstance(data, Mapping) else next(iter(found.values()))


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
    method: str = "auto",
    balanced: bool = False,
    fast: bool = False,
    seed: int = 0,
    ledger: AnyLedger = None,
    progress: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Synthetic pictures (uint8) and labels from arrays x and y, a path (.npz, class folders) or a torch dataset.

    Parameters
    ----------
    x
        Pictures: an array (n, height, width) or (n, height, width, channels), a path, or a torch dataset.
    y : array, optional
        Their classes. Arrays without y are taken as unlabelled.
    size, channels, pixel_range
        From the array's shape and type where it has them.
    classes : int or list of str, optional
        How many classes, or their names: declared (10 if left out), never looked up in y.
    n : int, optional
        How many pictures; as many as came in if left out.
    fast : bool
        Train for a third of the steps.
    epsilon, delta, method, balanced, ledger, progress
        As in `Synthesizer`; `seed` is of everything but the noise.

    Returns
    -------
    pictures, labels : array, array or None

    Examples
    --------
    >>> pictures, labels = synthesize_images("mnist.npz", epsilon=1.0, delta=1e-5)  # doctest: +SKIP
    """
    data = (np.asarray(x), y) if isinstance(x, np.ndarray) or y is not None else x
    schema = declare(
        data,
        size=size,
        channels=channels,
        classes=classes,
        pixel_range=pixel_range,
        labelled=not isinstance(data, tuple) or y is not None,
    ).schema
    tool = Synthesizer(
        epsilon,
        delta,
        schema=schema,
        method=method,
        balanced=balanced,
        random_state=seed,
        ledger=ledger,
        progress=progress,
        fast=fast,
    )
    return arrays(tool.fit(open_data(data, schema)).sample(n), schema)
