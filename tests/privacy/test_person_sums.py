"""What a person adds: bounded in integers for any rows, alone and in a crowd; every planted bug is caught by name."""

from __future__ import annotations

import numpy as np
import pytest

from dpmerf.private import spill
from privacy.bugs.person_bugs import PERSON_BUGS
from privacy.person_hunt import alarms, person, sums

pytestmark = pytest.mark.privacy


@pytest.mark.parametrize("seed", range(3))
def test_no_person_adds_more_than_the_bound(seed: int) -> None:
    assert alarms(seed) == []


@pytest.mark.parametrize("name", PERSON_BUGS)
def test_each_planted_bug_is_caught_by_name(name: str) -> None:
    plant, said = PERSON_BUGS[name]
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        found = alarms()
    assert any(said in alarm for alarm in found), found


def test_order_of_rows_chunks_and_spilling_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    crowd = {f"p{i}": person(rng, int(n)) for i, n in enumerate(rng.integers(0, 12, 60))}
    whole = sums(crowd)
    backward = {name: {t: rows[::-1] for t, rows in crowd[name].items()} for name in reversed(crowd)}
    monkeypatch.setattr(spill, "HELD_BYTES", 256)
    monkeypatch.setattr("dpmerf.private.histories.CHUNK", 7)
    spilled = sums(backward)
    assert all((spilled[part] == whole[part]).all() for part in whole)


def test_the_window_is_consecutive_and_differs_between_readings() -> None:
    rng = np.random.default_rng(4)
    crowd = {f"p{i}": person(rng, 30) for i in range(20)}
    first, again, other = sums(crowd), sums(crowd), sums(crowd, b"q" * 32)
    assert (first["visits"] == again["visits"]).all()
    assert (first["visits"] != other["visits"]).any()
    assert (first["people"] == other["people"]).all()
