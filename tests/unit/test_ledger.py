"""The ledger counts everything that may have been looked at, whatever crashes, races or damage happen."""

import errno
import fcntl
import hashlib
import json
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmerf.accounting.events import Added, Gaussian, Selection
from dpmerf.accounting.gaussian import compose, delta_of, discrete_delta, mu_of
from dpmerf.accounting.unit import Unit
from dpmerf.errors import BudgetError, DataError, LedgerError
from dpmerf.private.count import public_rows
from dpmerf.private.ledger import Ledger
from dpmerf.private.ledger_file import Entry
from dpmerf.sources.rows import open_rows

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
EPSILON, DELTA = 1.0, 1e-5
ALL = mu_of(EPSILON, DELTA)
fork = multiprocessing.get_context("fork")


def spend(
    ledger: Ledger,
    plan: str,
    purpose: str,
    mu: float,
    extra: float = 0.0,
    ranges: tuple[float, ...] = (),
    unit: Unit | None = None,
) -> Entry:
    """Events of one release."""
    try:
        events = (Gaussian(float(mu)), *map(Selection, ranges), Added(float(extra)))
    except BudgetError as problem:
        raise LedgerError(f"cannot spend: {problem}") from None
    return ledger.spend(plan, purpose, events, unit or Unit())


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "study.ledger", EPSILON, DELTA)


def run(target: Callable[..., Any], *argument_lists: tuple[Any, ...]) -> list[int | None]:
    """Run in processes at once; their exit codes."""
    processes = [fork.Process(target=target, args=arguments) for arguments in argument_lists]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


# --- what is counted -------------------------------------------------------------------------------------------------


def test_a_disk_without_locks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger.open(tmp_path / "l", 1.0, 1e-5)

    def refuse(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(LedgerError, match="No locks available: put it on a local disk"):
        Ledger.load(tmp_path / "l")


def test_a_new_ledger_is_empty_and_reopens(ledger: Ledger) -> None:
    assert Ledger.open(ledger.path, EPSILON, DELTA) == Ledger.load(ledger.path) == ledger
    assert ledger.entries() == () and ledger.spent_mu() == 0 and ledger.remaining_epsilon() == EPSILON
    header = json.loads(ledger.path.read_text())
    assert (header["format"], header["kind"], header["epsilon"], header["delta"]) == (3, "header", EPSILON, DELTA)
    assert os.listdir(ledger.path.parent) == ["study.ledger"]  # no drafts left behind


def test_spend_is_written_as_it_is_returned(ledger: Ledger) -> None:
    entry = spend(ledger, "abc", "release", ALL / 2, 1e-9)
    assert ledger.entries() == (entry,)
    assert (entry.plan, entry.purpose, entry.events) == ("abc", "release", (Gaussian(ALL / 2), Added(1e-9)))
    assert entry.time.endswith("+00:00")
    header, line = map(json.loads, ledger.path.read_text().splitlines())
    assert line["kind"] == "spend" and line["prev"] == header["hash"] and line["hash"] == entry.hash


def test_exactly_the_limit_passes_and_nothing_more(ledger: Ledger) -> None:
    for _ in range(3):
        spend(ledger, "p", "a third", ALL / math.sqrt(3))
    assert ledger.spent_mu() == pytest.approx(ALL, rel=1e-14)
    assert ledger.remaining_epsilon() < 1e-6
    with pytest.raises(LedgerError, match=r"the budget is spent.*epsilon = 1 at delta = 1e-05.*3 release"):
        spend(ledger, "p", "more", 1e-3)
    assert len(ledger.entries()) == 3


def test_the_sampler_is_counted_too(ledger: Ledger) -> None:
    extra = discrete_delta(EPSILON, 1000, 5000.0)
    with pytest.raises(LedgerError):
        spend(ledger, "p", "ignores the sampler", ALL, extra)
    spend(ledger, "p", "allows for it", mu_of(EPSILON, DELTA - extra), extra)


def test_a_refusal_says_what_is_left_and_writes_nothing(ledger: Ledger) -> None:
    spend(ledger, "p", "first", ALL * 0.8)
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match=r"would overspend.* epsilon = about 0\.5\d* is left"):
        spend(ledger, "p", "second", ALL * 0.8)
    assert ledger.path.read_bytes() == before
    spend(ledger, "p", "what is left", mu_of(ledger.remaining_epsilon(), DELTA))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spends=st.lists(st.tuples(st.floats(1e-3, ALL), st.floats(0, DELTA / 3)), max_size=6))
