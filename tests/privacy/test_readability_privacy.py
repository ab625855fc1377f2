"""The readability stage keeps its promise; exact shares and a stop decided on exact counts are caught."""

import math
from collections.abc import Callable

import pyarrow as pa
import pytest

import dpmerf.private.measure as room
from dpmerf.errors import UnreadableError
from dpmerf.methods.presets import make_plan
from dpmerf.methods.readable_first import readable_first
from dpmerf.plan import Plan
from dpmerf.plan.queries.readability import MOST_UNREAD, readable_shares
from dpmerf.private.noise import OpenDPGaussian
from dpmerf.schema import Schema

RUNS = 120
ROWS = 200
SURE = 4.5


def _plan() -> Plan:
    schema = Schema.parse('[columns.n]\nkind = "integer"\nmin = 0\nmax = 9\n')
    return readable_first(make_plan(schema, 3.0, 1e-5, rows=ROWS), ("n",))


def _table(unread: int) -> pa.Table:
    return pa.table({"n": ["x"] * unread + ["1"] * (ROWS - unread)})


def _stopped(plan: Plan, table: pa.Table) -> bool:
    try:
        room.measure(table, plan)
    except UnreadableError:
        return True
    return False


def _says(plan: Plan, table: pa.Table) -> float:
    return readable_shares(room.measure(table, plan, go_on=True))[0].unread


def _broken(event: Callable[[pa.Table], bool], plan: Plan, here: int, there: int) -> bool:
    """Is the event likelier beside one more unread cell than what the stage costs allows?"""
    mu = plan.price_of(plan.stages[0]).mu
    a, b = (sum(event(_table(count)) for _ in range(RUNS)) / RUNS for count in (here, there))
    allowed = math.erf(mu / 2 / math.sqrt(2))  # total variation of two Gaussians mu apart
    return abs(a - b) - allowed > SURE * math.sqrt((a * (1 - a) + b * (1 - b) + 1 / RUNS) / RUNS)


def _limit(plan: Plan) -> int:
    """Unread cells at which a stop is as likely as not: half of the rows, and the doubt."""
    sigma = readable_shares(room.measure(_table(0), plan, go_on=True))[0].noise
    return math.ceil(ROWS * (MOST_UNREAD + 4.0 * sigma)) + 1


def test_the_promise_holds() -> None:
    plan = _plan()
    limit = _limit(plan)
    assert not _broken(lambda table: _stopped(plan, table), plan, limit, limit - 1)
    assert not _broken(lambda table: _says(plan, table) > 0.5, plan, ROWS // 2 + 1, ROWS // 2)


def test_exact_shares_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan()
    right = OpenDPGaussian.add

    def first_exact(self, sums, sigma, advance=None):  # type: ignore[no-untyped-def]
        return sums if len(sums) == 4 else right(self, sums, sigma, advance)

    monkeypatch.setattr(OpenDPGaussian, "add", first_exact)
    assert _broken(lambda table: _says(plan, table) > 0.5, plan, ROWS // 2 + 1, ROWS // 2)


def test_a_stop_decided_on_exact_counts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan()
    limit = _limit(plan)
    seen: dict[str, float] = {}
    summed = room.sum_locally

    def spying(rows, plan, phi, view, bars, what):  # type: ignore[no-untyped-def]
        sums, n = summed(rows, plan, phi, view, bars, what)
        if "readability" in what:
            seen["unread"] = float(sums[3]) / 2**24
        return sums, n

    def exact(known, charge) -> None:  # type: ignore[no-untyped-def]
        if seen["unread"] >= limit:
            raise UnreadableError("stopped")

    monkeypatch.setattr(room, "sum_locally", spying)
    monkeypatch.setattr(room, "_stop_if_unreadable", exact)
    assert _broken(lambda table: _stopped(plan, table), plan, limit, limit - 1)
