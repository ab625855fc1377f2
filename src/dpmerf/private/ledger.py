"""The ledger: an append-only file of what was spent on one dataset. It refuses overspending.

One JSON object a line, the first a header with the limit, each later one a spend; each carries its hash and the hash
of the line before it. The chain catches accidents and edits in the middle; it is not a defence against an owner who
deletes the file or its last lines, and budget spent without the ledger is unknown to it.

Spend first, then look: `spend` returns only after the line is on the disk. A crash may waste budget, never leak it.
"""

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from dpmerf.budget import check_delta, check_epsilon, compose, delta_of, epsilon_of, mu_of
from dpmerf.errors import LedgerError
from dpmerf.losses import MOST_RANGE

FORMAT = 1
TOLERANCE = 1e-12  # relative to delta: a plan that uses exactly the limit must pass in spite of float rounding
_VOID = b"#void"  # closes a line whose write was cut short; no whole line ends like this
_HEADER = {"format", "kind", "epsilon", "delta", "hash"}
_SPEND = {"kind", "time", "plan", "purpose", "mu", "extra_delta", "prev", "hash"}
_CHOSEN = _SPEND | {"choices"}  # a spend that made a choice, too


@final
@dataclass(frozen=True)
class Entry:
    """One spend."""

    time: str  # UTC
    plan: str  # hash of the plan
    purpose: str
    mu: float
    extra_delta: float
    choices: tuple[float, ...]  # ranges of their losses
    hash: str


@final
@dataclass(frozen=True)
class Ledger:
    """A handle on a ledger file. Holds no state: every question reads the file again, under a lock."""

    path: Path
    epsilon: float
    delta: float

    @classmethod
    def open(cls, path: str | os.PathLike[str], epsilon: float, delta: float) -> "Ledger":
        """The ledger at `path` with this limit; it is created if there is none."""
        path, epsilon, delta = Path(path), check_epsilon(epsilon), check_delta(delta)
        if not path.exists():
            _create(path, {"format": FORMAT, "kind": "header", "epsilon": epsilon, "delta": delta})
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
        with _locked(path, os.O_RDONLY) as file:
            header = _parse(path, _read(path, file)).header
        return cls(path, header["epsilon"], header["delta"])

    def spend(
        self, plan: str, purpose: str, mu: float, extra_delta: float = 0.0, choices: tuple[float, ...] = ()
    ) -> Entry:
        """Write a spend to the disk if the limit allows it, else raise LedgerError. Call it before reading any row.

        All entries together cost delta_of(sqrt(sum of mu^2), limit epsilon, all choices) + sum of extra_delta. The
        second sum is right only if `extra_delta` is computed for the ledger's epsilon: discrete_delta(ledger.epsilon,
        ...).
        """
        mu, extra_delta = float(mu), float(extra_delta)
        if not _is_price(mu, extra_delta, choices):
            raise LedgerError(
                f"cannot spend mu = {mu}, extra_delta = {extra_delta}, choices = {choices}: mu > 0, "
                f"0 <= extra_delta < 1, and a choice has a range above 0 and at most {MOST_RANGE:g}"
            )
        with _locked(self.path, os.O_RDWR | os.O_APPEND) as file:
            content = _parse(self.path, _read(self.path, file))
            self._check_header(content.header)
            before = _together(content.entries)
            made = (*before.choices, *choices)
            cost = delta_of(compose(before.mu, mu), self.epsilon, made) + before.extra_delta + extra_delta
            if cost > self.delta * (1 + TOLERANCE):
                raise LedgerError(self._refusal(content.entries))
            record = {
                "kind": "spend",
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "plan": plan,
                "purpose": purpose,
                "mu": mu,
                "extra_delta": extra_delta,
                "prev": content.last_hash,
                **({"choices": list(choices)} if choices else {}),
            }
            line = _seal(record)
            _append(self.path, file, content.close_last_line + line)
        return _entry(json.loads(line))

    def entries(self) -> tuple[Entry, ...]:
        """Everything that was spent, oldest first."""
        with _locked(self.path, os.O_RDONLY) as file:
            content = _parse(self.path, _read(self.path, file))
        self._check_header(content.header)
        return content.entries

    def spent_mu(self) -> float:
        """mu of all entries together; choices come on top."""
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
            "spent_mu": together.mu,
            "spent_choices": list(together.choices),
            "spent_extra_delta": together.extra_delta,
            "remaining_epsilon": self._remaining(entries),
            "entries": [
                {
                    "time": e.time,
                    "plan": e.plan,
                    "purpose": e.purpose,
                    "mu": e.mu,
                    "choices": list(e.choices),
                    "extra_delta": e.extra_delta,
                }
                for e in entries
            ],
        }

    def _remaining(self, entries: tuple[Entry, ...]) -> float:
        if not entries:
            return self.epsilon
        spent = _together(entries)
        spendable = self.delta - spent.extra_delta
        if spendable <= 0 or delta_of(spent.mu, self.epsilon, spent.choices) >= spendable:
            return 0.0
        limit = mu_of(self.epsilon, spendable, spent.choices)
        return min(self.epsilon, epsilon_of(math.sqrt((limit - spent.mu) * (limit + spent.mu)), self.delta))

    def _refusal(self, entries: tuple[Entry, ...]) -> str:
        remaining = self._remaining(entries)
        limit = f"the limit of {self.path} is epsilon = {self.epsilon:g} at delta = {self.delta:g}"
        if remaining < 1e-6:
            return f"the budget is spent: {limit}, and {len(entries)} release(s) used it up. Nothing was read"
        left = f"{remaining:.4g}" if not entries else f"about {remaining * 0.999:.3g}"
        return f"this would overspend: {limit}, and epsilon = {left} is left of it. Nothing was read; plan for less"

    def _check_header(self, header: dict[str, Any]) -> None:
        if (header["epsilon"], header["delta"]) != (self.epsilon, self.delta):
            raise LedgerError(f"{self.path} was replaced by a ledger with another limit: open it again")