def test_never_over_the_limit(spends: list[tuple[float, float]], tmp_path_factory: pytest.TempPathFactory) -> None:
    ledger = Ledger.open(tmp_path_factory.mktemp("l") / "l", EPSILON, DELTA)
    accepted: list[tuple[float, float]] = []
    for mu, extra in spends:
        mus, extras = zip(*accepted, (mu, extra), strict=True)
        fits = delta_of(compose(*mus), EPSILON) + math.fsum(extras) <= DELTA * (1 + 1e-12)
        try:
            spend(ledger, "p", "x", mu, extra)
            assert fits
            accepted.append((mu, extra))
        except LedgerError:
            assert not fits
    assert [entry.events for entry in ledger.entries()] == [(Gaussian(mu), Added(extra)) for mu, extra in accepted]
    summary = json.loads(json.dumps(ledger.summary()))
    assert len(summary["entries"]) == len(accepted) and 0 <= summary["remaining_epsilon"] <= EPSILON


@pytest.mark.parametrize(
    ("mu", "extra"), [(0, 0), (-1, 0), (math.nan, 0), (math.inf, 0), (0.1, -1), (0.1, 1), (0.1, math.nan)]
)
def test_bad_prices(ledger: Ledger, mu: float, extra: float) -> None:
    with pytest.raises(LedgerError, match="cannot spend"):
        spend(ledger, "p", "x", mu, extra)
    assert ledger.entries() == ()


def test_any_text_is_a_purpose(ledger: Ledger) -> None:
    spend(ledger, "p", 'line\nbreak "quotes" ε #void', 0.01)
    spend(ledger, "p", "next", 0.01)
    assert ledger.entries()[0].purpose == 'line\nbreak "quotes" ε #void'


# --- processes -------------------------------------------------------------------------------------------------------


def _race(path: Path, start: Barrier, mu: float, times: int) -> None:
    ledger = Ledger.load(path)
    start.wait()
    try:
        for _ in range(times):
            spend(ledger, "p", "race", mu)
    except LedgerError:
        os._exit(3)
    os._exit(0)


def test_two_processes_cannot_both_spend_the_last(ledger: Ledger) -> None:
    for _ in range(5):
        ledger.path.unlink()
        ledger = Ledger.open(ledger.path, EPSILON, DELTA)
        spend(ledger, "p", "most of it", ALL * 0.6)
        start = fork.Barrier(2)
        assert sorted(run(_race, *[(ledger.path, start, ALL * 0.7, 1)] * 2)) == [0, 3]  # type: ignore[type-var]
        assert len(ledger.entries()) == 2


def test_many_processes_add_up(ledger: Ledger) -> None:
    start, each = fork.Barrier(8), ALL / 10
    assert run(_race, *[(ledger.path, start, each, 10)] * 8) == [0] * 8
    assert len(ledger.entries()) == 80
    assert ledger.spent_mu() == pytest.approx(each * math.sqrt(80))
    run(_race, *[(ledger.path, fork.Barrier(4), each, 10)] * 4)
    assert len(ledger.entries()) == 100  # (ALL / 10)^2 * 100 = ALL^2


def _open_at_once(path: Path, start: Barrier, epsilon: float) -> None:
    start.wait()
    try:
        Ledger.open(path, epsilon, DELTA)
    except LedgerError:
        os._exit(3)
    os._exit(0)


def test_processes_that_create_it_at_once_agree(tmp_path: Path) -> None:
    path, start = tmp_path / "l", fork.Barrier(4)
    codes = run(_open_at_once, *[(path, start, epsilon) for epsilon in (1.0, 1.0, 2.0, 2.0)])
    won = Ledger.load(path).epsilon
    assert codes == ([0, 0, 3, 3] if won == 1.0 else [3, 3, 0, 0])
    assert os.listdir(tmp_path) == ["l"]


