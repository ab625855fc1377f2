"""The ledger counts everything that may have been looked at, whatever crashes, races or damage happen."""

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

from dpmerf.budget import compose, delta_of, discrete_delta, mu_of
from dpmerf.errors import BudgetError, LedgerError
from dpmerf.private.ledger import Ledger

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
EPSILON, DELTA = 1.0, 1e-5
ALL = mu_of(EPSILON, DELTA)
fork = multiprocessing.get_context("fork")


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


def test_a_new_ledger_is_empty_and_reopens(ledger: Ledger) -> None:
    assert Ledger.open(ledger.path, EPSILON, DELTA) == Ledger.load(ledger.path) == ledger
    assert ledger.entries() == () and ledger.spent_mu() == 0 and ledger.remaining_epsilon() == EPSILON
    header = json.loads(ledger.path.read_text())
    assert (header["format"], header["kind"], header["epsilon"], header["delta"]) == (1, "header", EPSILON, DELTA)
    assert os.listdir(ledger.path.parent) == ["study.ledger"]  # no drafts left behind


def test_spend_is_written_as_it_is_returned(ledger: Ledger) -> None:
    entry = ledger.spend("abc", "release", ALL / 2, 1e-9)
    assert ledger.entries() == (entry,)
    assert (entry.plan, entry.purpose, entry.mu, entry.extra_delta) == ("abc", "release", ALL / 2, 1e-9)
    assert entry.time.endswith("+00:00")
    header, line = map(json.loads, ledger.path.read_text().splitlines())
    assert line["kind"] == "spend" and line["prev"] == header["hash"] and line["hash"] == entry.hash


def test_exactly_the_limit_passes_and_nothing_more(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.spend("p", "a third", ALL / math.sqrt(3))
    assert ledger.spent_mu() == pytest.approx(ALL, rel=1e-14)
    assert ledger.remaining_epsilon() < 1e-6
    with pytest.raises(LedgerError, match=r"the budget is spent.*epsilon = 1 at delta = 1e-05.*3 release"):
        ledger.spend("p", "more", 1e-3)
    assert len(ledger.entries()) == 3


def test_the_sampler_is_counted_too(ledger: Ledger) -> None:
    extra = discrete_delta(EPSILON, 1000, 5000.0)
    with pytest.raises(LedgerError):
        ledger.spend("p", "ignores the sampler", ALL, extra)
    ledger.spend("p", "allows for it", mu_of(EPSILON, DELTA - extra), extra)


def test_a_refusal_says_what_is_left_and_writes_nothing(ledger: Ledger) -> None:
    ledger.spend("p", "first", ALL * 0.8)
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match=r"would overspend.* epsilon = about 0\.5\d* is left"):
        ledger.spend("p", "second", ALL * 0.8)
    assert ledger.path.read_bytes() == before
    ledger.spend("p", "what is left", mu_of(ledger.remaining_epsilon(), DELTA))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spends=st.lists(st.tuples(st.floats(1e-3, ALL), st.floats(0, DELTA / 3)), max_size=6))
def test_never_over_the_limit(spends: list[tuple[float, float]], tmp_path_factory: pytest.TempPathFactory) -> None:
    ledger = Ledger.open(tmp_path_factory.mktemp("l") / "l", EPSILON, DELTA)
    accepted: list[tuple[float, float]] = []
    for mu, extra in spends:
        mus, extras = zip(*accepted, (mu, extra), strict=True)
        fits = delta_of(compose(*mus), EPSILON) + math.fsum(extras) <= DELTA * (1 + 1e-12)
        try:
            ledger.spend("p", "x", mu, extra)
            assert fits
            accepted.append((mu, extra))
        except LedgerError:
            assert not fits
    assert [(entry.mu, entry.extra_delta) for entry in ledger.entries()] == accepted
    summary = json.loads(json.dumps(ledger.summary()))
    assert len(summary["entries"]) == len(accepted) and 0 <= summary["remaining_epsilon"] <= EPSILON


@pytest.mark.parametrize(
    ("mu", "extra"), [(0, 0), (-1, 0), (math.nan, 0), (math.inf, 0), (0.1, -1), (0.1, 1), (0.1, math.nan)]
)
def test_bad_prices(ledger: Ledger, mu: float, extra: float) -> None:
    with pytest.raises(LedgerError, match="cannot spend"):
        ledger.spend("p", "x", mu, extra)
    assert ledger.entries() == ()


def test_any_text_is_a_purpose(ledger: Ledger) -> None:
    ledger.spend("p", 'line\nbreak "quotes" ε #void', 0.01)
    ledger.spend("p", "next", 0.01)
    assert ledger.entries()[0].purpose == 'line\nbreak "quotes" ε #void'


# --- processes -------------------------------------------------------------------------------------------------------


def _race(path: Path, start: Barrier, mu: float, times: int) -> None:
    ledger = Ledger.load(path)
    start.wait()
    try:
        for _ in range(times):
            ledger.spend("p", "race", mu)
    except LedgerError:
        os._exit(3)
    os._exit(0)


