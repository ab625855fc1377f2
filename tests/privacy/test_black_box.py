"""An attacker who sees everything that a release lets out, and knows nothing of how it is made, stays below the claim.

Whole artefacts of two neighbouring tables: every number, word, name and size in the folder, every step of the progress
and the exit code are features. Rules are learned on half of the releases and judged on the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmerf.audit.artefact import Artefact
from dpmerf.audit.bounds import Claim
from dpmerf.audit.distinguish import distinguish
from privacy.cases import Case, case
from privacy.checks import artefacts
from privacy.variants import ALARM, FULL

pytestmark = pytest.mark.privacy
METHODS = ("embedding", "tables", "wide", "few rows", "images", "persons")
RELEASES = 1_000 if FULL else 60  # on each side
EPSILONS = (1.0, 10.0) if FULL else (10.0,)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", METHODS)
def test_nobody_tells_whole_artefacts_apart(
    name: str, epsilon: float, record_property: Callable[[str, Any], None]
) -> None:
    where: Case = case(name, epsilon)
    out, inside = artefacts(where, RELEASES)
    shown = distinguish(out, inside, 0.05)
    record_property(
        "audit",
        f"black box, {name:<24} claim ε = {epsilon:<4g} μ = {where.plan.mu:.4f} | shown ε ≥ "
        f"{shown.epsilon(where.plan.delta):.3f}, μ ≥ {shown.mu:.4f} ({shown.best} rule) | {shown.releases:,} releases",
    )
    assert distinguish(out, inside, ALARM).refutes(Claim.of(where.plan)) is None
    if FULL and epsilon > 1:
        assert shown.mu > 0.2 * where.plan.mu, "an attacker who sees nothing proves nothing"


def test_what_differs_once_in_a_while_is_found() -> None:
    """The attacker himself: numbers, words, sizes, missing files and a terminal's words, on made-up artefacts."""
    rng = np.random.default_rng(0)

    def made_up(change: Callable[[int], dict[str, Any]]) -> list[Artefact]:
        found = []
        for i in range(300):
            more = change(i)
            files = {"a.json": f'{{"x": {rng.normal() + more.get("shift", 0)}}}'.encode(), **more.get("files", {})}
            found.append(Artefact(files, more.get("said", f"{i % 7} of 7"), more.get("code", 0)))
        return found

    claim = Claim(0.3)
    assert distinguish(made_up(lambda i: {}), made_up(lambda i: {}), ALARM).refutes(claim) is None
    changes: dict[str, Callable[[int], dict[str, Any]]] = {
        "a number": lambda i: {"shift": 3.0},
        "a file": lambda i: {"files": {"b.txt": b"rows"} if i % 3 else {}},
        "a size": lambda i: {"files": {"b.bin": bytes(5 + i % 2)}},
        "a word": lambda i: {"said": "7 of 8"},
        "an exit code": lambda i: {"code": 3 if i % 4 else 0},
    }
    same = made_up(lambda i: {"files": {"b.bin": bytes(4)}})
    for what, change in changes.items():
        out = same if what == "a size" else made_up(lambda i: {})
        assert distinguish(out, made_up(change), ALARM).refutes(claim) is not None, what
