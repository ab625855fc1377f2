"""Verify: everything that can be known about a release from its files, checked; and what cannot, said.

Whoever makes or changes a release can recompute its hashes. So nothing is taken on trust that follows from something
else: the guarantee from the plan, bins and pairs from the noisy sums, the card from both; and the noise in tables of
counts is compared with what the plan claims.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from dpmerf.accounting.events import Gaussian
from dpmerf.errors import ArtefactError, DpmerfError
from dpmerf.features.algebra import BITS
from dpmerf.folders import read_bytes, read_json
from dpmerf.plan import Known
from dpmerf.plan.measurements import parts_of
from dpmerf.plan.queries import Tables
from dpmerf.plan.sums import StoredSums
from dpmerf.release import plausible, signature
from dpmerf.release.card import FORMAT as CARD_FORMAT
from dpmerf.release.plausible import Finding
from dpmerf.release.release import CARD, DOCUMENT, RULES, TENSORS, Release, packed

_SIGNED = (DOCUMENT, TENSORS, CARD)
_MODEL = {"model.json", "weights.safetensors"}  # a model's folder holds its release too
_MADE_WITH = re.compile(r"dpmerf [0-9][0-9a-z.+]{0,30}")


@final
@dataclass(frozen=True)
class Verified:
    """A release that was checked, by which tests, and what its files cannot show."""

    release: Release
    tests: tuple[Finding, ...]  # of the noise
    signed_by: str | None  # fingerprint of a key
    unknown: tuple[str, ...]


def verify(path: str | Path, signed_by: str | Path | None = None) -> Verified:
    """Check a release, or say what is wrong with it.

    Parameters
    ----------
    path : str or Path
        The release's folder, or a model's, which holds its release.
    signed_by : str or Path, optional
        A file: the public key that must have signed it.

    Returns
    -------
    Verified
        The release, the tests of its noise, who signed it, and what its files cannot show.

    Examples
    --------
    >>> verify("out/release").release.guarantee()["epsilon"]  # doctest: +SKIP
    1.0
    """
    folder = Path(path)
    key = None if signed_by is None else signature.load_public(signed_by)
    release = Release.load(folder)
    document = read_json(folder / DOCUMENT, "release")
    model = _check_files(folder)
    _check_bytes(folder, document, release)
    unknown = []
    if document["format"] >= 2 and document["rules"] == RULES:
        _check_derived(folder, release)
    else:
        unknown.append("whether bins and picked pairs follow from its sums: another version made them, by other rules")
    if document["format"] >= 2 and document["card"] == CARD_FORMAT:
        if read_bytes(folder / CARD, "release") != release.card().encode():
            raise _refuse(folder, f"its {CARD} does not say what follows from its plan")
    else:
        unknown.append(f"whether {CARD} is right: another version wrote it. What follows from the plan is printed here")
    tests = plausible.check_noise(_tables(release), release.rows)
    for test in tests:
        if not test.plausible:
            raise _refuse(folder, f"its noise is not what its plan claims: it cannot be that {test.what}")
    signer = None
    if key is not None or (folder / signature.FILE).exists():
        files = {name: read_bytes(folder / name, "release") for name in _SIGNED}
        text = read_bytes(folder / signature.FILE, "signed release")
        signer = signature.check_signature(text, files, document["plan_hash"], document.get("ledger"), key)
    return Verified(release, tests, signer, (*unknown, *_cannot_be_known(release, tests, key is not None, model)))


def _check_files(folder: Path) -> bool:
    """Nothing but what a release (or a model) is made of. True for a model."""
    names = {p.name for p in folder.iterdir()}
    model = bool(names & _MODEL)
    if extra := names - {*_SIGNED, signature.FILE} - (_MODEL if model else set()):
        raise _refuse(folder, f"'{min(extra)}' is no part of a release: remove it")
    return model


def _check_bytes(folder: Path, document: dict[str, Any], release: Release) -> None:
    """As the program writes them: nothing between the lines, no field twice, no note beside the tensors."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    tensors = packed(release.sums)
    written = {DOCUMENT: text.encode(), TENSORS: tensors}
    for name, data in written.items():
        if read_bytes(folder / name, "release") != data:
            raise _refuse(folder, f"{name} holds more than what a release has to say")
    if not _MADE_WITH.fullmatch(str(document["made_with"])):
        raise _refuse(folder, "its description does not say which version made it")