def test_two_processes_cannot_both_spend_the_last(ledger: Ledger) -> None:
    for _ in range(5):
        ledger.path.unlink()
        Ledger.open(ledger.path, EPSILON, DELTA).spend("p", "most of it", ALL * 0.6)
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
    Ledger.load(path).spend("p", "killed while reading rows", ALL)
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
        ledger.spend("p", "again", ALL)


# --- damage ----------------------------------------------------------------------------------------------------------


def test_truncation_at_every_byte_of_the_last_line(ledger: Ledger) -> None:
    done = [ledger.spend("p", "done", ALL / 2).hash for _ in range(2)]
    whole = ledger.path.stat().st_size
    last = ledger.spend("p", "torn", ALL / 2)
    raw = ledger.path.read_bytes()
    for size in range(whole, len(raw) + 1):
        ledger.path.write_bytes(raw[:size])
        hashes = [entry.hash for entry in ledger.entries()]
        assert hashes == ([*done, last.hash] if size >= len(raw) - 1 else done)
        new = ledger.spend("p", "after", ALL / 2)
        assert [entry.hash for entry in ledger.entries()] == [*hashes, new.hash]
        assert ledger.path.read_bytes().startswith(raw[:size])  # nothing is erased


def test_crash_after_crash(ledger: Ledger) -> None:
    """An append that closes a torn line may be torn itself, at any byte."""
    ledger.spend("p", "done", ALL / 2)
    raw = ledger.path.read_bytes() + b'{"extra_delta":0.0,"ha'
    ledger.path.write_bytes(raw)
    ledger.spend("p", "after", ALL / 2)
    closed = ledger.path.read_bytes()
    for size in range(len(raw), len(closed) + 1):
        ledger.path.write_bytes(closed[:size])
        counted = len(ledger.entries())
        assert counted == (2 if size >= len(closed) - 1 else 1)
        ledger.spend("p", "third", ALL / 2)
        assert len(ledger.entries()) == counted + 1


def test_flipped_bits_are_refused(ledger: Ledger) -> None:
    ledger.spend("p", "one", ALL / 2)
    ledger.spend("p", "two", ALL / 2)
    raw = ledger.path.read_bytes()
    last = raw.rindex(b"\n", 0, -1)
    for place in range(len(raw)):  # every bit from the newline before the last line on, and one of each byte before it
        for bit in range(8) if place >= last else [place % 8]:
            ledger.path.write_bytes(raw[:place] + bytes([raw[place] ^ (1 << bit)]) + raw[place + 1 :])
            with pytest.raises(LedgerError):
                ledger.entries()
    with pytest.raises(LedgerError, match=r"damaged .* restore it from a copy"):
        ledger.spend("p", "x", 0.01)


def test_lines_removed_swapped_or_repeated_are_refused(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.spend("p", "x", 0.01)
    head, a, b, c = ledger.path.read_bytes().splitlines(keepends=True)
    for lines in ([head, b, c], [head, a, c], [head, b, a, c], [head, a, a, b, c], [a, b, c], [head, a, b"\n", b]):
        ledger.path.write_bytes(b"".join(lines))
        with pytest.raises(LedgerError, match=r"damaged|format"):
            ledger.entries()


def test_a_whole_spend_cannot_be_marked_void(ledger: Ledger) -> None:
    ledger.spend("p", "x", ALL)
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
    monkeypatch.setattr("dpmerf.private.ledger.FORMAT", 2)
    with pytest.raises(LedgerError, match="not a ledger of format 2"):
        Ledger.load(ledger.path)


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
        ledger.spend("p", "x", ALL)


def test_missing_places(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no such file or folder"):
        Ledger.load(tmp_path / "none")
    with pytest.raises(LedgerError, match="create the folder"):
        Ledger.open(tmp_path / "none" / "l", EPSILON, DELTA)
    with pytest.raises(LedgerError, match="a folder"):
        Ledger(tmp_path, EPSILON, DELTA).spend("p", "x", 0.1)
    with pytest.raises(LedgerError, match="a folder"):
        Ledger.load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_for_real(ledger: Ledger) -> None:
    ledger.path.chmod(0o444)
    assert ledger.entries() == ()
    with pytest.raises(LedgerError, match="permissions"):
        ledger.spend("p", "x", 0.1)


def test_read_only_file(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int, mode: int = 0) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    real = os.open
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LedgerError, match="permissions"):
        ledger.spend("p", "x", 0.1)
    with pytest.raises(LedgerError, match="permissions"):
        Ledger.open(ledger.path.with_name("new"), EPSILON, DELTA)
    assert Ledger.load(ledger.path).entries() == ()


def test_a_full_disk_refuses_and_counts_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: real(file, data[: len(data) // 2]))
        with pytest.raises(LedgerError, match="disk full"):
            ledger.spend("p", "x", ALL)
    assert ledger.entries() == ()
    ledger.spend("p", "x", ALL)
    assert len(ledger.entries()) == 1
