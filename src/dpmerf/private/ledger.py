"""The ledger: an append-only file of what was spent on one dataset. It refuses overspending.

One JSON object a line, the first a header with the limit, each later one a spend; each carries its hash and the hash
of the line before it. The chain catches accidents and edits in the middle; it is not a defence against an owner who
deletes the file or its last lines, and budget spent without the ledger is unknown to it.

Spend first, then look: `spend` returns only after the line is on the disk. A crash may waste budget, never leak it.
"""

import getpass
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from dpmerf.accounting.events import Composed, Event, composed, delta, to_json
from dpmerf.accounting.gaussian import check_delta, check_epsilon, delta_of, epsilon_of, mu_of
from dpmerf.accounting.unit import Unit
from dpmerf.errors import BudgetError, LedgerError
from dpmerf.private.ledger_file import FORMAT, Entry, append, check_price, create, entry_of, locked, parse, read, seal

TOLERANCE = 1e-12  # relative to delta: a plan that uses exactly the limit must pass in spite of float rounding
WHO = "DPMERF_WHO"  # the variable that says who spends, where the machine's user is not a person


@final
@dataclass(frozen=True)
class Ledger:
    """A handle on a ledger file, made by `Ledger.open` or `Ledger.load`.

    Holds no state: every question reads the file again, under a lock.

    Parameters
    ----------
    path : Path
        The file.
    epsilon, delta : float
        The limit for everything that is ever released from the data set.
    id, dataset, opened : str
        As in the file's first line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Ledger.open(Path(folder) / "study.ledger", 3.0, 1e-5, "patients").remaining_epsilon()
    3.0
    """

    path: Path
    epsilon: float
    delta: float
    id: str = ""  # a random name, by which a file that was replaced is noticed; ledgers of format 1 have none
    dataset: str = ""  # the data set that it counts for; empty: it was not said
    opened: str = ""  # when, UTC

    @classmethod
    def open(cls, path: str | os.PathLike[str], epsilon: float, delta: float, dataset: str = "") -> "Ledger":
        """The ledger at `path` with this limit; it is created, for the data set of this name, if there is none."""
        path, epsilon, delta = Path(path), check_epsilon(epsilon), check_delta(delta)
        if not path.exists():
            named = {"id": os.urandom(8).hex(), "dataset": dataset, "opened": _now()}
            create(path, {"format": FORMAT, "kind": "header", "epsilon": epsilon, "delta": delta, **named})
        ledger = cls.load(path)
        if (ledger.epsilon, ledger.delta) != (epsilon, delta):
            raise LedgerError(
                f"{path} already limits this dataset to epsilon = {ledger.epsilon!r}, delta = {ledger.delta!r}, not to "
                f"epsilon = {epsilon!r}, delta = {delta!r}: use its limit, or another file for another dataset"
            )
        return ledger

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ledger":
        """The ledger at `path`, which must exist."""
        path = Path(path)
        with locked(path, os.O_RDONLY) as file:
            header = parse(path, read(path, file)).header
        known = {key: header.get(key, "") for key in ("id", "dataset", "opened")}
        return cls(path, header["epsilon"], header["delta"], **known)

    def spend(
        self,
        plan: str,
        purpose: str,
        events: Sequence[Event],
        unit: Unit,
    ) -> Entry:
        """Write a spend to the disk if the limit allows it, else raise LedgerError. Call it before reading any row.

        All entries together cost `delta` of all their events at the limit's epsilon, for which what adds to delta
        outright must have been computed. Prices add up for one unit of privacy only: another one is refused. All of it
        happens under one lock.
        """
        try:
            check_price(events)
        except BudgetError as problem:
            raise LedgerError(f"cannot spend: {problem}") from None
        with locked(self.path, os.O_RDWR | os.O_APPEND) as file:
            content = parse(self.path, read(self.path, file))
            self._check_header(content.header)
            self._check_unit(content.entries, unit)
            spent = [event for entry in content.entries for event in entry.events]
            if delta([*spent, *events], self.epsilon) > self.delta * (1 + TOLERANCE):
                raise LedgerError(self._refusal(content.entries))
            record = {
                "kind": "spend",
                "time": _now(),
                "plan": plan,
                "purpose": purpose,
                "events": [to_json(event) for event in events],
                "unit": unit.to_dict(),
                "prev": content.last_hash,
                "who": _who(),
            }
            line = seal(record)
            append(self.path, file, content.close_last_line + line)
        return entry_of(json.loads(line))

    def check_dataset(self, name: str) -> None:
        """LedgerError if this ledger counts for another data set; a ledger without a name takes any."""
        if name and self.dataset and name != self.dataset:
            raise LedgerError(
                f"{self.path} counts for the data set '{self.dataset}', not for '{name}': name the ledger of '{name}', "
                f"or, if it is the same data, say --dataset {self.dataset} (in Python dataset=). Nothing was read"
            )

    def check_room(self, events: Sequence[Event], unit: Unit) -> None:
        """LedgerError if a spend of these events would be refused: asked before a first part of them is spent."""
        entries = self.entries()
        self._check_unit(entries, unit)
        spent = [event for entry in entries for event in entry.events]
        if delta([*spent, *events], self.epsilon) > self.delta * (1 + TOLERANCE):
            raise LedgerError(self._refusal(entries))

    def check_open(self, unit: Unit) -> None:
        """LedgerError if no release for this unit could be paid for: asked before anything is counted."""
        entries = self.entries()
        self._check_unit(entries, unit)
        if self._remaining(entries) == 0:
            raise LedgerError(self._refusal(entries))

    def entry(self, hash: str, plan: str) -> Entry:
        """The entry of a release, which names it and its plan; LedgerError if the ledger does not know it."""
        for found in self.entries():
            if (found.hash, found.plan) == (hash, plan):
                return found
        raise LedgerError(f"{self.path} does not know this release: it was charged to another ledger, or to none")

    def entries(self) -> tuple[Entry, ...]:
        """Everything that was spent, oldest first."""
        with locked(self.path, os.O_RDONLY) as file:
            content = parse(self.path, read(self.path, file))
        self._check_header(content.header)
        return content.entries

    def spent_mu(self) -> float:
        """mu of all entries together; selections come on top."""
        return _together(self.entries()).mu

    def remaining_epsilon(self) -> float:
        """The epsilon of the largest single release, at the ledger's delta, that still fits."""
        return self._remaining(self.entries())

    def summary(self) -> dict[str, Any]:
        """All of it, for people and `--json`."""
        entries = self.entries()
        together = _together(entries)
        return {
            "path": str(self.path),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "dataset": self.dataset,
            "opened": self.opened,
            "spent_mu": together.mu,
            "spent_choices": list(together.ranges),
            "spent_extra_delta": together.added,
            "remaining_epsilon": self._remaining(entries),
            "entries": [
                {
                    "time": e.time,
                    "plan": e.plan,
                    "purpose": e.purpose,
                    "who": e.who,
                    "events": [to_json(event) for event in e.events],
                    "mu": composed(e.events).mu,
                    "choices": list(composed(e.events).ranges),
                    "extra_delta": composed(e.events).added,
                    "unit": e.unit.to_dict() if e.unit else None,
                    "hash": e.hash,
                }
                for e in entries
            ],
        }

    def _remaining(self, entries: tuple[Entry, ...]) -> float:
        if not entries:
            return self.epsilon
        spent = _together(entries)
        spendable = self.delta - spent.added
        if spendable <= 0 or delta_of(spent.mu, self.epsilon, spent.ranges) >= spendable:
            return 0.0
        limit = mu_of(self.epsilon, spendable, spent.ranges)
        return min(self.epsilon, epsilon_of(math.sqrt((limit - spent.mu) * (limit + spent.mu)), self.delta))

    def _refusal(self, entries: tuple[Entry, ...]) -> str:
        remaining = self._remaining(entries)
        limit = f"the limit of {self.path} is epsilon = {self.epsilon:g} at delta = {self.delta:g}"
        if remaining < 1e-6:
            return f"the budget is spent: {limit}, and {len(entries)} release(s) used it up. Nothing was read"
        left = f"{remaining:.4g}" if not entries else f"about {remaining * 0.999:.3g}"
        return f"this would overspend: {limit}, and epsilon = {left} is left of it. Nothing was read; plan for less"

    def _check_header(self, header: dict[str, Any]) -> None:
        if (header["epsilon"], header["delta"], header.get("id", "")) != (self.epsilon, self.delta, self.id):
            raise LedgerError(f"{self.path} was replaced by another ledger: open it again")

    def _check_unit(self, entries: tuple[Entry, ...], unit: Unit) -> None:
        for entry in entries:
            if entry.unit is None:
                raise LedgerError(
                    f"{self.path} does not say as data for which unit of privacy it counts: it is of an old format. "
                    f"Open a new ledger with what is left of this one (epsilon = {self._remaining(entries):.4g})"
                )
            if not unit.adds_up_with(entry.unit):
                raise LedgerError(
                    f"{self.path} counts for another unit of privacy ({entry.unit.describe().rstrip('.')}): keep one "
                    "ledger per dataset and unit. Nothing was read"
                )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _who() -> str:
    """Who runs this: DPMERF_WHO, else the machine's name for them."""
    try:
        return os.environ.get(WHO) or getpass.getuser()
    except (OSError, KeyError):  # a container may run as a number without a name
        return str(os.getuid())


def _together(entries: tuple[Entry, ...]) -> Composed:
    """What several spends add up to."""
    return composed(event for entry in entries for event in entry.events)
