"""The private step as Python calls it: a plan for a table, its ledger, its release."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmerf.accounting.unit import Unit
from dpmerf.discovery import Purchase
from dpmerf.methods.presets import make_plan
from dpmerf.methods.readable_first import in_doubt, readable_first
from dpmerf.plan import Plan
from dpmerf.plan.person_plan import PersonPlan
from dpmerf.plan.queries.broken_relations import broken_shares
from dpmerf.plan.queries.readability import readable_shares
from dpmerf.private.count import public_rows
from dpmerf.private.ledger import Ledger
from dpmerf.private.measure import measure
from dpmerf.progress import SILENT, Bars
from dpmerf.release import Release
from dpmerf.schema import Schema
from dpmerf.sources.rows import Rows

UNCOUNTED = "no ledger was charged: nothing counts this release together with others of the same data"
AnyLedger = Ledger | str | os.PathLike[str] | None


def release(
    data: Any,
    plan: Plan,
    *,
    ledger: AnyLedger = None,
    dataset: str | None = None,
    bars: Bars = SILENT,
    go_on: bool = False,
) -> Release:
    """The only private step: spend the budget, read the rows, publish noisy sums.

    Parameters
    ----------
    data
        A pandas, Polars or Arrow table, or the path of a file (CSV, Parquet, Arrow, …) or a folder of them.
    plan : Plan
        What is measured and at what price, from `make_plan` or `Plan.load`.
    ledger : Ledger or path, optional
        Charged before a row is read. A missing file is opened with the plan's own budget, which is said.
    dataset : str, optional
        What the data set is called, as its ledger knows it; a file's name without the ending if left out.
    bars : Bars
        How progress is shown; silent if left out.
    go_on : bool
        Release all the same where columns cannot be read as declared. Otherwise that ends it, the main budget unspent.

    Returns
    -------
    Release
        (plan.epsilon, plan.delta)-differentially private for plan.unit.

    Examples
    --------
    >>> release("patients.csv", Plan.load("plan.json"), ledger="study.ledger").save("release")  # doctest: +SKIP
    """
    charged = open_ledger(ledger, plan, dataset if dataset is not None else dataset_name(data))
    made = measure(data, plan, ledger=charged, bars=bars, go_on=go_on)
    if made.charge is None:
        _warn(f"{UNCOUNTED}. Name a file with `ledger`")
    for note in _unread(made):
        _warn(note)
    return made


def bought_notes(made: Release) -> list[str]:
    """What a release says of columns that could be read in part only, and of broken relations: noisy, and covered."""
    return [*_unread(made), *(found.words for found in broken_shares(made))]


def _unread(made: Release) -> list[str]:
    found = (column.note(made.plan.schema) for column in readable_shares(made))
    return [note for note in found if note is not None]


def bought_json(made: Release) -> dict[str, Any]:
    """The shares of rows that break relations, for machines; nothing where none were asked for."""
    found = [{"relation": b.relation, "share": b.share, "sd": b.noise} for b in broken_shares(made)]
    return {"broken_relations": found} if found else {}


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


def open_ledger(
    ledger: AnyLedger, plan: Plan | PersonPlan | Purchase, dataset: str = "", say: Callable[[str], None] = _warn
) -> Ledger | None:
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


def priced(
    source: Rows,
    schema: Schema,
    epsilon: float,
    delta: float | None,
    *,
    rows: int | None,
    unit: Unit,
    method: str,
    balanced: bool,
    ledger: AnyLedger,
) -> Plan:
    """A plan for these rows. Their number is counted only where it is public and a release can still be paid for."""
    count = rows if rows is not None else public_rows(source, unit, existing_ledger(ledger))
    plan = make_plan(schema, epsilon, delta, rows=count, unit=unit, method=method, balanced=balanced)
    return readable_first(plan, in_doubt(schema, source.fields, source.guessed_types))