def _spend_and_hang(path: Path) -> None:
    spend(Ledger.load(path), "p", "killed while reading rows", ALL)
    path.with_name("reading").touch()
    time.sleep(60)


def test_a_kill_after_the_spend_leaves_it_spent(ledger: Ledger) -> None:
    process = fork.Process(target=_spend_and_hang, args=(ledger.path,))
    process.start()
    while not ledger.path.with_name("reading").exists():
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(LedgerError, match="spent"):
        spend(ledger, "p", "again", ALL)


# --- damage ----------------------------------------------------------------------------------------------------------


def test_truncation_at_every_byte_of_the_last_line(ledger: Ledger) -> None:
    done = [spend(ledger, "p", "done", ALL / 2).hash for _ in range(2)]
    whole = ledger.path.stat().st_size
    last = spend(ledger, "p", "torn", ALL / 2)
    raw = ledger.path.read_bytes()
    for size in range(whole, len(raw) + 1):
        ledger.path.write_bytes(raw[:size])
        hashes = [entry.hash for entry in ledger.entries()]
        assert hashes == ([*done, last.hash] if size >= len(raw) - 1 else done)
        new = spend(ledger, "p", "after", ALL / 2)
        assert [entry.hash for entry in ledger.entries()] == [*hashes, new.hash]
        assert ledger.path.read_bytes().startswith(raw[:size])  # nothing is erased


def test_crash_after_crash(ledger: Ledger) -> None:
    """An append that closes a torn line may be torn itself, at any byte."""
    spend(ledger, "p", "done", ALL / 2)
    raw = ledger.path.read_bytes() + b'{"extra_delta":0.0,"ha'
    ledger.path.write_bytes(raw)
    spend(ledger, "p", "after", ALL / 2)
    closed = ledger.path.read_bytes()
    for size in range(len(raw), len(closed) + 1):
        ledger.path.write_bytes(closed[:size])
        counted = len(ledger.entries())
        assert counted == (2 if size >= len(closed) - 1 else 1)
        spend(ledger, "p", "third", ALL / 2)
        assert len(ledger.entries()) == counted + 1


def test_flipped_bits_are_refused(ledger: Ledger) -> None:
    spend(ledger, "p", "one", ALL / 2)
    spend(ledger, "p", "two", ALL / 2)
    raw = ledger.path.read_bytes()
    last = raw.rindex(b"\n", 0, -1)
    for place in range(len(raw)):  # every bit from the newline before the last line on, and one of each byte before it
        for bit in range(8) if place >= last else [place % 8]:
            ledger.path.write_bytes(raw[:place] + bytes([raw[place] ^ (1 << bit)]) + raw[place + 1 :])
            with pytest.raises(LedgerError):
                ledger.entries()
    with pytest.raises(LedgerError, match=r"damaged .* restore it from a copy"):
        spend(ledger, "p", "x", 0.01)


def test_lines_removed_swapped_or_repeated_are_refused(ledger: Ledger) -> None:
    for _ in range(3):
        spend(ledger, "p", "x", 0.01)
    head, a, b, c = ledger.path.read_bytes().splitlines(keepends=True)
    for lines in ([head, b, c], [head, a, c], [head, b, a, c], [head, a, a, b, c], [a, b, c], [head, a, b"\n", b]):
        ledger.path.write_bytes(b"".join(lines))
        with pytest.raises(LedgerError, match=r"damaged|format"):
            ledger.entries()