@dataclass(frozen=True)
class _Together:
    mu: float
    extra_delta: float
    choices: tuple[float, ...]


def _together(entries: tuple[Entry, ...]) -> _Together:
    """What several spends add up to."""
    return _Together(
        compose(*(entry.mu for entry in entries)),
        math.fsum(entry.extra_delta for entry in entries),
        tuple(r for entry in entries for r in entry.choices),
    )


# --- the file --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Content:
    header: dict[str, Any]
    entries: tuple[Entry, ...]
    last_hash: str
    close_last_line: bytes  # what an append must write first


def _parse(path: Path, raw: bytes) -> _Content:
    """Check every byte. A terminated line is exact and chained, or void; all else is damage and is refused.

    A write that a crash cut short leaves the beginning of a line, whose spend() never returned: it counts for nothing,
    and the next append closes it with a mark. A whole line that lacks only its newline counts as spent.
    """
    *lines, tail = raw.split(b"\n")
    if not lines:
        raise _damaged(path, "its first line is not a header")
    close = b""
    if tail:
        torn = _is_beginning(tail)
        lines += [] if torn else [tail]
        close = _VOID + b"\n" if torn else b"\n"
    header = _open_seal(path, 1, lines[0])
    if header.get("kind") != "header" or header.get("format") != FORMAT:
        raise LedgerError(f"{path} is not a ledger of format {FORMAT}: check the path, or update dpmerf")
    if set(header) != _HEADER:
        raise _damaged(path, "line 1 has other fields than a header")
    entries: list[Entry] = []
    last_hash = header["hash"]
    for number, line in enumerate(lines[1:], start=2):
        if line.endswith(_VOID) and _is_beginning(line):
            continue
        record = _open_seal(path, number, line)
        if set(record) not in (_SPEND, _CHOSEN) or record["kind"] != "spend":
            raise _damaged(path, f"line {number} is not a spend")
        if record["prev"] != last_hash:
            raise _damaged(path, f"line {number} does not follow the line before it")
        if not _is_price(record["mu"], record["extra_delta"], record.get("choices", [])):
            raise _damaged(path, f"line {number} has an impossible price")
        entries.append(_entry(record))
        last_hash = record["hash"]
    return _Content(header, tuple(entries), last_hash, close)


