"""Release: the artefact. Noisy sums, the plan that made them and the guarantee. Holds no row."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from safetensors import SafetensorError

import dpmerf
from dpmerf.encoding.binning import Binning
from dpmerf.encoding.codec import Codec
from dpmerf.encoding.normal_scores import Scores
from dpmerf.errors import ArtefactError, DpmerfError
from dpmerf.features.algebra import BITS, Block, FeatureMap
from dpmerf.folders import read_bytes, read_json, write_folder
from dpmerf.lazy import torch
from dpmerf.plan import Plan, Stage, digest
from dpmerf.plan.queries import (
    Choice,
    CloserLook,
    Directions,
    Embedding,
    Histograms,
    ImageEmbedding,
    SecondLook,
    Tables,
    View,
    class_table,
)
from dpmerf.release.card import FORMAT as CARD_FORMAT
from dpmerf.release.card import NOT_PRIVATE, card
from dpmerf.release.signature import FILE as SIGNATURE
from dpmerf.release.signature import Key

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 2
RULES = 1  # of `derive`
TRUSTED_NOISE = "opendp-discrete-gaussian"
NO_LEDGER = "No ledger: nothing counts this release together with others of the same data."
DOCUMENT, TENSORS, CARD = "release.json", "sums.safetensors", "CARD.md"


@final
@dataclass(frozen=True)
class Measurement:
    """One block's noisy sum, in natural units: counts, or sums of features. `sigma` is its noise per coordinate."""

    block: Block
    values: Tensor  # (cells, width) float64
    sigma: float


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
@dataclass(frozen=True)
class Release:
    """What may leave the building."""

    plan: Plan
    sums: dict[str, Tensor]  # stage -> (dim,) int64, noisy; of a choice (1,), which column
    rows: int | None  # None: the number of rows is protected; see `rows_estimate`
    noise: str
    binning_json: dict[str, Any] | None  # what follows from earlier stages: bins or masses of cells, chosen pairs
    charge: Charge | None = None  # None: no ledger knows of it

    @property
    def codec(self) -> Codec:
        return self.plan.codec

    @cached_property
    def binning(self) -> Binning | None:
        if self.binning_json is None or "bins" not in self.binning_json:
            return None
        return Binning.from_json(self.plan.histograms.grid(self.codec), self.binning_json)

    @cached_property
    def scores(self) -> Scores | None:
        if self.binning_json is None or "mass" not in self.binning_json:
            return None
        return Scores.from_json(self.plan.histograms.grid(self.codec), self.binning_json)

    @property
    def _bins(self) -> Binning:
        if self.binning is None:
            raise ArtefactError("the release has tables but no bins: it is damaged")
        return self.binning

    @property
    def chosen(self) -> tuple[tuple[str, str], ...]:
        """The pairs that were measured a second time."""
        return tuple((a, b) for a, b in (self.binning_json or {}).get("chosen", ()))

    @property
    def looked_at(self) -> str | None:
        """The column that was chosen to be looked at once more."""
        stage = next((s for s in self.plan.stages if isinstance(s.recipe, Choice)), None)
        if stage is None or stage.name not in self.sums:
            return None
        columns, at = self.plan.tables.columns(self.codec), int(self.sums[stage.name])
        if not 0 <= at < len(columns):
            raise ArtefactError("the release chose a column that does not exist: it is damaged")
        return columns[at]

    def feature_map(self, stage: Stage) -> FeatureMap:
        """What was really measured in a stage, at its real size."""
        match stage.recipe:
            case Tables():
                return stage.recipe.feature_map(self.codec, self._bins)
            case SecondLook():
                return stage.recipe.feature_map(self._bins, self.chosen)
            case Choice():
                return stage.recipe.feature_map(self.codec, self._bins, self.plan.tables.columns(self.codec))
            case CloserLook():
                if self.looked_at is None:
                    raise ArtefactError("the release has a closer look but no choice: it is damaged")
                return class_table(self.codec, self._bins, self.looked_at)
            case Histograms() | Directions() | Embedding() | ImageEmbedding():
                return stage.recipe.feature_map(self.codec)

    def view(self, stage: Stage) -> View:
        """How a row is looked at in a stage, by what the stages before it released."""
        match stage.recipe:
            case Tables():
                return stage.recipe.view(self._bins)
            case SecondLook() | Choice() | CloserLook():
                return self.plan.tables.view(self._bins)
            case Directions():
                if self.scores is None:
                    raise ArtefactError("the release has directions but no scores: it is damaged")
                return stage.recipe.view(self.scores)
            case Histograms() | Embedding() | ImageEmbedding():
                return stage.recipe.view(self.codec)

    def measurements(self, stage: Stage) -> list[Measurement]:
        """The stage's blocks in natural units (divided by weight and grid). A choice has none."""
        if isinstance(stage.recipe, Choice):
            return []
        phi = self.feature_map(stage)
        sigma = next(p.sigma for p in self.plan.prices if p.stage == stage.name)
        parts = self.sums[stage.name].split([b.dim for b in phi.blocks])
        found = []
        for block, part in zip(phi.blocks, parts, strict=True):
            unit = block.weight * 2**BITS
            found.append(Measurement(block, part.double().view(block.size, block.width) / unit, sigma / unit))
        return found

    @cached_property
    def rows_estimate(self) -> float:
        """The number of rows: exact where public, else the best estimate from every noisy table of counts."""
        if self.rows is not None:
            return float(self.rows)
        weighted = precision = 0.0
        for stage in (s for s in self.plan.stages if s.name in self.sums):
            for m in self.measurements(stage):
                if m.block.dense is None:
                    p = 1 / (m.block.size * m.sigma**2)
                    weighted, precision = weighted + p * float(m.values.sum()), precision + p
        return max(1.0, weighted / precision) if precision else float(self.plan.rows)

    def guarantee(self) -> dict[str, Any]:
        """What is promised, as recomputed from the plan."""
        plan = self.plan
        return {
            **({} if self.private else {"NOT PRIVATE": NOT_PRIVATE}),
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "mu": plan.mu,
            "discrete_delta": plan.discrete_delta,
            "unit": plan.unit.describe(),
            "rows_public": plan.unit.rows_public,
            "attacker_accuracy": plan.odds.accuracy,
            "attacker_posterior": plan.odds.posterior,
            "attacker_posterior_passed": plan.odds.passed,
            "sigma": {p.stage: p.sigma for p in plan.prices},
            **({"choices": list(plan.choices)} if plan.choices else {}),
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
        return card(self.plan, self.noise, self.private, rows, self.looked_at, str(self.charge or NO_LEDGER))

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
            "binning": self.binning_json,
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


_FIRST = {"format", "kind", "made_with", "plan", "plan_hash", "guarantee", "rows", "noise", "binning", "sums_sha256"}
_FIELDS = {1: _FIRST | {"hash"}, 2: _FIRST | {"hash", "ledger", "rules", "card"}}  # of release.json, by its format


def _check(document: dict[str, Any], tensors: bytes, where: str) -> Release:
    def refuse(what: str) -> ArtefactError:
        return ArtefactError(f"{where}: {what}. Do not use it; take the original again")

    try:
        if document.get("format") not in (1, FORMAT) or document.get("kind") != "release":
            raise refuse(f"not a release of format {FORMAT} or less")
        if unknown := set(document) ^ _FIELDS[document["format"]]:
            raise refuse(f"its description has other fields than a release ('{min(unknown)}')")
        plan = Plan.from_json(document["plan"], f"{where}: the plan")
        if digest(document["plan"]) != document["plan_hash"]:
            raise refuse("its plan was changed")
        if hashlib.sha256(tensors).hexdigest() != document["sums_sha256"]:
            raise refuse("its noisy sums were changed (the file's hash differs)")
        rows, noise, binning = document["rows"], document["noise"], document["binning"]
        if not (type(rows) is int and rows > 0 if plan.unit.rows_public else rows is None):
            raise refuse("its number of rows does not fit its unit of privacy")
        charge = document.get("ledger")
        sums = _unpack(tensors)
        release = Release(plan, sums, rows, str(noise), binning, None if charge is None else Charge(**charge))
        true, claimed = release.guarantee(), document["guarantee"]
        if document["format"] == 1:
            del true["attacker_posterior_passed"]  # not said then
        for key in (*true, *claimed):
            if key not in true or not _same(true[key], claimed.get(key)):
                raise refuse(f"its guarantee was changed: '{key}' does not follow from the plan")
        if digest({k: v for k, v in document.items() if k != "hash"}) != document["hash"]:
            raise refuse("its description was changed (hash differs)")
        if unknown := set(sums) - {s.name for s in plan.stages}:
            raise refuse(f"it holds sums that its plan does not name ('{min(unknown)}')")
        for stage, price in zip(plan.stages, plan.prices, strict=True):
            phi, choice = release.feature_map(stage), isinstance(stage.recipe, Choice)
            if sums[stage.name].shape != (1 if choice else phi.dim,):
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


def _unpack(tensors: bytes) -> dict[str, Tensor]:
    from safetensors.torch import load  # imports PyTorch

    sums = load(tensors)
    if any(t.dtype != torch.int64 or t.dim() != 1 for t in sums.values()):
        raise ValueError("sums must be int64 vectors")
    return sums


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return isinstance(b, int | float) and math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)


def packed(sums: dict[str, Tensor]) -> bytes:
    """The sums as the bytes of their file."""
    from safetensors.torch import save  # imports PyTorch

    return save({name: t.contiguous() for name, t in sums.items()})  # type: ignore[no-any-return]