def test_a_whole_spend_cannot_be_marked_void(ledger: Ledger) -> None:
    spend(ledger, "p", "x", ALL)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-1] + b"#void\n")
    with pytest.raises(LedgerError, match="damaged"):
        ledger.entries()


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{", b"hello\n", b"\xff\x00\n", b"[" * 100_000 + b"\n", b"{}\n", b"[1]\n", b"1\n"]
)
def test_other_files_are_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.load(path)
    with pytest.raises(LedgerError):
        Ledger.open(path, EPSILON, DELTA)
    assert path.read_bytes() == content


def test_unknown_format(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmerf.private.ledger_file.FORMAT", 1)
    with pytest.raises(LedgerError, match="not a ledger of format 1 or less"):
        Ledger.load(ledger.path)


def sealed(record: dict[str, Any]) -> bytes:
    """A line as any program would write it."""
    text = lambda r: json.dumps(r, sort_keys=True, separators=(",", ":"))  # noqa: E731
    return text({**record, "hash": hashlib.sha256(text(record).encode()).hexdigest()}).encode() + b"\n"


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(math.inf, DELTA), (math.nan, DELTA), (True, DELTA), (0.0, DELTA), (-1.0, DELTA), ("1", DELTA), (None, DELTA)]
    + [(1.0, bad) for bad in (math.nan, math.inf, 1.0, 2.0, 0.0, -DELTA, True, False, "1e-5", None, 1)],
)
def test_a_limit_that_is_none_is_refused(tmp_path: Path, epsilon: Any, delta: Any) -> None:
    for fields in ({"format": 1}, {"format": 2, "id": "00"}, {"format": 3, "id": "00", "dataset": "", "opened": ""}):
        path = tmp_path / "l"
        path.write_bytes(sealed({**fields, "kind": "header", "epsilon": epsilon, "delta": delta}))
        with pytest.raises(LedgerError, match="damaged"):
            Ledger.load(path)


# --- the data set, and who spent -------------------------------------------------------------------------------------


def test_a_ledger_is_bound_to_a_data_set_and_says_who_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(tmp_path / "l", EPSILON, DELTA, "patients")
    assert Ledger.load(ledger.path).dataset == "patients" and ledger.opened.endswith("+00:00")
    ledger.check_dataset("patients")
    ledger.check_dataset("")  # a frame has no name
    with pytest.raises(LedgerError, match="counts for the data set 'patients', not for 'visits'"):
        ledger.check_dataset("visits")
    monkeypatch.setenv("DPMERF_WHO", "Ada")
    assert spend(ledger, "p", "x", 0.01).who == "Ada" == ledger.summary()["entries"][0]["who"]
    monkeypatch.delenv("DPMERF_WHO")
    assert spend(ledger, "p", "x", 0.01).who


@pytest.mark.parametrize("fields", [{"dataset": 1}, {"opened": None}, {"id": []}, {"more": ""}])
def test_a_header_that_names_no_data_set_is_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    header = {
        "format": 3,
        "id": "00",
        "dataset": "",
        "opened": "",
        "kind": "header",
        "epsilon": EPSILON,
        "delta": DELTA,
    }
    (tmp_path / "l").write_bytes(sealed({**header, **fields}))
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.load(tmp_path / "l")


def test_a_ledger_of_format_2_is_continued_as_it_is(tmp_path: Path) -> None:
    header = {"format": 2, "id": "00", "kind": "header", "epsilon": EPSILON, "delta": DELTA}
    (tmp_path / "l").write_bytes(sealed(header))
    ledger = Ledger.load(tmp_path / "l")
    assert spend(ledger, "p", "x", 0.01).who  # its format is old, the entry is not
    ledger.check_dataset("anything")


# --- units of privacy ------------------------------------------------------------------------------------------------

ROW, VISITS = Unit(), Unit("patient", 2)


def test_an_entry_says_its_unit_in_types(ledger: Ledger) -> None:
    assert spend(ledger, "p", "x", 0.01, unit=VISITS).unit == VISITS == ledger.entries()[0].unit
    written = json.loads(ledger.path.read_text().splitlines()[1])
    assert written["unit"] == {"person": "patient", "max_rows": 2, "neighbours": "replace"}
    assert ledger.summary()["entries"][0]["unit"] == written["unit"]


def test_other_units_are_refused_and_other_caps_are_not(ledger: Ledger) -> None:
    spend(ledger, "p", "two visits", 0.01, unit=VISITS)
    spend(ledger, "p", "five visits of the same persons", 0.01, unit=Unit("patient", 5))
    for other in (ROW, Unit("patient", 2, "add-remove"), Unit("doctor", 2)):
        with pytest.raises(LedgerError, match=r"another unit of privacy .*'patient'"):
            spend(ledger, "p", "x", 0.01, unit=other)
    assert len(ledger.entries()) == 2