def _check_derived(folder: Path, release: Release) -> None:
    """Bins, normal scores and picked pairs, once more from the noisy sums."""
    try:
        answers = StoredSums({stage.name: release.numbers(stage) for stage in release.plan.stages})
        known = Known(release.plan, answers.only(set()), release.rows, release.noise, {})
        for stage in release.plan.stages:
            known = replace(known.prepared(stage), sums=answers.only({*known.sums, stage.name}))
        follows = _same(_stored(known), _stored(release))
    except (DpmerfError, ArithmeticError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
        follows = False  # other bins give other sizes, and sums that do not fill them
    if not follows:
        raise _refuse(folder, "its bins, scores or picked pairs do not follow from its noisy sums")


def _stored(known: Known) -> Any:
    return json.loads(json.dumps({stage: derived.to_json() for stage, derived in known.derived.items()}))


def _same(a: Any, b: Any) -> bool:
    """Equal, up to the last digits of floats, which may differ between machines."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float):
        return type(b) is float and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
    return type(a) is type(b) and bool(a == b)


# --- the noise -------------------------------------------------------------------------------------------------------


def _tables(release: Release) -> list[plausible.Table]:
    """Every table of counts, over variables that have one name in all stages."""
    found = []
    same = _same_cells(release)
    for stage, price in zip(release.plan.stages, release.plan.prices, strict=True):
        if stage.query.event is not Gaussian:
            continue
        phi = release.embedding(stage).phi
        for block, part in parts_of(phi, release.numbers(stage)):
            if block.dense is None:
                sums = part.reshape([v.size for v in block.cells])
                names = tuple(same.get(v.name, v.name) for v in block.cells)
                weight = math.floor(block.weight * 2**BITS)
                found.append(plausible.Table(names, sums, weight, price.sigma, picked=stage.query.recounts))
    return found


def _same_cells(release: Release) -> dict[str, str]:
    """Fine cells or parts that are a column's bins, whatever the noise.

    Where bins were cut by noisy histograms, these are not compared: their noise helped to cut.
    """
    if release.binning is None:
        return {}
    label = release.plan.query(Tables).label(release.codec)
    found = {}
    for name, bin_of in release.binning.bin_numbers.items():
        if name == label or len(bin_of) <= 2:
            found[f"{name}#fine"] = f"{name}#bin"
        if release.binning.bin_of_part(name).tolist() == list(range(int(bin_of.max()) + 1)):
            found[f"{name}#part"] = f"{name}#bin"
    return found


# --- what cannot be known --------------------------------------------------------------------------------------------


def _cannot_be_known(release: Release, tests: tuple[Finding, ...], signed: bool, model: bool) -> Iterator[str]:
    dense = any(m.dense is not None for m in release.measurements)
    if not tests:
        yield "whether noise was added at all: the release has too few tables of counts to tell"
    elif dense:
        yield "whether noise was added to the features that are no counts: only tables of counts show it"
    else:
        yield "whether the noise is a little too small, was drawn more than once, or is known to somebody"
    yield "whether schema and plan were written without looking at the rows, and which rows were read"
    if release.charge is None:
        yield "what else was released of the same data: no ledger was charged"
    else:
        yield "what else was released of the same data outside its ledger"
    if model:
        yield "whether the model was made from this release alone: train it again to be sure"
    if not signed:
        yield "who made it: a release that is changed with care passes. Ask for a signature (--signed-by)"


def _refuse(folder: Path, what: str) -> ArtefactError:
    return ArtefactError(f"{folder}: {what}. Do not use it; take the original again")
