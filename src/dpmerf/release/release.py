"""Release: the artefact. Noisy sums, the plan that made them and the guarantee. Holds no row."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

import dpmerf
from dpmerf.errors import ArtefactError, DpmerfError
from dpmerf.folders import read_bytes, read_json, write_folder
from dpmerf.plan import Known, Plan, digest
from dpmerf.plan.queries import Derived
from dpmerf.plan.queries.column_selection import selected_column
from dpmerf.plan.sums import StoredSums, sums_of
from dpmerf.release.card import FORMAT as CARD_FORMAT
from dpmerf.release.card import NOT_PRIVATE, card
from dpmerf.release.signature import FILE as SIGNATURE
from dpmerf.release.signature import Key
from dpmerf.shown import Shown

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 4
RULES = 3  # of `Query.derive`
TRUSTED_NOISE = "opendp-discrete-gaussian"
NO_LEDGER = "No ledger: nothing counts this release together with others of the same data."
DOCUMENT, TENSORS, CARD = "release.json", "sums.safetensors", "CARD.md"


@final
@dataclass(frozen=True)
class Charge:
    """The line of a ledger under which a release was paid for, before a row was measured."""

    ledger: str  # its id; empty for ledgers of format 1
    entry: str  # the hash of the line

    def __post_init__(self) -> None:
        if not all(re.fullmatch("[0-9a-f]{0,64}", text) for text in (self.ledger, self.entry)):
            raise ValueError("an id and a hash are written in hexadecimal digits")

    def __str__(self) -> str:
        return f"Charged, before a row was measured, as entry {self.entry[:16]} of ledger {self.ledger or '(old)'}."


@final
@dataclass(frozen=True, repr=False)
class Release(Shown, Known):
    """What may leave the building: all stages are answered. Made by `dpmerf.release` or `Release.load`.

    Parameters
    ----------
    plan : Plan
        What was measured, and at what price.
    sums, rows, noise, derived, charge
        As it was measured; `measurements` gives it by name, and `dpmerf.answer` answers questions from it.

    Examples
    --------
    >>> Release.load("out/release").guarantee()["epsilon"]  # doctest: +SKIP
    1.0
    """

    charge: Charge | None = None  # None: no ledger knows of it

    def facts(self) -> dict[str, Any]:
        """At a glance."""
        rows = f"{self.rows:,}" if self.rows is not None else f"about {self.rows_estimate:,.0f} (noisy)"
        noise = self.noise if self.private else f"{self.noise}: {NOT_PRIVATE}"
        return {**self.plan.facts(), "rows": rows, "noise": noise, "ledger": str(self.charge or NO_LEDGER)}

    def guarantee(self) -> dict[str, Any]:
        """What is promised, as recomputed from the plan."""
        plan = self.plan
        return {
            **({} if self.private else {"NOT PRIVATE": NOT_PRIVATE}),
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "mu": plan.mu,
            "discrete_delta": plan.discrete_delta,
            "unit": plan.unit.to_dict(),
            "rows_public": plan.unit.rows_public,
            "attacker_accuracy": plan.odds.accuracy,
            "attacker_posterior": plan.odds.posterior,
            "attacker_posterior_passed": plan.odds.passed,
            "noise_in_rows": {p.stage: {what: noise for what, _, noise in p.groups} for p in plan.prices},
            **({"choices": list(plan.selections)} if plan.selections else {}),
        }

    @property
    def private(self) -> bool:
        """Does its noise come from the source that the guarantee is about?"""
        return self.noise == TRUSTED_NOISE

    @property
    def _ledger(self) -> dict[str, Any] | None:
        return None if self.charge is None else asdict(self.charge)

    def card(self) -> str:
        """CARD.md."""
        rows = f"{self.rows:,} (public)" if self.rows is not None else f"about {self.rows_estimate:,.0f} (noisy)"
        return card(self.plan, self.noise, self.private, rows, selected_column(self), str(self.charge or NO_LEDGER))

    def save(self, path: str | Path, key: Key | None = None) -> None:
        """Write the folder in one step: it appears whole or not at all. A key signs it."""
        files = self.files()
        if key is not None:
            files[SIGNATURE] = key.sign(files, self.plan.hash, self._ledger)
        write_folder(path, files)

    def files(self) -> dict[str, bytes]:
        """The artefact as named files."""
        tensors = packed(self.sums)
        document = {
            "format": FORMAT,
            "kind": "release",
            "made_with": f"dpmerf {dpmerf.__version__}",
            "plan": self.plan.to_json(),
            "plan_hash": self.plan.hash,
            "guarantee": self.guarantee(),
            "rows": self.rows,
            "noise": self.noise,
            "ledger": self._ledger,
            "rules": RULES,
            "card": CARD_FORMAT,
            "derived": {stage: derived.to_json() for stage, derived in self.derived.items()},
            "sums_sha256": hashlib.sha256(tensors).hexdigest(),
        }
        document["hash"] = digest(document)
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        return {DOCUMENT: text.encode(), TENSORS: tensors, CARD: self.card().encode()}

    @staticmethod
    def load(path: str | Path, *, test_noise: bool = False) -> Release:
        """Read a release and recompute its guarantee. `verify` looks closer.

        One whose noise came from a source for tests protects nobody and is refused, unless `test_noise` says otherwise.
        """
        document = read_json(Path(path) / DOCUMENT, "release")
        tensors = read_bytes(Path(path) / TENSORS, "release")
        release = _check(document, tensors, str(path))
        if not (release.private or test_noise):
            raise ArtefactError(
                f"{path}: its noise came from '{release.noise}', a source for tests: it protects nobody"
            )
        return release


_ALWAYS = {"format", "kind", "made_with", "plan", "plan_hash", "guarantee", "rows", "noise", "sums_sha256", "hash"}
_FIELDS = {  # of release.json, by its format
    1: _ALWAYS | {"binning"},
    2: _ALWAYS | {"binning", "ledger", "rules", "card"},
    3: _ALWAYS | {"derived", "ledger", "rules", "card"},
    4: _ALWAYS | {"derived", "ledger", "rules", "card"},
}


def _check(document: dict[str, Any], tensors: bytes, where: str) -> Release:
    format_ = document.get("format")
    known = type(format_) is int and format_ in _FIELDS

    def refuse(what: str) -> ArtefactError:
        if known and document.get("rules", 1) != RULES:
            return ArtefactError(f"{where}: {what}. Other rules made it: read it with the version of dpmerf that did")
        return ArtefactError(f"{where}: {what}. Do not use it; take the original again")

    try:
        if not known or document.get("kind") != "release":
            raise refuse(f"not a release of format {FORMAT} or less")
        if unknown := set(document) ^ _FIELDS[document["format"]]:
            raise refuse(f"its description has other fields than a release ('{min(unknown)}')")
        plan = Plan.from_json(document["plan"], f"{where}: the plan")
        if digest(document["plan"]) != document["plan_hash"]:
            raise refuse("its plan was changed")
        if hashlib.sha256(tensors).hexdigest() != document["sums_sha256"]:
            raise refuse("its noisy sums were changed (the file's hash differs)")
        rows, noise, derived = document["rows"], document["noise"], _derived(plan, document)
        if not (type(rows) is int and rows > 0 if plan.unit.rows_public else rows is None):
            raise refuse("its number of rows does not fit its unit of privacy")
        charge = document.get("ledger")
        sums = _unpack(tensors)
        release = Release(plan, sums, rows, str(noise), derived, None if charge is None else Charge(**charge))
        true, claimed = release.guarantee(), document["guarantee"]
        if document["format"] < 4:  # the noise was said in units of the integer grid
            true["sigma"] = {p.stage: p.sigma for p in plan.prices}
            del true["noise_in_rows"]
        if document["format"] == 1:
            del true["attacker_posterior_passed"]  # not said then
        if document["format"] < 3:  # the unit was said in words, which may change; the plan says it as data
            claimed = {**claimed, "unit": true["unit"]}
        for key in (*true, *claimed):
            if key not in true or not _same(true[key], claimed.get(key)):
                raise refuse(f"its guarantee was changed: '{key}' does not follow from the plan")
        if digest({k: v for k, v in document.items() if k != "hash"}) != document["hash"]:
            raise refuse("its description was changed (hash differs)")
        if unknown := set(sums) - {s.name for s in plan.stages}:
            raise refuse(f"it holds sums that its plan does not name ('{min(unknown)}')")
        for stage, price in zip(plan.stages, plan.prices, strict=True):
            phi = release.embedding(stage).phi
            if release.numbers(stage).shape != (price.released(phi),):
                raise refuse(f"stage '{stage.name}' has the wrong number of coordinates")
            price.check(phi)
        return release
    except DpmerfError:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        RuntimeError,
        ArithmeticError,
        SafetensorError,
    ):
        raise refuse("it is damaged") from None


def _derived(plan: Plan, document: dict[str, Any]) -> dict[str, Derived]:
    """Stage -> what its query was resolved with. Formats 1 and 2 kept the fields of all stages together."""
    if document["format"] < 3:
        flat = dict(document["binning"] or {})
        given = {s.name: {field: flat.pop(field) for field in s.query.derives if field in flat} for s in plan.stages}
        stored = {name: fields for name, fields in given.items() if fields}
        if flat:
            raise ValueError(f"nothing is derived as '{min(flat)}'")
    else:
        stored = dict(document["derived"])
    found = {}
    for stage in (s for s in plan.stages if s.query.derives):
        fields = stored.pop(stage.name)
        if set(fields) != set(stage.query.derives):
            raise ValueError(f"stage '{stage.name}' derives other things")
        found[stage.name] = stage.query.read_derived(plan, fields)
    if stored:
        raise ValueError(f"stage '{min(stored)}' derives nothing")
    return found


def _unpack(tensors: bytes) -> StoredSums:
    sums = safetensors.numpy.load(tensors)
    if any(array.dtype != np.int64 or array.ndim != 1 for array in sums.values()):
        raise ValueError("sums must be int64 vectors")
    return StoredSums({name: array.copy() for name, array in sums.items()})  # what is read cannot be written


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return isinstance(b, int | float) and math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)


def packed(sums: Mapping[str, Tensor]) -> bytes:
    """The sums as the bytes of their file."""
    return safetensors.numpy.save({name: np.ascontiguousarray(sums_of(sums, name)) for name in sums})