def test_ledgers_of_format_1_are_read_and_not_continued(tmp_path: Path) -> None:
    """They said their unit in a sentence, and no sentence is parsed: what is left moves to a new ledger."""
    header = sealed({"format": 1, "kind": "header", "epsilon": EPSILON, "delta": DELTA})
    line = {
        "kind": "spend",
        "time": "2025-01-01T00:00:00+00:00",
        "plan": "p",
        "purpose": "release (default). Protected: one row, replaced by any other. The number of rows is public.",
        "mu": ALL / 2,
        "extra_delta": 0.0,
        "prev": json.loads(header)["hash"],
    }
    path = tmp_path / "old"
    path.write_bytes(header + sealed(line))
    ledger = Ledger.open(path, EPSILON, DELTA)
    assert [(e.unit, e.events) for e in ledger.entries()] == [(None, (Gaussian(ALL / 2), Added(0.0)))]
    assert ledger.summary()["remaining_epsilon"] > 0.1
    with pytest.raises(LedgerError, match=r"old format.*new ledger with what is left of this one \(epsilon = 0\."):
        spend(ledger, "p", "x", 0.01)
    assert len(ledger.entries()) == 1


def test_ledgers_of_format_2_are_read_and_continued(tmp_path: Path) -> None:
    """Stored before spends were lists of events; written by dpmerf then."""
    path = tmp_path / "study.ledger"
    path.write_bytes((Path(__file__).parents[1] / "artefacts" / "format2" / "study.ledger").read_bytes())
    ledger = Ledger.load(path)
    first, second, third = ledger.entries()
    assert first.unit == second.unit == third.unit == ROW
    assert [type(event) for event in third.events] == [Gaussian, Selection, Added]
    before = ledger.spent_mu()
    spend(ledger, "p", "x", 0.1)
    assert ledger.spent_mu() == pytest.approx(math.hypot(before, 0.1)) and len(ledger.entries()) == 4
    with pytest.raises(LedgerError, match="another unit"):
        spend(ledger, "p", "x", 0.1, unit=VISITS)


