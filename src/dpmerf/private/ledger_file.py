"""The ledger's file: lines of JSON, sealed and chained, read whole and appended under a lock.

Format 3: the header names the data set and when the ledger was opened; a spend is a list of events, and says for which
unit of privacy it counts and who spent. Files of format 2, whose spends are numbers, are read and continued. Files of
format 1 are read; they did not say the unit as data, so nothing is added.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from dpmerf.accounting.events import Added, Event, Gaussian, Selection, from_json
from dpmerf.accounting.unit import Unit
from dpmerf.errors import BudgetError, DpmerfError, LedgerError

FORMAT = 3
_VOID = b"#void"  # closes a line whose write was cut short; no whole line ends like this
_HEADER = {"format", "kind", "epsilon", "delta", "hash"}
_HEADERS = {1: _HEADER, 2: {*_HEADER, "id"}, 3: {*_HEADER, "id", "dataset", "opened"}}
_ALWAYS = {"kind", "time", "plan", "purpose", "prev", "hash"}
_SPEND = _ALWAYS | {"events", "unit", "who"}
_OLD_SPEND, _OLD_OPTIONAL = _ALWAYS | {"mu", "extra_delta"}, {"choices", "unit"}  # of formats 1 and 2


@final
@dataclass(frozen=True)
class Entry:
    """One spend."""

    time: str  # UTC
    plan: str  # hash of the plan
    purpose: str
    events: tuple[Event, ...]
    unit: Unit | None  # for which these are the prices; None: it was not said (format 1)
    hash: str
    who: str = ""  # spent it, as the machine calls them; empty: it was not said


@final
@dataclass(frozen=True)
class Content:
    """A ledger file that was read and checked."""

    header: dict[str, Any]
    entries: tuple[Entry, ...]
    last_hash: str
    close_last_line: bytes  # what an append must write first


def parse(path: Path, raw: bytes) -> Content:
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
    if header.get("kind") != "header" or header.get("format") not in range(1, FORMAT + 1):
        raise LedgerError(f"{path} is not a ledger of format {FORMAT} or less: check the path, or update dpmerf")
    if set(header) != _HEADERS[header["format"]]:
        raise _damaged(path, "line 1 has other fields than a header")
    if not all(isinstance(header.get(key, ""), str) for key in ("id", "dataset", "opened")):
        raise _damaged(path, "its header names no data set")
    if not _is_limit(header["epsilon"], header["delta"]):
        raise _damaged(path, "its limit is no epsilon above 0 with a delta between 0 and 1")
    entries: list[Entry] = []
    last_hash = header["hash"]
    for number, line in enumerate(lines[1:], start=2):
        if line.endswith(_VOID) and _is_beginning(line):
            continue
        record = _open_seal(path, number, line)
        old = header["format"] < FORMAT and set(record) - _OLD_OPTIONAL == _OLD_SPEND
        if not (set(record) == _SPEND or old) or record["kind"] != "spend":
            raise _damaged(path, f"line {number} is not a spend")
        if record["prev"] != last_hash:
            raise _damaged(path, f"line {number} does not follow the line before it")
        if not isinstance(record.get("who", ""), str):
            raise _damaged(path, f"line {number} does not say who spent")
        try:
            entries.append(entry_of(record))
        except (DpmerfError, TypeError):
            raise _damaged(path, f"line {number} has an impossible price or unit of privacy") from None
        last_hash = record["hash"]
    return Content(header, tuple(entries), last_hash, close)


def _is_beginning(line: bytes) -> bool:
    """Is this the mere beginning of a line? A whole object, even a wrong one or one with more behind it, is not."""
    try:
        json.JSONDecoder().raw_decode(line.decode("ascii", "replace"))
    except (ValueError, RecursionError):
        return line.startswith(b"{")
    return False


def _is_limit(epsilon: object, delta: object) -> bool:
    """A float that is finite and above 0, and one between 0 and 1; no boolean, no text."""
    if not (type(epsilon) in (int, float) and type(delta) is float):
        return False
    return math.isfinite(epsilon) and epsilon > 0 and 0 < delta < 1  # type: ignore[arg-type,operator]


def seal(record: dict[str, Any]) -> bytes:
    """A line with its hash."""
    return _canonical({**record, "hash": _sha256(_canonical(record))}) + b"\n"


def _open_seal(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise _damaged(path, f"line {number} is not JSON") from None
    if not isinstance(record, dict) or seal({k: v for k, v in record.items() if k != "hash"}) != line + b"\n":
        raise _damaged(path, f"the hash of line {number} does not fit")
    return record


def _canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry_of(record: dict[str, Any]) -> Entry:
    """A line as data."""
    known = {key: record[key] for key in ("time", "plan", "purpose", "hash")}
    unit = Unit.from_dict(record["unit"]) if "unit" in record else None
    return Entry(**known, events=_events(record), unit=unit, who=record.get("who", ""))


def _events(record: dict[str, Any]) -> tuple[Event, ...]:
    if "events" in record:
        if not isinstance(record["events"], list):
            raise TypeError("events are a list")
        events = tuple(from_json(event) for event in record["events"])
    else:
        selections = [Selection(r) for r in record.get("choices", [])]
        events = (Gaussian(record["mu"]), *selections, Added(record["extra_delta"]))
    check_price(events)
    return events


def check_price(events: Sequence[Event]) -> None:
    """BudgetError if nothing is bought: every release so far has Gaussian noise or a selection."""
    if not any(isinstance(event, Gaussian | Selection) for event in events):
        raise BudgetError("a spend needs an event of Gaussian noise or a selection")


def _damaged(path: Path, why: str) -> LedgerError:
    return LedgerError(f"{path} is damaged ({why}): restore it from a copy. What was spent cannot be told from it")


def create(path: Path, header: dict[str, Any]) -> None:
    """Write the header beside `path`, then link it there: a ledger is whole from the start, and never overwritten."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            append(path, file, seal(header))
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
def locked(path: Path, flags: int) -> Iterator[int]:
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
        with suppress(OSError):  # where there are no locks, that was said above
            fcntl.flock(file, fcntl.LOCK_UN)  # closing alone would not do if the process was forked meanwhile
        os.close(file)


def read(path: Path, file: int) -> bytes:
    """All bytes of an open file."""
    try:
        return b"".join(iter(lambda: os.read(file, 1 << 20), b""))
    except OSError as error:
        raise _unusable(path, error) from None


def append(path: Path, file: int, line: bytes) -> None:
    """Write one line and see it on the disk."""
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