def _is_beginning(line: bytes) -> bool:
    """Is this the mere beginning of a line? A whole object, even a wrong one or one with more behind it, is not."""
    try:
        json.JSONDecoder().raw_decode(line.decode("ascii", "replace"))
    except (ValueError, RecursionError):
        return line.startswith(b"{")
    return False


def _is_price(mu: object, extra_delta: object, choices: object) -> bool:
    if not (isinstance(mu, float) and isinstance(extra_delta, float) and isinstance(choices, list | tuple)):
        return False
    if not all(isinstance(r, float) and 0 < r <= MOST_RANGE for r in choices):
        return False
    return math.isfinite(mu) and mu > 0 and 0 <= extra_delta < 1


def _seal(record: dict[str, Any]) -> bytes:
    """A line with its hash."""
    return _canonical({**record, "hash": _sha256(_canonical(record))}) + b"\n"


def _open_seal(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged(path, f"line {number} is not JSON") from None
    if not isinstance(record, dict) or _seal({k: v for k, v in record.items() if k != "hash"}) != line + b"\n":
        raise _damaged(path, f"the hash of line {number} does not fit")
    return record


def _canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _entry(record: dict[str, Any]) -> Entry:
    known = {key: record[key] for key in ("time", "plan", "purpose", "mu", "extra_delta", "hash")}
    return Entry(**known, choices=tuple(record.get("choices", ())))


def _damaged(path: Path, why: str) -> LedgerError:
    return LedgerError(f"{path} is damaged ({why}): restore it from a copy. What was spent cannot be told from it")


def _create(path: Path, header: dict[str, Any]) -> None:
    """Write the header beside `path`, then link it there: a ledger is whole from the start, and never overwritten."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _append(path, file, _seal(header))
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first: load() checks that it agrees
        finally:
            os.close(file)
            os.unlink(draft)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise _unusable(path, error) from None


@contextmanager
def _locked(path: Path, flags: int) -> Iterator[int]:
    """A file descriptor under a lock: shared to read, exclusive to write."""
    try:
        file = os.open(path, flags)
    except OSError as error:
        raise _unusable(path, error) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_SH if flags == os.O_RDONLY else fcntl.LOCK_EX)
        except OSError as error:
            raise _unusable(path, error) from None
        yield file
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # closing alone would not do if the process was forked meanwhile
        os.close(file)


def _read(path: Path, file: int) -> bytes:
    try:
        return b"".join(iter(lambda: os.read(file, 1 << 20), b""))
    except OSError as error:
        raise _unusable(path, error) from None


def _append(path: Path, file: int, line: bytes) -> None:
    try:
        written = os.write(file, line)
        os.fsync(file)
    except OSError as error:
        raise _unusable(path, error) from None
    if written != len(line):
        raise LedgerError(f"{path} could not be written to the end: is the disk full? Nothing was read")


def _unusable(path: Path, error: OSError) -> LedgerError:
    advice = {
        FileNotFoundError: "there is no such file or folder: check the path, or create the folder",
        PermissionError: "it may not be written or read: change its permissions, or choose another place",
        IsADirectoryError: "it is a folder: name a file",
        NotADirectoryError: "a part of the path is a file: name a folder",
    }.get(type(error), f"{error.strerror}: put it on a local disk with free space")
    return LedgerError(f"the ledger {path} cannot be used; {advice}")