def test_no_words_of_the_unit_are_parsed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewording what people read changes no stored fact."""
    monkeypatch.setattr(Unit, "describe", lambda self: "Somebody is protected.")
    spend(ledger, "p", "Protected: one person (all rows with the same 'x', at most 1 row of them used)", 0.01)
    assert ledger.entries()[0].unit == ROW


@pytest.mark.parametrize(
    "events", [[], [{"laplace": 0.1}], [{"gaussian": 0}], [{"added": 0.0}], {"gaussian": 0.1}, None]
)
def test_an_event_that_is_none_is_refused(ledger: Ledger, events: Any) -> None:
    spend(ledger, "p", "x", 0.01)
    header, line = ledger.path.read_bytes().splitlines(keepends=True)
    record = {**json.loads(line), "events": events}
    del record["hash"]
    ledger.path.write_bytes(header + sealed(record))
    with pytest.raises(LedgerError, match="impossible price"):
        ledger.entries()


def test_a_damaged_unit_is_refused(ledger: Ledger) -> None:
    spend(ledger, "p", "x", 0.01, unit=VISITS)
    header, line = ledger.path.read_bytes().splitlines(keepends=True)
    record = json.loads(line)
    del record["hash"]
    for unit in ({}, {"person": 3}, {**record["unit"], "max_rows": 0}, {**record["unit"], "more": 1}, [], "row", None):
        ledger.path.write_bytes(header + sealed({**record, "unit": unit}))
        with pytest.raises(LedgerError, match="impossible price or unit"):
            ledger.entries()


def _spend_for(path: Path, start: Barrier, unit: Unit) -> None:
    ledger = Ledger.load(path)
    start.wait()
    try:
        spend(ledger, "p", "race", 0.01, unit=unit)
    except LedgerError:
        os._exit(3)
    os._exit(0)


def test_units_are_compared_under_the_lock(ledger: Ledger) -> None:
    """Releases for rows and for persons at once: whichever is first, the ledger counts for one unit."""
    units = [ROW, VISITS, ROW, VISITS, Unit("patient", 5)]
    for _ in range(10):
        ledger.path.unlink()
        ledger = Ledger.open(ledger.path, EPSILON, DELTA)
        start = fork.Barrier(len(units))
        codes = run(_spend_for, *((ledger.path, start, unit) for unit in units))
        kept = {entry.unit.person for entry in ledger.entries() if entry.unit}
        assert kept in ({None}, {"patient"})
        assert codes.count(0) == (2 if kept == {None} else 3) == len(ledger.entries())


def test_a_ledger_with_many_choices_is_fast(ledger: Ledger) -> None:
    wide = Ledger.open(ledger.path.with_name("wide"), 50.0, DELTA)
    for i in range(40):
        spend(wide, "p", "chose", 0.05, 0.0, (0.3 + i / 1000,))
    times = []
    for _ in range(3):
        began = time.process_time()
        wide.summary()
        times.append(time.process_time() - began)
    began = time.process_time()
    spend(wide, "p", "chose", 0.05, 0.0, (0.35,))
    assert time.process_time() - began < 0.15 and min(times) < 0.15  # 0.48 before; beside other work 0.06


# --- places ----------------------------------------------------------------------------------------------------------


def test_another_limit_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"already limits this dataset to epsilon = 1\.0.*use its limit"):
        Ledger.open(ledger.path, 2.0, DELTA)
    with pytest.raises(BudgetError, match="epsilon is nan"):
        Ledger.open(ledger.path, math.nan, DELTA)


def test_a_replaced_file_is_noticed(ledger: Ledger) -> None:
    ledger.path.unlink()
    Ledger.open(ledger.path, 5.0, DELTA)
    with pytest.raises(LedgerError, match="replaced"):
        spend(ledger, "p", "x", ALL)
    ledger.path.unlink()
    Ledger.open(ledger.path, EPSILON, DELTA)  # of the same limit: also noticed
    with pytest.raises(LedgerError, match="replaced"):
        spend(ledger, "p", "x", ALL)


def test_missing_places(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no such file or folder"):
        Ledger.load(tmp_path / "none")
    with pytest.raises(LedgerError, match="create the folder"):
        Ledger.open(tmp_path / "none" / "l", EPSILON, DELTA)
    with pytest.raises(LedgerError, match="a folder"):
        spend(Ledger(tmp_path, EPSILON, DELTA), "p", "x", 0.1)
    with pytest.raises(LedgerError, match="a folder"):
        Ledger.load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_for_real(ledger: Ledger) -> None:
    ledger.path.chmod(0o444)
    assert ledger.entries() == ()
    with pytest.raises(LedgerError, match="permissions"):
        spend(ledger, "p", "x", 0.1)


def test_read_only_file(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int, mode: int = 0) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    real = os.open
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LedgerError, match="permissions"):
        spend(ledger, "p", "x", 0.1)
    with pytest.raises(LedgerError, match="permissions"):
        Ledger.open(ledger.path.with_name("new"), EPSILON, DELTA)
    assert Ledger.load(ledger.path).entries() == ()


def test_a_full_disk_refuses_and_counts_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: real(file, data[: len(data) // 2]))
        with pytest.raises(LedgerError, match="disk full"):
            spend(ledger, "p", "x", ALL)
    assert ledger.entries() == ()
    spend(ledger, "p", "x", ALL)
    assert len(ledger.entries()) == 1


def test_records_are_counted_only_where_that_is_public_and_budget_is_left(ledger: Ledger, tmp_path: Path) -> None:
    """The file is taken away: whoever looks at a record fails for want of it, and not with the ledger's refusal."""
    file = tmp_path / "data.csv"
    file.write_text("age\n30\n40\n50\n")
    rows = open_rows(file)
    assert public_rows(rows, Unit(), ledger) == 3
    file.unlink()
    assert public_rows(rows, Unit.parse("row", "add-remove"), ledger) is None
    with pytest.raises(DataError):
        public_rows(rows, Unit(), ledger)
    spend(ledger, "p", "all of it", ALL)
    with pytest.raises(LedgerError):
        public_rows(rows, Unit(), ledger)
