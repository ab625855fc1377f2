"""Each planted bug is caught, by name, by the checks that it names; the product passes the same checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_args

import pytest

from privacy.bugs.bug import Bug, Kind
from privacy.cases import case
from privacy.checks import CHECKS
from privacy.planted import BUGS
from privacy.variants import FULL

pytestmark = pytest.mark.privacy
METHODS = {"embedding", "tables", "wide", "few rows", "images", "persons"}
SURVIVORS = {  # of an earlier suite, which looked at sums alone
    "one noise vector shared by stages",
    "bins from exact tables",
    "pairs measured again from exact tables",
    "class shares of a selection, exact",
    "exact arg-max in release.json",
    "noise 5 % larger if n is odd",
    "noise 1 % too small",
    "row counter on a terminal, add-remove",
    "enforcement skipped for dense × label",
}


@cache
def alarms_of_the_product(name: str, check: str) -> tuple[str, ...]:
    return tuple(CHECKS[check](case(name)))


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, id=bug.name, marks=pytest.mark.xdist_group(f"planted {bug.case}")) for bug in BUGS]
)
def test_each_planted_bug_is_caught_and_the_product_passes(
    bug: Bug, record_property: Callable[[str, Any], None]
) -> None:
    where = case(bug.case)
    checks = bug.by + (bug.slow if FULL else ())
    false = {check: found for check in checks if (found := alarms_of_the_product(bug.case, check))}
    with bug.planted():
        caught = {check: CHECKS[check](where) for check in checks}
    words = "; ".join(f"{check}: {found[0] if found else 'NOT CAUGHT'}" for check, found in caught.items())
    verdict = "FAILS" if false else "passes"
    record_property("planted", f"| {bug.name:<46} | {where.method:<9} | {bug.kind:<10} | product {verdict} | {words}")
    assert not false, f"the product fails a check for '{bug.name}'"
    assert all(caught.values()), f"'{bug.name}' was not caught"


def test_the_bugs_cover_methods_kinds_and_those_that_once_survived() -> None:
    names = [bug.name for bug in BUGS]
    assert len(names) == len(set(names)) >= 30
    assert {case(bug.case).method for bug in BUGS} == METHODS
    assert {bug.kind for bug in BUGS} == set(get_args(Kind))
    assert set(names) >= SURVIVORS
    assert {case(bug.case).method for bug in BUGS if "black box" in bug.by + bug.slow} == METHODS
